//! How a strict server of 2026-07-28 answers: every header is held against the body.

use std::net::TcpStream;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::server::{Shared, head_fault};
use super::{Request, Wire};
use crate::support::json;

const REVISION: &str = "2026-07-28";
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// Answers one request.
pub(super) fn serve(shared: &Shared, socket: &TcpStream, request: &Request, wire: &mut Wire<'_>) {
    if request.verb() != "POST" {
        return wire.page(405, "text/plain", "no");
    }
    if let Some(status) = head_fault(shared, request) {
        return wire.page(status, "text/plain", "refused");
    }
    let method = request.method();
    if method == "initialize" || request.meta(VERSION).is_none() || request.meta(CAPABILITIES).is_none() {
        return wire.refuse(400, -32602, "Invalid params: required _meta members are missing");
    }
    if let Some(fault) = mismatch(shared, request) {
        shared.violation(fault.clone());
        return wire.refuse(400, -32020, &format!("Header mismatch: {fault}"));
    }
    if request.header("mcp-session-id").is_some() {
        shared.violation("a session id towards a stateless server".to_owned());
    }
    match method.as_str() {
        _ if request.id().is_none() => wire.accepted(),
        "server/discover" => discover(shared, request, wire),
        "subscriptions/listen" if shared.fake.listens => listen(shared, socket, request, wire),
        _ => shared.answer(request, wire),
    }
}

fn discover(shared: &Shared, request: &Request, wire: &mut Wire<'_>) {
    if let Some(script) = shared.script(&["server/discover"]) {
        return script(request, wire);
    }
    let (ttl, scope) = shared.fake.hints;
    let instructions = match &shared.fake.instructions {
        Some(text) => format!(",\"instructions\":{}", json::quote(text)),
        None => String::new(),
    };
    wire.result(&format!(
        "{{\"supportedVersions\":[\"{REVISION}\"],\"capabilities\":{},\"_meta\":{{\"io.modelcontextprotocol/serverInfo\":{{\"name\":{},\"version\":\"1\"}}}},\
         \"ttlMs\":{ttl},\"cacheScope\":\"{scope}\"{instructions}}}",
        shared.state().goods.capabilities(REVISION, shared.fake.listens),
        json::quote(&shared.fake.label),
    ));
}

fn listen(shared: &Shared, socket: &TcpStream, request: &Request, wire: &mut Wire<'_>) {
    if let Some(script) = shared.script(&["subscriptions/listen"]) {
        return script(request, wire);
    }
    let id = request.id().unwrap_or("null").to_owned();
    let wish = json::value(request.raw(&["params", "notifications"]).unwrap_or("{}"));
    let agreed = shared.agreed(&wish);
    wire.notify(
        "notifications/subscriptions/acknowledged",
        &format!(
            "{{\"_meta\":{{\"io.modelcontextprotocol/subscriptionId\":{id}}},\"notifications\":{agreed}}}"
        ),
    );
    shared.stand(wire, socket, &id, Some((&id, agreed)));
}

/// What header does not fit the body.
fn mismatch(shared: &Shared, request: &Request) -> Option<String> {
    let body_version = json::text(&request.body, &["params", "_meta", VERSION]);
    let mut wanted = vec![("mcp-protocol-version".to_owned(), body_version)];
    wanted.push(("mcp-method".to_owned(), Some(request.method())));
    let named = ["tools/call", "prompts/get", "resources/read", "tasks/get", "tasks/update", "tasks/cancel"];
    let named = named.contains(&request.method().as_str());
    wanted.push(("mcp-name".to_owned(), named.then(|| request.name())));
    wanted.extend(mirrored(shared, request));
    for (name, value) in wanted {
        let sent = request.header(&name).map(decode);
        if request.head.count(&name) > 1 || sent != value.clone().map(Some) {
            return Some(format!("{name}: wanted {value:?}, got {sent:?} in {}", request.head.first));
        }
    }
    if request.header("mcp-protocol-version") == Some(REVISION) { None } else { Some("revision".to_owned()) }
}

/// The mirrored headers that the definition of the called tool asks for.
fn mirrored(shared: &Shared, request: &Request) -> Vec<(String, Option<String>)> {
    if request.method() != "tools/call" {
        return Vec::new();
    }
    let tools = shared.state().goods.tools.clone();
    let found =
        tools.iter().map(|text| json::value(text)).find(|tool| tool["name"] == request.name().as_str());
    let arguments = json::value(request.arguments().unwrap_or("{}"));
    let mut wanted = Vec::new();
    if let Some(tool) = found {
        collect(&tool["inputSchema"], &arguments, &mut wanted);
    }
    wanted
}

fn collect(schema: &Value, arguments: &Value, wanted: &mut Vec<(String, Option<String>)>) {
    let empty = serde_json::Map::new();
    for (name, property) in schema["properties"].as_object().unwrap_or(&empty) {
        let value = &arguments[name.as_str()];
        if let Some(header) = property["x-mcp-header"].as_str() {
            let text = match value {
                Value::Null => None,
                Value::String(text) => Some(text.clone()),
                other => Some(other.to_string()),
            };
            wanted.push((format!("mcp-param-{}", header.to_lowercase()), text));
        }
        collect(property, value, wanted);
    }
}

/// The value of a mirrored header; `None` where its sentinel is broken.
fn decode(value: &str) -> Option<String> {
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(inner) => String::from_utf8(STANDARD.decode(inner).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}
