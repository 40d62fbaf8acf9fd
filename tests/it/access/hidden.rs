//! What somebody may not know of answers exactly as what does not exist, in every revision and for every kind.

use serde_json::json;

use super::{REVISIONS, both, client, public};
use crate::support::proxy::token_hash;
use crate::support::{Ask, Client, Side, Upstream, Weir, json as text};

const RULES: &str = "  rules:\n\
    \x20   - { name: t, match: { tool: secret }, require: { groups_any: [inner] } }\n\
    \x20   - { name: p, match: { prompt: secret }, require: { scopes_all: [s] }, on_denied: hide }\n\
    \x20   - { name: r, match: { resource: [\"x:secret\", \"secret:*\"] }, deny: true }\n\
    \x20   - { name: up, match: { tool: up }, require: { scopes_all: [a, b] } }\n";

/// One gateway, a token that sees little, and one that sees more.
fn guarded(side: Side) -> (Upstream, Weir) {
    let alpha = both("alpha", side);
    let entry = |name: &str, groups: &str, scopes: &str| {
        format!(
            "    - {{ name: {name}, hash: \"{}\", scopes: [{scopes}], groups: [{groups}] }}\n",
            token_hash(name)
        )
    };
    let tokens = entry("out", "", "\"mcp:admin\"") + &entry("in", "inner", "\"mcp:admin\", s");
    let weir =
        public().upstream("alpha", &alpha).section(&format!("access:\n  tokens:\n{tokens}{RULES}")).run();
    (alpha, weir)
}

/// What can be asked about an item, with its name in the place of `NAME`.
fn questions(side: Side) -> Vec<(&'static str, String)> {
    let mut all = vec![
        ("tools/call", "{\"name\":\"alpha__NAME\",\"arguments\":{}}".to_owned()),
        ("prompts/get", "{\"name\":\"alpha__NAME\"}".to_owned()),
        ("resources/read", "{\"uri\":\"x:NAME\"}".to_owned()),
        ("resources/read", "{\"uri\":\"NAME:7\"}".to_owned()),
        ("completion/complete", complete("{\"type\":\"ref/prompt\",\"name\":\"alpha__NAME\"}")),
        ("completion/complete", complete("{\"type\":\"ref/resource\",\"uri\":\"NAME:{id}\"}")),
    ];
    if side == Side::Legacy {
        all.push(("resources/subscribe", "{\"uri\":\"x:NAME\"}".to_owned()));
    }
    all
}

fn complete(reference: &str) -> String {
    format!("{{\"ref\":{reference},\"argument\":{{\"name\":\"marker\",\"value\":\"v\"}}}}")
}

/// Head and body of an answer, without what names the request.
fn shape(client: &Client, method: &str, params: &str, name: &str) -> String {
    let answer = client.ask(Ask::new(method).params(&params.replace("NAME", name)).id("\"q\""));
    let head = ["content-type", "www-authenticate", "cache-control"]
        .map(|field| answer.header(field).map(str::to_owned));
    format!("{} {head:?} {}", answer.status(), answer.body().replace(name, "NAME"))
}

#[test]
fn t034_t036_t037_hidden_things_answer_as_unknown_ones_in_every_revision() {
    for upstream in [Side::Legacy, Side::Modern] {
        let (alpha, weir) = guarded(upstream);
        for revision in REVISIONS {
            let (outside, inside) = (client(&weir, revision, "out"), client(&weir, revision, "in"));
            assert_eq!(outside.names(), ["alpha__seen"], "{revision}");
            assert_eq!(inside.names(), ["alpha__seen", "alpha__secret"], "{revision}");
            let before = alpha.requests().len();
            for (method, params) in questions(outside.side()) {
                let hidden = shape(&outside, method, &params, "secret");
                // Of the same length, so that a length class would show.
                let unknown = shape(&outside, method, &params, "nosuch");
                assert_eq!(hidden, unknown, "{revision}: {method} {params}");
                assert!(hidden.contains("\"error\""), "{revision}: {method} {params}: {hidden}");
            }
            let seen = alpha.requests();
            let asked: Vec<String> = seen[before..]
                .iter()
                .map(|request| request.body.clone())
                .filter(|body| body.contains("secret"))
                .collect();
            assert_eq!(asked, Vec::<String>::new(), "nothing of it reaches the upstream");
            assert!(!inside.call("alpha__secret", "{}").is_failure(), "{revision}");
        }
        assert_eq!(alpha.violations(), Vec::<String>::new());
    }
}

#[test]
fn a_listen_stream_is_silent_about_hidden_resources() {
    let (_alpha, weir) = guarded(Side::Modern);
    let mut stream = client(&weir, "2026-07-28", "out").start(Ask::new("subscriptions/listen").params(
        "{\"notifications\":{\"resourceSubscriptions\":[\"x:secret\",\"x:seen\",\"secret:7\",\"x:nosuch\"]}}",
    ));
    let told = stream.next(std::time::Duration::from_secs(5)).expect("the acknowledgement");
    let agreed = told.raw(&["params", "notifications", "resourceSubscriptions"]).expect("resources");
    assert_eq!(text::value(agreed), json!(["x:seen"]));
}

#[test]
fn c088_t033_a_missing_scope_is_403_with_all_of_them_in_every_revision() {
    let alpha = crate::support::Fake::modern().label("alpha").tools(["up"].map(crate::support::tool)).start();
    let hash = token_hash("little");
    let access = format!(
        "access:\n  tokens: [ {{ name: little, hash: \"{hash}\", scopes: [\"mcp:admin\"] }} ]\n{RULES}"
    );
    let weir = public().upstream("alpha", &alpha).section(&access).run();
    for revision in REVISIONS.into_iter().skip(1) {
        let client = client(&weir, revision, "little");
        assert_eq!(client.names(), Vec::<String>::new(), "{revision}: not listed");
        let answer = client.ask(Ask::call("alpha__up", "{}").id("\"q\""));
        assert_eq!((answer.status(), answer.code(), answer.id()), (403, 403, Some("\"q\"")), "{revision}");
        assert_eq!(
            answer.header("www-authenticate"),
            Some(
                "Bearer error=\"insufficient_scope\", scope=\"a b\", \
                  resource_metadata=\"https://gw.example/.well-known/oauth-protected-resource/mcp\""
            )
        );
    }
    assert_eq!(alpha.calls("up").len(), 0, "no upstream contact");
}

#[test]
fn t038_names_that_only_look_alike_are_unknown() {
    let (_alpha, weir) = guarded(Side::Modern);
    let client = client(&weir, "2026-07-28", "in");
    for name in [
        "secret",
        "ALPHA__secret",
        "alpha__s\u{435}cret",
        "alpha__secret ",
        "alpha__alpha__secret",
        "__",
        "alpha__",
    ] {
        let answer = client.call(name, "{}");
        assert_eq!((answer.status(), answer.code()), (200, -32602), "{name:?}");
    }
}
