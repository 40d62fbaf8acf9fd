//! What clients hear of an upstream outside of their calls.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;

use super::server::{Answer, Piece, Seen, empty, error, result};
use super::support::{Fixture, call, client, legacy, modern};
use crate::exchange::{Call, Caller, Event, Reaction, SessionKey};
use crate::protocol::{Abilities, LogLevel, Question};
use crate::upstream::{Standing, Watching};

const PATIENCE: Duration = Duration::from_secs(10);

fn event(message: &str) -> Piece {
    Piece::Text(format!("data: {message}\n\n"))
}

fn updated(uri: &str) -> Piece {
    event(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"{uri}"}}}}"#
    ))
}

fn session(seen: &Seen) -> String {
    seen.header("mcp-session-id").unwrap_or("none").to_owned()
}

/// A legacy server that takes subscriptions; the streams of its sessions are `pieces`.
fn subscribing(seen: &Seen, pieces: &[Piece]) -> Answer {
    match seen.method().as_str() {
        "initialize" => {
            let answer = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{"subscribe":true},"logging":{}}}"#;
            result(seen, answer).with("mcp-session-id", &format!("s{}", seen.number))
        }
        "resources/list" => result(seen, r#"{"resources":[]}"#),
        "resources/templates/list" => result(seen, r#"{"resourceTemplates":[]}"#),
        "resources/subscribe" | "resources/unsubscribe" | "logging/setLevel" => result(seen, "{}"),
        "GET" => Answer::Stream { headers: Vec::new(), pieces: pieces.to_vec() },
        _ => legacy(seen),
    }
}

impl Fixture {
    fn watch(&self, uri: &str, caller: &Caller) -> Watching {
        self.set.watch(&self.name, uri, caller).expect("subscriptions are offered")
    }
}

async fn heard(watching: &mut Watching) {
    tokio::time::timeout(PATIENCE, watching.updated()).await.expect("an update");
}

async fn next(standing: &mut Standing) -> Event {
    tokio::time::timeout(PATIENCE, standing.next()).await.expect("an event").1
}

#[tokio::test]
async fn a_resource_is_subscribed_to_once_in_the_clients_session_and_given_up_with_the_last() {
    let fixture = Fixture::start(|seen| {
        subscribing(
            seen,
            &[Piece::Wait(Duration::from_millis(300)), updated("x://a"), updated("x://a"), Piece::Hold],
        )
    })
    .await;
    fixture.up().await;
    fixture.result(call("echo", "{}")).await;
    let mut one = fixture.watch("x://a", &client(1));
    let mut other = fixture.watch("x://a", &client(1));
    heard(&mut one).await;
    heard(&mut other).await;
    assert_eq!(fixture.server.count("resources/subscribe"), 1);
    let asked = &fixture.server.of("resources/subscribe")[0];
    assert_eq!(asked.body["params"], serde_json::json!({"uri": "x://a"}));
    let calls = &fixture.server.of("tools/call")[0];
    assert_eq!(session(asked), session(calls), "the session in which the client reads");
    drop(one);
    let third = fixture.watch("x://b", &client(1));
    fixture.server.saw("resources/subscribe", 2).await;
    assert_eq!(fixture.server.count("resources/unsubscribe"), 0);
    drop(other);
    fixture.server.saw("resources/unsubscribe", 1).await;
    assert_eq!(fixture.server.of("resources/unsubscribe")[0].body["params"]["uri"], "x://a");
    drop(third);
    fixture.server.saw("resources/unsubscribe", 2).await;
}

#[tokio::test]
async fn what_offers_no_subscriptions_cannot_be_watched() {
    let fixture = Fixture::start(legacy).await;
    fixture.up().await;
    assert!(fixture.set.watch(&fixture.name, "x://a", &client(1)).is_none());
    assert!(fixture.set.watch(&"other".parse().unwrap(), "x://a", &client(1)).is_none());
}

#[tokio::test]
async fn a_refused_subscription_is_asked_for_once() {
    let fixture = Fixture::start(|seen| match seen.method().as_str() {
        "resources/subscribe" if seen.body["params"]["uri"] == "x://no" => error(seen, 200, -32602, "no"),
        _ => subscribing(seen, &[Piece::Hold]),
    })
    .await;
    fixture.up().await;
    let _no = fixture.watch("x://no", &client(1));
    fixture.server.saw("resources/subscribe", 1).await;
    let yes = fixture.watch("x://yes", &client(1));
    fixture.server.saw("resources/subscribe", 2).await;
    drop(yes);
    fixture.server.saw("resources/unsubscribe", 1).await;
    assert_eq!(fixture.server.count("resources/subscribe"), 2);
}

#[tokio::test]
async fn after_a_lost_session_the_subscription_is_made_again_and_reported() {
    let life = Arc::new(AtomicUsize::new(0));
    let current = Arc::clone(&life);
    let fixture = Fixture::start(move |seen| {
        let mine = format!("life{}-", current.load(Ordering::Relaxed));
        let is_known = seen.header("mcp-session-id").is_some_and(|id| id.starts_with(&mine));
        match (seen.method().as_str(), subscribing(seen, &[Piece::Hold])) {
            ("initialize", Answer::Whole { body, .. }) => {
                super::server::json(200, String::from_utf8(body).unwrap())
                    .with("mcp-session-id", &format!("{mine}{}", seen.number))
            }
            ("server/discover", answer) => answer,
            _ if !is_known => empty(404),
            (_, answer) => answer,
        }
    })
    .await;
    fixture.up().await;
    let mut watching = fixture.watch("x://a", &client(1));
    fixture.server.saw("resources/subscribe", 1).await;
    fixture.result(call("echo", "{}")).await;
    assert!(watching.updated().now_or_never().is_none());
    life.store(1, Ordering::Relaxed);
    fixture.result(call("echo", "{}")).await;
    heard(&mut watching).await;
    let sessions: Vec<String> = fixture.server.of("resources/subscribe").iter().map(session).collect();
    assert_eq!(sessions.len(), 2);
    assert_ne!(sessions[0], sessions[1]);
    assert!(watching.updated().now_or_never().is_none(), "once");
}

/// A client that stands by, with what it can be asked.
fn able(number: u8) -> Caller {
    Caller { abilities: Abilities { roots: true, ..Abilities::default() }, ..client(number) }
}

#[tokio::test]
async fn c078_what_comes_on_the_stream_of_a_client_that_stands_by_reaches_it() {
    let fixture = Fixture::start(|seen| {
        let pieces = [
            event(r#"{"jsonrpc":"2.0","id":"r","method":"roots/list"}"#),
            event(r#"{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{}}"#),
            event(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#),
            event(
                r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"debug","data":1}}"#,
            ),
            Piece::Hold,
        ];
        let is_listing = seen.header("mcp-session-id") == Some("s1");
        subscribing(seen, if is_listing { &[Piece::Hold] } else { &pieces })
    })
    .await;
    fixture.up().await;
    let mut standing = fixture.set.stand(&able(1));
    assert_eq!(fixture.server.count("initialize"), 1, "standing by opens no session");
    fixture.result(Call { caller: able(1), ..call("echo", "{}") }).await;
    let Event::Inquiry(inquiry) = next(&mut standing).await else { panic!("a question comes first") };
    assert_eq!(inquiry.question, Question::Roots);
    inquiry.answerer.answer(Reaction::Result(r#"{"roots":[]}"#.to_owned()));
    assert!(matches!(next(&mut standing).await, Event::Log(LogLevel::Debug, _)));
    fixture.server.saw("POST", 3).await;
    for answer in fixture.server.of("POST") {
        match answer.body["id"].as_str() {
            Some("r") => assert_eq!(answer.body["result"]["roots"], serde_json::json!([])),
            Some("e") => assert_eq!(answer.body["error"]["code"], -32601),
            Some("p") => assert_eq!(answer.body["result"], serde_json::json!({})),
            other => panic!("{other:?}"),
        }
    }
    drop(standing);
    fixture.set.roots_changed(SessionKey([1; 16]));
    fixture.server.saw("notifications/roots/list_changed", 1).await;
    let told = &fixture.server.of("notifications/roots/list_changed")[0];
    assert_eq!(session(told), session(&fixture.server.of("tools/call")[0]));
}

#[tokio::test]
async fn a_question_on_the_stream_of_a_client_that_does_not_stand_by_is_refused_at_once() {
    let fixture = Fixture::start(|seen| {
        let is_listing = seen.header("mcp-session-id") == Some("s1");
        let pieces = [event(r#"{"jsonrpc":"2.0","id":"r","method":"roots/list"}"#), Piece::Hold];
        match seen.method().as_str() {
            "tools/call" => Answer::Stream {
                headers: Vec::new(),
                pieces: vec![
                    Piece::Wait(Duration::from_millis(900)),
                    event(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, seen.id())),
                ],
            },
            _ => subscribing(seen, if is_listing { &[Piece::Hold] } else { &pieces }),
        }
    })
    .await;
    fixture.up().await;
    fixture.result(Call { caller: able(1), ..call("echo", "{}") }).await;
    fixture.server.saw("POST", 1).await;
    assert_eq!(fixture.server.of("POST")[0].body["error"]["code"], -32601);
    assert_eq!(fixture.server.count("GET"), 2, "while a call runs that takes a while");
}

#[tokio::test]
async fn one_principal_has_at_most_eight_sets_of_abilities_at_once() {
    let fixture = Fixture::start(legacy).await;
    fixture.up().await;
    for number in 0..12 {
        let has = |bit: u32| number & (1 << bit) != 0;
        let abilities = Abilities {
            sampling: has(0),
            roots: has(1),
            elicitation_form: has(2),
            elicitation_url: has(3),
            ..Abilities::default()
        };
        let caller = Caller { session: None, abilities, ..client(1) };
        fixture.result(Call { caller, ..call("echo", "{}") }).await;
    }
    fixture.server.saw("DELETE", 4).await;
    let calls: Vec<String> = fixture.server.of("tools/call").iter().map(session).collect();
    let ends: BTreeSet<String> = fixture.server.of("DELETE").iter().map(session).collect();
    assert_eq!(ends, calls[..4].iter().cloned().collect(), "the least recently used ones");
}

/// A modern server with subscriptions; each stream is acknowledged and goes on with `pieces`.
fn announcing(seen: &Seen, pieces: impl IntoIterator<Item = Piece>) -> Answer {
    match seen.method().as_str() {
        "server/discover" => result(
            seen,
            r#"{"supportedVersions":["2026-07-28"],"capabilities":{"resources":{"subscribe":true}}}"#,
        ),
        "resources/list" => result(seen, r#"{"resources":[]}"#),
        "resources/templates/list" => result(seen, r#"{"resourceTemplates":[]}"#),
        "subscriptions/listen" => {
            let agreed = &seen.body["params"]["notifications"];
            let ack = format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"notifications":{agreed}}}}}"#
            );
            Answer::Stream { headers: Vec::new(), pieces: [event(&ack)].into_iter().chain(pieces).collect() }
        }
        _ => modern(seen),
    }
}

fn wanted(seen: &Seen) -> Vec<String> {
    let uris = seen.body["params"]["notifications"]["resourceSubscriptions"].as_array();
    uris.into_iter().flatten().map(|uri| uri.as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn one_stream_of_a_modern_upstream_is_for_all_that_is_watched() {
    let fixture = Fixture::start(|seen| {
        let uris = wanted(seen);
        let news = uris.iter().filter(|_| uris.len() == 2).map(|uri| updated(uri));
        announcing(seen, news.chain([Piece::Hold]))
    })
    .await;
    fixture.up().await;
    let mut one = fixture.watch("x://a", &client(1));
    fixture.server.saw("subscriptions/listen", 2).await;
    let mut other = fixture.watch("x://b", &client(2));
    let again = fixture.watch("x://b", &client(3));
    heard(&mut one).await;
    heard(&mut other).await;
    drop((other, again));
    fixture.server.saw("subscriptions/listen", 4).await;
    let asked: Vec<Vec<String>> = fixture.server.of("subscriptions/listen").iter().map(wanted).collect();
    assert_eq!(
        asked,
        [
            vec![],
            vec!["x://a".to_owned()],
            vec!["x://a".to_owned(), "x://b".to_owned()],
            vec!["x://a".to_owned()]
        ]
    );
    assert!(one.updated().now_or_never().is_none(), "another stream is no reason to report an update");
}

#[tokio::test]
async fn after_a_broken_stream_of_a_modern_upstream_an_update_is_reported_once() {
    let fixture = Fixture::start(|seen| {
        let is_first = seen.number < 6;
        announcing(seen, [if is_first { Piece::Wait(Duration::from_millis(50)) } else { Piece::Hold }])
    })
    .await;
    fixture.up().await;
    let mut watching = fixture.watch("x://a", &client(1));
    heard(&mut watching).await;
    assert!(watching.updated().now_or_never().is_none());
}
