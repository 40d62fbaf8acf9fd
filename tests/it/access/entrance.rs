//! Ways in beside the header: no credential where the operator lets such callers in, a token in `initialize`, and the
//! token of the first start.

use std::time::Duration;

use super::{both, client, public};
use crate::support::proxy::token_hash;
use crate::support::{Ask, Client, Proxy, Side, Upstream, Weir, eventually, json};

#[test]
fn callers_without_a_credential_have_what_the_operator_gives_them() {
    let alpha = both("alpha", Side::Modern);
    let access = format!(
        "access:\n  anonymous: {{ scopes: [\"mcp:read\"] }}\n  tokens: [ {{ name: a, hash: \"{}\", scopes: [\"mcp:admin\"] }} ]\n",
        token_hash("admin")
    );
    let weir = public().upstream_with("alpha", &alpha, "classes: { read: [seen] }").section(&access).run();
    for side in [Side::Legacy, Side::Modern] {
        let anybody = weir.client(side);
        assert_eq!(anybody.names(), ["alpha__seen"]);
        assert_eq!(anybody.call("alpha__secret", "{}").status(), 403);
    }
    let bad = Client::new(weir.address, Side::Modern).token("wrong").ask(Ask::new("tools/list"));
    assert_eq!(bad.status(), 401, "a bad credential is never no credential");
    assert_eq!(client(&weir, "2026-07-28", "admin").names().len(), 2);
}

fn with_initialize_tokens() -> (Upstream, Weir) {
    let alpha = both("alpha", Side::Legacy);
    let access = format!(
        "access:\n  initialize_token: true\n  tokens: [ {{ name: a, hash: \"{}\", scopes: [\"mcp:read\"] }} ]\n",
        token_hash("canary-token")
    );
    let routes = "routes: [ { name: default, path: /mcp }, { name: other } ]\n";
    let proxy = public().upstream_with("alpha", &alpha, "classes: { read: [seen] }");
    let weir = proxy.section(&access).section(routes).run();
    (alpha, weir)
}

fn initialize(token: &str) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{{\"protocolVersion\":\"2025-11-25\",\
         \"capabilities\":{{}},\"clientInfo\":{{\"name\":\"x\",\"version\":\"1\"}},\"token\":{token}}}}}"
    )
}

#[test]
fn a_legacy_client_may_send_its_token_in_initialize() {
    let (alpha, weir) = with_initialize_tokens();
    let opened = weir.post(initialize("\"canary-token\"")).send();
    assert_eq!(opened.status(), 200);
    let session = opened.header("mcp-session-id").expect("a session").to_owned();
    let client = Client::new(weir.address, Side::Legacy).with_session(&session);
    assert_eq!(client.notify("notifications/initialized", None), 202);
    assert_eq!(client.names(), ["alpha__seen"], "the session says who it is");
    assert!(!client.call("alpha__seen", "{}").is_failure());
    let mut stream = client.listen();
    assert!(stream.is_stream() && stream.next(Duration::from_millis(50)).is_none());
    let other = Client::new(weir.address, Side::Legacy).token("wrong").with_session(&session);
    assert_eq!(other.ask(Ask::new("tools/list")).status(), 401, "a bad header is not made good by a session");
    let modern = Client::new(weir.address, Side::Modern);
    let borrowed = modern.ask(Ask::call("alpha__seen", "{}").header("mcp-session-id", &session));
    assert_eq!(borrowed.status(), 401, "a session lends its holder to nothing but itself");
    let again = initialize("1").replace(",\"token\":1", "");
    let again = weir.post(again).header("mcp-session-id", &session).send();
    assert_eq!(again.status(), 401, "whoever opens a session says who it is");
    let elsewhere = Client::new(weir.address, Side::Legacy).at("/other").with_session(&session);
    assert_eq!(elsewhere.ask(Ask::new("tools/list")).status(), 401, "a session is one of its route");
    assert_eq!(client.delete(), 204);
    assert_eq!(client.ask(Ask::new("tools/list")).status(), 401, "with the session goes its holder");
    for bad in ["\"wrong\"", "\"\"", "5", "null", "[\"canary-token\"]"] {
        assert_eq!(weir.post(initialize(bad)).send().status(), 401, "{bad}");
    }
    let large = initialize("\"canary-token\"").replace("\"x\"", &json::quote(&"x".repeat(70_000)));
    assert_eq!(weir.post(large).send().status(), 413);
    let list =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"token\":\"canary-token\"}}";
    assert_eq!(weir.post(list).send().status(), 401, "in no other message");
    assert!(!weir.log().contains("canary-token"), "{}", weir.log());
    let seen = alpha.requests();
    assert!(!format!("{seen:?}").contains("canary-token"), "it is taken out first");
}

#[test]
fn a_token_in_initialize_counts_only_where_the_operator_says_so() {
    let alpha = both("alpha", Side::Legacy);
    let access = format!(
        "access:\n  tokens: [ {{ name: a, hash: \"{}\", scopes: [\"mcp:read\"] }} ]\n",
        token_hash("t")
    );
    let weir = public().upstream("alpha", &alpha).section(&access).run();
    assert_eq!(weir.post(initialize("\"t\"")).send().status(), 401);
}

#[test]
fn the_first_start_makes_a_token_for_everything() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let path = folder.path().join("token");
    let alpha = both("alpha", Side::Modern);
    let access = format!("access: {{ generate: \"{}\" }}\n", path.display());
    let proxy = Proxy::before(&alpha).section(&access);
    let weir = proxy.run();
    let token = std::fs::read_to_string(&path).expect("a token").trim_end().to_owned();
    eventually!(weir.log().contains(&path.display().to_string()), "it says where: {}", weir.log());
    assert!(!weir.log().contains(&token));
    assert_eq!(client(&weir, "2026-07-28", &token).names().len(), 2);
    assert_eq!(weir.modern().ask(Ask::new("tools/list")).status(), 401);
    drop(weir);
    let again = proxy.run();
    assert_eq!(client(&again, "2026-07-28", &token).names().len(), 2, "it is made once");
}
