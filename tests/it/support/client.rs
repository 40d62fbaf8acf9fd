//! The clients of the tests: both eras behind one type, each message checked against its schema.
//!
//! [`Ask`] says what is asked; a [`Client`] writes it in the way of its era and gives back a [`Running`] exchange or
//! the whole [`Answer`].

mod answer;
mod ask;
mod conversation;
mod line;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub(crate) use answer::{Answer, Message, Running};
pub(crate) use ask::{Ask, encode};
pub(crate) use conversation::{Question, Reaction, asks, question_of};
use line::Line;

use super::exchange::Exchange;
use super::{Side, canary, json};

/// A client of one era.
#[derive(Debug)]
pub(crate) struct Client {
    to: SocketAddr,
    path: String,
    side: Side,
    revision: String,
    session: Option<String>,
    token: Option<String>,
    checked: bool,
    capabilities: String,
    line: Option<Arc<Line>>,
    next: AtomicU64,
}

impl Client {
    /// A client that has not said anything yet.
    pub(crate) fn new(to: SocketAddr, side: Side) -> Self {
        let revision = match side {
            Side::Legacy => "2025-11-25",
            Side::Modern => "2026-07-28",
        };
        Self {
            to,
            path: "/mcp".to_owned(),
            side,
            revision: revision.to_owned(),
            session: None,
            token: None,
            checked: true,
            capabilities: "{}".to_owned(),
            line: None,
            next: AtomicU64::new(1),
        }
    }

    /// A client of this era that is ready to ask.
    pub(crate) fn ready(to: SocketAddr, side: Side) -> Self {
        let client = Self::new(to, side);
        match side {
            Side::Legacy => client.opened(),
            Side::Modern => client,
        }
    }

    /// Another revision.
    pub(crate) fn revision(mut self, revision: &str) -> Self {
        revision.clone_into(&mut self.revision);
        self
    }

    /// A bearer token on every request.
    pub(crate) fn token(mut self, token: &str) -> Self {
        canary::keep(token);
        self.token = Some(token.to_owned());
        self
    }

    /// Another endpoint.
    pub(crate) fn at(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    /// Messages are not held against the schema: for upstreams that break it themselves.
    pub(crate) fn unchecked(mut self) -> Self {
        self.checked = false;
        self
    }

    /// What it says that it can do, as a raw object.
    pub(crate) fn capable(mut self, raw: &str) -> Self {
        raw.clone_into(&mut self.capabilities);
        self
    }

    /// Speaks HTTP+SSE (2024-11-05); `None` where nobody does at this address.
    pub(crate) fn over_sse(mut self) -> Option<Self> {
        let line = Line::open(self.exchange("GET").header("Accept", "text/event-stream"), &self.path)?;
        line.post.clone_into(&mut self.path);
        self.line = Some(Arc::new(line));
        Some(self.revision("2024-11-05"))
    }

    /// Opens a session (legacy): `initialize` and `notifications/initialized`.
    pub(crate) fn opened(mut self) -> Self {
        let answer = self.initialize();
        self.session = answer.header("mcp-session-id").map(str::to_owned);
        let issued = self.session.is_some() || self.line.is_some();
        assert!(issued, "no session id with the answer to initialize: {answer:?}");
        assert_eq!(self.notify("notifications/initialized", None), 202);
        self
    }

    /// Asks `initialize` and gives the answer back.
    pub(crate) fn initialize(&self) -> Answer {
        let params = format!(
            "{{\"protocolVersion\":\"{}\",\"capabilities\":{},\"clientInfo\":{{\"name\":\"it\",\"version\":\"1\"}}}}",
            self.revision, self.capabilities,
        );
        self.ask(Ask::new("initialize").params(&params))
    }

    /// Its era.
    pub(crate) fn side(&self) -> Side {
        self.side
    }

    /// Its session id.
    pub(crate) fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Takes a session that was opened elsewhere.
    pub(crate) fn with_session(mut self, session: &str) -> Self {
        self.session = Some(session.to_owned());
        self
    }

    /// A request with what every request of this client carries.
    pub(crate) fn exchange(&self, verb: &str) -> Exchange {
        let mut exchange = Exchange::new(self.to, verb, &self.path);
        if let Some(session) = &self.session {
            exchange = exchange.header("Mcp-Session-Id", session);
        }
        if let Some(token) = &self.token {
            exchange = exchange.header("Authorization", &format!("Bearer {token}"));
        }
        let versioned =
            self.side == Side::Modern || (self.session.is_some() && self.revision.as_str() >= "2025-06-18");
        if versioned {
            exchange = exchange.header("MCP-Protocol-Version", &self.revision);
        }
        exchange
    }

    /// A POST of this body.
    pub(crate) fn post(&self, body: impl Into<Vec<u8>>) -> Exchange {
        self.exchange("POST")
            .header("Content-Type", "application/json")
            .header("Accept", "application/json, text/event-stream")
            .body(body)
    }

    /// What would be sent for this.
    pub(crate) fn request(&self, ask: &Ask) -> Exchange {
        let id = ask.id.clone().unwrap_or_else(|| self.next.fetch_add(1, Ordering::SeqCst).to_string());
        let exchange = self.post(ask.body(&id, &self.meta()));
        let exchange = match self.side {
            Side::Legacy => exchange,
            Side::Modern => ask.mirror(exchange),
        };
        ask.adjust(exchange)
    }

    fn meta(&self) -> Vec<(String, String)> {
        match self.side {
            Side::Legacy => Vec::new(),
            Side::Modern => [
                ("protocolVersion", json::quote(&self.revision)),
                ("clientInfo", "{\"name\":\"it\",\"version\":\"1\"}".to_owned()),
                ("clientCapabilities", self.capabilities.clone()),
            ]
            .map(|(key, raw)| (format!("io.modelcontextprotocol/{key}"), raw))
            .to_vec(),
        }
    }

    /// Sends and reads the head of the answer.
    pub(crate) fn start(&self, ask: Ask) -> Running {
        let checked = self.checked.then(|| self.revision.clone());
        let response = self.request(&ask).send();
        match &self.line {
            Some(line) => Running::on_line(&response, line, ask.method, checked),
            None => Running::new(response, ask.method, checked),
        }
    }

    /// Sends and reads all of the answer.
    pub(crate) fn ask(&self, ask: Ask) -> Answer {
        self.start(ask).answer()
    }

    /// Calls a tool.
    pub(crate) fn call(&self, name: &str, arguments: &str) -> Answer {
        self.ask(Ask::call(name, arguments))
    }

    /// Sends a notification; the status.
    pub(crate) fn notify(&self, method: &str, params: Option<&str>) -> u16 {
        let params = params.map(|raw| format!(",\"params\":{raw}")).unwrap_or_default();
        let response = self.post(format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\"{params}}}")).send();
        let status = response.status();
        if status == 202 && self.line.is_none() {
            assert_eq!(response.text(), "", "an accepted notification is answered without a body");
        }
        status
    }

    /// Takes a request back as its era does it.
    pub(crate) fn cancel(&self, id: &str) -> u16 {
        self.notify("notifications/cancelled", Some(&format!("{{\"requestId\":{id},\"reason\":\"test\"}}")))
    }

    /// Every published tool name, all pages followed.
    pub(crate) fn names(&self) -> Vec<String> {
        self.tools().iter().filter_map(|raw| json::text(raw, &["name"])).collect()
    }

    /// Every tool definition, as raw text, all pages followed.
    pub(crate) fn tools(&self) -> Vec<String> {
        let mut all = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let params = cursor.as_ref().map(|raw| format!("{{\"cursor\":{raw}}}"));
            let answer = self.ask(Ask::new("tools/list").params(params.as_deref().unwrap_or("{}")));
            let tools = answer.raw(&["result", "tools"]).unwrap_or_else(|| panic!("no tools in {answer:?}"));
            let tools: Vec<Box<serde_json::value::RawValue>> = serde_json::from_str(tools).expect("an array");
            all.extend(tools.iter().map(|raw| raw.get().to_owned()));
            cursor = answer.raw(&["result", "nextCursor"]).map(str::to_owned);
            if cursor.is_none() {
                return all;
            }
        }
    }

    /// Opens the stream on which changes of the tools are told: GET, or `subscriptions/listen` up to its
    /// acknowledgement.
    pub(crate) fn listen(&self) -> Running {
        self.listen_for("{\"toolsListChanged\":true}")
    }

    /// As [`Client::listen`], with what a modern client wishes to hear of, as a raw object.
    pub(crate) fn listen_for(&self, wish: &str) -> Running {
        match (self.side, &self.line) {
            (Side::Legacy, Some(line)) => Running::of_line(line, self.checked.then(|| self.revision.clone())),
            (Side::Legacy, None) => self.stream(None),
            (Side::Modern, _) => {
                let params = format!("{{\"notifications\":{wish}}}");
                let mut stream = self.start(Ask::new("subscriptions/listen").params(&params));
                stream.next(Duration::from_secs(5)).expect("the acknowledgement comes at once");
                stream
            }
        }
    }

    /// GET, with a place to go on from.
    pub(crate) fn stream(&self, last: Option<&str>) -> Running {
        let mut exchange = self.exchange("GET").header("Accept", "text/event-stream");
        if let Some(last) = last {
            exchange = exchange.header("Last-Event-ID", last);
        }
        Running::new(exchange.send(), "GET".to_owned(), self.checked.then(|| self.revision.clone()))
    }

    /// DELETE; the status.
    pub(crate) fn delete(&self) -> u16 {
        self.exchange("DELETE").send().status()
    }
}
