//! One request on its way: what of the messages in its answer belongs to whom.

use bytes::Bytes;
use tokio::sync::Notify;

use super::fault::Fault;
use super::http::Destination;
use super::messages::Messages;
use super::pace::Pace;
use super::reading::Asked;
use super::reading::{Incoming, read};
use crate::exchange::{Call, Emitter, Event, Inquiry, Reason};
use crate::jsonrpc::{Id, Object, RpcError};
use crate::protocol::{Abilities, ListKind, LogLevel, meta, notification};

/// What an upstream answered.
#[derive(Debug)]
pub(super) enum Told {
    /// A result, raw.
    Result(Bytes),
    /// A result that asks the client something before the call can be made again.
    Asks(Bytes),
    /// An error.
    Error(RpcError),
}

/// Where the events of a request go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Audience<'a> {
    pub(super) call: &'a Call,
    pub(super) emitter: &'a Emitter,
    pub(super) pace: &'a Pace,
    /// Raised where the upstream says on the call's stream that one of its lists changed, as some do.
    pub(super) changed: &'a Notify,
}

/// What to do with messages beside the answer that only the side which knows the era understands.
#[derive(Clone, Copy)]
pub(super) struct Beside<'a> {
    /// Makes an inquiry of a question, or answers it.
    pub(super) question: &'a (dyn Fn(Asked) -> Option<Inquiry> + Sync),
    /// Takes the params of the news that a resource was updated.
    pub(super) updated: &'a (dyn Fn(&str) + Sync),
}

/// A request and its id towards the upstream, which is its progress token too. A request of Weir's own has no
/// audience: nobody hears of its progress.
#[derive(Debug)]
pub(super) struct Conversation<'a> {
    pub(super) id: Id,
    pub(super) audience: Option<Audience<'a>>,
}

impl Conversation<'_> {
    /// The progress token for the upstream, if the client wants progress.
    pub(super) fn token(&self) -> Option<&str> {
        self.audience.and_then(|audience| audience.call.progress_token.as_ref()).map(|_| self.id.as_json())
    }

    /// The least severe log message that is wanted.
    pub(super) fn log_level(&self) -> Option<LogLevel> {
        self.audience.and_then(|audience| audience.call.log_level)
    }

    /// What the client can be asked; `None` for a request of Weir's own.
    pub(super) fn abilities(&self) -> Option<&Abilities> {
        self.audience.and_then(|audience| audience.call.caller.askable())
    }

    /// Adds the headers of the client that the operator lets through to those of the request, which win.
    pub(super) fn forward(&self, to: impl Into<Destination>) -> Destination {
        let mut to = to.into();
        let Some(audience) = self.audience else { return to };
        for name in audience.call.forwarded.keys() {
            if to.head.contains_key(name) {
                continue;
            }
            for value in audience.call.forwarded.get_all(name) {
                to.head.append(name.clone(), value.clone());
            }
        }
        to
    }

    /// The level that a stateless upstream is asked for: what the client asked for, else what most servers send.
    pub(super) fn asked_level(&self) -> Option<LogLevel> {
        let call = self.audience?.call;
        call.log_level.map(|level| if call.log_asked { level } else { LogLevel::Info })
    }

    /// The request leaves now.
    pub(super) fn written(&self) {
        if let Some(audience) = self.audience {
            audience.pace.written();
        }
    }

    /// Reads messages until the answer; `None` where they end without it. Messages that belong to nobody (other
    /// ids, other notifications, garbage between events) are dropped; a document without the answer is not MCP.
    pub(super) async fn hear(
        &self,
        messages: &mut Messages,
        beside: Beside<'_>,
    ) -> Result<Option<Told>, Fault> {
        let is_document = messages.is_document();
        while let Some(message) = messages.next().await? {
            let Ok(incoming) = read(&message) else { continue };
            match incoming {
                Incoming::Result { id, result } if id == self.id => return Ok(Some(Told::Result(result))),
                Incoming::Error { id, error } if self.is_answer(id.as_ref(), is_document) => {
                    return Ok(Some(Told::Error(error)));
                }
                Incoming::Notice { method, params } if method == notification::UPDATED => {
                    (beside.updated)(&params);
                }
                Incoming::Notice { method, params } => self.notice(&method, params).await,
                Incoming::Question(asked) => self.inquire((beside.question)(asked)).await,
                Incoming::Result { .. } | Incoming::Error { .. } => {}
            }
        }
        if is_document { Err(Fault::sent(Reason::NotMcp)) } else { Ok(None) }
    }

    /// An error without an id in a document of its own can only be about the one request that was posted.
    pub(super) fn is_answer(&self, id: Option<&Id>, is_document: bool) -> bool {
        id.map_or(is_document, |id| *id == self.id)
    }

    /// The stream was closed, and the upstream wants to be asked again.
    pub(super) async fn paused(&self, retry: Option<std::time::Duration>) {
        if let Some(audience) = self.audience {
            audience.emitter.emit(Event::Paused(retry)).await;
        }
    }

    async fn inquire(&self, inquiry: Option<Inquiry>) {
        let (Some(inquiry), Some(audience)) = (inquiry, self.audience) else { return };
        audience.pace.hold();
        audience.emitter.emit(Event::Inquiry(inquiry)).await;
    }

    async fn notice(&self, method: &str, params: String) {
        let Some(audience) = self.audience else { return };
        match method {
            notification::PROGRESS if self.is_mine(&params) => {
                audience.pace.extend();
                audience.emitter.emit(Event::Progress(params)).await;
            }
            notification::MESSAGE => {
                if let Some(level) = self.wanted_level(&params) {
                    audience.emitter.emit(Event::Log(level, params)).await;
                }
            }
            notification::TASK_STATUS => audience.emitter.emit(Event::Task(params)).await,
            _ if ListKind::is_changed(method) => audience.changed.notify_one(),
            _ => {}
        }
    }

    fn is_mine(&self, params: &str) -> bool {
        let Some(token) = self.token() else { return false };
        Object::open(params).is_some_and(|params| params.get(meta::PROGRESS_TOKEN) == Some(token))
    }

    fn wanted_level(&self, params: &str) -> Option<LogLevel> {
        let least = self.log_level()?;
        let level = LogLevel::parse(&Object::open(params)?.text("level")?)?;
        (level >= least).then_some(level)
    }
}
