//! Sessions of legacy clients: what a whole one costs, and what an idle one holds.

use std::io::{BufReader, Write as _};
use std::net::TcpStream;

use super::client::{Connection, LEGACY, call, in_session, open_session};
use super::gateway::Weir;
use super::http::{read_head, request};
use super::{Bench, Contender, Size, count, memory, row};

const UPSTREAMS: usize = 3;

fn is_good(body: &str) -> bool {
    body.contains("\"id\":7")
}

/// initialize, initialized, a call, DELETE: against one call in a session that stands.
pub(crate) fn whole_session(bench: &Bench) {
    let weir = bench.gateway(LEGACY, UPSTREAMS, "/mcp");
    let cpu = || weir.cpu();
    let request = |_client| {
        let session = open_session(&mut Connection::open(&weir.address), "/mcp");
        call(LEGACY, "/mcp", &session, ("up0__big", 64))
    };
    let requests = (0..16).map(request).collect();
    let contender = Contender { label: String::new(), address: &weir.address, requests, cpu: &cpu };
    let sessions = bench.calls / 4;
    let size = Size { calls: sessions, clients: 16, bytes: 64 };
    let best = bench.compete(&[contender], size, is_good).first().map_or(0.0, |best| best.cpu);
    let mut whole = f64::MAX;
    for _ in 0..bench.rounds {
        let before = weir.cpu();
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| (0..sessions / 16).for_each(|_| live(&weir)));
            }
        });
        whole = whole.min((weir.cpu() - before) * 1e6 / count(sessions / 16 * 16));
    }
    let measured = format!("{:.2} × ({whole:.0} µs against {best:.1} µs)", whole / best);
    row(&format!("a whole legacy session, {UPSTREAMS} upstreams, against one call"), "≤ 5.00 ×", &measured);
}

fn live(weir: &Weir) {
    let mut connection = Connection::open(&weir.address);
    let session = open_session(&mut connection, "/mcp");
    let (head, body) = connection.exchange(&call(LEGACY, "/mcp", &session, ("up0__big", 64)));
    assert!(head.starts_with("HTTP/1.1 200") && is_good(&body), "{head}{body}");
    end(&mut connection, &session);
}

fn end(connection: &mut Connection, session: &str) {
    let (head, _) = connection.exchange(&request("DELETE", "/mcp", &in_session(session), ""));
    assert!(head.starts_with("HTTP/1.1 204"), "{head}");
}

/// Many sessions with a standing stream each, of which nothing is asked.
pub(crate) fn idle(bench: &Bench) {
    let most = super::setting("WEIR_BENCH_SESSIONS", 10_000);
    let more =
        "listen: { limits: { connections: 20000 }, sessions: { total: 20000, per_principal: 20000 } }\n";
    let weir = bench.gateway_with(LEGACY, (1, "/mcp"), more, &[]);
    let base = memory::resident(weir.id(), "VmRSS");
    row("memory of an idle process", "≤ 20 MiB", &format!("{:.1} MiB", count(base) / 1024.0));
    let mut opener = Connection::open(&weir.address);
    let sessions: Vec<String> = (0..most).map(|_| open_session(&mut opener, "/mcp")).collect();
    let streams: Vec<TcpStream> = sessions.iter().map(|session| standing(&weir.address, session)).collect();
    let full = memory::resident(weir.id(), "VmRSS");
    drop(streams);
    // It was idle for longer than Weir keeps a connection.
    let mut opener = Connection::open(&weir.address);
    for session in &sessions {
        end(&mut opener, session);
    }
    // Memory is given back while others work.
    for _ in 0..100 {
        std::thread::park_timeout(std::time::Duration::from_millis(20));
        live(&weir);
    }
    let after = memory::resident(weir.id(), "VmRSS");
    let each = count(full - base) / count(most);
    let measured = format!("{each:.1} KiB each; {:.1} MiB after they ended", count(after) / 1024.0);
    row(&format!("{most} idle sessions with standing streams"), "≤ 12 KiB each, given back", &measured);
}

fn standing(address: &str, session: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.write_all(request("GET", "/mcp", &in_session(session), "").as_bytes()).expect("written");
    let mut reader = BufReader::new(stream);
    let head = read_head(&mut reader).expect("a head");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    reader.into_inner()
}
