//! The audit log: a line for each decision about a call, in a form that stays; and no call without one where that is
//! required.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::{both, client, public};
use crate::questions::state::first;
use crate::questions::{EVERYTHING, ask};
use crate::support::proxy::token_hash;
use crate::support::{Ask, Client, Fake, Side, Upstream, Weir, eventually, json, resource};

fn set_up(file: &Path, keys: &str) -> (Upstream, Weir) {
    let alpha = both("alpha", Side::Modern);
    let access = format!(
        "access:\n  tokens: [ {{ name: kim, hash: \"{}\", scopes: [\"mcp:read\"] }} ]\n  \
         rules: [ {{ name: none, match: {{ prompt: secret }}, deny: true }} ]\n\
         telemetry: {{ audit: {{ file: \"{}\"{keys} }} }}\n",
        token_hash("canary-token"),
        file.display()
    );
    let weir = public().upstream_with("alpha", &alpha, "classes: { read: [seen] }").section(&access).run();
    (alpha, weir)
}

fn lines(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

#[test]
fn each_decision_about_a_call_is_a_line() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let file = folder.path().join("audit.jsonl");
    let (_alpha, weir) = set_up(&file, "");
    let client = client(&weir, "2026-07-28", "canary-token");
    client.names();
    let trace = "\"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\"";
    client.ask(Ask::call("alpha__seen", "{\"secret\":\"canary-argument\"}").meta("traceparent", trace));
    client.call("alpha__secret", "{}");
    client.call("alpha__nosuch", "{}");
    client.ask(Ask::new("prompts/get").params("{\"name\":\"alpha__secret\"}"));
    client.ask(Ask::new("resources/read").params("{\"uri\":\"seen:7\"}"));
    Client::new(weir.address, Side::Modern).token("canary-wrong").ask(Ask::new("tools/list"));
    eventually!(lines(&file).len() == 6, "{:?}", lines(&file));
    let all = lines(&file);
    let word = |row: usize, key: &str| all[row][key].as_str().unwrap_or("-").to_owned();
    let shape = |row: usize| {
        ["event", "method", "name", "local_name", "class", "decision", "rule", "outcome"]
            .map(|key| word(row, key))
    };
    assert_eq!(shape(0), ["call", "tools/call", "alpha__seen", "seen", "read", "allow", "class", "result"]);
    assert_eq!(
        shape(1),
        ["call", "tools/call", "alpha__secret", "secret", "destructive", "step_up", "class", "denied"]
    );
    assert_eq!(all[1]["missing_scopes"], serde_json::json!(["mcp:destructive"]));
    assert_eq!(shape(2), ["call", "tools/call", "alpha__nosuch", "-", "-", "unknown", "-", "unknown"]);
    assert_eq!(
        shape(3),
        ["call", "prompts/get", "alpha__secret", "secret", "read", "hide", "rule none", "unknown"]
    );
    assert_eq!(shape(4), ["call", "resources/read", "seen:7", "-", "-", "allow", "-", "result"]);
    assert_eq!(shape(5), ["auth", "-", "-", "-", "-", "refused", "static", "auth.invalid"]);
    assert_eq!(
        (&all[0]["v"], &all[0]["status"], &all[1]["status"], &all[5]["status"]),
        (&1.into(), &200.into(), &403.into(), &401.into())
    );
    assert_eq!(all[0]["principal"], serde_json::json!({ "issuer": "static", "subject": "kim" }));
    assert_eq!((word(0, "client"), word(0, "upstream")), ("it/1".to_owned(), "alpha".to_owned()));
    assert_eq!(word(0, "trace_id"), "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(word(0, "arguments_digest").len(), 64);
    assert!(all[0]["bytes"].as_u64().is_some_and(|bytes| bytes > 0));
    let text = std::fs::read_to_string(&file).expect("a file");
    assert!(!text.contains("canary"), "no token and no argument: {text}");
}

#[test]
fn arguments_are_written_where_the_operator_wants_them_without_what_is_redacted() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let file = folder.path().join("audit.jsonl");
    let (_alpha, weir) = set_up(&file, ", arguments: full, redact: [/password, /list/0/key]");
    let arguments = "{\"n\":1.50,\"password\":\"canary\",\"list\":[{\"key\":\"canary\",\"k\":1e5}]}";
    client(&weir, "2025-11-25", "canary-token").call("alpha__seen", arguments);
    eventually!(lines(&file).len() == 1);
    let text = std::fs::read_to_string(&file).expect("a file");
    let wanted = "\"arguments\":{\"n\":1.50,\"password\":\"***\",\"list\":[{\"key\":\"***\",\"k\":1e5}]}";
    assert!(text.contains(wanted) && !text.contains("canary"), "{text}");
}

#[test]
fn t124_where_lines_are_required_no_call_goes_without_one() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let file = folder.path().join("inner/audit.jsonl");
    let (alpha, weir) = set_up(&file, ", mode: required");
    for revision in ["2025-11-25", "2026-07-28"] {
        let client = client(&weir, revision, "canary-token");
        // The first call finds out that the folder is not there.
        client.call("alpha__seen", "{}");
        eventually!(client.call("alpha__seen", "{}").status() == 503);
        let executed = alpha.calls("seen").len();
        let answer = client.ask(Ask::call("alpha__seen", "{}").id("\"q\""));
        assert_eq!((answer.status(), answer.code(), answer.id()), (503, 503, Some("\"q\"")), "{revision}");
        assert!(answer.header("retry-after").is_some());
        assert_eq!(alpha.calls("seen").len(), executed, "nothing is done");
        assert_eq!(client.names(), ["alpha__seen"], "lists are no calls");
        std::fs::create_dir(folder.path().join("inner")).expect("a folder");
        eventually!(client.call("alpha__seen", "{}").status() == 200);
        // The line of the last call may be written this moment.
        eventually!(std::fs::remove_dir_all(folder.path().join("inner")).is_ok());
    }
}

#[test]
fn t124_where_lines_are_not_required_calls_go_on() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let (_alpha, weir) = set_up(&folder.path().join("none/audit.jsonl"), "");
    let client = client(&weir, "2026-07-28", "canary-token");
    for _ in 0..3 {
        assert!(!client.call("alpha__seen", "{}").is_failure());
    }
    eventually!(weir.metric("weir_audit_lost_total", &[]).is_some_and(|lost| lost >= 3.0));
    eventually!(weir.log().contains("audit.lost"));
}

#[test]
fn subscriptions_probes_and_retries_have_their_lines_too() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let file = folder.path().join("audit.jsonl");
    let alpha = Fake::legacy()
        .label("alpha")
        .asking()
        .with("resources", ["x:seen", "x:secret"].map(resource))
        .subscribable()
        .script("resources/read", |_request, wire| {
            wire.result("{\"contents\":[{\"uri\":\"y:1\",\"text\":\"t\"}]}");
        })
        .start();
    let access = format!(
        "access:\n  tokens: [ {{ name: kim, hash: \"{}\", scopes: [\"mcp:admin\"] }} ]\n  \
         rules: [ {{ name: none, match: {{ resource: \"x:secret\" }}, deny: true }} ]\n\
         telemetry: {{ audit: {{ file: \"{}\" }} }}\n",
        token_hash("k"),
        file.display()
    );
    let mut weir = public().upstream("alpha", &alpha).section(&access).run();
    let legacy = client(&weir, "2025-11-25", "k");
    for uri in ["x:seen", "x:secret"] {
        legacy.ask(Ask::new("resources/subscribe").params(&format!("{{\"uri\":\"{uri}\"}}")));
    }
    legacy.ask(Ask::new("resources/read").params("{\"uri\":\"y:1\"}"));
    let modern = client(&weir, "2026-07-28", "k").capable(EVERYTHING);
    let call = ask("alpha", "form", "m");
    let (state, given) = first(&modern.ask(call.clone()));
    assert!(!modern.ask(call.clone().again(&given, Some(&json::quote(&state)))).is_failure());
    eventually!(lines(&file).len() == 5, "{:?}", lines(&file));
    let mut all: Vec<String> = lines(&file)
        .iter()
        .map(|line| {
            ["method", "name", "upstream", "decision", "outcome"]
                .map(|key| line[key].as_str().unwrap_or("-").to_owned())
                .join(" ")
        })
        .collect();
    all.sort();
    assert_eq!(
        all,
        [
            "resources/read y:1 alpha allow result",
            "resources/subscribe x:secret alpha hide unknown",
            "resources/subscribe x:seen alpha allow result",
            "tools/call alpha__ask alpha allow result",
            "tools/call alpha__ask alpha allow resumed",
        ]
    );
    first(&modern.ask(call));
    weir.signal("INT");
    weir.ends(Duration::from_secs(10)).expect("it ends");
    assert_eq!(
        lines(&file).len(),
        6,
        "a call that waits for answers has its line at the end: {}",
        weir.log()
    );
    assert!(!weir.log().contains("audit.lost"), "{}", weir.log());
}
