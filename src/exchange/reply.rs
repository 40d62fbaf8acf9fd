//! What comes back for a call.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;

use super::{Failure, Inquiry};
use crate::jsonrpc::RpcError;
use crate::protocol::LogLevel;

/// The result of an upstream, as its bytes.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The raw `result` object.
    pub result: Bytes,
    /// Whether it came from a peer that writes `resultType` and cache hints itself.
    pub stateless: bool,
    /// Whether other callers may be given it, as far as Weir knows. Set by the relay.
    pub shareable: bool,
    /// Whether its structured content may be something else than an object, which older clients cannot read. Set by
    /// the relay, which knows the tool.
    pub free_output: bool,
}

/// One item of a reply.
#[derive(Debug)]
pub enum Event {
    /// `notifications/progress`: the raw params, with the token of the leg it came from.
    Progress(String),
    /// `notifications/message`: its level and the raw params.
    Log(LogLevel, String),
    /// The upstream closed its stream and wants to be asked again after this time (2025-11-25, transports,
    /// "Sending Messages to the Server", item 6): a client of that revision is shown the same.
    Paused(Option<Duration>),
    /// `notifications/tasks/status`: the raw params, with the upstream's id of the task.
    Task(String),
    /// A question to the client, while the call runs.
    Inquiry(Inquiry),
    /// The last event: the call can be made again with answers to the questions of this raw result (2026-07-28,
    /// patterns/mrtr, `InputRequiredResult`).
    Asks(Bytes),
    /// The last event: a result.
    Result(Answer),
    /// The last event: the upstream's own JSON-RPC error.
    Error(RpcError),
    /// The last event: no answer could be had.
    Failed(Failure),
}

impl Event {
    /// Whether nothing comes after this one.
    #[must_use]
    pub fn is_last(&self) -> bool {
        match self {
            Self::Progress(_) | Self::Log(..) | Self::Paused(_) | Self::Task(_) | Self::Inquiry(_) => false,
            Self::Asks(_) | Self::Result(_) | Self::Error(_) | Self::Failed(_) => true,
        }
    }
}

/// The events of one call, in order. It ends after the first event that is the last one. Dropping it cancels the
/// call.
pub type Reply = Pin<Box<dyn Stream<Item = Event> + Send>>;

/// A reply that consists of a failure.
#[must_use]
pub fn failed(failure: Failure) -> Reply {
    Box::pin(futures_util::stream::once(std::future::ready(Event::Failed(failure))))
}
