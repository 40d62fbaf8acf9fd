//! One connection of HTTP+SSE (2024-11-05, transports, "HTTP with SSE").
//!
//! A GET opens an event stream, whose first event names the address that messages are posted to. Everything that the
//! upstream says comes on that one stream, so here it is told what belongs to which call: answers by their id,
//! progress by its token. Log messages and questions carry neither. In the session of one client or principal they
//! belong to the call that began last, in a shared one to nobody. What belongs to no call goes to whoever listens
//! beside the calls. The connection is the session: when one ends, so does the other. Nobody holds up the stream: of
//! what a call does not take in time all is lost but its answer.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
use crate::upstream::messages::Messages;
use crate::upstream::reading::Asked;
use crate::upstream::reading::{Incoming, read};
use crate::upstream::way::Way;

/// How long the upstream may take to say where to post.
const ENDPOINT: Duration = Duration::from_secs(10);
/// So many messages may wait for a call; one place more is kept for its answer.
const WAITING: usize = 64;
/// So many questions are answered here at once. Those above are not answered.
const ANSWERS: usize = 16;

/// A connection.
#[derive(Debug)]
pub(super) struct Line {
    to: Destination,
    listeners: Mutex<Listeners>,
    is_private: AtomicBool,
    answers: Arc<Semaphore>,
    over: CancellationToken,
}

#[derive(Debug, Default)]
struct Listeners {
    /// The calls that run, by their ids as JSON, the latest last.
    calls: Vec<(String, mpsc::Sender<Bytes>)>,
    beside: Option<mpsc::Sender<Bytes>>,
    is_over: bool,
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
        self.line.listeners().calls.retain(|(id, _)| *id != self.id);
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
        let mut messages = Messages::of(answered)?;
        let named = tokio::time::timeout(ENDPOINT, messages.endpoint()).await;
        let named = named.unwrap_or_else(|_elapsed| Err(Fault::unsent(Reason::TimedOut)))?;
        let to = named.and_then(|named| way.wire.place(&named));
        let line = Arc::new(Line {
            to: to.ok_or_else(|| Fault::unsent(Reason::NotMcp))?,
            listeners: Mutex::default(),
            is_private: AtomicBool::new(false),
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
        self.0.is_private.store(true, Ordering::Relaxed);
    }

    /// Begins to wait for the answer to a request that is going to be posted.
    pub(super) fn wait(&self, id: &Id) -> Waiting {
        let (sender, heard) = mpsc::channel(WAITING + 1);
        let id = id.as_json().to_owned();
        let mut listeners = self.0.listeners();
        if !listeners.is_over {
            listeners.calls.push((id.clone(), sender));
        }
        drop(listeners);
        Waiting { line: Arc::clone(&self.0), id, heard: Some(heard) }
    }

    /// What comes for no call, from now on; `None` where the line is over. Who asked before hears no more.
    pub(super) fn beside(&self) -> Option<Messages> {
        let (sender, heard) = mpsc::channel(WAITING);
        let mut listeners = self.0.listeners();
        if listeners.is_over {
            return None;
        }
        listeners.beside = Some(sender);
        Some(Messages::heard(heard))
    }
}

impl Line {
    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a message to whom it belongs to.
    fn sort(&self, way: &Way, message: Bytes) {
        let Ok(incoming) = read(&message) else { return };
        match incoming {
            Incoming::Result { id, .. } | Incoming::Error { id: Some(id), .. } => self.answer(&id, message),
            Incoming::Error { id: None, .. } => {}
            Incoming::Notice { method, params } => match method.as_str() {
                notification::PROGRESS => self.progress(&params, message),
                notification::MESSAGE => {
                    if !self.to_latest(&message) {
                        self.to_others(message);
                    }
                }
                method if ListKind::is_changed(method) => way.wishes.changed.notify_one(),
                _ => {
                    self.to_others(message);
                }
            },
            Incoming::Question(asked) if asked.method == Method::Ping.as_str() => self.reply(way, &asked),
            Incoming::Question(asked) => {
                if !self.to_latest(&message) && !self.to_others(message) {
                    self.reply(way, &asked);
                }
            }
        }
    }

    fn answer(&self, id: &Id, message: Bytes) {
        let mut listeners = self.listeners();
        let place = listeners.calls.iter().position(|(of, _)| of == id.as_json());
        let call = place.map(|place| listeners.calls.remove(place));
        drop(listeners);
        // It has a place of its own, so only a call that is gone does not get it.
        if call.is_some_and(|(_, call)| call.try_send(message).is_err()) {
            tracing::trace!("an answer came after its call was gone");
        }
    }

    fn progress(&self, params: &str, message: Bytes) {
        let params = Object::open(params);
        let token = params.as_ref().and_then(|params| params.get(meta::PROGRESS_TOKEN));
        let listeners = self.listeners();
        let call = listeners.calls.iter().find(|(id, _)| Some(id.as_str()) == token);
        if call.is_some_and(|(_, call)| !give(call, message)) {
            tracing::debug!("progress was dropped: its call takes none");
        }
    }

    /// Gives a message to the call that began last. False where there is none that takes it, or could be meant.
    fn to_latest(&self, message: &Bytes) -> bool {
        let is_private = self.is_private.load(Ordering::Relaxed);
        is_private && self.listeners().calls.last().is_some_and(|(_, call)| give(call, message.clone()))
    }

    /// Gives a message to who listens beside the calls. False where nobody takes it.
    fn to_others(&self, message: Bytes) -> bool {
        self.listeners().beside.as_ref().is_some_and(|beside| beside.try_send(message).is_ok())
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

/// Gives a message to a call, but never in the place of its answer.
fn give(call: &mpsc::Sender<Bytes>, message: Bytes) -> bool {
    call.capacity() > 1 && call.try_send(message).is_ok()
}

/// Hears until the line is hung up, by either side.
async fn hear(way: Way, line: Arc<Line>, mut messages: Messages) {
    let heard = async {
        while let Ok(Some(message)) = messages.next().await {
            line.sort(&way, message);
        }
    };
    line.over.run_until_cancelled(heard).await;
    let mut listeners = line.listeners();
    *listeners = Listeners { is_over: true, ..Listeners::default() };
    drop(listeners);
    line.over.cancel();
}
