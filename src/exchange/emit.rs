//! A reply that is written by straight code.
//!
//! A call is a future that emits events on its way and ends in the last one. Here that future becomes a stream
//! without a task or a channel: one event at a time lies in a slot, and the future does not go on until the stream
//! has taken it, so a slow client slows the upstream and nothing piles up. Dropping the stream drops the future
//! wherever it stands; the guards that it holds are the cancellation.
//!
//! Nobody polls the future of a client that takes no events. Whoever has to end such a call at its time holds its
//! [`Running`] and urges it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_util::Stream;

use super::{Event, Reply};

/// Where a call puts its events.
#[derive(Debug, Clone, Default)]
pub struct Emitter {
    slot: Arc<Mutex<Option<Event>>>,
}

impl Emitter {
    /// Hands an event to the stream and waits until it is taken.
    pub async fn emit(&self, event: Event) {
        let mut event = Some(event);
        std::future::poll_fn(|_| self.place(&mut event)).await;
    }

    /// The stream polls the future each time it is polled itself, so no waker needs to be kept.
    fn place(&self, event: &mut Option<Event>) -> Poll<()> {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        match (event.take(), slot.is_some()) {
            (Some(event), false) => {
                *slot = Some(event);
                Poll::Pending
            }
            (waiting, true) => {
                *event = waiting;
                Poll::Pending
            }
            (None, false) => Poll::Ready(()),
        }
    }

    fn take(&self) -> Option<Event> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A call behind a reply.
pub struct Running(Mutex<State>);

struct State {
    call: Option<Pin<Box<dyn Future<Output = Event> + Send>>>,
    last: Option<Event>,
    /// Who waits for the next event.
    taker: Option<Waker>,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").finish_non_exhaustive()
    }
}

impl Running {
    /// Lets the call go on although nobody takes its events. True while it has not ended: it still waits for
    /// something else than a client.
    pub fn urge(&self) -> bool {
        let mut state = self.state();
        state.poll(&mut Context::from_waker(Waker::noop()));
        // The wakers inside are not the taker's any more; it looks for itself.
        if let Some(taker) = state.taker.take() {
            taker.wake();
        }
        state.call.is_some()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn poll(&mut self, context: &mut Context<'_>) {
        let Some(call) = self.call.as_mut() else { return };
        if let Poll::Ready(last) = call.as_mut().poll(context) {
            self.call = None;
            self.last = Some(last);
        }
    }
}

struct Emitting {
    emitter: Emitter,
    running: Arc<Running>,
}

/// Makes a reply of a call.
#[must_use]
pub fn reply<F>(call: impl FnOnce(Emitter) -> F) -> Reply
where
    F: Future<Output = Event> + Send + 'static,
{
    running(call).0
}

/// Makes a reply of a call that can be urged.
#[must_use]
pub fn running<F>(call: impl FnOnce(Emitter) -> F) -> (Reply, Arc<Running>)
where
    F: Future<Output = Event> + Send + 'static,
{
    let emitter = Emitter::default();
    let call: Pin<Box<dyn Future<Output = Event> + Send>> = Box::pin(call(emitter.clone()));
    let running = Arc::new(Running(Mutex::new(State { call: Some(call), last: None, taker: None })));
    (Box::pin(Emitting { emitter, running: Arc::clone(&running) }), running)
}

impl Stream for Emitting {
    type Item = Event;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        let mut state = self.running.state();
        state.poll(context);
        if let Some(event) = self.emitter.take() {
            return Poll::Ready(Some(event));
        }
        if state.call.is_none() {
            return Poll::Ready(state.last.take());
        }
        state.taker.get_or_insert_with(|| context.waker().clone()).clone_from(context.waker());
        Poll::Pending
    }
}

impl Drop for Emitting {
    /// Others may hold the running call for a moment longer, so it is dropped here and not with its last owner.
    fn drop(&mut self) {
        let call = self.running.state().call.take();
        drop(call);
    }
}
