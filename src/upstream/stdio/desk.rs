//! Who gets what a child says.
//!
//! Everything comes on one pipe: answers belong to the call with their id, progress to that of its token, news of a
//! subscription to the request that made it; log messages and questions carry neither (`listeners.rs` says whose they
//! are).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::jsonrpc::{Id, Object, Text, request};
use crate::protocol::{Method, meta, notification};
use crate::upstream::legacy::reply_to_question;
use crate::upstream::listeners::Listeners;
use crate::upstream::reading::{Asked, Incoming, read};

/// The desk of one child.
#[derive(Debug)]
pub(super) struct Desk {
    listeners: Listeners<GivenUp>,
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
        let is_open = self.desk.listeners.leave(&self.id);
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
            listeners: Listeners::default(),
            has_answered: AtomicBool::new(false),
            is_stateless: AtomicBool::new(false),
            is_faulty: AtomicBool::new(false),
            to,
            stop: CancellationToken::new(),
        })
    }

    /// The child belongs to one client or principal from now on.
    pub(super) fn make_private(&self) {
        self.listeners.make_private();
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

    /// Begins to wait for the answer to a request that is going to be written.
    pub(super) fn wait(self: &Arc<Self>, id: &Id, given_up: GivenUp) -> Lines {
        let id = id.as_json().to_owned();
        let heard = self.listeners.call(&id, given_up);
        Lines { heard, _call: Some(Waiting { desk: Arc::clone(self), id, given_up }) }
    }

    /// What comes for no call, from now on; `None` where the child is gone. Who asked before hears no more.
    pub(super) fn beside(&self) -> Option<Lines> {
        self.listeners.beside().map(|heard| Lines { heard, _call: None })
    }

    /// Nothing more comes.
    pub(super) fn close(&self) {
        self.listeners.close();
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
                if !self.listeners.to_latest(&message) && !self.listeners.to_others(message) {
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
                    self.listeners.to_call(token, message);
                }
            }
            // A stateless server ends a stream of news with it, and nothing else.
            notification::CANCELLED => {
                if let Some(id) = params.get("requestId") {
                    self.listeners.leave(id);
                }
            }
            notification::MESSAGE if self.listeners.to_latest(&message) => {}
            _ => match of(meta::SUBSCRIPTION_ID) {
                Some(id) => self.listeners.to_call(&id, message),
                None => drop(self.listeners.to_others(message)),
            },
        }
    }

    fn answer(&self, id: &Id, message: Bytes, is_result: bool) {
        let Some(given_up) = self.listeners.answer(id.as_json(), message) else { return };
        self.has_answered.store(true, Ordering::Relaxed);
        if is_result && given_up == GivenUp::Cancel {
            self.is_stateless.store(true, Ordering::Relaxed);
        }
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
