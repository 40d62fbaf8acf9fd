//! A scripted MCP server over real sockets: what stands behind the gateway in these tests.
//!
//! [`Fake`] says what it is, [`Upstream`] is the running one. It is strict: what deviates from its era is refused
//! as the specification says and noted in [`Upstream::violations`]. It records every request with its bytes. A
//! [`Script`] replaces the answer to a method, down to the bytes and the pauses between them.

mod asking;
mod goods;
mod legacy;
mod modern;
mod request;
mod running;
mod server;
mod sse;
mod standing;
mod task;
mod tools;
mod wire;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

pub(crate) use asking::CANNOT;
pub(crate) use goods::{prompt, resource, template};
pub(crate) use request::Request;
pub(crate) use running::Upstream;
pub(crate) use tools::{pattern, tool};
pub(crate) use wire::{Gone, Wire};

use crate::support::Side;
use goods::Goods;

/// What is answered instead of the ordinary answer.
pub(crate) type Script = Arc<dyn Fn(&Request, &mut Wire<'_>) + Send + Sync>;

/// The bytes of an event stream that carry a message.
pub(crate) type Framing = fn(&str) -> Vec<u8>;

/// How a legacy server treats `Mcp-Session-Id`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sessions {
    /// It issues ids and demands them.
    Issued,
    /// It issues none.
    None,
    /// It speaks HTTP+SSE: the session is that of the stream.
    Lines,
}

/// What becomes of the requests that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Records {
    /// Tests may look at them.
    Kept,
    /// They are counted only.
    Dropped,
}

/// What a fake server is. Start it with [`Fake::start`].
#[derive(Clone)]
pub(crate) struct Fake {
    side: Side,
    label: String,
    goods: Goods,
    page: usize,
    revisions: Vec<String>,
    sessions: Sessions,
    picky: bool,
    listens: bool,
    framing: Option<Framing>,
    moved: Option<(&'static str, &'static str)>,
    compresses: bool,
    instructions: Option<String>,
    hints: (u64, &'static str),
    scripts: HashMap<String, Script>,
    records: Records,
}

impl Fake {
    /// A server of 2025-11-25 and two older revisions, with sessions and a GET stream.
    pub(crate) fn legacy() -> Self {
        Self::of(Side::Legacy)
    }

    /// A stateless server of 2026-07-28 with `subscriptions/listen`.
    pub(crate) fn modern() -> Self {
        Self::of(Side::Modern)
    }

    /// A server of this era, with the tools of the cases.
    pub(crate) fn of(side: Side) -> Self {
        let revisions: &[&str] = match side {
            Side::Legacy => &["2025-11-25", "2025-06-18", "2025-03-26"],
            Side::Modern => &["2026-07-28"],
        };
        Self {
            side,
            label: "fake".to_owned(),
            goods: Goods::tools(
                ["echo", "slow", "incr", "steps", "big", "fail", "chatty"].map(tool).to_vec(),
            ),
            page: usize::MAX,
            revisions: revisions.iter().map(|&text| text.to_owned()).collect(),
            sessions: Sessions::Issued,
            picky: false,
            listens: true,
            framing: None,
            moved: None,
            compresses: false,
            instructions: None,
            hints: (60_000, "public"),
            scripts: HashMap::new(),
            records: Records::Kept,
        }
    }

    /// What its answers call it; also part of its session ids.
    pub(crate) fn label(mut self, label: &str) -> Self {
        label.clone_into(&mut self.label);
        self
    }

    /// Its tool definitions, as raw JSON.
    pub(crate) fn tools<T: Into<String>>(mut self, tools: impl IntoIterator<Item = T>) -> Self {
        self.goods.tools = tools.into_iter().map(Into::into).collect();
        self
    }

    /// Further items of one of its lists: `tools`, `prompts`, `resources`, `templates`.
    pub(crate) fn with<T: Into<String>>(mut self, kind: &str, items: impl IntoIterator<Item = T>) -> Self {
        self.goods.place(kind).extend(items.into_iter().map(Into::into));
        self
    }

    /// A tool, a prompt and a resource that ask their caller.
    pub(crate) fn asking(self) -> Self {
        self.with("tools", [tool("ask")])
            .with("prompts", [prompt("ask")])
            .with("templates", [template("ask://{+what}")])
    }

    /// It completes arguments.
    pub(crate) fn completing(mut self) -> Self {
        self.goods.completes = true;
        self
    }

    /// It takes subscriptions to resources.
    pub(crate) fn subscribable(mut self) -> Self {
        self.goods.subscribes = true;
        self
    }

    /// It makes tasks of the calls that may become one.
    pub(crate) fn with_tasks(mut self) -> Self {
        self.goods.tasks = true;
        self
    }

    /// It has an extension with these raw settings.
    pub(crate) fn extension(mut self, name: &str, settings: &str) -> Self {
        self.goods.extension = Some((name.to_owned(), settings.to_owned()));
        self
    }

    /// It sends no log messages.
    pub(crate) fn without_logging(mut self) -> Self {
        self.goods.logs = false;
        self
    }

    /// It speaks HTTP+SSE (2024-11-05) and nothing else.
    pub(crate) fn over_sse(mut self) -> Self {
        self.sessions = Sessions::Lines;
        self.revisions(&["2024-11-05"])
    }

    /// How many items one page of its lists holds.
    pub(crate) fn page(mut self, items: usize) -> Self {
        self.page = items;
        self
    }

    /// The legacy revisions it speaks, its favourite first.
    pub(crate) fn revisions(mut self, revisions: &[&str]) -> Self {
        self.revisions = revisions.iter().map(|&text| text.to_owned()).collect();
        self
    }

    /// It refuses an `initialize` for a revision it does not speak instead of negotiating.
    pub(crate) fn picky(mut self) -> Self {
        self.picky = true;
        self
    }

    /// It issues no session id.
    pub(crate) fn without_sessions(mut self) -> Self {
        self.sessions = Sessions::None;
        self
    }

    /// It has no standing stream: 405 to GET, 404 and -32601 to `subscriptions/listen`.
    pub(crate) fn without_listening(mut self) -> Self {
        self.listens = false;
        self
    }

    /// It answers every request with an event stream.
    pub(crate) fn in_streams(self) -> Self {
        self.framed(|message| format!("event: message\ndata: {message}\n\n").into_bytes())
    }

    /// It answers every request with an event stream of these bytes for the message.
    pub(crate) fn framed(mut self, framing: Framing) -> Self {
        self.framing = Some(framing);
        self
    }

    /// It answers requests to one path with 307 to another.
    pub(crate) fn moved(mut self, from: &'static str, to: &'static str) -> Self {
        self.moved = Some((from, to));
        self
    }

    /// It compresses JSON answers where it may.
    pub(crate) fn compressing(mut self) -> Self {
        self.compresses = true;
        self
    }

    /// Its instructions.
    pub(crate) fn instructions(mut self, text: &str) -> Self {
        self.instructions = Some(text.to_owned());
        self
    }

    /// `ttlMs` and `cacheScope` of its lists (modern).
    pub(crate) fn hints(mut self, ttl: u64, scope: &'static str) -> Self {
        self.hints = (ttl, scope);
        self
    }

    /// What it does for a method, for `tools/call NAME`, or for the verbs `GET` and `DELETE`, once the request has
    /// passed its checks.
    pub(crate) fn script(
        mut self,
        what: &str,
        script: impl Fn(&Request, &mut Wire<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.scripts.insert(what.to_owned(), Arc::new(script));
        self
    }

    /// It keeps no record of what came: for very long runs.
    pub(crate) fn forgetful(mut self) -> Self {
        self.records = Records::Dropped;
        self
    }

    /// Binds a port and serves.
    pub(crate) fn start(self) -> Upstream {
        Upstream::start(self)
    }

    /// Serves at this address, where another one was.
    pub(crate) fn start_at(self, address: SocketAddr) -> Upstream {
        Upstream::start_at(self, address)
    }

    /// Takes a port and leaves it closed, until [`Upstream::restart`].
    pub(crate) fn stopped(self) -> Upstream {
        let upstream = self.start();
        upstream.stop();
        upstream
    }
}
