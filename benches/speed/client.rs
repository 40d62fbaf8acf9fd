//! The load: requests of both eras over keep-alive connections, and a look at every answer.

use std::io::{BufReader, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::http::{header, read_body, read_head, request};
use super::number::count;

pub(crate) const MODERN: &str = "2026-07-28";
pub(crate) const LEGACY: &str = "2025-11-25";

/// Whether an answer is the right one, by its body.
pub(crate) type Check = fn(&str) -> bool;

/// What is asked, by how many clients: each connection asks one of the requests again and again.
pub(crate) struct Load<'l> {
    pub(crate) requests: &'l [String],
    pub(crate) calls: usize,
    pub(crate) clients: usize,
    /// How many bytes the result has, at least.
    pub(crate) bytes: usize,
    pub(crate) check: Check,
}

/// Microseconds.
#[derive(Clone, Copy)]
pub(crate) struct Times {
    /// Of the wall clock, per call, with all clients at work.
    pub(crate) each: f64,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

/// The head of whatever a legacy client sends in a session.
pub(crate) fn in_session(session: &str) -> String {
    format!("mcp-protocol-version: {LEGACY}\r\nmcp-session-id: {session}\r\n")
}

/// A request of a modern client.
pub(crate) fn modern(path: &str, head: &str, (method, name, params): (&str, &str, &str)) -> String {
    let name = if name.is_empty() { String::new() } else { format!("mcp-name: {name}\r\n") };
    let head = format!("mcp-protocol-version: {MODERN}\r\nmcp-method: {method}\r\n{name}{head}");
    let comma = if params.is_empty() { "" } else { "," };
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{{params}{comma}"_meta":{{"io.modelcontextprotocol/protocolVersion":"{MODERN}","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    );
    request("POST", path, &head, &body)
}

/// A request of a legacy client in a session.
pub(crate) fn legacy(path: &str, session: &str, (method, params): (&str, &str)) -> String {
    let head = in_session(session);
    let body = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{{params}}}}}"#);
    request("POST", path, &head, &body)
}

/// A call of a tool with a result of so many bytes, in an era.
pub(crate) fn call(era: &str, path: &str, session: &str, (tool, bytes): (&str, usize)) -> String {
    let params = format!(r#""name":"{tool}","arguments":{{"bytes":{bytes}}}"#);
    if era == MODERN {
        modern(path, "", ("tools/call", tool, &params))
    } else {
        legacy(path, session, ("tools/call", &params))
    }
}

/// Opens a session of a legacy client.
pub(crate) fn open_session(connection: &mut Connection, path: &str) -> String {
    let hello = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{LEGACY}","capabilities":{{}},"clientInfo":{{"name":"bench","version":"1"}}}}}}"#
    );
    let (head, _) = connection.exchange(&request("POST", path, "", &hello));
    let session = header(&head, "mcp-session-id").expect("a session").to_owned();
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let (head, _) = connection.exchange(&request("POST", path, &in_session(&session), ready));
    assert!(head.starts_with("HTTP/1.1 202"), "{head}");
    session
}

/// One keep-alive connection.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    pub(crate) fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_nodelay(true).expect("nodelay");
        Self { stream: BufReader::with_capacity(64 * 1024, stream) }
    }

    pub(crate) fn exchange(&mut self, request: &str) -> (String, String) {
        self.stream.get_mut().write_all(request.as_bytes()).expect("written");
        let head = read_head(&mut self.stream).expect("a head");
        let body = read_body(&mut self.stream, &head);
        (head, body)
    }
}

/// Sends the calls, and looks at every answer.
pub(crate) fn drive(address: &str, load: &Load<'_>) -> Times {
    let each = load.calls.div_ceil(load.clients);
    let began = Instant::now();
    let mut times: Vec<Duration> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..load.clients)
            .map(|number| {
                let request = load.requests.get(number % load.requests.len()).expect("a request");
                scope.spawn(move || one(address, request, (each, load.bytes, load.check)))
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a client")).collect()
    });
    let wall = began.elapsed();
    times.sort();
    let at = |percent: usize| {
        let index = (times.len() * percent).div_ceil(100).max(1) - 1;
        times.get(index).map_or(0.0, |time| time.as_secs_f64() * 1e6)
    };
    Times { each: wall.as_secs_f64() * 1e6 / count(each * load.clients), p50: at(50), p99: at(99) }
}

fn one(address: &str, request: &str, (calls, bytes, check): (usize, usize, Check)) -> Vec<Duration> {
    let mut connection = Connection::open(address);
    (0..calls)
        .map(|_| {
            let asked = Instant::now();
            let (head, body) = connection.exchange(request);
            let taken = asked.elapsed();
            let is_good = head.starts_with("HTTP/1.1 200") && body.len() > bytes && check(&body);
            assert!(is_good, "{head}{body:.300}");
            taken
        })
        .collect()
}
