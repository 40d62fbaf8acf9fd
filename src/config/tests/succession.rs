//! What another configuration changes.

use super::fixtures::Known;
use crate::config::{Config, follow, read_text};

fn config(text: &str) -> Config {
    read_text(text, None, &Known::new()).unwrap_or_else(|problems| panic!("{problems}")).config
}

/// Whether one link serves for an upstream before and after it got these keys.
fn keeps_link(before: &str, after: &str) -> bool {
    let upstream = |keys: &str| {
        let config = config(&format!("upstreams: {{ a: {{ {keys} }} }}"));
        config.upstreams[0].clone()
    };
    upstream(before).is_spoken_to_like(&upstream(after))
}

#[test]
fn names_rights_and_credentials_keep_a_link() {
    let plain = "url: \"http://h/\"";
    for keys in [
        "namespace: other",
        "mode: read-only",
        "tools: { allow: [x], rename: { a: b } }",
        "classes: { read: [x] }",
        "credential: { bearer: \"${env:TOKEN}\" }",
        "forward_headers: [x-tenant]",
        "trust_annotations: true",
        "resources: { probe: false }",
        "required: true",
        "timeout: { call: 60s, tools: {} }",
    ] {
        assert!(keeps_link(plain, &format!("{plain}, {keys}")), "{keys}");
    }
}

#[test]
fn what_is_spoken_to_and_how_needs_another_link() {
    let plain = "url: \"http://h/\"";
    for keys in [
        "transport: sse",
        "revision: 2025-11-25",
        "sessions: shared",
        "credential_error_codes: [-32001]",
        "timeout: { call: 61s }",
        "timeout: { tools: { \"slow_*\": 60s } }",
        "concurrency: { writes: 1 }",
        "limits: { answer: 1MiB }",
        "refresh: 61s",
        "withdraw_after: 31s",
        "idle: 6m",
    ] {
        assert!(!keeps_link(plain, &format!("{plain}, {keys}")), "{keys}");
    }
    assert!(!keeps_link(plain, "url: [\"http://h/\", \"http://i/\"]"));
    assert!(!keeps_link(plain, "url: \"http://h/?k=1\""));
    assert!(!keeps_link(plain, "builtin: clock"));
    let child = "command: [server, x]";
    assert!(keeps_link(child, "command: [server, x], env: {}, processes: 32"));
    for other in
        ["command: [server, y]", "command: [server, x], env: { A: b }", "command: [server, x], cwd: y"]
    {
        assert!(!keeps_link(child, other), "{other}");
    }
    let secret = |value: &str| format!("{child}, env: {{ A: \"{value}\" }}");
    assert!(!keeps_link(&secret("one"), &secret("two")));
}

#[test]
fn what_needs_a_restart_is_a_problem_for_each() {
    let text = |more: &str| config(&format!("{more}\nupstreams: {{ a: {{ builtin: clock }} }}"));
    let old = text("");
    assert!(follow(&old, text("notify: { debounce: 1s }")).is_ok());
    let new = text(
        "listen: { address: \"127.0.0.1:1\" }\nadmin: { address: \"127.0.0.1:2\" }\n\
         telemetry: { log: { format: json }, audit: { file: x } }",
    );
    let problems = follow(&old, new).expect_err("it cannot follow");
    let keys: Vec<&str> = problems.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(keys, ["listen.address", "admin.address", "telemetry.log.format", "telemetry.audit"]);
}
