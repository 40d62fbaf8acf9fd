//! How a strict server of the handshake era answers: sessions, order, headers.

use std::net::TcpStream;

use super::server::{Session, Shared, head_fault};
use super::standing::Order;
use super::{Request, Sessions, Wire};
use crate::support::json;

/// Answers one request.
pub(super) fn serve(shared: &Shared, socket: &TcpStream, request: &Request, wire: &mut Wire<'_>) {
    match request.verb() {
        "POST" => post(shared, request, wire),
        "GET" => get(shared, socket, request, wire),
        "DELETE" => delete(shared, request, wire),
        _ => wire.page(405, "text/plain", "no"),
    }
}

pub(super) fn post(shared: &Shared, request: &Request, wire: &mut Wire<'_>) {
    let method = request.method();
    if method == "server/discover" {
        return match shared.script(&["server/discover"]) {
            Some(script) => script(request, wire),
            None => wire.refuse(400, -32000, "Bad Request: No valid session ID provided"),
        };
    }
    if let Some(status) = head_fault(shared, request) {
        return wire.page(status, "text/plain", "refused");
    }
    for name in ["mcp-method", "mcp-name"] {
        if request.header(name).is_some() {
            shared.violation(format!("{name} towards a server of the handshake era"));
        }
    }
    if method == "initialize" {
        return initialize(shared, request, wire);
    }
    let Some(key) = session(shared, request, wire) else { return };
    match method.as_str() {
        "notifications/initialized" => {
            // One that was forgotten meanwhile does not come back by this.
            if let Some(session) = shared.state().sessions.get_mut(&key) {
                session.initialized = true;
            }
            wire.accepted();
        }
        "notifications/cancelled" => {
            let id = request.raw(&["params", "requestId"]).unwrap_or_default().to_owned();
            shared.state().cancelled.push((key, id));
            wire.accepted();
        }
        "ping" => wire.result("{}"),
        "logging/setLevel" => {
            let level = json::text(&request.body, &["params", "level"]);
            if let Some(session) = shared.state().sessions.get_mut(&key) {
                session.level = level;
            }
            wire.result("{}");
        }
        _ if request.id().is_some() && method.is_empty() => {
            shared.note_answer(&key, request);
            wire.accepted();
        }
        _ if request.id().is_none() => wire.accepted(),
        _ => shared.answer(request, wire),
    }
}

/// The key of the session that a request belongs to, if it may be served.
fn session(shared: &Shared, request: &Request, wire: &mut Wire<'_>) -> Option<String> {
    let key = request.session().unwrap_or_default().to_owned();
    let issued = shared.fake.sessions == Sessions::Issued;
    let found = shared.state().sessions.get(&key).cloned();
    let Some(session) = found else {
        if issued && request.session().is_none() {
            shared.violation(format!("no session id with {}", request.method()));
            wire.refuse(400, -32000, "Bad Request: Mcp-Session-Id header is required");
        } else {
            wire.refuse(404, -32001, "Session not found");
        }
        return None;
    };
    if request.header("mcp-protocol-version").is_some_and(|version| version != session.revision) {
        shared.violation(format!(
            "version {:?} in {}",
            request.header("mcp-protocol-version"),
            session.revision
        ));
        wire.refuse(400, -32000, "Bad Request: Unsupported protocol version");
        return None;
    }
    let early = !matches!(request.method().as_str(), "notifications/initialized" | "ping");
    if !session.initialized && early && request.verb() == "POST" {
        shared.violation(format!("{} before notifications/initialized", request.method()));
        wire.refuse(200, -32600, "Received request before initialization was complete");
        return None;
    }
    Some(key)
}

fn initialize(shared: &Shared, request: &Request, wire: &mut Wire<'_>) {
    let marked = ["mcp-session-id", "mcp-protocol-version"].iter().any(|name| request.header(name).is_some());
    if marked {
        shared.violation("a session or version header on initialize".to_owned());
        return wire.refuse(400, -32600, "Bad Request: initialize carries session headers");
    }
    if let Some(script) = shared.script(&["initialize"]) {
        return script(request, wire);
    }
    let asked = json::text(&request.body, &["params", "protocolVersion"]).unwrap_or_default();
    let known = &shared.fake.revisions;
    if shared.fake.picky && !known.contains(&asked) {
        let text =
            format!("Bad Request: Unsupported protocol version (supported versions: {})", known.join(", "));
        return wire.refuse(400, -32000, &text);
    }
    let revision = if known.contains(&asked) { asked } else { known.first().cloned().unwrap_or_default() };
    let key = open(shared, request, &revision);
    let instructions = match &shared.fake.instructions {
        Some(text) => format!(",\"instructions\":{}", json::quote(text)),
        None => String::new(),
    };
    let label = json::quote(&shared.fake.label);
    let capabilities = shared.state().goods.capabilities(&revision, true);
    let result = format!(
        "{{\"protocolVersion\":\"{revision}\",\"capabilities\":{capabilities},\"serverInfo\":{{\"name\":{label},\"version\":\"1\"}}{instructions}}}"
    );
    if shared.fake.sessions == Sessions::Issued {
        wire.with("mcp-session-id", &key);
    }
    wire.result(&result);
}

/// Opens a session; its key is the id, or empty where none are issued.
fn open(shared: &Shared, request: &Request, revision: &str) -> String {
    let mut state = shared.state();
    state.issued += 1;
    let key = match shared.fake.sessions {
        Sessions::Issued => format!("{}-session-{}", shared.fake.label, state.issued),
        Sessions::None => String::new(),
        Sessions::Lines => request.session().unwrap_or_default().to_owned(),
    };
    let capabilities = json::value(request.raw(&["params", "capabilities"]).unwrap_or("{}"));
    state
        .sessions
        .insert(key.clone(), Session { revision: revision.to_owned(), capabilities, ..Session::default() });
    key
}

fn get(shared: &Shared, socket: &TcpStream, request: &Request, wire: &mut Wire<'_>) {
    if let Some(script) = shared.script(&["GET"]) {
        return script(request, wire);
    }
    if !shared.fake.listens {
        return wire.page(405, "text/plain", "no stream here");
    }
    if !request.header("accept").is_some_and(|value| value.contains("text/event-stream")) {
        shared.violation("GET without text/event-stream".to_owned());
        return wire.page(406, "text/plain", "no");
    }
    if let Some(key) = session(shared, request, wire) {
        shared.stand(wire, socket, &key, None);
    }
}

fn delete(shared: &Shared, request: &Request, wire: &mut Wire<'_>) {
    if let Some(script) = shared.script(&["DELETE"]) {
        return script(request, wire);
    }
    let Some(key) = session(shared, request, wire) else { return };
    let mut state = shared.state();
    state.sessions.remove(&key);
    for stream in state.standing.iter().filter(|stream| stream.session == key) {
        stream.orders.send(Order::Close).ok();
    }
    drop(state);
    wire.bare(204);
}
