//! Tokens of an issuer: accepted in every revision, refused for what is wrong with them, keys fetched with measure.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{AUDIENCE, REVISIONS, both, client, public};
use crate::support::issuer::Issuer;
use crate::support::proxy::token_hash;
use crate::support::{Ask, Client, Fake, Side, Upstream, Weir, eventually};

fn set_up(more: &str) -> (Issuer, Upstream, Weir) {
    let issuer = Issuer::start();
    let alpha = both("alpha", Side::Modern);
    let keys = "classes: { read: [seen], write: [secret] }";
    let weir = public().upstream_with("alpha", &alpha, keys).section(&issuer.access(more)).run();
    eventually!(ready(&weir).0 == 200, "{:?}", ready(&weir));
    (issuer, alpha, weir)
}

fn ready(weir: &Weir) -> (u16, String) {
    weir.admin_get("/readyz")
}

/// The status of a list with a token.
fn status(weir: &Weir, token: &str) -> u16 {
    Client::new(weir.address, Side::Modern).token(token).ask(Ask::new("tools/list")).status()
}

#[test]
fn c087_a_token_is_good_in_every_revision_and_shows_what_its_scopes_reach() {
    let (issuer, _alpha, weir) = set_up("");
    for revision in REVISIONS {
        let reader = client(&weir, revision, &issuer.token(AUDIENCE, "mcp:read"));
        assert_eq!(reader.names(), ["alpha__seen"], "{revision}");
        let writer = client(&weir, revision, &issuer.token(AUDIENCE, "mcp:read mcp:write"));
        assert_eq!(writer.names(), ["alpha__seen", "alpha__secret"], "{revision}");
        assert!(!writer.call("alpha__secret", "{}").is_failure(), "{revision}");
    }
}

#[test]
fn c087_t102_to_t110_bad_tokens_are_401() {
    let (issuer, alpha, weir) = set_up("");
    let before = alpha.requests().len();
    let now = Timestamp::now().as_second();
    let claims: &[(&str, Value, u16)] = &[
        ("aud", json!(AUDIENCE), 200),
        ("aud", json!(["https://other.example", AUDIENCE]), 200),
        ("aud", json!("https://other.example"), 401),
        ("aud", Value::Null, 401),
        ("aud", json!("https://gw.example/mcp/"), 401),
        ("exp", json!(now - 5), 401),
        ("exp", json!("9999999999"), 401),
        ("exp", Value::Null, 401),
        ("nbf", json!(now + 600), 401),
        ("iss", json!("https://evil.example"), 401),
        ("iss", json!([issuer.name()]), 401),
        ("sub", Value::Null, 401),
    ];
    for (name, value, wanted) in claims {
        let token = issuer.signed(AUDIENCE, &[("scope", json!("mcp:read")), (name, value.clone())]);
        assert_eq!(status(&weir, &token), *wanted, "{name}: {value}");
    }
    for head in [
        "{\"alg\":\"none\"}",
        "{\"alg\":\"HS256\",\"kid\":\"first\"}",
        "{\"alg\":\"ES256\",\"kid\":\"first\",\"crit\":[\"x\"]}",
        "{\"alg\":\"ES256\",\"kid\":\"first\",\"kid\":\"first\"}",
    ] {
        let token = issuer.made(Some(head), AUDIENCE, &[]);
        let answer = Client::new(weir.address, Side::Modern).token(&token).ask(Ask::new("tools/list"));
        assert_eq!(answer.status(), 401, "{head}");
        let challenge = answer.header("www-authenticate").unwrap_or_default();
        assert!(challenge.starts_with("Bearer error=\"invalid_token\""), "{challenge}");
    }
    assert_eq!(alpha.requests().len(), before, "no upstream contact");
    assert_eq!(issuer.fetches(), 1, "bad tokens of known keys fetch nothing");
}

#[test]
fn t106_t111_a_new_key_is_fetched_once_and_an_old_one_ends() {
    let (issuer, _alpha, weir) = set_up("");
    let old = issuer.token(AUDIENCE, "mcp:read");
    assert_eq!(status(&weir, &old), 200);
    issuer.rotate("second");
    let new = issuer.token(AUDIENCE, "mcp:read");
    assert_eq!(status(&weir, &new), 200, "after one fetch");
    assert_eq!(status(&weir, &old), 401, "its key is gone");
    for number in 0..200 {
        let head = format!("{{\"alg\":\"ES256\",\"kid\":\"unknown-{number}\"}}");
        assert_eq!(status(&weir, &issuer.made(Some(&head), AUDIENCE, &[])), 401);
    }
    assert_eq!(issuer.fetches(), 2, "not once more within the cool-down");
}

#[test]
fn t112_without_keys_static_tokens_work_and_others_wait() {
    let issuer = Issuer::start();
    issuer.down(true);
    let alpha = both("alpha", Side::Modern);
    let token =
        format!("tokens: [ {{ name: ci, hash: \"{}\", scopes: [\"mcp:read\"] }} ]", token_hash("static"));
    let weir = public().upstream("alpha", &alpha).section(&issuer.access(&token)).run();
    let jwt = issuer.token(AUDIENCE, "mcp:read");
    assert_eq!(status(&weir, "static"), 200);
    let answer = Client::new(weir.address, Side::Modern).token(&jwt).ask(Ask::new("tools/list"));
    assert_eq!(answer.status(), 503, "{answer:?}");
    assert!(answer.header("retry-after").is_some());
    let (code, checks) = ready(&weir);
    assert_eq!(code, 503);
    assert!(checks.contains(&format!("keys:{}", issuer.name())), "{checks}");
    issuer.down(false);
    eventually!(ready(&weir).0 == 200, "{:?}", ready(&weir));
    assert_eq!(status(&weir, &jwt), 200);
    issuer.down(true);
    assert_eq!(status(&weir, &jwt), 200, "what is known stays");
}

#[test]
fn t110_a_token_for_one_route_is_none_for_another() {
    let issuer = Issuer::start();
    let alpha = both("alpha", Side::Modern);
    let routes = "routes:\n\
        \x20 - { name: a, path: /a, access: { rules: [ { name: none, match: { tool: secret }, deny: true } ] } }\n\
        \x20 - { name: b, path: /b, access: { audiences: [\"urn:b\"], default: deny } }\n\
        \x20 - { name: c, path: /c, mode: read-only }\n";
    let access =
        issuer.access("rules: [ { match: { route: c, tool: seen }, require: { scopes_any: [c] } } ]");
    let weir = public()
        .upstream_with("alpha", &alpha, "classes: { read: [seen] }")
        .section(&format!("{access}{routes}"))
        .run();
    eventually!(ready(&weir).0 == 200);
    let at = |path: &str, audience: &str, scopes: &str| {
        let token = issuer.token(audience, scopes);
        let client = Client::new(weir.address, Side::Modern).token(&token).at(path);
        match client.ask(Ask::new("tools/list")).status() {
            200 => Ok(client.names()),
            status => Err(status),
        }
    };
    let (a, c) = ("https://gw.example/a", "https://gw.example/c");
    assert_eq!(at("/a", a, "mcp:admin"), Ok(vec!["alpha__seen".to_owned()]), "its own rule denies the other");
    assert_eq!(at("/c", a, "mcp:admin"), Err(401));
    assert_eq!(at("/a", c, "mcp:admin"), Err(401));
    assert_eq!(at("/b", "urn:b", "mcp:admin"), Ok(vec![]), "default: deny");
    assert_eq!(at("/b", "https://gw.example/b", "mcp:admin"), Err(401));
    assert_eq!(at("/c", c, "mcp:admin"), Ok(vec![]), "read-only, and the rule wants another scope");
    assert_eq!(at("/c", c, "c"), Ok(vec!["alpha__seen".to_owned()]));
    for (path, resource) in [("a", a), ("b", "urn:b"), ("c", c)] {
        let target = format!("/.well-known/oauth-protected-resource/{path}");
        let response = crate::support::exchange::Exchange::new(weir.address, "GET", &target).send();
        let document: Value = serde_json::from_str(&response.text()).expect("JSON");
        assert_eq!(
            (document["resource"].as_str(), &document["authorization_servers"]),
            (Some(resource), &json!([issuer.name()]))
        );
    }
}

#[test]
fn an_expired_token_ends_the_streams_that_it_opened() {
    let (issuer, _alpha, weir) = set_up("");
    for revision in ["2025-11-25", "2026-07-28"] {
        let end = Timestamp::now().as_second() + 3;
        let token = issuer.signed(AUDIENCE, &[("scope", json!("mcp:read")), ("exp", json!(end))]);
        let client = client(&weir, revision, &token);
        let mut stream = client.listen();
        assert_eq!(stream.ended(Duration::from_secs(10)), Some(true), "{revision}");
        assert!(Timestamp::now().as_second() >= end, "{revision}");
        assert_eq!(status(&weir, &token), 401, "{revision}");
    }
}

#[test]
fn t116_a_new_token_changes_what_a_session_sees_and_its_stream_says_so() {
    let (issuer, _alpha, weir) = set_up("");
    let first = client(&weir, "2025-11-25", &issuer.token(AUDIENCE, "mcp:write"));
    let session = first.session().expect("a session").to_owned();
    assert_eq!(first.names().len(), 2);
    let mut stream = first.listen();
    let less = Client::new(weir.address, Side::Legacy)
        .token(&issuer.token(AUDIENCE, "mcp:read"))
        .with_session(&session);
    assert_eq!(less.names(), ["alpha__seen"], "decided anew, in the same session");
    assert_eq!(less.call("alpha__secret", "{}").status(), 403);
    let told = stream.next(Duration::from_secs(5)).expect("an announcement");
    assert_eq!(told.method(), "notifications/tools/list_changed");
    let other = issuer.signed(AUDIENCE, &[("sub", json!("lee")), ("scope", json!("mcp:read"))]);
    let foreign = Client::new(weir.address, Side::Legacy).token(&other).with_session(&session);
    assert_eq!(foreign.ask(Ask::new("tools/list")).status(), 404, "C090: another subject");
}

#[test]
fn t117_a_tool_that_changes_its_class_needs_the_other_scope_at_once() {
    let issuer = Issuer::start();
    let hinted = |read: bool| {
        let (read, destroys) = (read, !read);
        format!(
            "{{\"name\":\"t\",\"inputSchema\":{{\"type\":\"object\"}},\
             \"annotations\":{{\"readOnlyHint\":{read},\"destructiveHint\":{destroys}}}}}"
        )
    };
    let alpha = Fake::modern().label("alpha").tools([hinted(true)]).start();
    let wild = Fake::modern().label("wild").tools([hinted(true)]).start();
    let weir = public()
        .upstream_with("alpha", &alpha, "trust_annotations: true")
        .upstream("wild", &wild)
        .section(&issuer.access(""))
        .run();
    eventually!(ready(&weir).0 == 200);
    let client = client(&weir, "2026-07-28", &issuer.token(AUDIENCE, "mcp:read"));
    assert_eq!(client.names(), ["alpha__t"], "T118: hints of others count for nothing");
    assert_eq!(client.call("wild__t", "{}").status(), 403);
    let mut stream = client.listen();
    alpha.set_tools([hinted(false)]);
    alpha.announce();
    assert!(stream.next(Duration::from_secs(5)).is_some(), "who saw it is told");
    assert_eq!(client.names(), Vec::<String>::new());
    let answer = client.call("alpha__t", "{}");
    assert_eq!(answer.status(), 403, "{answer:?}");
    assert!(answer.header("www-authenticate").is_some_and(|text| text.contains("scope=\"mcp:destructive\"")));
}

#[test]
fn scopes_are_mapped_and_imply_others() {
    let more = "scopes:\n  map: { \"api://gw/Tools.Read\": \"mcp:read\" }\n  implies: { lead: [member], member: [\"alpha:write\"] }";
    let (issuer, _alpha, weir) = set_up(more);
    let names = |scopes: &str| client(&weir, "2026-07-28", &issuer.token(AUDIENCE, scopes)).names();
    assert_eq!(names("api://gw/Tools.Read"), ["alpha__seen"]);
    assert_eq!(names("lead").len(), 2);
    let nobody = client(&weir, "2026-07-28", &issuer.token(AUDIENCE, "x"));
    let answer = nobody.call("alpha__seen", "{}");
    let challenge = answer.header("www-authenticate").unwrap_or_default();
    assert!(challenge.contains("scope=\"api://gw/Tools.Read\""), "in the words of the issuer: {challenge}");
    for odd in ["mcp:read\tmcp:write", "MCP:READ", "mcp:readx", "mcp:read\nmcp:write"] {
        assert_eq!(names(odd), Vec::<String>::new(), "T039: {odd:?}");
    }
}

#[test]
fn c096_unauthenticated_requests_cause_no_work() {
    let (issuer, alpha, weir) = set_up("");
    let before = (alpha.requests().len(), issuer.fetches());
    let body = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",\
        \"capabilities\":{},\"clientInfo\":{\"name\":\"x\",\"version\":\"1\"}}}";
    let worker = |worker: usize| {
        for number in 0..250 {
            let post = weir.post(body);
            let bad = format!("Bearer bad-{worker}-{number}");
            let post = if number % 2 == 0 { post.header("Authorization", &bad) } else { post };
            assert_eq!(post.send().status(), 401);
        }
    };
    let worker = &worker;
    std::thread::scope(|scope| {
        (0..8).for_each(|number| drop(scope.spawn(move || worker(number))));
    });
    assert_eq!((alpha.requests().len(), issuer.fetches()), before);
    assert_eq!(weir.metric("weir_sessions", &[]), Some(0.0));
    assert_eq!(status(&weir, &issuer.token(AUDIENCE, "mcp:read")), 200);
}

#[test]
fn c091_upstreams_get_no_token_of_a_client() {
    let (issuer, alpha, weir) = set_up("");
    let token = issuer.token(AUDIENCE, "mcp:admin");
    let client = client(&weir, "2026-07-28", &token);
    client.call("alpha__seen", "{}");
    let seen = alpha.calls("seen");
    assert!(seen[0].header("authorization").is_none());
    assert!(!format!("{seen:?}").contains(&token));
}
