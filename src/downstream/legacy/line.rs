//! The messages of one call on their way to the client, kept for as long as the client may come back for them.
//!
//! One writer (the call's task) and at most one reader (the response body that is attached now; a newer one displaces
//! an older one). While a reader is attached the writer waits for it beyond [`AHEAD`]; while none is, messages are
//! kept within the session's budget.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How many bytes the writer may be ahead of an attached reader.
const AHEAD: usize = 256 * 1024;
/// How many delivered bytes are kept, in case they did not arrive.
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
}

/// The stream of one call.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) number: u64,
    state: Mutex<State>,
    written: Notify,
    read: Notify,
    call: CancellationToken,
}

impl Line {
    /// A stream with a reader attached. `call` cancels the call.
    pub(super) fn new(number: u64, call: CancellationToken) -> Self {
        let state = State {
            messages: VecDeque::new(),
            next: 1,
            unread: 1,
            ended: false,
            epoch: 0,
            attached: true,
            broken: Instant::now(),
            pause: None,
        };
        Self { number, state: Mutex::new(state), written: Notify::new(), read: Notify::new(), call }
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// Writes a message. Waits for an attached reader; without one, messages that do not fit `room` are dropped, and
    /// `false` is returned.
    pub(super) async fn write(&self, pieces: Vec<Bytes>, ending: Option<Ending>, room: usize) -> bool {
        loop {
            let read = self.read.notified();
            let wait = self.with(|state| state.attached && !state.ended && state.unread_bytes() > AHEAD);
            if !wait {
                break;
            }
            read.await;
        }
        let fits = self.with(|state| {
            let sent = Sent { number: state.next, pieces, ending };
            if !state.attached && sent.len() > room {
                return false;
            }
            state.next += 1;
            state.ended = sent.ending.is_some();
            state.messages.push_back(sent);
            true
        });
        self.written.notify_waiters();
        fits
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

    /// Waits until there is something to deliver, and says whether it is the only message there will be.
    pub(super) async fn first(&self) -> Option<Sent> {
        loop {
            let written = self.written.notified();
            let known = self.with(|state| {
                let first = state.messages.front().cloned();
                (first.is_some() || state.ended || state.pause.is_some()).then_some(first)
            });
            match known {
                Some(first) => return first,
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
            state.unread = from;
            state.epoch
        });
        self.written.notify_waiters();
        epoch
    }

    /// The reader of this epoch is gone.
    pub(super) fn detach(&self, epoch: u64) {
        self.with(|state| {
            if state.epoch == epoch {
                state.attached = false;
                state.broken = Instant::now();
            }
        });
        self.read.notify_waiters();
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
    pub(super) fn kept(&self) -> usize {
        self.with(|state| if state.attached { 0 } else { state.messages.iter().map(Sent::len).sum() })
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

impl State {
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
