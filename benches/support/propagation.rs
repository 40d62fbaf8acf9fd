//! How long a change takes from an upstream's announcement to its clients.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::gateway::{Weir, entry};
use super::http::{between, header, read_body, read_head, request};
use super::number::count;

pub(crate) const MODERN: &str = "2026-07-28";
pub(crate) const LEGACY: &str = "2025-11-25";
/// The debounce window of a configuration without `notify`, in milliseconds.
pub(crate) const WINDOW: f64 = 200.0;
/// Between two changes: more than the window, so that none waits for the one before it.
const APART: Duration = Duration::from_millis(600);

/// What some rounds came to.
pub(crate) struct Told {
    /// Sorted, in milliseconds: after what time each client had heard of each change.
    times: Vec<f64>,
    /// Processor time of the gateway for each client and change, in microseconds.
    pub(crate) cpu: f64,
}

impl Told {
    /// After what time so many of a hundred had heard, in milliseconds.
    pub(crate) fn at(&self, percent: usize) -> f64 {
        self.times.get((self.times.len() * percent).div_ceil(100).max(1) - 1).copied().unwrap_or(0.0)
    }
}

/// Lets an upstream of this revision change so often before so many clients of both eras.
pub(crate) fn propagate(revision: &str, (rounds, clients): (usize, usize)) -> Told {
    let upstream = Upstream::start();
    let url = format!("http://{}/mcp", upstream.address);
    let more =
        "listen: { limits: { connections: 20000 }, sessions: { total: 20000, per_principal: 20000 } }\n";
    let gateway = Weir::of(&format!("{more}upstreams:\n{}", entry("up", &url, revision)), &[]);
    let (told, heard) = channel();
    for number in 0..clients {
        let (address, told) = (gateway.address.clone(), told.clone());
        let era = if number % 2 == 0 { MODERN } else { LEGACY };
        let stream = listen(&address, era);
        std::thread::spawn(move || hear(stream, &told));
    }
    let before = gateway.cpu();
    let times = measure(&upstream, &heard, (rounds, clients));
    let cpu = (gateway.cpu() - before) * 1e6 / count(rounds * clients);
    Told { times, cpu }
}

/// Makes changes one after the other; the sorted times in milliseconds after which each client had heard of each.
fn measure(upstream: &Upstream, heard: &Receiver<Instant>, (rounds, clients): (usize, usize)) -> Vec<f64> {
    let mut times = Vec::with_capacity(rounds * clients);
    for _ in 0..rounds {
        std::thread::park_timeout(APART);
        let begun = upstream.change();
        for _ in 0..clients {
            let at = heard.recv_timeout(Duration::from_secs(5)).expect("every client hears of it, once");
            times.push(at.duration_since(begun).as_secs_f64() * 1e3);
        }
    }
    assert!(heard.recv_timeout(APART).is_err(), "nobody hears of it twice");
    times.sort_by(f64::total_cmp);
    times
}

/// Opens the stream of a client on which changes are told.
fn listen(address: &str, era: &str) -> BufReader<TcpStream> {
    let meta = format!(
        r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"{MODERN}","io.modelcontextprotocol/clientCapabilities":{{}}}}"#
    );
    if era == MODERN {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{{"notifications":{{"toolsListChanged":true}},{meta}}}}}"#
        );
        let head = format!("mcp-protocol-version: {MODERN}\r\nmcp-method: subscriptions/listen\r\n");
        return ask(address, "POST", &head, &body).0;
    }
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
    let (_, answered) = ask(address, "POST", "", hello);
    let session = header(&answered, "mcp-session-id").expect("a session");
    let head = format!("mcp-session-id: {session}\r\n");
    ask(address, "POST", &head, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    ask(address, "GET", &head, "").0
}

fn ask(address: &str, verb: &str, head: &str, body: &str) -> (BufReader<TcpStream>, String) {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_nodelay(true).expect("nodelay");
    stream.write_all(request(verb, "/mcp", head, body).as_bytes()).expect("written");
    let mut stream = BufReader::new(stream);
    let head = read_head(&mut stream).expect("a head");
    assert!(head.starts_with("HTTP/1.1 20"), "{head}");
    (stream, head)
}

/// Says when each announcement has come.
fn hear(mut stream: BufReader<TcpStream>, told: &Sender<Instant>) {
    let mut line = String::new();
    while stream.read_line(&mut line).is_ok_and(|count| count > 0) {
        if line.contains("notifications/tools/list_changed") && told.send(Instant::now()).is_err() {
            return;
        }
        line.clear();
    }
}

/// An upstream of both eras whose one tool is another one after each change.
struct Upstream {
    address: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    version: usize,
    /// Where changes are announced: a stream, and the id of its subscription in the modern era.
    standing: Vec<(TcpStream, Option<String>)>,
}

impl Upstream {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                std::thread::spawn(move || converse(stream, &state));
            }
        });
        Self { address, state }
    }

    /// Another tool; the moment in which that was announced.
    fn change(&self) -> Instant {
        let mut state = self.state.lock().expect("a lock");
        state.version += 1;
        let begun = Instant::now();
        for (stream, subscription) in &mut state.standing {
            let params = subscription.as_ref().map(|id| {
                format!(r#","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}"#)
            });
            let params = params.unwrap_or_default();
            let message =
                format!(r#"{{"jsonrpc":"2.0","method":"notifications/tools/list_changed"{params}}}"#);
            stream.write_all(format!("data: {message}\n\n").as_bytes()).unwrap_or_default();
        }
        begun
    }
}

const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

fn converse(stream: TcpStream, state: &Mutex<State>) {
    stream.set_nodelay(true).expect("nodelay");
    let mut stream = BufReader::new(stream);
    while let Some(head) = read_head(&mut stream) {
        let is_post = head.starts_with("POST");
        let body = if is_post { read_body(&mut stream, &head) } else { String::new() };
        let id = between(&body, "\"id\":", &[',', '}']).map(str::to_owned);
        let is_listen = body.contains("\"subscriptions/listen\"");
        if is_listen || head.starts_with("GET") {
            let mut kept = stream.get_ref().try_clone().expect("a socket");
            let first = id.as_ref().map(|id| {
                format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"notifications":{{"toolsListChanged":true}},"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
                )
            });
            let first = first.map(|message| format!("data: {message}\n\n")).unwrap_or_default();
            kept.write_all(format!("{STREAM}{first}").as_bytes()).expect("written");
            state.lock().expect("a lock").standing.push((kept, id));
            continue;
        }
        if stream.get_mut().write_all(answer(&body, id.as_deref(), state).as_bytes()).is_err() {
            return;
        }
    }
}

fn answer(body: &str, id: Option<&str>, state: &Mutex<State>) -> String {
    let modern = body.contains("io.modelcontextprotocol/protocolVersion");
    let capabilities =
        r#""capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"bench","version":"1"}"#;
    let result = if body.contains("\"tools/list\"") {
        let version = state.lock().expect("a lock").version;
        format!(
            r#"{{"tools":[{{"name":"tool{version}","inputSchema":{{"type":"object"}}}}],"resultType":"complete","ttlMs":60000,"cacheScope":"public"}}"#
        )
    } else if body.contains("\"initialize\"") {
        format!(r#"{{"protocolVersion":"2025-11-25",{capabilities}}}"#)
    } else if body.contains("\"server/discover\"") && modern {
        format!(
            r#"{{"resultType":"complete","supportedVersions":["2026-07-28"],{capabilities},"ttlMs":60000,"cacheScope":"public"}}"#
        )
    } else {
        return "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n".to_owned();
    };
    let message = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, id.unwrap_or("null"));
    let session = if body.contains("\"initialize\"") { "mcp-session-id: bench\r\n" } else { "" };
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{session}content-length: {}\r\n\r\n{message}",
        message.len()
    )
}
