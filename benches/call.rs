//! What Weir adds to one `tools/call`: processor time and latency, against the same upstream asked directly.
//!
//! One run, interleaved rounds, best of several. The gateway is a process of its own, and processor time is the
//! operating system's account of it; upstream and load generator are threads of the benchmark. Every answer is
//! checked. Quote the ratios and the processor time: wall clock on a shared machine says little.
//!
//! `cargo bench --bench call` (a release build). `WEIR_BENCH_ROUNDS` and `WEIR_BENCH_CALLS` change the size.
#![expect(clippy::disallowed_types, reason = "a load generator on plain threads measures wall time")]
#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a benchmark prints, and stops at the first surprise"
)]

#[path = "support/gateway.rs"]
mod gateway;
#[path = "support/http.rs"]
mod http;
#[path = "support/number.rs"]
mod number;

use std::io::{BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use gateway::Weir;
use http::{between, read_body, read_head};
use number::{count, setting};

const MODERN: &str = "2026-07-28";

fn main() {
    let upstream = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = upstream.local_addr().expect("an address").to_string();
    std::thread::spawn(move || serve(&upstream));
    let rounds = setting("WEIR_BENCH_ROUNDS", 8);
    let calls = setting("WEIR_BENCH_CALLS", 4000);
    for (label, revision) in [("modern upstream", MODERN), ("legacy upstream", "2025-11-25")] {
        for (size, bytes) in [("small result", 64), ("64 KiB result", 64 * 1024)] {
            let scale = if bytes > 1024 { calls / 4 } else { calls };
            let weir = Weir::start(&address, revision);
            let best = rounds_of(rounds, &address, &weir, &Load { bytes, calls: scale, clients: 16 });
            let calm = rounds_of(rounds, &address, &weir, &Load { bytes, calls: scale / 8, clients: 1 });
            println!(
                "{label}, {size}: gateway {:.1} us cpu/call; 16 clients {:.1} vs {:.1} us/call direct (x{:.2}); \
                 1 client p50 {:.0} vs {:.0} us direct (x{:.2})",
                best.cpu,
                best.through,
                best.direct,
                best.through / best.direct,
                calm.p50_through,
                calm.p50_direct,
                calm.p50_through / calm.p50_direct,
            );
        }
    }
}

struct Load {
    bytes: usize,
    calls: usize,
    clients: usize,
}

/// Microseconds per call, the best of all rounds.
struct Best {
    cpu: f64,
    through: f64,
    direct: f64,
    p50_through: f64,
    p50_direct: f64,
}

fn rounds_of(rounds: usize, upstream: &str, weir: &Weir, load: &Load) -> Best {
    let most = f64::MAX;
    let mut best = Best { cpu: most, through: most, direct: most, p50_through: most, p50_direct: most };
    for _ in 0..rounds {
        let (wall, p50) = drive(upstream, "big", load);
        best.direct = best.direct.min(wall);
        best.p50_direct = best.p50_direct.min(p50);
        let before = weir.cpu();
        let (wall, p50) = drive(&weir.address, "up__big", load);
        best.cpu = best.cpu.min((weir.cpu() - before) * 1e6 / count(load.calls));
        best.through = best.through.min(wall);
        best.p50_through = best.p50_through.min(p50);
    }
    best
}

/// Sends the calls over keep-alive connections; wall time per call and the median latency, in microseconds.
fn drive(address: &str, tool: &str, load: &Load) -> (f64, f64) {
    let began = Instant::now();
    let each = load.calls / load.clients;
    let threads: Vec<_> = (0..load.clients)
        .map(|_| {
            let (address, request, bytes) = (address.to_owned(), call(tool, load.bytes), load.bytes);
            std::thread::spawn(move || {
                let mut connection = Connection::open(&address);
                let mut times = Vec::with_capacity(each);
                for _ in 0..each {
                    let asked = Instant::now();
                    let (status, body) = connection.exchange(&request);
                    times.push(asked.elapsed());
                    assert!(
                        status == 200 && body.len() > bytes && body.contains("\"id\":7"),
                        "{status} {body:.200}"
                    );
                }
                times
            })
        })
        .collect();
    let mut times: Vec<Duration> =
        threads.into_iter().flat_map(|thread| thread.join().expect("a client")).collect();
    times.sort();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    (began.elapsed().as_secs_f64() * 1e6 / count(load.calls), median.as_secs_f64() * 1e6)
}

fn call(tool: &str, bytes: usize) -> String {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"{tool}","arguments":{{"bytes":{bytes}}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"{MODERN}","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    );
    format!(
        "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: {MODERN}\r\nmcp-method: tools/call\r\n\
         mcp-name: {tool}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// One keep-alive connection.
struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_nodelay(true).expect("nodelay");
        Self { stream: BufReader::new(stream) }
    }

    fn exchange(&mut self, request: &str) -> (u16, String) {
        self.stream.get_mut().write_all(request.as_bytes()).expect("written");
        let head = read_head(&mut self.stream).expect("a head");
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        (status, read_body(&mut self.stream, &head))
    }
}

/// The upstream: one thread per connection, both eras.
fn serve(listener: &TcpListener) {
    for stream in listener.incoming().flatten() {
        std::thread::spawn(move || converse(stream));
    }
}

fn converse(stream: TcpStream) {
    stream.set_nodelay(true).expect("nodelay");
    let mut stream = BufReader::new(stream);
    while let Some(head) = read_head(&mut stream) {
        let body = if head.starts_with("post") { read_body(&mut stream, &head) } else { String::new() };
        if stream.get_mut().write_all(answer(&head, &body).as_bytes()).is_err() {
            return;
        }
    }
}

fn answer(head: &str, body: &str) -> String {
    let id = between(body, "\"id\":", &[',', '}']).unwrap_or("null");
    let modern = body.contains("io.modelcontextprotocol/protocolVersion");
    let result = if !head.starts_with("post") {
        return "HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n".to_owned();
    } else if body.contains("\"tools/call\"") {
        let bytes =
            between(body, "\"bytes\":", &['}']).and_then(|text| text.trim().parse().ok()).unwrap_or(1);
        format!(r#"{{"content":[{{"type":"text","text":"{}"}}],"resultType":"complete"}}"#, "x".repeat(bytes))
    } else if body.contains("\"tools/list\"") {
        r#"{"tools":[{"name":"big","inputSchema":{"type":"object"}}],"resultType":"complete","ttlMs":60000,"cacheScope":"public"}"#.to_owned()
    } else if body.contains("\"initialize\"") {
        r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}"#
            .to_owned()
    } else if body.contains("\"server/discover\"") && modern {
        r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":60000,"cacheScope":"public"}"#.to_owned()
    } else {
        return "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n".to_owned();
    };
    let message = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
    let session = if body.contains("\"initialize\"") { "mcp-session-id: bench\r\n" } else { "" };
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{session}content-length: {}\r\n\r\n{message}",
        message.len()
    )
}
