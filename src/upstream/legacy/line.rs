//! One connection of HTTP+SSE (2024-11-05, transports, "HTTP with SSE").
//!
//! A GET opens an event stream, whose first event names the address that messages are posted to. Everything that the
//! upstream says comes on that one stream, so here it is told what belongs to which call: answers by their id,
//! progress by its token; log messages and questions carry neither (`listeners.rs` says whose they are). The connection
//! is the session: when one ends, so does the other.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::handshake::reply_to_question;
use crate::exchange::Reason;
use crate::jsonrpc::{Id, Object};
use crate::protocol::{ListKind, Method, meta, notification};
use crate::upstream::chores::{self, Chore};
use crate::upstream::fault::Fault;
use crate::upstream::http::{Destination, Form};
use crate::upstream::listeners::Listeners;
use crate::upstream::messages::Messages;
use crate::upstream::reading::Asked;
use crate::upstream::reading::{Incoming, read};
use crate::upstream::way::Way;

/// How long the upstream may take to say where to post.
const ENDPOINT: Duration = Duration::from_secs(10);
/// So many questions are answered here at once. Those above are not answered.
const ANSWERS: usize = 16;

/// A connection.
#[derive(Debug)]
pub(super) struct Line {
    to: Destination,
    listeners: Listeners<()>,
    answers: Arc<Semaphore>,
    over: CancellationToken,
}

/// A line that is hung up when this is dropped.
#[derive(Debug)]
pub(super) struct Held(Arc<Line>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.over.cancel();
    }
}

/// A call that waits for its answer.
#[derive(Debug)]
pub(super) struct Waiting {
    line: Arc<Line>,
    id: String,
    heard: Option<mpsc::Receiver<Bytes>>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.line.listeners.leave(&self.id);
    }
}

impl Waiting {
    /// What comes for the call; nothing more the second time.
    pub(super) fn messages(&mut self) -> Messages {
        Messages::heard(self.heard.take().unwrap_or_else(|| mpsc::channel(1).1))
    }
}

impl Held {
    /// Connects. A stream that does not begin with an address of the same origin is none of this kind.
    pub(super) async fn open(way: &Way) -> Result<Self, Fault> {
        let answered = way.wire.get(HeaderMap::new()).await?;
        if !answered.is_success() {
            return Err(Fault::status(answered.status));
        }
        if answered.form != Form::Events {
            return Err(Fault::unsent(Reason::NotMcp));
        }
        let from = answered.from;
        let mut messages = Messages::of(answered)?;
        let named = tokio::time::timeout(ENDPOINT, messages.endpoint()).await;
        let named = named.unwrap_or_else(|_elapsed| Err(Fault::unsent(Reason::TimedOut)))?;
        let to = named.and_then(|named| way.wire.place(&named, from));
        let line = Arc::new(Line {
            to: to.ok_or_else(|| Fault::unsent(Reason::NotMcp))?,
            listeners: Listeners::default(),
            answers: Arc::new(Semaphore::new(ANSWERS)),
            over: CancellationToken::new(),
        });
        way.tasks.spawn_until_cancelled("line", Box::pin(hear(way.clone(), Arc::clone(&line), messages)));
        Ok(Self(line))
    }

    /// Where messages are posted to.
    pub(super) fn to(&self) -> &Destination {
        &self.0.to
    }

    /// Cancelled when the line is over.
    pub(super) fn over(&self) -> CancellationToken {
        self.0.over.clone()
    }

    /// The session is not shared by strangers.
    pub(super) fn make_private(&self) {
        self.0.listeners.make_private();
    }

    /// Begins to wait for the answer to a request that is going to be posted.
    pub(super) fn wait(&self, id: &Id) -> Waiting {
        let id = id.as_json().to_owned();
        let heard = self.0.listeners.call(&id, ());
        Waiting { line: Arc::clone(&self.0), id, heard: Some(heard) }
    }

    /// What comes for no call, from now on; `None` where the line is over. Who asked before hears no more.
    pub(super) fn beside(&self) -> Option<Messages> {
        self.0.listeners.beside().map(Messages::heard)
    }
}

impl Line {
    /// Gives a message to whom it belongs to.
    fn sort(&self, way: &Way, message: Bytes) {
        let Ok(incoming) = read(&message) else { return };
        match incoming {
            Incoming::Result { id, .. } | Incoming::Error { id: Some(id), .. } => {
                self.listeners.answer(id.as_json(), message);
            }
            Incoming::Error { id: None, .. } => {}
            Incoming::Notice { method, params } => match method.as_str() {
                notification::PROGRESS => self.progress(&params, message),
                notification::MESSAGE => {
                    if !self.listeners.to_latest(&message) {
                        self.listeners.to_others(message);
                    }
                }
                method if ListKind::is_changed(method) => way.wishes.changed.notify_one(),
                _ => {
                    self.listeners.to_others(message);
                }
            },
            Incoming::Question(asked) if asked.method == Method::Ping.as_str() => self.reply(way, &asked),
            Incoming::Question(asked) => {
                if !self.listeners.to_latest(&message) && !self.listeners.to_others(message) {
                    self.reply(way, &asked);
                }
            }
        }
    }

    fn progress(&self, params: &str, message: Bytes) {
        let params = Object::open(params);
        let token = params.as_ref().and_then(|params| params.get(meta::PROGRESS_TOKEN));
        if let Some(token) = token {
            self.listeners.to_call(token, message);
        }
    }

    /// Answers a question that nobody else will answer.
    fn reply(&self, way: &Way, asked: &Asked) {
        let Ok(place) = Arc::clone(&self.answers).try_acquire_owned() else { return };
        let wire = Arc::clone(&way.wire);
        let answer = Chore::Post(self.to.clone(), reply_to_question(&asked.id, &asked.method));
        way.tasks.spawn_until_cancelled("answer to a question", async move {
            chores::done(&wire, answer).await;
            drop(place);
        });
    }
}

/// Hears until the line is hung up, by either side.
async fn hear(way: Way, line: Arc<Line>, mut messages: Messages) {
    let heard = async {
        while let Ok(Some(message)) = messages.next().await {
            line.sort(&way, message);
        }
    };
    line.over.run_until_cancelled(heard).await;
    line.listeners.close();
    line.over.cancel();
}
