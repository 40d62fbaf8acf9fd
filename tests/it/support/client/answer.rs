//! What comes back to a client.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::line::Line;
use crate::support::exchange::{Events, PATIENCE, Response};
use crate::support::http::Head;
use crate::support::{canary, json, schema, sse};

/// One message, as its exact text.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    /// The text.
    pub(crate) text: String,
    /// The event that carried it.
    pub(crate) event: Option<sse::Event>,
    /// When it had come.
    pub(crate) at: Instant,
}

impl Message {
    /// The exact text of a member.
    pub(crate) fn raw(&self, path: &[&str]) -> Option<&str> {
        json::raw(&self.text, path)
    }

    /// The method, for requests and notifications.
    pub(crate) fn method(&self) -> String {
        json::text(&self.text, &["method"]).unwrap_or_default()
    }

    /// Whether it answers a request.
    pub(crate) fn answers(&self) -> bool {
        self.raw(&["method"]).is_none()
    }
}

enum Source {
    Whole(VecDeque<Message>),
    Stream(Events),
    /// The one stream of a client of HTTP+SSE.
    Line(Arc<Line>),
}

/// An exchange whose head has come.
pub(crate) struct Running {
    head: Head,
    source: Source,
    method: String,
    revision: Option<String>,
    /// Events that carried no message: the first of a resumable stream, and keep-alives.
    pub(crate) bare: Vec<sse::Event>,
}

impl Running {
    pub(super) fn new(response: Response, method: String, revision: Option<String>) -> Self {
        let head = response.head.clone();
        let source = if response.is_stream() {
            Source::Stream(response.events())
        } else {
            let text = response.text();
            let message = Message { text, event: None, at: Instant::now() };
            Source::Whole(Some(message).filter(|message| !message.text.is_empty()).into_iter().collect())
        };
        Self { head, source, method, revision, bare: Vec::new() }
    }

    /// One whose messages come on the one stream of its client.
    pub(super) fn on_line(
        response: &Response,
        line: &Arc<Line>,
        method: String,
        revision: Option<String>,
    ) -> Self {
        Self { head: response.head.clone(), method, ..Self::of_line(line, revision) }
    }

    /// What comes on the one stream of a client.
    pub(super) fn of_line(line: &Arc<Line>, revision: Option<String>) -> Self {
        let (source, method) = (Source::Line(Arc::clone(line)), "GET".to_owned());
        Self { head: Head::default(), source, method, revision, bare: Vec::new() }
    }

    /// The status.
    pub(crate) fn status(&self) -> u16 {
        self.head.word(1).parse().unwrap_or_default()
    }

    /// A header field.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.get(name)
    }

    /// Whether the answer is an event stream.
    pub(crate) fn is_stream(&self) -> bool {
        matches!(self.source, Source::Stream(_) | Source::Line(_))
    }

    /// The next message, if one comes in this time.
    pub(crate) fn next(&mut self, within: Duration) -> Option<Message> {
        let deadline = Instant::now() + within;
        let message = match &mut self.source {
            Source::Whole(messages) => messages.pop_front()?,
            Source::Line(line) => line.next(within)?,
            Source::Stream(events) => loop {
                let (event, at) = events.next(deadline.saturating_duration_since(Instant::now()))?;
                assert!(event.unknown.is_empty(), "fields that no event stream has: {event:?}");
                match event.data.as_deref().filter(|data| !data.is_empty()) {
                    Some(data) => break Message { text: data.to_owned(), event: Some(event), at },
                    None => self.bare.push(event),
                }
            },
        };
        let on_line = matches!(self.source, Source::Line(_));
        let typed = |head: &Head| {
            on_line || head.get("content-type").is_some_and(|value| !value.starts_with("text/plain"))
        };
        if let Some(revision) = self.revision.as_ref().filter(|_| typed(&self.head)) {
            schema::check(revision, &self.method, &message.text);
        }
        Some(message)
    }

    /// Every message that comes until none has come for this time.
    pub(crate) fn until_quiet(&mut self, quiet: Duration) -> Vec<Message> {
        std::iter::from_fn(|| self.next(quiet)).collect()
    }

    /// How the stream has ended, if it has: in order or not. Nothing is read.
    pub(crate) fn broken(&self) -> Option<bool> {
        if let Source::Stream(events) = &self.source { events.ended() } else { None }
    }

    /// Whether the stream has ended, and in order, after what was read.
    pub(crate) fn ended(&mut self, within: Duration) -> Option<bool> {
        match &mut self.source {
            Source::Whole(_) => Some(true),
            Source::Line(_) => None,
            Source::Stream(events) => {
                while events.next(within).is_some() {}
                events.ended()
            }
        }
    }

    /// How many comment lines came so far.
    pub(crate) fn comments(&self) -> usize {
        match &self.source {
            Source::Whole(_) | Source::Line(_) => 0,
            Source::Stream(events) => events.comments(),
        }
    }

    /// Leaves: closes the connection.
    pub(crate) fn leave(self) {
        drop(self);
    }

    /// Everything up to the answer.
    pub(crate) fn answer(self) -> Answer {
        self.answer_with(|_| {})
    }

    /// Everything up to the answer, with something done at each message before it.
    pub(crate) fn answer_with(mut self, mut at: impl FnMut(&Message)) -> Answer {
        let mut before = Vec::new();
        loop {
            match self.next(PATIENCE) {
                Some(message) if message.answers() => {
                    canary::check("an answer", &message.text);
                    return Answer { head: self.head, before, message: Some(message) };
                }
                Some(message) => {
                    at(&message);
                    before.push(message);
                }
                None => return Answer { head: self.head, before, message: None },
            }
        }
    }
}

/// A whole answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    head: Head,
    /// The messages that came before it on its stream.
    pub(crate) before: Vec<Message>,
    message: Option<Message>,
}

impl Answer {
    /// The status.
    pub(crate) fn status(&self) -> u16 {
        self.head.word(1).parse().unwrap_or_default()
    }

    /// A header field.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.get(name)
    }

    /// The text of the JSON-RPC answer; empty where none came.
    pub(crate) fn body(&self) -> &str {
        self.message.as_ref().map(|message| message.text.as_str()).unwrap_or_default()
    }

    /// The exact text of a member.
    pub(crate) fn raw(&self, path: &[&str]) -> Option<&str> {
        json::raw(self.body(), path)
    }

    /// The exact text of the id.
    pub(crate) fn id(&self) -> Option<&str> {
        self.raw(&["id"])
    }

    /// The result; fails the test where there is none.
    pub(crate) fn result(&self) -> Value {
        json::value(self.raw(&["result"]).unwrap_or_else(|| panic!("no result: {self:?}")))
    }

    /// The error code; 0 where there is no error.
    pub(crate) fn code(&self) -> i64 {
        self.raw(&["error", "code"]).and_then(|raw| raw.parse().ok()).unwrap_or_default()
    }

    /// The message of the error.
    pub(crate) fn error(&self) -> String {
        json::text(self.body(), &["error", "message"]).unwrap_or_default()
    }

    /// The first text block of a tool's result.
    pub(crate) fn said(&self) -> String {
        self.result()["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    }

    /// Whether it is a result that says that the tool failed.
    pub(crate) fn is_failure(&self) -> bool {
        self.raw(&["result", "isError"]) == Some("true")
    }
}
