//! Static tokens: what a class of tools asks for, and what a caller without the right one gets.

use std::time::Duration;

use crate::doors::kinds;
use crate::support::exchange::Exchange;
use crate::support::proxy::token_hash;
use crate::support::{Ask, Client, Fake, Proxy, Side, Weir, eras, eventually, tool};

eras! {
    c090_a_session_or_request_needs_its_token, tokens_reach_what_their_class_permits,
    t082_who_cannot_see_a_change_hears_nothing,
}

/// Where the description of the protected endpoint is, as a challenge says it.
const METADATA: &str = "resource_metadata=\"https://gw.example/.well-known/oauth-protected-resource/mcp\"";

/// A gateway with a token for each class of tools.
fn guarded(side: Side) -> (crate::support::Upstream, Weir) {
    let alpha = Fake::of(side).tools(["look", "put", "drop"].map(tool)).start();
    let weir = Proxy::new()
        .listen("public_url: https://gw.example")
        .listen("allowed_hosts: [127.0.0.1]")
        .upstream_with("alpha", &alpha, "classes: { read: [look], write: [put] }")
        .token("reader", "token-r", "\"mcp:read\"")
        .token("writer", "token-w", "\"mcp:write\"")
        .token("admin", "token-a", "\"mcp:admin\"")
        .token("tight", "token-t", "\"alpha:tool:drop\"")
        .token("local", "token-l", "\"alpha:write\"")
        .token("tricky", "token-x", "\"mcp:readx\", \"MCP:READ\", \"beta:read\"")
        .run();
    (alpha, weir)
}

fn tokens_reach_what_their_class_permits(side: Side) {
    let (alpha, weir) = guarded(side);
    for (token, permitted) in [
        ("token-r", vec!["look"]),
        ("token-w", vec!["look", "put"]),
        ("token-l", vec!["look", "put"]),
        ("token-a", vec!["look", "put", "drop"]),
        ("token-t", vec!["drop"]),
        ("token-x", vec![]),
    ] {
        let client = Client::new(weir.address, side).token(token);
        let client = if side == Side::Legacy { client.opened() } else { client };
        let listed: Vec<String> = permitted.iter().map(|name| format!("alpha__{name}")).collect();
        assert_eq!(client.names(), listed, "{token}");
        for name in ["look", "put", "drop"] {
            let before = alpha.calls(name).len();
            let answer = client.ask(Ask::call(&format!("alpha__{name}"), "{}").id("\"q\""));
            if permitted.contains(&name) {
                assert!(!answer.is_failure(), "{token} {name}");
                continue;
            }
            assert_eq!(
                (answer.status(), answer.code(), answer.id()),
                (403, 403, Some("\"q\"")),
                "{token} {name}"
            );
            let challenge = answer.header("www-authenticate").unwrap_or_default();
            assert!(challenge.starts_with("Bearer error=\"insufficient_scope\""), "{challenge}");
            let scope = match name {
                "look" => "mcp:read",
                "put" => "mcp:write",
                _ => "mcp:destructive",
            };
            assert!(challenge.contains(&format!("scope=\"{scope}\"")), "{challenge}");
            assert_eq!(alpha.calls(name).len(), before, "no upstream contact");
        }
    }
}

#[test]
fn c085_without_a_good_token_there_is_a_challenge() {
    let (alpha, weir) = guarded(Side::Modern);
    let before = alpha.asked();
    for exchange in kinds(&weir) {
        let response = exchange.send();
        assert_eq!(response.status(), 401);
        let challenge = response.header("www-authenticate").unwrap_or_default().to_owned();
        assert!(challenge.starts_with("Bearer ") && challenge.contains(METADATA), "{challenge}");
        assert!(challenge.contains("scope="), "{challenge}");
        assert!(!challenge.contains("error="), "no credential was sent: {challenge}");
        assert_eq!(response.header("cache-control"), Some("no-store"));
    }
    let list = || weir.modern().request(&Ask::new("tools/list"));
    let wrong = [
        "Bearer token-",
        "Bearer token-rx",
        "Basic dG9rZW4tcg==",
        "Bearer",
        "Bearer ",
        "token-r",
        "Bearer token-r x",
    ];
    for value in wrong {
        let response = list().header("Authorization", value).send();
        assert_eq!(response.status(), 401, "{value}");
        let challenge = response.header("www-authenticate").unwrap_or_default();
        assert!(challenge.contains("error=\"invalid_token\""), "{value}: {challenge}");
        assert!(!response.text().contains("token-r"), "{value}");
    }
    let two =
        list().header("Authorization", "Bearer token-r").header("Authorization", "Bearer token-r").send();
    assert_eq!(two.status(), 400);
    let ping = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";
    let query = Exchange::post(weir.address, "/mcp?access_token=token-r", ping).send();
    assert_eq!(query.status(), 401, "T100: a token in the address is none");
    assert_eq!(
        list().header("Authorization", "bearer token-r").send().status(),
        200,
        "the scheme has no case"
    );
    assert_eq!(alpha.asked(), before);
}

#[test]
fn a_token_past_its_last_day_is_refused() {
    let alpha = Fake::modern().start();
    let hash = token_hash("t");
    let token = |day: &str| {
        let access = format!(
            "access:\n  tokens:\n    - {{ name: ci, hash: \"{hash}\", scopes: [\"mcp:read\"], not_after: {day} }}\n"
        );
        let weir = Proxy::before(&alpha).section(&access).run();
        Client::new(weir.address, Side::Modern).token("t").ask(Ask::new("tools/list")).status()
    };
    assert_eq!(token("2020-01-31"), 401);
    assert_eq!(token("2999-01-31"), 200);
}

fn c090_a_session_or_request_needs_its_token(side: Side) {
    let (alpha, weir) = guarded(side);
    let own = Client::new(weir.address, Side::Legacy).token("token-r").opened();
    let session = own.session().unwrap().to_owned();
    let before = alpha.asked();
    let foreign = Client::new(weir.address, Side::Legacy).token("token-w").with_session(&session);
    assert_eq!(foreign.ask(Ask::new("tools/list")).status(), 404);
    assert_eq!(foreign.post("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}").send().status(), 404);
    assert_eq!(foreign.stream(None).status(), 404);
    assert_eq!(foreign.delete(), 404);
    let nobody = Client::new(weir.address, Side::Legacy).with_session(&session);
    assert_eq!(nobody.ask(Ask::new("tools/list")).status(), 401);
    assert_eq!(nobody.delete(), 401);
    assert_eq!(alpha.asked(), before);
    assert_eq!(own.names(), ["alpha__look"], "the session is unaffected");
}

#[test]
fn what_is_not_of_class_read_is_withdrawn_where_the_upstream_is_read_only() {
    let alpha = Fake::legacy().tools(["look", "put"].map(tool)).start();
    let keys = "mode: read-only\nclasses: { read: [look] }";
    let weir = Proxy::new().upstream_with("alpha", &alpha, keys).run();
    assert_eq!(weir.modern().names(), ["alpha__look"]);
    assert_eq!(weir.modern().call("alpha__put", "{}").code(), -32602);
}

fn t082_who_cannot_see_a_change_hears_nothing(side: Side) {
    let (alpha, weir) = guarded(side);
    eventually!(alpha.streams() >= 1);
    let client = |token: &str| {
        let client = Client::new(weir.address, side).token(token);
        if side == Side::Legacy { client.opened() } else { client }
    };
    let (reader, admin) = (client("token-r"), client("token-a"));
    let (mut quiet, mut told) = (reader.listen(), admin.listen());
    alpha.set_tools(["look", "put", "drop", "explode"].map(tool));
    alpha.announce();
    assert!(told.next(Duration::from_secs(4)).is_some());
    assert!(quiet.until_quiet(Duration::from_millis(500)).is_empty());
    assert_eq!((reader.names().len(), admin.names().len()), (1, 4));
}
