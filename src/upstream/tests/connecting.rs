//! Which revision is spoken to an upstream.

use bytes::Bytes;

use super::server::{Answer, Seen, empty, error, json, text};
use super::support::{Fixture, call, legacy, modern};
use crate::catalog::Presence;
use crate::exchange::Reason;
use crate::jsonrpc::RpcError;
use crate::protocol::Revision;
use crate::upstream::connect::{Decision, decide, older};
use crate::upstream::conversation::Told;
use crate::upstream::fault::Fault;

#[test]
fn the_answer_to_the_first_request_decides() {
    let check = |told: Result<Told, Fault>, wanted: &str| {
        let decision = decide(told, |error| error.code == -32001);
        let found = match &decision {
            Decision::Down(fault) => fault.reason.label(),
            Decision::Modern(Some(_)) => "modern",
            Decision::Modern(None) => "modern, offer unknown",
            Decision::Legacy => "legacy",
        };
        assert_eq!(found, wanted, "{decision:?}");
    };
    let fault = |reason| Err(Fault::sent(reason));
    let result = |text: &'static str| Ok(Told::Result(Bytes::from_static(text.as_bytes())));
    let error = |code, data: Option<serde_json::Value>| Ok(Told::Error(RpcError::own(code, "x", data)));
    check(fault(Reason::Credential), "credential");
    check(fault(Reason::Status(429)), "status");
    check(fault(Reason::Status(502)), "status");
    check(fault(Reason::Ended), "ended");
    check(fault(Reason::Unreachable), "unreachable");
    check(error(-32001, None), "credential");
    check(result(r#"{"supportedVersions":["2026-07-28","2025-11-25"],"capabilities":{}}"#), "modern");
    check(result(r#"{"supportedVersions":["2025-11-25"],"capabilities":{}}"#), "legacy");
    check(result(r#"{"tools":[]}"#), "legacy");
    check(error(-32022, Some(serde_json::json!({"supported": ["2026-07-28"]}))), "modern, offer unknown");
    check(error(-32022, Some(serde_json::json!({"supported": ["2025-11-25"]}))), "legacy");
    check(error(-32020, None), "modern, offer unknown");
    check(error(-32021, None), "modern, offer unknown");
    check(error(-32601, None), "legacy");
    check(fault(Reason::Status(400)), "legacy");
    check(fault(Reason::Status(404)), "legacy");
    check(fault(Reason::NotMcp), "legacy");
    check(fault(Reason::TimedOut), "legacy");
}

#[test]
fn c135_the_next_revision_is_the_newest_that_the_refusal_names() {
    use Revision::{V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25};
    assert_eq!(older(&[V2025_11_25], "try 2025-03-26 or 2024-11-05"), Some(V2025_03_26));
    assert_eq!(older(&[V2025_11_25], "2025-11-25 is not spoken"), Some(V2025_06_18));
    assert_eq!(older(&[V2025_11_25, V2025_03_26], ""), Some(V2025_06_18));
    assert_eq!(older(&[V2025_11_25, V2025_06_18, V2025_03_26, V2024_11_05], "2025-03-26"), None);
}

#[tokio::test]
async fn c125_a_legacy_server_is_found_whatever_it_answers_to_a_modern_request() {
    type Refusal = fn(&Seen) -> Answer;
    let refusals: [Refusal; 5] = [
        |_| text(400, "Bad Request: no session"),
        |_| text(404, "not found"),
        |seen| error(seen, 200, -32601, "Method not found"),
        |_| {
            json(400, r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Missing session ID"}}"#)
            .with("mcp-session-id", "poison")
        },
        |_| empty(202),
    ];
    for refusal in refusals {
        let fixture = Fixture::start(move |seen| match seen.method().as_str() {
            "server/discover" => refusal(seen),
            _ => legacy(seen),
        })
        .await;
        let inventory = fixture.up().await;
        assert_eq!((inventory.revision, inventory.tools.len()), (Revision::V2025_11_25, 1));
        fixture.result(call("echo", "{}")).await;
        fixture.result(call("echo", "{}")).await;
        assert_eq!(fixture.server.count("server/discover"), 1, "remembered");
        let hello = &fixture.server.of("initialize")[0];
        assert_eq!(hello.header("mcp-session-id"), None, "no session of a refusal");
        assert_eq!(hello.header("mcp-protocol-version"), None, "nothing is agreed on yet");
    }
}

#[tokio::test]
async fn c122_and_c135_a_server_that_does_not_negotiate_is_spoken_to_in_its_revision() {
    for spoken in ["2025-06-18", "2025-03-26", "2024-11-05"] {
        let fixture = Fixture::start(move |seen| {
            let is_hello = seen.method() == "initialize";
            let is_wanted = seen.body["params"]["protocolVersion"] == spoken;
            match seen.header("mcp-protocol-version") {
                _ if is_hello && !is_wanted => error(seen, 400, -32000, &format!("supported: {spoken}")),
                Some(version) if seen.method() != "server/discover" && version != spoken => text(400, "no"),
                _ => legacy(seen),
            }
        })
        .await;
        let inventory = fixture.up().await;
        assert_eq!(inventory.revision.as_str(), spoken);
        assert_eq!(fixture.server.count("initialize"), 2);
        fixture.result(call("echo", "{}")).await;
        let wanted = (spoken == "2025-06-18").then_some(spoken);
        assert_eq!(fixture.server.of("tools/call")[0].header("mcp-protocol-version"), wanted);
        assert_eq!(fixture.server.count("initialize"), 3, "the client's own session, without another try");
    }
}

#[tokio::test]
async fn a_server_that_refuses_every_revision_is_asked_four_times() {
    let fixture = Fixture::start(|seen| match seen.method().as_str() {
        "initialize" => error(seen, 200, -32000, "no"),
        _ => legacy(seen),
    })
    .await;
    fixture.stands(|presence| matches!(presence, Presence::Down { .. })).await;
    assert_eq!(fixture.server.count("initialize"), 4);
}

#[tokio::test]
async fn a_pinned_revision_is_the_only_one_tried() {
    let fixture = Fixture::with(legacy, |up| up.revision = Some(Revision::V2025_03_26)).await;
    assert_eq!(fixture.up().await.revision, Revision::V2025_03_26);
    assert_eq!(fixture.server.count("server/discover"), 0);
    let fixture = Fixture::with(modern, |up| up.revision = Some(Revision::V2026_07_28)).await;
    assert_eq!(fixture.up().await.revision, Revision::V2026_07_28);
}

#[tokio::test]
async fn a_refused_credential_is_said_and_names_nobody() {
    for status in [401, 403] {
        let fixture = Fixture::start(move |_| text(status, "go away")).await;
        let down = fixture.stands(|presence| matches!(presence, Presence::Down { .. })).await;
        let Presence::Down { trouble, last, .. } = down else { panic!("{down:?}") };
        assert_eq!((trouble.label, last), ("credential", None));
        assert_eq!(fixture.server.count("initialize"), 0, "no other era is tried");
        let lost = fixture.lost(call("echo", "{}")).await;
        assert_eq!((lost.reason, lost.may_have_run), (Reason::Credential, false));
    }
}

#[tokio::test]
async fn a_modern_error_on_discover_is_asked_again() {
    let fixture = Fixture::start(|seen| match (seen.method().as_str(), seen.number) {
        ("server/discover", 0) => json(
            400,
            format!(r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-32022,"message":"no","data":{{"supported":["2026-07-28"],"requested":"x"}}}}}}"#, seen.id()),
        ),
        _ => modern(seen),
    })
    .await;
    let inventory = fixture.up().await;
    assert_eq!(inventory.instructions.as_deref(), Some("be kind"));
    assert_eq!(fixture.server.count("server/discover"), 2);
}

#[tokio::test]
async fn an_upstream_that_comes_back_in_another_era_is_found_out() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    let phase = Arc::new(AtomicUsize::new(0));
    let script_phase = Arc::clone(&phase);
    let fixture = Fixture::with(
        move |seen| match script_phase.load(Ordering::Relaxed) {
            0 => legacy(seen),
            1 => empty(503),
            _ => modern(seen),
        },
        |up| up.refresh = std::time::Duration::from_millis(100),
    )
    .await;
    assert_eq!(fixture.up().await.revision, Revision::V2025_11_25);
    phase.store(1, Ordering::Relaxed);
    let down = fixture.stands(|presence| matches!(presence, Presence::Down { .. })).await;
    assert_eq!(down.inventory().map(|inventory| inventory.tools.len()), Some(1), "keeps its place");
    phase.store(2, Ordering::Relaxed);
    assert_eq!(fixture.up().await.revision, Revision::V2026_07_28);
}

#[tokio::test]
async fn silence_is_an_answer_of_the_old_era() {
    let fixture = Fixture::start(|seen| match seen.method().as_str() {
        "server/discover" => Answer::Silence,
        _ => legacy(seen),
    })
    .await;
    assert_eq!(fixture.up().await.revision, Revision::V2025_11_25);
}
