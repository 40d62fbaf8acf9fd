//! Demonstration upstreams that live inside Weir: a clock and a board of notes.
//!
//! They show what an upstream is without a second process, and answer like a modern server does: definitions with
//! schemas, results with `resultType`, mistakes in arguments as results that say what to do. They keep nothing
//! beyond the process, reach nothing outside it, and their tools have no say in how they are published.

mod arguments;
mod clock;
mod notes;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::catalog::{Checker, Entry, Inventory};
use crate::config::Builtin;
use crate::exchange::{Answer, Call, Event, Failure, Reply, failed};
use crate::protocol::{ListKind, Method, Offer, Revision, Ttl};

use arguments::Arguments;
use notes::Notes;

/// One demonstration upstream. Clones share what it holds.
#[derive(Debug, Clone)]
pub(super) struct Demonstration {
    what: What,
    tools: Arc<[Arc<Entry>]>,
    changes: watch::Sender<u64>,
}

#[derive(Debug, Clone)]
enum What {
    Clock,
    Notes(Arc<Notes>),
}

/// What a tool says.
struct Said {
    text: String,
    structured: Value,
}

/// What a tool says, or how its arguments must change.
type Outcome = Result<Said, String>;

impl Demonstration {
    /// A fresh one.
    #[must_use]
    pub(super) fn new(builtin: Builtin) -> Self {
        let (what, tools) = match builtin {
            Builtin::Clock => (What::Clock, clock::TOOLS.as_slice()),
            Builtin::Notes => (What::Notes(Arc::default()), notes::TOOLS.as_slice()),
        };
        let mut checker = Checker::new();
        let tools = tools.iter().filter_map(|raw| checker.tool(raw).ok()).map(Arc::new).collect();
        Self { what, tools, changes: watch::Sender::new(0) }
    }

    /// What it offers now.
    #[must_use]
    pub(super) fn inventory(&self) -> Inventory {
        let (instructions, resources) = match &self.what {
            What::Clock => (clock::INSTRUCTIONS, Vec::new()),
            What::Notes(notes) => (notes::INSTRUCTIONS, notes.resources()),
        };
        let has_notes = matches!(self.what, What::Notes(_));
        let offer = Offer { tools: true, resources: has_notes, list_changed: has_notes, ..Offer::default() };
        Inventory {
            instructions: Some(instructions.to_owned()),
            tools: self.tools.to_vec(),
            resources,
            ttl: Some(Ttl { fresh: Duration::from_secs(60), public: true }),
            ..Inventory::empty(Revision::NEWEST, offer)
        }
    }

    /// Counts the changes of the inventory; it never closes while this upstream lives.
    #[must_use]
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Carries out a call.
    #[must_use]
    pub(super) fn call(&self, call: Call) -> Reply {
        match call.method {
            Method::ToolsCall => self.tool(&call),
            Method::ResourcesRead => self.read(call.name),
            Method::Initialize
            | Method::Ping
            | Method::Discover
            | Method::Listen
            | Method::List(_)
            | Method::PromptsGet
            | Method::ResourcesSubscribe
            | Method::ResourcesUnsubscribe
            | Method::Complete
            | Method::SetLevel
            | Method::TasksGet
            | Method::TasksResult
            | Method::TasksList
            | Method::TasksUpdate
            | Method::TasksCancel => failed(Failure::NotOffered(call.method.as_str())),
        }
    }

    fn tool(&self, call: &Call) -> Reply {
        let arguments = match Arguments::of(&call.params) {
            Ok(arguments) => arguments,
            Err(text) => return once(Err(text)),
        };
        let reply = match &self.what {
            What::Clock => clock::call(&call.name, &arguments, call.progress_token.is_some()),
            What::Notes(notes) => notes.call(&call.name, &arguments, &self.changes).map(once),
        };
        reply.unwrap_or_else(|| failed(Failure::Unknown { kind: ListKind::Tools, name: call.name.clone() }))
    }

    fn read(&self, uri: String) -> Reply {
        let text = match &self.what {
            What::Clock => None,
            What::Notes(notes) => notes.read(&uri),
        };
        match text {
            Some(text) => ready(answer(&json!({
                "resultType": "complete",
                "contents": [{ "uri": uri, "mimeType": "text/plain", "text": text }],
                "ttlMs": 0,
                "cacheScope": "private",
            }))),
            None => failed(Failure::Unknown { kind: ListKind::Resources, name: uri }),
        }
    }
}

/// A reply that consists of a tool's outcome.
fn once(outcome: Outcome) -> Reply {
    ready(result(outcome))
}

fn ready(event: Event) -> Reply {
    Box::pin(stream::once(std::future::ready(event)))
}

/// The last event of a tool call.
fn result(outcome: Outcome) -> Event {
    answer(&match outcome {
        Ok(said) => json!({
            "resultType": "complete",
            "content": [{ "type": "text", "text": said.text }],
            "structuredContent": said.structured,
        }),
        Err(text) => json!({
            "resultType": "complete",
            "content": [{ "type": "text", "text": text }],
            "isError": true,
        }),
    })
}

fn answer(result: &Value) -> Event {
    Event::Result(Answer {
        result: Bytes::from(result.to_string()),
        stateless: true,
        shareable: false,
        free_output: false,
    })
}

#[cfg(test)]
mod tests;
