//! Who hears what on a stream that carries everything: the one of HTTP+SSE, and the pipe of a child.
//!
//! Answers belong to the call with their id. Where the stream is that of one client or principal, what carries no id
//! belongs to the call that began last; elsewhere to nobody. What belongs to no call goes to who listens beside the
//! calls. Nobody holds up the stream: of what a call does not take in time all is lost but its answer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::mpsc;

/// So many messages may wait for a call; one place more is kept for its answer.
const WAITING: usize = 64;

/// The listeners of one stream. `T` is what is remembered of a call.
#[derive(Debug)]
pub(super) struct Listeners<T> {
    places: Mutex<Places<T>>,
    is_private: AtomicBool,
}

#[derive(Debug)]
struct Places<T> {
    /// The calls that run, the latest last.
    calls: Vec<Call<T>>,
    beside: Option<mpsc::Sender<Bytes>>,
    is_over: bool,
}

#[derive(Debug)]
struct Call<T> {
    /// Its id as JSON.
    id: String,
    known: T,
    to: mpsc::Sender<Bytes>,
}

impl<T> Default for Listeners<T> {
    fn default() -> Self {
        let places = Places { calls: Vec::new(), beside: None, is_over: false };
        Self { places: Mutex::new(places), is_private: AtomicBool::new(false) }
    }
}

impl<T> Listeners<T> {
    fn places(&self) -> MutexGuard<'_, Places<T>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stream belongs to one client or principal from now on.
    pub(super) fn make_private(&self) {
        self.is_private.store(true, Ordering::Relaxed);
    }

    /// A call begins to wait for what comes under its id. Where the stream is over nothing comes.
    pub(super) fn call(&self, id: &str, known: T) -> mpsc::Receiver<Bytes> {
        let (to, heard) = mpsc::channel(WAITING + 1);
        let mut places = self.places();
        if !places.is_over {
            places.calls.push(Call { id: id.to_owned(), known, to });
        }
        heard
    }

    /// What comes for no call, from now on; `None` where the stream is over. Who asked before hears no more.
    pub(super) fn beside(&self) -> Option<mpsc::Receiver<Bytes>> {
        let (to, heard) = mpsc::channel(WAITING);
        let mut places = self.places();
        if places.is_over {
            return None;
        }
        places.beside = Some(to);
        Some(heard)
    }

    /// A call hears no more. Whether it was still waiting.
    pub(super) fn leave(&self, id: &str) -> bool {
        let mut places = self.places();
        let before = places.calls.len();
        places.calls.retain(|call| call.id != id);
        places.calls.len() < before
    }

    /// Nothing more comes.
    pub(super) fn close(&self) {
        *self.places() = Places { calls: Vec::new(), beside: None, is_over: true };
    }

    /// Gives its answer to a call, and what is remembered of the call back. `None` where nobody waits for it.
    pub(super) fn answer(&self, id: &str, message: Bytes) -> Option<T> {
        let mut places = self.places();
        let place = places.calls.iter().position(|call| call.id == id)?;
        let call = places.calls.remove(place);
        drop(places);
        // It has a place of its own, so only a call that is gone does not get it.
        if call.to.try_send(message).is_err() {
            tracing::trace!("an answer came after its call was gone");
        }
        Some(call.known)
    }

    /// Gives a message before its answer to a call.
    pub(super) fn to_call(&self, id: &str, message: Bytes) {
        let places = self.places();
        let call = places.calls.iter().find(|call| call.id == id);
        if call.is_some_and(|call| !call.takes(message)) {
            tracing::debug!("a message was dropped: its call takes none");
        }
    }

    /// Gives a message to the call that began last. False where there is none that takes it, or could be meant.
    pub(super) fn to_latest(&self, message: &Bytes) -> bool {
        let is_private = self.is_private.load(Ordering::Relaxed);
        is_private && self.places().calls.last().is_some_and(|call| call.takes(message.clone()))
    }

    /// Gives a message to who listens beside the calls. False where nobody takes it.
    pub(super) fn to_others(&self, message: Bytes) -> bool {
        self.places().beside.as_ref().is_some_and(|beside| beside.try_send(message).is_ok())
    }
}

impl<T> Call<T> {
    /// Takes a message, but never in the place of the answer.
    fn takes(&self, message: Bytes) -> bool {
        self.to.capacity() > 1 && self.to.try_send(message).is_ok()
    }
}
