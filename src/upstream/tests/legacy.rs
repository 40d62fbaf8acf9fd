//! An upstream with sessions.

use std::time::Duration;

use futures_util::future::join_all;

use super::server::{Answer, Piece, Seen, events, result, text};
use super::support::{Fixture, call, client, echo, legacy};
use crate::catalog::Presence;
use crate::config::Sharing;
use crate::exchange::{Call, Caller, Event, Reason, SessionKey};
use crate::principal::Principal;
use crate::protocol::LogLevel;

fn from(caller: Caller) -> Call {
    Call { caller, ..call("echo", "{}") }
}

pub(super) fn session(seen: &Seen) -> String {
    seen.header("mcp-session-id").unwrap_or("none").to_owned()
}

#[tokio::test]
async fn many_first_calls_open_one_session() {
    let fixture = Fixture::start(legacy).await;
    fixture.up().await;
    join_all((0..20).map(|_| fixture.result(call("echo", "{}")))).await;
    assert_eq!(fixture.server.count("initialize"), 2, "Weir's own and the client's");
}

#[tokio::test]
async fn c011_and_c026_the_handshake_is_whole_before_anything_else() {
    let fixture = Fixture::start(legacy).await;
    fixture.up().await;
    let steps: Vec<String> = fixture.server.seen().iter().map(Seen::method).collect();
    let wanted = ["server/discover", "initialize", "notifications/initialized", "GET", "tools/list"];
    assert_eq!(steps, wanted);
}

#[tokio::test]
async fn c004_only_ids_that_the_upstream_issued_go_to_it() {
    let fixture = Fixture::start(|seen| match seen.method().as_str() {
        "initialize" if seen.header("mcp-session-id").is_some() => text(400, "no"),
        "server/discover" => text(400, "no").with("mcp-session-id", "poison"),
        "tools/call" => echo(seen).with("mcp-session-id", "other"),
        _ => legacy(seen),
    })
    .await;
    fixture.up().await;
    fixture.result(call("echo", "{}")).await;
    fixture.result(call("echo", "{}")).await;
    let ids: Vec<String> = fixture.server.of("tools/call").iter().map(session).collect();
    assert!(ids[0].starts_with('s') && ids[0] == ids[1], "{ids:?}");
}

#[tokio::test]
async fn sessions_are_shared_as_configured() {
    let named = |name: &str| Principal::fixed(name, [].into(), [].into());
    let caller = |principal: Principal, session: Option<u8>, on_loopback| Caller {
        session: session.map(|number| SessionKey([number; 16])),
        on_loopback,
        ..Caller::local(principal)
    };
    let check = async |sharing: Sharing, callers: [Caller; 2], shared: bool| {
        let fixture = Fixture::with(legacy, |up| up.sessions = sharing).await;
        fixture.up().await;
        for caller in callers.clone() {
            fixture.result(from(caller)).await;
        }
        let ids: Vec<String> = fixture.server.of("tools/call").iter().map(session).collect();
        assert_eq!(ids[0] == ids[1], shared, "{sharing:?} {callers:?}");
        let listing = session(&fixture.server.of("tools/list")[0]);
        assert!(!ids.contains(&listing), "Weir lists in a session of its own");
    };
    let open = Principal::open;
    check(Sharing::Client, [caller(open(), Some(1), true), caller(open(), Some(1), true)], true).await;
    check(Sharing::Client, [caller(open(), Some(1), true), caller(open(), Some(2), true)], false).await;
    check(Sharing::Client, [caller(named("a"), None, false), caller(named("a"), None, false)], true).await;
    check(Sharing::Client, [caller(named("a"), None, false), caller(named("b"), None, false)], false).await;
    check(Sharing::Client, [caller(open(), None, true), caller(open(), None, true)], true).await;
    check(Sharing::Client, [caller(open(), None, false), caller(open(), None, false)], false).await;
    check(Sharing::Principal, [caller(named("a"), Some(1), true), caller(named("a"), Some(2), true)], true)
        .await;
    check(Sharing::Shared, [caller(named("a"), Some(1), true), caller(named("b"), None, true)], true).await;
}

#[tokio::test]
async fn sessions_end_with_what_they_were_opened_for() {
    let fixture = Fixture::with(legacy, |up| up.idle = Duration::from_millis(1)).await;
    fixture.up().await;
    // One per call, where the caller has neither name nor session.
    fixture.result(from(Caller { session: None, on_loopback: false, ..client(1) })).await;
    fixture.server.saw("DELETE", 1).await;
    // With the client's session.
    fixture.result(from(client(2))).await;
    fixture.set.end_session(SessionKey([2; 16]));
    fixture.server.saw("DELETE", 2).await;
    // When nobody uses it.
    fixture.result(from(client(3))).await;
    fixture.server.saw("DELETE", 3).await;
    // At the end: Weir's own.
    fixture.set.close().await;
    let calls: Vec<String> = fixture.server.of("tools/call").iter().map(session).collect();
    let ends: Vec<String> = fixture.server.of("DELETE").iter().map(session).collect();
    assert_eq!(ends[..3], calls[..]);
    assert_eq!(ends[3], session(&fixture.server.of("tools/list")[0]));
}

#[tokio::test]
async fn an_upstream_without_session_ids_has_nothing_to_share() {
    let fixture = Fixture::start(|seen| match legacy(seen) {
        Answer::Whole { status, body, .. } if seen.method() == "initialize" => {
            super::server::json(status, String::from_utf8(body).unwrap())
        }
        answer => answer,
    })
    .await;
    fixture.up().await;
    for number in 0..5 {
        fixture.result(from(client(number))).await;
    }
    assert_eq!(fixture.server.count("initialize"), 1);
    fixture.set.close().await;
    assert_eq!(fixture.server.count("DELETE"), 0);
}

#[tokio::test]
async fn c028_a_refused_stream_is_asked_for_once() {
    let fixture = Fixture::with(legacy, |up| up.refresh = Duration::from_millis(50)).await;
    fixture.up().await;
    fixture.server.saw("tools/list", 4).await;
    assert_eq!(fixture.server.count("GET"), 1);
}

/// A legacy server that announces, with a stream of these pieces.
fn streaming(seen: &Seen, pieces: &[Piece]) -> Answer {
    match seen.method().as_str() {
        "GET" => Answer::Stream { headers: Vec::new(), pieces: pieces.to_vec() },
        "initialize" => {
            let answer = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}}}"#;
            result(seen, answer).with("mcp-session-id", &format!("s{}", seen.number))
        }
        _ => legacy(seen),
    }
}

#[tokio::test]
async fn c012_losing_the_stream_does_not_end_the_session() {
    let fixture = Fixture::start(|seen| streaming(seen, &[Piece::Wait(Duration::from_millis(20))])).await;
    fixture.up().await;
    let mut inventories = fixture.set.material();
    inventories.mark_unchanged();
    fixture.server.saw("GET", 2).await;
    fixture.server.saw("tools/list", 2).await;
    for _ in 0..3 {
        fixture.result(call("echo", "{}")).await;
    }
    let ids: Vec<String> = fixture.server.of("tools/call").iter().map(session).collect();
    assert!(ids.iter().all(|id| *id == ids[0]));
    assert_eq!(fixture.server.count("initialize"), 2, "Weir's own and the client's");
    assert!(!inventories.has_changed().unwrap(), "nothing is announced");
}

#[tokio::test]
async fn a_change_on_the_stream_is_listed() {
    let changed = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n";
    let fixture = Fixture::start(move |seen| {
        let pieces = [Piece::Wait(Duration::from_millis(100)), Piece::Text(changed.to_owned()), Piece::Hold];
        match seen.method().as_str() {
            "tools/list" if seen.number > 5 => result(seen, r#"{"tools":[]}"#),
            _ => streaming(seen, &pieces),
        }
    })
    .await;
    fixture.up().await;
    fixture.server.saw("tools/list", 2).await;
}

#[tokio::test]
async fn a_change_on_the_stream_of_a_call_is_listed() {
    let fixture = Fixture::start(|seen| match seen.method().as_str() {
        "tools/call" => {
            let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
            events(&[changed, &format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, seen.id())], None)
        }
        _ => legacy(seen),
    })
    .await;
    fixture.up().await;
    assert_eq!(fixture.events(call("echo", "{}")).await.len(), 1);
    fixture.server.saw("tools/list", 2).await;
}

#[tokio::test]
async fn c078_a_ping_is_answered_in_its_session_and_anything_else_refused() {
    let ask = |id: &str, method: &str| {
        format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\"}}\n\n")
    };
    let on_stream = [Piece::Text(ask("0", "ping")), Piece::Hold];
    let fixture = Fixture::start(move |seen| match seen.method().as_str() {
        "tools/call" => {
            let pieces = vec![
                // The same id as the call's: only the call's own answer may end it.
                Piece::Text(ask(&seen.id(), "ping")),
                Piece::Text(ask("\"p-1\"", "ping")),
                Piece::Text(ask("7", "foo/bar")),
                Piece::Wait(Duration::from_millis(50)),
                Piece::Text(format!(
                    "data: {{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{}}}}\n\n",
                    seen.id()
                )),
            ];
            Answer::Stream { headers: Vec::new(), pieces }
        }
        _ => streaming(seen, &on_stream),
    })
    .await;
    fixture.up().await;
    assert_eq!(fixture.result(call("echo", "{}")).await, "{}");
    fixture.server.saw("POST", 4).await;
    let asked = fixture.server.of("tools/call").pop().unwrap();
    let listing = session(&fixture.server.of("tools/list")[0]);
    for answer in fixture.server.of("POST") {
        let id = answer.id();
        if id == "7" {
            assert_eq!(answer.body["error"]["code"], -32601);
        } else {
            assert_eq!(answer.body["result"], serde_json::json!({}), "{id}");
        }
        let wanted = if id == "0" { listing.clone() } else { session(&asked) };
        assert_eq!(session(&answer), wanted, "{id}");
    }
}

#[tokio::test]
async fn c066_every_call_gets_its_own_answer() {
    let fixture = Fixture::with(legacy, |up| up.sessions = Sharing::Shared).await;
    fixture.up().await;
    let calls = (0..60).map(|number| fixture.result(call("echo", &format!(r#"{{"marker":{number}}}"#))));
    for (number, result) in join_all(calls).await.into_iter().enumerate() {
        assert!(result.contains(&format!(r#"{{\"marker\":{number}}}"#)), "{number}: {result}");
    }
    let mut ids: Vec<String> = fixture.server.of("tools/call").iter().map(Seen::id).collect();
    assert!(ids.iter().all(|id| id.len() == 16));
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 60, "unique towards the upstream");
}

#[tokio::test]
async fn c021_a_stream_that_ends_fails_the_call_at_once() {
    let fixture = Fixture::start(|seen| match seen.method().as_str() {
        "tools/call" => events(
            &[r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error"}}"#],
            None,
        ),
        _ => legacy(seen),
    })
    .await;
    fixture.up().await;
    let lost = fixture.lost(call("echo", "{}")).await;
    assert_eq!((lost.reason, lost.may_have_run), (Reason::Ended, true));
    assert_eq!(fixture.server.count("tools/call"), 1);
}

#[tokio::test]
async fn a_stream_with_event_ids_is_resumed_after_its_retry_time() {
    let fixture = Fixture::start(|seen| {
        let last = seen.header("last-event-id").map(str::to_owned);
        match (seen.method().as_str(), last.as_deref()) {
            ("tools/call", _) => {
                let first = Piece::Text(format!("id: {}/1\nretry: 150\ndata:\n\n", seen.id()));
                Answer::Stream { headers: Vec::new(), pieces: vec![first] }
            }
            ("GET", Some(last)) if last.ends_with("/1") => {
                let id = last.trim_end_matches("/1");
                let second = Piece::Text(format!("id: {id}/2\nretry: 0\ndata:\n\n"));
                Answer::Stream { headers: Vec::new(), pieces: vec![second] }
            }
            ("GET", Some(last)) => {
                let id = last.trim_end_matches("/2");
                events(&[&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resumed":true}}}}"#)], None)
            }
            _ => legacy(seen),
        }
    })
    .await;
    fixture.up().await;
    let started = tokio::time::Instant::now();
    let found = fixture.events(call("echo", "{}")).await;
    assert!(started.elapsed() >= Duration::from_millis(250), "the retry times are kept");
    let [Event::Paused(Some(first)), Event::Paused(Some(second)), Event::Result(answer)] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!((first.as_millis(), second.as_millis()), (150, 0));
    assert_eq!(&answer.result[..], br#"{"resumed":true}"#);
    let resumed = fixture.server.of("GET").pop().unwrap();
    assert_eq!(session(&resumed), session(&fixture.server.of("tools/call")[0]));
}

#[tokio::test]
async fn c114_a_hung_call_times_out_and_is_cancelled() {
    for hung in [Answer::Silence, events(&[], Some(Piece::Hold))] {
        let fixture = Fixture::with(
            move |seen| match seen.method().as_str() {
                "tools/call" if seen.body["params"]["arguments"] == "hang" => hung.clone(),
                _ => legacy(seen),
            },
            |up| {
                up.timeout.call = Duration::from_millis(150);
                up.concurrency.calls = Some(1);
            },
        )
        .await;
        fixture.up().await;
        let lost = fixture.lost(call("echo", "\"hang\"")).await;
        assert_eq!((lost.reason, lost.may_have_run), (Reason::TimedOut, true));
        fixture.server.saw("notifications/cancelled", 1).await;
        let cancelled = &fixture.server.of("notifications/cancelled")[0];
        let hung = &fixture.server.of("tools/call")[0];
        assert_eq!(cancelled.body["params"]["requestId"], hung.body["id"]);
        assert_eq!(session(cancelled), session(hung));
        fixture.result(call("echo", "{}")).await;
        assert!(matches!(fixture.set.material().borrow().inventories[&fixture.name], Presence::Up { .. }));
    }
}

#[tokio::test]
async fn an_answered_call_is_not_cancelled_and_a_dropped_one_is() {
    let fixture = Fixture::start(|seen| match seen.method().as_str() {
        "tools/call" if seen.body["params"]["arguments"] == "hang" => events(&[], Some(Piece::Hold)),
        _ => legacy(seen),
    })
    .await;
    fixture.up().await;
    fixture.result(call("echo", "{}")).await;
    let reply = fixture.link.call(call("echo", "\"hang\""));
    let seen = fixture.server.saw("tools/call", 2);
    tokio::select! {
        _ = futures_util::StreamExt::into_future(reply) => panic!("it hangs"),
        () = seen => {}
    }
    fixture.server.saw("notifications/cancelled", 1).await;
    let hung = fixture.server.of("tools/call").pop().unwrap();
    let cancelled = fixture.server.of("notifications/cancelled");
    assert_eq!(cancelled.len(), 1);
    assert_eq!(cancelled[0].body["params"]["requestId"], hung.body["id"]);
}

#[tokio::test]
async fn the_log_level_of_a_session_is_the_most_verbose_that_was_wanted() {
    let fixture = Fixture::start(|seen| match seen.method().as_str() {
        "initialize" => {
            let answer = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}}}"#;
            result(seen, answer).with("mcp-session-id", &format!("s{}", seen.number))
        }
        "logging/setLevel" => result(seen, "{}"),
        _ => legacy(seen),
    })
    .await;
    fixture.up().await;
    for level in [None, Some(LogLevel::Error), Some(LogLevel::Info), Some(LogLevel::Warning)] {
        fixture.result(Call { log_level: level, log_asked: true, ..call("echo", "{}") }).await;
    }
    let levels = fixture.server.of("logging/setLevel");
    let levels: Vec<&str> =
        levels.iter().map(|seen| seen.body["params"]["level"].as_str().unwrap()).collect();
    assert_eq!(levels, ["error", "info"]);
}

#[tokio::test]
async fn a_batch_of_2025_03_26_is_taken_apart() {
    let fixture = Fixture::start(|seen| match seen.method().as_str() {
        "tools/call" => {
            let note = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error"}}"#;
            super::server::json(
                200,
                format!(r#" [{note}, {{"jsonrpc":"2.0","id":{},"result":{{"x":1}}}}]"#, seen.id()),
            )
        }
        _ => legacy(seen),
    })
    .await;
    fixture.up().await;
    let found = fixture
        .events(Call { log_level: Some(LogLevel::Debug), log_asked: true, ..call("echo", "{}") })
        .await;
    assert!(matches!(&found[..], [Event::Log(LogLevel::Error, _), Event::Result(_)]), "{found:?}");
}

#[tokio::test]
async fn a_legacy_upstream_gets_the_params_as_they_came_and_no_modern_header() {
    let fixture = Fixture::start(legacy).await;
    fixture.up().await;
    let mut asked = call("echo", "{}");
    asked.params = r#"{"_meta":{"k":1},"name":"echo","arguments":{"a":1}}"#.to_owned();
    asked.mirrored = vec![("mcp-param-a".to_owned(), "1".to_owned())];
    asked.progress_token = Some("\"t\"".to_owned());
    fixture.result(asked).await;
    let seen = fixture.server.of("tools/call").pop().unwrap();
    assert_eq!(seen.body["params"]["_meta"], serde_json::json!({"k": 1, "progressToken": seen.body["id"]}));
    let modern = ["mcp-method", "mcp-name", "mcp-param-a"];
    assert!(modern.iter().all(|name| seen.header(name).is_none()));
    assert_eq!(seen.header("mcp-protocol-version"), Some("2025-11-25"));
}
