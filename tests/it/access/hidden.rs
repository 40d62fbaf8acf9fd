//! What somebody may not know of answers exactly as what does not exist, in every revision and for every kind.

use serde_json::json;

use super::{REVISIONS, both, client, public};
use crate::support::proxy::token_hash;
use crate::support::{Ask, Client, Side, Upstream, Weir, eventually, json as text};

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
fn c089_t034_t036_t037_hidden_things_answer_as_unknown_ones_in_every_revision() {
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
        if client.side() == Side::Modern {
            let listed = client.ask(Ask::new("tools/list")).result();
            assert_eq!(listed["ttlMs"], 0, "it may be another list with the next token");
        }
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

#[test]
fn other_spellings_of_a_uri_evade_no_rule() {
    for upstream in [Side::Legacy, Side::Modern] {
        let alpha = both("alpha", upstream);
        let hash = token_hash("reader");
        let access = format!(
            "access:\n  tokens: [ {{ name: reader, hash: \"{hash}\", scopes: [\"mcp:read\"] }} ]\n  rules:\n\
             \x20   - {{ match: {{ resource: \"note://private/*\" }}, deny: true }}\n\
             \x20   - {{ match: {{ resource: \"file:///keys/*\" }}, require: {{ scopes_all: [keys] }} }}\n\
             \x20   - {{ match: {{ kind: template, resource: \"secret:*\" }}, deny: true }}\n"
        );
        let weir = public().upstream("alpha", &alpha).section(&access).run();
        for revision in REVISIONS {
            let client = client(&weir, revision, "reader");
            let read = |uri: &str| {
                client.ask(Ask::new("resources/read").params(&format!("{{\"uri\":{}}}", text::quote(uri))))
            };
            let before = alpha.seen("resources/read").len();
            for uri in [
                "NOTE://private/a",
                "note://%70rivate/a",
                "note://private/%2e/a",
                "note://private/a\n",
                " note://private/a",
                "file:///open/../keys/k",
                "file:///open/%2E%2e/keys/k",
                "secret:7",
                "SECRET:7",
            ] {
                assert!(read(uri).body().contains("\"error\""), "{revision}: {uri}");
            }
            assert_eq!(
                alpha.seen("resources/read").len(),
                before,
                "{revision}: nothing reaches the upstream"
            );
            read("note://open/a");
            assert_eq!(
                alpha.seen("resources/read").len(),
                before + 1,
                "{revision}: what no rule is about does"
            );
        }
    }
}

#[test]
fn c088_what_completes_or_reads_by_a_template_needs_its_scopes() {
    let alpha = both("alpha", Side::Modern);
    let hash = token_hash("reader");
    let access = format!(
        "access:\n  tokens: [ {{ name: reader, hash: \"{hash}\", scopes: [\"mcp:read\"] }} ]\n  rules:\n\
         \x20   - {{ match: {{ resource: \"secret:*\" }}, require: {{ scopes_all: [team] }} }}\n"
    );
    let weir = public().upstream("alpha", &alpha).section(&access).run();
    for revision in REVISIONS.into_iter().skip(1) {
        let client = client(&weir, revision, "reader");
        let completes = complete("{\"type\":\"ref/resource\",\"uri\":\"secret:{id}\"}");
        for (method, params) in
            [("completion/complete", completes.as_str()), ("resources/read", "{\"uri\":\"secret:7\"}")]
        {
            let answer = client.ask(Ask::new(method).params(params));
            let challenge = answer.header("www-authenticate").unwrap_or_default();
            assert!(answer.status() == 403 && challenge.contains("scope=\"team\""), "{revision}: {method}");
        }
    }
}

#[test]
fn c088_who_takes_event_streams_alone_gets_the_status_too() {
    let alpha = both("alpha", Side::Modern);
    let hash = token_hash("reader");
    let access =
        format!("access:\n  tokens: [ {{ name: reader, hash: \"{hash}\", scopes: [\"mcp:read\"] }} ]\n");
    let weir = public().upstream_with("alpha", &alpha, "classes: { read: [seen] }").section(&access).run();
    for revision in REVISIONS.into_iter().skip(1) {
        let client = client(&weir, revision, "reader");
        let asked = |name: &str| client.start(Ask::call(name, "{}").header("accept", "text/event-stream"));
        let refused = asked("alpha__secret");
        assert_eq!(refused.status(), 403, "{revision}");
        assert!(refused.header("www-authenticate").is_some(), "{revision}");
        assert!(asked("alpha__seen").is_stream(), "{revision}: what is said is said as a stream");
        assert!(asked("alpha__nosuch").is_stream(), "{revision}");
    }
}

#[test]
fn t116_a_subscription_ends_with_the_right_to_read() {
    for upstream in [Side::Legacy, Side::Modern] {
        let alpha = both("alpha", upstream);
        let entry = |token: &str, scopes: &str| {
            format!("{{ name: kim, hash: \"{}\", scopes: [{scopes}] }}", token_hash(token))
        };
        let access = format!(
            "access:\n  tokens: [ {}, {} ]\n  rules: [ {{ match: {{ resource: \"x:seen\" }}, require: {{ scopes_all: [x] }} }} ]\n",
            entry("more", "\"mcp:read\", x"),
            entry("less", "\"mcp:read\"")
        );
        let weir = public().upstream("alpha", &alpha).section(&access).run();
        let more = client(&weir, "2025-11-25", "more");
        let session = more.session().expect("a session").to_owned();
        let mut stream = more.listen();
        for uri in ["x:seen", "x:secret"] {
            more.ask(Ask::new("resources/subscribe").params(&format!("{{\"uri\":\"{uri}\"}}"))).result();
            eventually!(alpha.subscriptions(uri) == 1);
        }
        // A stream that was opened anew for more resources may have missed something.
        stream.until_quiet(std::time::Duration::from_millis(300));
        let mut told = |uri: &str| {
            alpha.update(uri);
            let news = stream.until_quiet(std::time::Duration::from_millis(300));
            news.iter().filter(|one| one.method() == "notifications/resources/updated").count()
        };
        assert_eq!((told("x:seen"), told("x:secret")), (1, 1));
        let less = Client::new(weir.address, Side::Legacy).token("less").with_session(&session);
        less.ask(Ask::new("ping")).result();
        assert_eq!((told("x:seen"), told("x:secret")), (0, 1), "the session may not read it any more");
    }
}
