//! Sessions that an upstream has forgotten.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;

use super::legacy::session;
use super::server::{Answer, Seen, empty, error, result, text};
use super::support::{Fixture, call, legacy};
use crate::exchange::{Event, Reason};

/// A server that knows the sessions of its current life only, and answers lost ones with a status.
fn restarting(lost: fn(&Seen) -> Answer) -> (impl Fn(&Seen) -> Answer, Arc<AtomicUsize>) {
    let life = Arc::new(AtomicUsize::new(0));
    let current = Arc::clone(&life);
    let script = move |seen: &Seen| {
        let mine = format!("life{}-", current.load(Ordering::Relaxed));
        let is_known = seen.header("mcp-session-id").is_some_and(|id| id.starts_with(&mine));
        match seen.method().as_str() {
            "initialize" => {
                let answer = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}"#;
                result(seen, answer).with("mcp-session-id", &format!("{mine}{}", seen.number))
            }
            "server/discover" => legacy(seen),
            _ if !is_known => lost(seen),
            _ => legacy(seen),
        }
    };
    (script, life)
}

#[tokio::test]
async fn c003_a_lost_session_is_opened_again_and_the_call_repeated_once() {
    let losses: [fn(&Seen) -> Answer; 3] = [
        |_| empty(404),
        |seen| error(seen, 404, -32001, "Session not found"),
        |_| text(400, "Bad Request: No valid session ID provided"),
    ];
    for lost in losses {
        let (script, life) = restarting(lost);
        let fixture = Fixture::start(script).await;
        fixture.up().await;
        fixture.result(call("echo", "{}")).await;
        let before = fixture.server.seen().len();
        life.store(1, Ordering::Relaxed);
        fixture.result(call("echo", "{}")).await;
        let seen = fixture.server.seen().split_off(before);
        let steps: Vec<String> =
            seen.iter().map(|seen| format!("{} {}", seen.method(), session(seen))).collect();
        let fresh = format!("life1-{}", before + 1);
        let wanted = [
            format!("tools/call {}", session(&fixture.server.of("tools/call")[0])),
            "initialize none".to_owned(),
            format!("notifications/initialized {fresh}"),
            format!("tools/call {fresh}"),
        ];
        assert_eq!(steps, wanted);
    }
}

#[tokio::test]
async fn c003_many_calls_that_find_a_session_lost_open_one() {
    let (script, life) = restarting(|_| empty(404));
    let fixture = Fixture::start(script).await;
    fixture.up().await;
    fixture.result(call("echo", "{}")).await;
    let before = fixture.server.count("initialize");
    life.store(1, Ordering::Relaxed);
    join_all((0..20).map(|_| fixture.result(call("echo", "{}")))).await;
    assert_eq!(fixture.server.count("initialize"), before + 1);
    assert_eq!(fixture.server.count("tools/call"), 1 + 2 * 20);
}

#[tokio::test]
async fn a_session_that_never_worked_is_not_opened_again() {
    let fixture = Fixture::start(|seen| match seen.method().as_str() {
        "tools/call" => empty(404),
        _ => legacy(seen),
    })
    .await;
    fixture.up().await;
    let lost = fixture.lost(call("echo", "{}")).await;
    assert_eq!((lost.reason, lost.may_have_run), (Reason::Status(404), false));
    assert_eq!(fixture.server.count("tools/call"), 1);
}

#[tokio::test]
async fn a_session_that_was_forgotten_before_it_worked_is_not_kept() {
    for lost in
        [(|_| empty(404)) as fn(&Seen) -> Answer, |seen| error(seen, 404, -32001, "Session not found")]
    {
        // Every session is forgotten before its first call, until the third one.
        let fixture = Fixture::start(move |seen| match seen.method().as_str() {
            "tools/call" if seen.number < 12 => lost(seen),
            _ => legacy(seen),
        })
        .await;
        fixture.up().await;
        let mut calls = 0;
        while !matches!(fixture.events(call("echo", "{}")).await.last(), Some(Event::Result(_))) {
            calls += 1;
            assert!(calls < 8, "each call opens another one: {:?}", fixture.server.seen());
        }
        assert!(calls > 0, "none was repeated");
        assert_eq!(fixture.server.count("initialize"), 1 + calls + 1);
    }
}
