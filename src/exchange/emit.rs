//! A reply that is written by straight code.
//!
//! A call is a future that emits events on its way and ends in the last one. Here that future becomes a stream
//! without a task or a channel: one event at a time lies in a slot, and the future does not go on until the stream
//! has taken it, so a slow client slows the upstream and nothing piles up. Dropping the stream drops the future
//! wherever it stands; the guards that it holds are the cancellation.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

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

struct Emitting {
    emitter: Emitter,
    call: Option<Pin<Box<dyn Future<Output = Event> + Send>>>,
}

/// Makes a reply of a call.
#[must_use]
pub fn reply<F>(call: impl FnOnce(Emitter) -> F) -> Reply
where
    F: Future<Output = Event> + Send + 'static,
{
    let emitter = Emitter::default();
    let call = call(emitter.clone());
    Box::pin(Emitting { emitter, call: Some(Box::pin(call)) })
}

impl Stream for Emitting {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        let Some(call) = self.call.as_mut() else { return Poll::Ready(None) };
        match call.as_mut().poll(context) {
            Poll::Ready(last) => {
                self.call = None;
                Poll::Ready(Some(last))
            }
            Poll::Pending => match self.emitter.take() {
                Some(event) => Poll::Ready(Some(event)),
                None => Poll::Pending,
            },
        }
    }
}
