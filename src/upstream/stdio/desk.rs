//! Who gets what a child says.
//!
//! Everything comes on one pipe: answers belong to the call with their id, progress to that of its token, news of a
//! subscription to the request that made it. Log messages and questions carry neither. In a child of one client or
//! principal they belong to the call that began last, in a shared one to nobody. What belongs to no call goes to who
//! listens beside the calls. Nobody holds up the pipe: of what a call does not take in time all is lost but its answer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::jsonrpc::{Id, Object, Text, request};
use crate::protocol::{Method, meta, notification};
use crate::upstream::legacy::reply_to_question;
use crate::upstream::reading::{Asked, Incoming, read};

/// So many messages may wait for a call; one place more is kept for its answer.
const WAITING: usize = 64;

/// The desk of one child.
#[derive(Debug)]
pub(super) struct Desk {
    listeners: Mutex<Listeners>,
    /// Whether it belongs to one client or principal.
    is_private: AtomicBool,
    /// Whether it has answered anything, and whether with the result of a stateless request.
    has_answered: AtomicBool,
    is_stateless: AtomicBool,
    /// Whether it has to end because of a fault.
    is_faulty: AtomicBool,
    /// To the child.
    pub(super) to: mpsc::Sender<String>,
    /// Cancelled when the child has to end.
    pub(super) stop: CancellationToken,
}

#[derive(Debug, Default)]
struct Listeners {
    /// The calls that run, by their ids as JSON, the latest last.
    calls: Vec<Call>,
    beside: Option<mpsc::Sender<Bytes>>,
    is_over: bool,
}

/// A call that runs.
#[derive(Debug)]
struct Call {
    id: String,
    is_stateless: bool,
    to: mpsc::Sender<Bytes>,
}

/// What a child says to one listener. Dropped before the answer, the call is given up.
#[derive(Debug)]
pub(in crate::upstream) struct Lines {
    heard: mpsc::Receiver<Bytes>,
    _call: Option<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    desk: Arc<Desk>,
    id: String,
    given_up: GivenUp,
}

/// What is done for a call that is given up before its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GivenUp {
    /// Nothing: who has a session cancels its calls itself.
    Nothing,
    /// The child is told (2026-07-28, patterns/cancellation).
    Cancel,
    /// The child ends: without this answer it is good for nothing.
    End,
}

impl Lines {
    /// The next message; `None` when no more comes.
    pub(in crate::upstream) async fn next(&mut self) -> Option<Bytes> {
        self.heard.recv().await
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let is_open = {
            let mut listeners = self.desk.listeners();
            let before = listeners.calls.len();
            listeners.calls.retain(|call| call.id != self.id);
            listeners.calls.len() < before
        };
        match self.given_up {
            GivenUp::Cancel if is_open => {
                let mut params = Text::object();
                params.member("requestId", &self.id);
                self.desk.say(request(None, notification::CANCELLED, &params.close()));
            }
            GivenUp::End if is_open => self.desk.fail(),
            GivenUp::Cancel | GivenUp::End | GivenUp::Nothing => {}
        }
    }
}

impl Desk {
    pub(super) fn new(to: mpsc::Sender<String>) -> Arc<Self> {
        Arc::new(Self {
            listeners: Mutex::default(),
            is_private: AtomicBool::new(false),
            has_answered: AtomicBool::new(false),
            is_stateless: AtomicBool::new(false),
            is_faulty: AtomicBool::new(false),
            to,
            stop: CancellationToken::new(),
        })
    }

    /// The child belongs to one client or principal from now on.
    pub(super) fn make_private(&self) {
        self.is_private.store(true, Ordering::Relaxed);
    }

    /// Whether the child has answered anything.
    pub(super) fn has_answered(&self) -> bool {
        self.has_answered.load(Ordering::Relaxed)
    }

    /// Whether the child has answered a stateless request with a result.
    pub(super) fn is_stateless(&self) -> bool {
        self.is_stateless.load(Ordering::Relaxed)
    }

    /// The child has to end: it is good for nothing.
    pub(super) fn fail(&self) {
        self.is_faulty.store(true, Ordering::Relaxed);
        self.stop.cancel();
    }

    /// Whether it has to end because of a fault.
    pub(super) fn is_faulty(&self) -> bool {
        self.is_faulty.load(Ordering::Relaxed)
    }

    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to wait for the answer to a request that is going to be written.
    pub(super) fn wait(self: &Arc<Self>, id: &Id, given_up: GivenUp) -> Lines {
        let (sender, heard) = mpsc::channel(WAITING + 1);
        let id = id.as_json().to_owned();
        let mut listeners = self.listeners();
        if !listeners.is_over {
            let is_stateless = given_up == GivenUp::Cancel;
            listeners.calls.push(Call { id: id.clone(), is_stateless, to: sender });
        }
        drop(listeners);
        Lines { heard, _call: Some(Waiting { desk: Arc::clone(self), id, given_up }) }
    }

    /// What comes for no call, from now on; `None` where the child is gone. Who asked before hears no more.
    pub(super) fn beside(&self) -> Option<Lines> {
        let (sender, heard) = mpsc::channel(WAITING);
        let mut listeners = self.listeners();
        if listeners.is_over {
            return None;
        }
        listeners.beside = Some(sender);
        Some(Lines { heard, _call: None })
    }

    /// Nothing more comes.
    pub(super) fn close(&self) {
        *self.listeners() = Listeners { is_over: true, ..Listeners::default() };
    }

    /// Gives a message to whom it belongs to. False where it is none.
    pub(super) fn sort(&self, message: Bytes) -> bool {
        let Ok(incoming) = read(&message) else { return false };
        match incoming {
            Incoming::Result { id, .. } => self.answer(&id, message, true),
            Incoming::Error { id: Some(id), .. } => self.answer(&id, message, false),
            Incoming::Error { id: None, .. } => {}
            Incoming::Notice { method, params } => self.notice(&method, &params, message),
            Incoming::Question(asked) if asked.method == Method::Ping.as_str() => self.reply(&asked),
            Incoming::Question(asked) => {
                if !self.to_latest(&message) && !self.to_others(message) {
                    self.reply(&asked);
                }
            }
        }
        true
    }

    fn notice(&self, method: &str, params: &str, message: Bytes) {
        let params = Object::open(params).unwrap_or_default();
        let of = |key: &str| params.object("_meta").and_then(|inner| inner.get(key).map(str::to_owned));
        match method {
            notification::PROGRESS => {
                if let Some(token) = params.get(meta::PROGRESS_TOKEN) {
                    self.to_call(token, message);
                }
            }
            // A stateless server ends a stream of news with it, and nothing else.
            notification::CANCELLED => {
                if let Some(id) = params.get("requestId") {
                    self.listeners().calls.retain(|call| call.id != id);
                }
            }
            notification::MESSAGE if self.to_latest(&message) => {}
            _ => match of(meta::SUBSCRIPTION_ID) {
                Some(id) => self.to_call(&id, message),
                None => drop(self.to_others(message)),
            },
        }
    }

    fn answer(&self, id: &Id, message: Bytes, is_result: bool) {
        let mut listeners = self.listeners();
        let place = listeners.calls.iter().position(|call| call.id == id.as_json());
        let call = place.map(|place| listeners.calls.remove(place));
        drop(listeners);
        let Some(call) = call else { return };
        self.has_answered.store(true, Ordering::Relaxed);
        if is_result && call.is_stateless {
            self.is_stateless.store(true, Ordering::Relaxed);
        }
        // It has a place of its own, so only a call that is gone does not get it.
        if call.to.try_send(message).is_err() {
            tracing::trace!("an answer came after its call was gone");
        }
    }

    fn to_call(&self, id: &str, message: Bytes) {
        let listeners = self.listeners();
        let call = listeners.calls.iter().find(|call| call.id == id);
        if call.is_some_and(|call| !give(&call.to, message)) {
            tracing::debug!("a message was dropped: its call takes none");
        }
    }

    /// Gives a message to the call that began last. False where there is none that takes it, or could be meant.
    fn to_latest(&self, message: &Bytes) -> bool {
        let is_private = self.is_private.load(Ordering::Relaxed);
        is_private && self.listeners().calls.last().is_some_and(|call| give(&call.to, message.clone()))
    }

    /// Gives a message to who listens beside the calls. False where nobody takes it.
    fn to_others(&self, message: Bytes) -> bool {
        self.listeners().beside.as_ref().is_some_and(|beside| beside.try_send(message).is_ok())
    }

    /// Answers a question that nobody else will answer.
    fn reply(&self, asked: &Asked) {
        self.say(reply_to_question(&asked.id, &asked.method));
    }

    /// Says something that nobody waits for.
    fn say(&self, message: String) {
        if self.to.try_send(message).is_err() {
            tracing::debug!("a message to a child was dropped: it takes none");
        }
    }
}

/// Gives a message to a call, but never in the place of its answer.
fn give(call: &mpsc::Sender<Bytes>, message: Bytes) -> bool {
    call.capacity() > 1 && call.try_send(message).is_ok()
}
