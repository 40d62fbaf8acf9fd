//! The messages of one call on their way to the client, kept for as long as the client may come back for them.
//!
//! One writer (the call's task) and at most one reader (the response body that is attached now; a newer one displaces
//! an older one). While a reader is attached the writer waits for it beyond [`AHEAD`]; while none is, messages are
//! kept within the session's budget.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::engine::Engine;

/// How many bytes the writer may be ahead of an attached reader.
const AHEAD: usize = 256 * 1024;
/// How many delivered bytes are kept while a reader is attached, in case they did not arrive.
const BEHIND: usize = 64 * 1024;
/// How many bytes a session keeps for broken streams.
pub(super) const BUDGET: usize = 1024 * 1024;

/// How a call ended, for an answer that is not an event stream.
#[derive(Debug, Clone)]
pub(super) struct Ending {
    pub(super) status: StatusCode,
    /// `WWW-Authenticate`, where the status wants it.
    pub(super) challenge: Option<String>,
}

impl Ending {
    /// Whether its status says something.
    pub(super) fn has_status(&self) -> bool {
        self.status != StatusCode::OK
    }
}

/// One message.
#[derive(Debug, Clone)]
pub(super) struct Sent {
    pub(super) number: u64,
    pub(super) pieces: Vec<Bytes>,
    /// Present on the last message.
    pub(super) ending: Option<Ending>,
}

impl Sent {
    fn len(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum()
    }
}

/// The upstream closed its stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pause {
    /// When it wants to be asked again, where it said so.
    pub(super) retry: Option<Duration>,
}

/// What a reader gets next.
#[derive(Debug)]
pub(super) enum Next {
    Message(Sent),
    /// Close the stream; the client comes back after this time, or its own.
    Pause(Pause),
    End,
}

#[derive(Debug)]
struct State {
    messages: VecDeque<Sent>,
    /// The number of the next message that is written; the priming event is number 0.
    next: u64,
    /// The number of the next message that has not been delivered.
    unread: u64,
    ended: bool,
    /// Grows with every reader; only the newest one reads on.
    epoch: u64,
    attached: bool,
    broken: Instant,
    pause: Option<Pause>,
    /// What it is counted with in its session.
    counted: usize,
}

/// How many bytes a session keeps for broken streams: the sum over its streams, of which each looks after its part.
#[derive(Debug, Clone, Default)]
pub(super) struct Account(Arc<AtomicUsize>);

impl Account {
    /// How many more may be kept.
    pub(super) fn room(&self) -> usize {
        BUDGET.saturating_sub(self.0.load(Ordering::Relaxed))
    }

    fn change(&self, before: usize, now: usize) {
        // Wrapping, so that a sum of changes is right in any order.
        self.0.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
    }
}

/// How the answer is written in place of one that is too large to be kept. Few calls need it.
pub(super) struct Lost(pub(super) Box<dyn Fn() -> Bytes + Send + Sync>);

impl std::fmt::Debug for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Lost").finish_non_exhaustive()
    }
}

/// The stream of one call.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) number: u64,
    account: Account,
    state: Mutex<State>,
    written: Notify,
    read: Notify,
    call: CancellationToken,
    /// Writes the last message in place of one that is too large to be kept.
    lost: Lost,
    /// What drives the call.
    pub(super) engine: Engine,
}

/// How an answer begins.
#[derive(Debug)]
pub(super) enum Head {
    /// With its only message.
    Whole(Sent),
    /// With a message, or a pause, that others follow.
    Stream,
    /// It has ended without a message: its call was cancelled.
    Nothing,
}

impl Line {
    /// A stream with a reader attached. `call` cancels the call and `engine` drives it; what it keeps goes to `account`,
    /// and `lost` writes the answer in place of one that is too large to be kept.
    pub(super) fn new(
        number: u64,
        (call, engine): (CancellationToken, Engine),
        (account, lost): (Account, Lost),
    ) -> Self {
        let state = State {
            messages: VecDeque::new(),
            next: 1,
            unread: 1,
            ended: false,
            epoch: 0,
            attached: true,
            broken: Instant::now(),
            pause: None,
            counted: 0,
        };
        Self {
            number,
            account,
            state: Mutex::new(state),
            written: Notify::new(),
            read: Notify::new(),
            call,
            lost,
            engine,
        }
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let done = act(&mut state);
        let now = state.kept_for_later();
        let before = std::mem::replace(&mut state.counted, now);
        if now != before {
            self.account.change(before, now);
        }
        done
    }

    /// Writes a message. Waits for an attached reader; without one, a message that does not fit `room` is dropped, or
    /// replaced where it is the last one.
    pub(super) async fn write(
        &self,
        pieces: Vec<Bytes>,
        ending: Option<Ending>,
        room: impl FnOnce() -> usize,
    ) {
        loop {
            let read = self.read.notified();
            let wait = self.with(|state| state.attached && !state.ended && state.unread_bytes() > AHEAD);
            if !wait {
                break;
            }
            read.await;
        }
        // Asked before the lock is taken: the room depends on all streams of the session, this one too.
        let room = if self.with(|state| state.attached) { usize::MAX } else { room() };
        self.with(|state| state.put(pieces, ending, room, &self.lost));
        self.written.notify_waiters();
    }

    /// The call is over without a last message.
    pub(super) fn close(&self) {
        self.with(|state| state.ended = true);
        self.written.notify_waiters();
        self.read.notify_waiters();
    }

    /// The upstream closed its stream: an attached client is shown the same.
    pub(super) fn pause(&self, retry: Option<Duration>) {
        self.with(|state| {
            if state.attached {
                state.pause = Some(Pause { retry });
            }
        });
        self.written.notify_waiters();
    }

    /// Waits until there is something to deliver, and says how the answer begins.
    pub(super) async fn head(&self) -> Head {
        loop {
            let written = self.written.notified();
            let known = self.with(|state| match state.messages.front() {
                Some(first) if first.ending.is_some() => Some(Head::Whole(first.clone())),
                Some(_) => Some(Head::Stream),
                None if state.pause.is_some() => Some(Head::Stream),
                None => state.ended.then_some(Head::Nothing),
            });
            match known {
                Some(head) => return head,
                None => written.await,
            }
        }
    }

    /// Waits for the last message; `None` when there is none.
    pub(super) async fn last(&self) -> Option<Sent> {
        loop {
            let written = self.written.notified();
            let ended = self.with(|state| {
                // Nobody is going to read what comes before it.
                state.unread = state.next;
                state.trim();
                state.ended.then(|| state.messages.back().filter(|sent| sent.ending.is_some()).cloned())
            });
            self.read.notify_waiters();
            match ended {
                Some(last) => return last,
                None => written.await,
            }
        }
    }

    /// A reader takes over from this message number on; older readers end.
    pub(super) fn attach(&self, from: u64) -> u64 {
        let epoch = self.with(|state| {
            state.epoch += 1;
            state.attached = true;
            // What the client says it has seen is its word only.
            state.unread = from.clamp(1, state.next);
            state.epoch
        });
        self.written.notify_waiters();
        epoch
    }

    /// The reader of this epoch is gone. What is kept from now on fits into `room`. True where everything was handed
    /// out and does not fit, so that the stream is not worth keeping.
    pub(super) fn detach(&self, epoch: u64, room: usize) -> bool {
        let is_spent = self.with(|state| {
            if state.epoch != epoch {
                return false;
            }
            state.attached = false;
            state.broken = Instant::now();
            let is_spent = state.ended && state.unread >= state.next && state.kept() > room;
            state.shrink(room, &self.lost);
            is_spent
        });
        self.read.notify_waiters();
        is_spent
    }

    /// Whether a last message was written.
    pub(super) fn has_ended(&self) -> bool {
        self.with(|state| state.ended)
    }

    /// The next message for the reader of this epoch.
    pub(super) async fn next(&self, epoch: u64) -> Next {
        loop {
            let written = self.written.notified();
            let next = self.with(|state| state.deliver(epoch));
            match next {
                Some(next) => {
                    self.read.notify_waiters();
                    return next;
                }
                None => written.await,
            }
        }
    }

    /// How many bytes are kept while no reader is attached.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.with(|state| state.kept_for_later())
    }

    /// Whether nobody came back in time.
    pub(super) fn is_given_up(&self, resume: Duration) -> bool {
        self.with(|state| !state.attached && state.broken.elapsed() > resume)
    }

    /// Cancels the call.
    pub(super) fn give_up(&self) {
        self.call.cancel();
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.with(|state| state.messages.clear());
    }
}

impl State {
    /// Adds a message, as far as it fits.
    fn put(&mut self, pieces: Vec<Bytes>, ending: Option<Ending>, room: usize, lost: &Lost) {
        let mut sent = Sent { number: self.next, pieces, ending };
        let fits = self.attached || sent.len() <= room;
        match (fits, &sent.ending) {
            (true, _) => {}
            (false, Some(_)) => sent.pieces = vec![lost.0()],
            (false, None) => return,
        }
        self.next += 1;
        self.ended = sent.ending.is_some();
        self.messages.push_back(sent);
    }

    /// How many bytes are kept while no reader is attached.
    fn kept_for_later(&self) -> usize {
        if self.attached { 0 } else { self.kept() }
    }

    fn kept(&self) -> usize {
        self.messages.iter().map(Sent::len).sum()
    }

    fn unread_bytes(&self) -> usize {
        self.messages.iter().filter(|sent| sent.number >= self.unread).map(Sent::len).sum()
    }

    fn deliver(&mut self, epoch: u64) -> Option<Next> {
        if self.epoch != epoch {
            return Some(Next::End);
        }
        if let Some(sent) = self.messages.iter().find(|sent| sent.number >= self.unread).cloned() {
            self.unread = sent.number + 1;
            self.trim();
            return Some(Next::Message(sent));
        }
        if let Some(pause) = self.pause.take() {
            return Some(Next::Pause(pause));
        }
        self.ended.then_some(Next::End)
    }

    /// Makes what is kept fit into `room`: the oldest messages go, and a last one that is too large is replaced.
    fn shrink(&mut self, room: usize, lost: &Lost) {
        if let Some(last) = self.messages.back_mut().filter(|last| last.ending.is_some() && last.len() > room)
        {
            last.pieces = vec![lost.0()];
        }
        let mut kept = self.kept();
        while kept > room && self.messages.len() > 1 {
            kept -= self.messages.pop_front().map_or(0, |oldest| oldest.len());
        }
    }

    /// Forgets delivered messages beyond [`BEHIND`].
    fn trim(&mut self) {
        let mut behind: usize =
            self.messages.iter().filter(|sent| sent.number < self.unread).map(Sent::len).sum();
        while behind > BEHIND {
            let Some(front) = self.messages.front().filter(|sent| sent.number < self.unread) else { return };
            behind -= front.len();
            // The last message stays until its stream is removed.
            if front.ending.is_some() {
                return;
            }
            self.messages.pop_front();
        }
    }
}
