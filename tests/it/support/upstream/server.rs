//! Sockets, the record of requests, and what both eras share.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufReader, Read};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::time::Instant;

use super::wire::closed;
use super::{Fake, Gone, Request, Script, Wire, legacy, modern, tools};
use crate::support::http::{Body, Head};
use crate::support::{Side, json};

/// What a standing stream is told.
pub(super) enum Order {
    /// A notification: its method and the members of its params.
    Notify(String, String),
    /// Any message.
    Message(String),
    /// Nothing; sent to see whether the stream still lives.
    Look,
    /// End.
    Close,
}

/// A legacy session.
#[derive(Debug, Clone, Default)]
pub(super) struct Session {
    pub(super) revision: String,
    pub(super) initialized: bool,
    pub(super) counter: u64,
    /// The raw value of `logging/setLevel`.
    pub(super) level: Option<String>,
}

/// A standing stream: the session or subscription it belongs to, and its end of the channel.
pub(super) struct Standing {
    pub(super) session: String,
    pub(super) orders: Sender<Order>,
}

/// What changes while a server runs.
#[derive(Default)]
pub(super) struct State {
    pub(super) tools: Vec<String>,
    pub(super) requests: Vec<Request>,
    pub(super) violations: Vec<String>,
    pub(super) gone: BTreeMap<usize, Gone>,
    /// Cancelled requests: session and raw id.
    pub(super) cancelled: Vec<(String, String)>,
    pub(super) sessions: BTreeMap<String, Session>,
    pub(super) issued: usize,
    pub(super) standing: Vec<Standing>,
    pub(super) scripts: HashMap<String, Script>,
    pub(super) stateless_counter: u64,
    sockets: Vec<TcpStream>,
}

/// What all threads of a server share.
pub(crate) struct Shared {
    pub(super) fake: Fake,
    state: Mutex<State>,
    connections: AtomicUsize,
    stopping: AtomicBool,
    pub(super) authority: Mutex<String>,
}

impl Shared {
    pub(super) fn new(fake: Fake) -> Self {
        let state = State { tools: fake.tools.clone(), scripts: fake.scripts.clone(), ..State::default() };
        Self {
            fake,
            state: Mutex::new(state),
            connections: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
            authority: Mutex::default(),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn stopped(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    pub(super) fn stop(&self, stopping: bool) {
        self.stopping.store(stopping, Ordering::SeqCst);
        if stopping {
            let mut state = self.state();
            state.standing.clear();
            for socket in state.sockets.drain(..) {
                socket.shutdown(Shutdown::Both).ok();
            }
        }
    }

    pub(super) fn note_status(&self, number: usize, status: u16) {
        if let Some(request) = self.state().requests.get_mut(number) {
            request.status = Some(status);
        }
    }

    pub(super) fn note_gone(&self, number: usize, gone: Gone) {
        self.state().gone.insert(number, gone);
    }

    /// Notes a breach of the protocol.
    pub(super) fn violation(&self, what: String) {
        self.state().violations.push(what);
    }

    pub(super) fn is_cancelled(&self, request: &Request) -> bool {
        let session = request.session().unwrap_or_default();
        let id = request.id().unwrap_or_default();
        self.state().cancelled.iter().any(|(s, i)| s == session && i == id)
    }

    /// The ordinary answer to a request that passed the checks of its era, unless a script gives another.
    pub(super) fn answer(&self, request: &Request, wire: &mut Wire<'_>) {
        let method = request.method();
        let call = format!("{method} {}", request.name());
        if let Some(script) = self.script(&[&call, &method]) {
            return script(request, wire);
        }
        match method.as_str() {
            "tools/list" => wire.result(&self.page(request)),
            "tools/call" => tools::call(request, wire),
            _ if self.fake.side == Side::Modern => wire.refuse(404, -32601, "Method not found"),
            _ => wire.refuse(200, -32601, "Method not found"),
        }
    }

    pub(super) fn script(&self, keys: &[&str]) -> Option<Script> {
        let state = self.state();
        keys.iter().find_map(|key| state.scripts.get(*key).cloned())
    }

    /// One page of the tool list.
    fn page(&self, request: &Request) -> String {
        let tools = self.state().tools.clone();
        let cursor = request.raw(&["params", "cursor"]).and_then(|raw| raw.trim_matches('"').parse().ok());
        let from: usize = cursor.unwrap_or_default();
        let to = from.saturating_add(self.fake.page).min(tools.len());
        let next = if to < tools.len() { format!(",\"nextCursor\":\"{to}\"") } else { String::new() };
        let (ttl, scope) = self.fake.hints;
        let hints = match self.fake.side {
            Side::Modern => format!(",\"ttlMs\":{ttl},\"cacheScope\":\"{scope}\""),
            Side::Legacy => String::new(),
        };
        format!("{{\"tools\":[{}]{next}{hints}}}", tools[from.min(to)..to].join(","))
    }

    /// Holds a standing stream open until it is closed, and writes what it is told.
    pub(super) fn stand(&self, wire: &mut Wire<'_>, socket: &TcpStream, session: &str, mark: Option<&str>) {
        let (orders, told): (Sender<Order>, Receiver<Order>) = channel();
        self.state().standing.push(Standing { session: session.to_owned(), orders });
        wire.stream();
        loop {
            match told.recv_timeout(Duration::from_millis(10)) {
                Ok(Order::Notify(method, members)) => {
                    let meta = mark
                        .map(|id| format!("\"_meta\":{{\"io.modelcontextprotocol/subscriptionId\":{id}}}"));
                    let all = [meta, Some(members).filter(|text| !text.is_empty())];
                    let all: Vec<String> = all.into_iter().flatten().collect();
                    wire.notify(&method, &format!("{{{}}}", all.join(",")));
                }
                Ok(Order::Message(text)) => drop(wire.event(&text)),
                Ok(Order::Close) => return wire.end(),
                Err(RecvTimeoutError::Disconnected) => return wire.abort(),
                Err(RecvTimeoutError::Timeout) if closed(socket, Duration::from_millis(1)) => {
                    return wire.abort();
                }
                Ok(Order::Look) | Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

/// Accepts until the server is stopped.
pub(super) fn accept(shared: &Arc<Shared>, listener: &TcpListener) {
    for socket in listener.incoming() {
        if shared.stopped() {
            return;
        }
        let Ok(socket) = socket else { continue };
        socket.set_nodelay(true).ok();
        if let Ok(twin) = socket.try_clone() {
            shared.state().sockets.push(twin);
        }
        let shared = Arc::clone(shared);
        let connection = shared.connections.fetch_add(1, Ordering::SeqCst);
        thread::spawn(move || {
            converse(&shared, &socket, connection);
            socket.shutdown(Shutdown::Both).ok();
        });
    }
}

fn converse(shared: &Shared, socket: &TcpStream, connection: usize) {
    let mut reader = BufReader::new(socket);
    while let Ok(Some(head)) = Head::read(&mut reader) {
        let mut body = Vec::new();
        if Body::of_request(&head, &mut reader).read_to_end(&mut body).is_err() {
            return;
        }
        let request = record(shared, connection, head, &body);
        let mut wire = Wire::new(socket, &request, shared);
        match (shared.fake.moved, shared.fake.side) {
            (Some((from, to)), _) if from == request.head.word(1) => wire.with("location", to).bare(307),
            (_, Side::Legacy) => legacy::serve(shared, socket, &request, &mut wire),
            (_, Side::Modern) => modern::serve(shared, socket, &request, &mut wire),
        }
        if !wire.reusable() || shared.stopped() {
            return;
        }
    }
}

fn record(shared: &Shared, connection: usize, head: Head, body: &[u8]) -> Request {
    let body = String::from_utf8_lossy(body).into_owned();
    let mut state = shared.state();
    let number = state.requests.len();
    let request = Request { number, connection, at: Instant::now(), head, body, status: None };
    state.requests.push(request.clone());
    request
}

/// What is wrong with the head of a POST in either era; the status to refuse it with.
pub(super) fn head_fault(shared: &Shared, request: &Request) -> Option<u16> {
    let accepts = |kind: &str| request.header("accept").is_some_and(|value| value.contains(kind));
    let typed = request.header("content-type").is_some_and(|value| value.starts_with("application/json"));
    let authority = shared.authority.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let status = if request.header("host") != Some(authority.as_str()) {
        421
    } else if !typed {
        415
    } else if !accepts("application/json") || !accepts("text/event-stream") {
        406
    } else if json::raw(&request.body, &["jsonrpc"]) != Some("\"2.0\"") {
        400
    } else {
        return None;
    };
    shared.violation(format!("{status} for {:?}", request.head));
    Some(status)
}
