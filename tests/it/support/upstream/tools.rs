//! The tools of the cases.

use std::time::Duration;

use super::{Gone, Request, Wire};
use crate::support::{Side, json};

/// The definition of a tool that takes anything.
pub(crate) fn tool(name: &str) -> String {
    let quoted = json::quote(name);
    let text = json::quote(&format!("The tool {name}"));
    format!("{{\"name\":{quoted},\"description\":{text},\"inputSchema\":{{\"type\":\"object\"}}}}")
}

/// Answers a call.
pub(super) fn call(request: &Request, wire: &mut Wire<'_>) {
    let listed =
        wire.shared.state().goods.tools.iter().any(|raw| json::text(raw, &["name"]) == Some(request.name()));
    if !listed {
        return wire.refuse(200, -32602, &format!("Unknown tool: {}", request.name()));
    }
    match request.name().as_str() {
        "slow" => slow(request, wire),
        "incr" => incr(request, wire),
        "steps" => steps(request, wire),
        "big" => big(request, wire),
        "fail" => wire.result("{\"content\":[{\"type\":\"text\",\"text\":\"it failed\"}],\"isError\":true}"),
        "chatty" => chatty(request, wire),
        _ => echo(request, wire),
    }
}

/// A result with this text.
fn text(wire: &mut Wire<'_>, text: &str) {
    wire.result(&format!("{{\"content\":[{{\"type\":\"text\",\"text\":{}}}]}}", json::quote(text)));
}

fn number(request: &Request, name: &str) -> Option<u64> {
    request.raw(&["params", "arguments", name])?.parse().ok()
}

/// Its arguments as text and as structured content, and its own name and server in `_meta`.
fn echo(request: &Request, wire: &mut Wire<'_>) {
    if let Some(time) = number(request, "wait_ms") {
        wire.pause(Duration::from_millis(time));
    }
    let arguments = request.arguments();
    let said = arguments.unwrap_or("none");
    let structured = arguments.map(|raw| format!(",\"structuredContent\":{raw}")).unwrap_or_default();
    let label = json::quote(&wire.shared.fake.label);
    wire.result(&format!(
        "{{\"content\":[{{\"type\":\"text\",\"text\":{}}}]{structured},\"_meta\":{{\"at\":{label},\"tool\":{}}}}}",
        json::quote(said),
        json::quote(&request.name()),
    ));
}

fn slow(request: &Request, wire: &mut Wire<'_>) {
    let time = number(request, "ms").unwrap_or(30_000);
    match wire.pause(Duration::from_millis(time)) {
        Gone::No => text(wire, "slow"),
        gone => {
            wire.shared.note_gone(request.number, gone);
            wire.abort();
        }
    }
}

fn incr(request: &Request, wire: &mut Wire<'_>) {
    let mut state = wire.shared.state();
    let counter = match request.session() {
        Some(key) => &mut state.sessions.entry(key.to_owned()).or_default().counter,
        None => &mut state.stateless_counter,
    };
    *counter += 1;
    let now = counter.to_string();
    drop(state);
    text(wire, &now);
}

/// Progress 1 to `count` (3) every `ms` (0) milliseconds; without a token one of an invented token.
fn steps(request: &Request, wire: &mut Wire<'_>) {
    let token = request.meta("progressToken").unwrap_or("\"invented\"").to_owned();
    let asked = request.meta("progressToken").is_some();
    let count = if asked { number(request, "count").unwrap_or(3) } else { 1 };
    let time = Duration::from_millis(number(request, "ms").unwrap_or(0));
    for step in 1..=count {
        wire.notify(
            "notifications/progress",
            &format!("{{\"progressToken\":{token},\"progress\":{step},\"total\":{count},\"message\":\"at {step}\"}}"),
        );
        if wire.pause(time) != Gone::No {
            return wire.abort();
        }
    }
    text(wire, "done");
}

fn big(request: &Request, wire: &mut Wire<'_>) {
    let size = usize::try_from(number(request, "n").unwrap_or(1024)).unwrap_or_default();
    text(wire, &pattern(size));
}

/// A text of this many characters in which a loss or a change shows.
pub(crate) fn pattern(size: usize) -> String {
    let mut all = String::with_capacity(size + 12);
    let mut line = 0;
    while all.len() < size {
        all.push_str(&format!("{line:011}."));
        line += 1;
    }
    all.truncate(size);
    all
}

/// A message of each level, with the argument `marker` as data, where its peer wants them.
fn chatty(request: &Request, wire: &mut Wire<'_>) {
    let marker = request.raw(&["params", "arguments", "marker"]).unwrap_or("null").to_owned();
    let least = match wire.shared.fake.side {
        Side::Modern => json::text(&request.body, &["params", "_meta", "io.modelcontextprotocol/logLevel"]),
        Side::Legacy => {
            let state = wire.shared.state();
            let session = state.sessions.get(request.session().unwrap_or_default());
            Some(session.and_then(|session| session.level.clone()).unwrap_or_else(|| "debug".to_owned()))
        }
    };
    let levels = ["debug", "info", "warning", "error"];
    let from = least.map_or(levels.len(), |least| levels.iter().position(|&l| l == least).unwrap_or(0));
    for level in &levels[from.min(levels.len())..] {
        wire.notify(
            "notifications/message",
            &format!("{{\"level\":\"{level}\",\"logger\":\"chatty\",\"data\":{marker}}}"),
        );
    }
    text(wire, "said");
}
