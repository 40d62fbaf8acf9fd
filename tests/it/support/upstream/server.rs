//! Sockets, the record of requests, and what both eras share.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufReader, Read};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_json::Value;
use tokio::time::Instant;

use super::goods::Goods;
use super::standing::Standing;
use super::task::Task;
use super::{
    Fake, Gone, Records, Request, Script, Sessions, Wire, asking, goods, legacy, modern, sse, task, tools,
};
use crate::support::http::{Body, Head};
use crate::support::{Side, json};

/// A legacy session.
#[derive(Debug, Clone, Default)]
pub(super) struct Session {
    pub(super) revision: String,
    pub(super) initialized: bool,
    pub(super) counter: u64,
    /// What the client said that it can do.
    pub(super) capabilities: Value,
    /// How many questions were asked.
    pub(super) asked: u64,
    /// The raw value of `logging/setLevel`.
    pub(super) level: Option<String>,
}

/// What changes while a server runs.
pub(super) struct State {
    pub(super) goods: Goods,
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
    /// Answers to questions, by session and raw id.
    pub(super) answers: HashMap<(String, String), String>,
    /// Resource subscriptions of legacy sessions: session and URI.
    pub(super) subscriptions: Vec<(String, String)>,
    /// Tasks, by id.
    pub(super) tasks: BTreeMap<String, Task>,
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
        let state = State {
            goods: fake.goods.clone(),
            requests: Vec::new(),
            violations: Vec::new(),
            gone: BTreeMap::new(),
            cancelled: Vec::new(),
            sessions: BTreeMap::new(),
            issued: 0,
            standing: Vec::new(),
            scripts: fake.scripts.clone(),
            stateless_counter: 0,
            answers: HashMap::new(),
            subscriptions: Vec::new(),
            tasks: BTreeMap::new(),
            sockets: Vec::new(),
        };
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
        if let Some(page) = goods::page(request, wire) {
            return wire.result(&page);
        }
        if asking::serve(request, wire) || task::serve(request, wire) || self.subscribe(request, wire) {
            return;
        }
        match method.as_str() {
            "tools/call" => tools::call(request, wire),
            _ if goods::serve(request, wire) => {}
            _ if self.fake.side == Side::Modern => wire.refuse(404, -32601, "Method not found"),
            _ => wire.refuse(200, -32601, "Method not found"),
        }
    }

    pub(super) fn script(&self, keys: &[&str]) -> Option<Script> {
        let state = self.state();
        keys.iter().find_map(|key| state.scripts.get(*key).cloned())
    }

    /// Revision and capabilities of who asks.
    pub(super) fn counterpart(&self, request: &Request) -> (String, Value) {
        match self.fake.side {
            Side::Modern => {
                let raw = request.meta("io.modelcontextprotocol/clientCapabilities").unwrap_or("{}");
                ("2026-07-28".to_owned(), json::value(raw))
            }
            Side::Legacy => {
                let state = self.state();
                let session = state.sessions.get(request.session().unwrap_or_default()).cloned();
                session.map(|session| (session.revision, session.capabilities)).unwrap_or_default()
            }
        }
    }

    /// The id of the next question in a session, counted from 1.
    pub(super) fn next_question(&self, session: &str) -> u64 {
        let mut state = self.state();
        let session = state.sessions.entry(session.to_owned()).or_default();
        session.asked += 1;
        session.asked
    }

    /// The answer to a question, once it has come: the raw result, or the raw error in an object of its own.
    pub(super) fn take_answer(&self, session: &str, id: u64) -> Option<String> {
        let body = self.state().answers.remove(&(session.to_owned(), id.to_string()))?;
        let error = json::raw(&body, &["error"]).map(|raw| format!("{{\"error\":{raw}}}"));
        error.or_else(|| json::raw(&body, &["result"]).map(str::to_owned))
    }

    /// Keeps an answer to a question.
    pub(super) fn note_answer(&self, session: &str, request: &Request) {
        let id = request.id().unwrap_or_default().to_owned();
        let mut state = self.state();
        let asked = state.sessions.get(session).map_or(0, |session| session.asked);
        let key = (session.to_owned(), id.clone());
        let own = id.parse().is_ok_and(|number: u64| (1..=asked).contains(&number));
        if own && state.answers.insert(key, request.body.clone()).is_some() {
            state.violations.push(format!("two answers to question {id}"));
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

fn converse(shared: &Arc<Shared>, socket: &TcpStream, connection: usize) {
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
            _ if shared.fake.sessions == Sessions::Lines => sse::serve(shared, socket, &request, &mut wire),
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
    let kept = match shared.fake.records {
        Records::Kept => request.clone(),
        Records::Dropped => Request {
            number,
            connection,
            at: request.at,
            head: Head::default(),
            body: String::new(),
            status: None,
        },
    };
    state.requests.push(kept);
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
    } else if shared.fake.sessions != Sessions::Lines
        && (!accepts("application/json") || !accepts("text/event-stream"))
    {
        406
    } else if json::raw(&request.body, &["jsonrpc"]) != Some("\"2.0\"") {
        400
    } else {
        return None;
    };
    shared.violation(format!("{status} for {:?}", request.head));
    Some(status)
}
