//! An upstream of 2024-11-05: HTTP+SSE.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use tokio::sync::mpsc;

use super::server::{Answer, Piece, Seen, empty, result, text};
use super::support::{Fixture, call, client, legacy};
use crate::catalog::Presence;
use crate::config::{Sharing, Transport};
use crate::exchange::{Call, Caller, Event, Reaction, Reason};
use crate::protocol::{Abilities, LogLevel, Revision};

/// A server with a stream for each connection.
#[derive(Clone, Default)]
struct Old {
    lines: Arc<Mutex<BTreeMap<usize, mpsc::Sender<String>>>>,
}

impl Old {
    /// Opens a stream for a GET, and says on the stream of its session what `speak` answers to a POST.
    fn answer(&self, seen: &Seen, speak: impl Fn(&Seen) -> Vec<String>) -> Answer {
        if seen.verb == "GET" {
            let (line, feed) = mpsc::channel(1000);
            line.try_send(format!("event: endpoint\ndata: /message?session={}\n\n", seen.number)).unwrap();
            self.lines.lock().unwrap().insert(seen.number, line);
            let feed = Piece::Feed(Arc::new(Mutex::new(Some(feed))));
            return Answer::Stream { headers: Vec::new(), pieces: vec![feed] };
        }
        let Some(number) = number(seen) else { return text(405, "Method Not Allowed") };
        let lines = self.lines.lock().unwrap();
        let Some(line) = lines.get(&number) else { return text(404, "no such session") };
        for message in speak(seen) {
            line.try_send(format!("event: message\ndata: {message}\n\n")).unwrap();
        }
        empty(202)
    }

    fn say(&self, number: usize, message: &str) {
        let lines = self.lines.lock().unwrap();
        lines[&number].try_send(format!("data: {message}\n\n")).unwrap();
    }

    fn hang_up(&self) {
        self.lines.lock().unwrap().clear();
    }
}

/// The session of a POST.
fn number(seen: &Seen) -> Option<usize> {
    seen.path.strip_prefix("/message?session=")?.parse().ok()
}

/// The body that the legacy server would answer with.
fn plain(seen: &Seen) -> Vec<String> {
    match legacy(seen) {
        Answer::Whole { body, .. } if !body.is_empty() => vec![String::from_utf8(body).unwrap()],
        _ => Vec::new(),
    }
}

fn of_tools(fixture: &Fixture) -> Vec<usize> {
    fixture.server.of("tools/call").iter().map(|seen| number(seen).unwrap()).collect()
}

#[tokio::test]
async fn c125_the_oldest_transport_is_found_after_all_others() {
    for refusal in [text(404, "Cannot POST /sse"), text(405, "Method Not Allowed"), text(400, "no")] {
        let old = Old::default();
        let fixture = Fixture::start(move |seen| match number(seen) {
            None if seen.verb == "POST" => refusal.clone(),
            _ => old.answer(seen, plain),
        })
        .await;
        let inventory = fixture.up().await;
        assert_eq!((inventory.revision, inventory.tools.len()), (Revision::V2025_11_25, 1));
        for caller in [client(1), client(1), client(2)] {
            let result = fixture.result(Call { caller, ..call("echo", r#"{"x":1}"#) }).await;
            assert!(result.contains(r#"{\"x\":1}"#), "{result}");
        }
        let sessions = of_tools(&fixture);
        assert!(sessions[0] == sessions[1] && sessions[1] != sessions[2], "{sessions:?}");
        assert_eq!(fixture.server.count("server/discover"), 1, "remembered");
        assert_eq!(fixture.server.count("GET"), 3, "one connection for each session");
        fixture.set.close().await;
        assert_eq!(fixture.server.count("DELETE"), 0);
    }
}

#[tokio::test]
async fn the_transport_can_be_pinned() {
    let old = Old::default();
    let script = move |seen: &Seen| old.answer(seen, plain);
    let fixture = Fixture::with(script.clone(), |up| up.transport = Transport::Sse).await;
    fixture.up().await;
    assert!(fixture.server.seen().iter().all(|seen| seen.path != "/mcp" || seen.verb == "GET"));
    let fixture = Fixture::with(script.clone(), |up| up.revision = Some(Revision::V2024_11_05)).await;
    fixture.up().await;
    assert_eq!(fixture.server.of("initialize")[1].body["params"]["protocolVersion"], "2024-11-05");
    let fixture = Fixture::with(script, |up| up.transport = Transport::StreamableHttp).await;
    fixture.stands(|presence| matches!(presence, Presence::Down { .. })).await;
    assert_eq!(fixture.server.count("GET"), 0);
}

#[tokio::test]
async fn nothing_is_posted_to_another_origin() {
    let other = Fixture::start(legacy).await;
    other.up().await;
    let before = other.server.seen().len();
    let elsewhere = format!("http://127.0.0.1:{}/mcp", other.server.port);
    for first in [format!("event: endpoint\ndata: {elsewhere}\n\n"), "data: {}\n\n".to_owned(), String::new()]
    {
        let fixture = Fixture::start(move |seen| match seen.verb.as_str() {
            "GET" => {
                let pieces = vec![Piece::Text(format!(": hi\n\n{first}"))];
                Answer::Stream { headers: Vec::new(), pieces }
            }
            _ => text(405, "no"),
        })
        .await;
        let down = fixture.stands(|presence| matches!(presence, Presence::Down { .. })).await;
        let Presence::Down { trouble, .. } = down else { panic!("{down:?}") };
        assert_eq!(trouble.label, "status", "that of the POST");
    }
    assert_eq!(other.server.seen().len(), before);
}

#[tokio::test]
async fn every_call_on_a_line_gets_its_own_answer_and_progress() {
    let old = Old::default();
    let fixture = Fixture::start(move |seen| {
        old.answer(seen, |seen| {
            let progress = format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{},"progress":{}}}}}"#,
                seen.id(),
                seen.body["params"]["arguments"]["n"]
            );
            let is_call = seen.method() == "tools/call";
            is_call.then_some(progress).into_iter().chain(plain(seen)).collect()
        })
    })
    .await;
    fixture.up().await;
    let calls = (0..30).map(|n| {
        let asked = Call { progress_token: Some("1".to_owned()), ..call("echo", &format!(r#"{{"n":{n}}}"#)) };
        fixture.events(asked).map(move |events| (n, events))
    });
    for (n, events) in futures_util::future::join_all(calls).await {
        let [Event::Progress(progress), Event::Result(answer)] = &events[..] else { panic!("{events:?}") };
        assert!(progress.ends_with(&format!(r#""progress":{n}}}"#)), "{n}: {progress}");
        let wanted = format!(r#"{{\"n\":{n}}}"#);
        assert!(std::str::from_utf8(&answer.result).unwrap().contains(&wanted), "{n}");
    }
    assert_eq!(fixture.server.count("GET"), 2, "Weir's own line and the client's");
}

#[tokio::test]
async fn a_line_that_breaks_ends_its_calls_and_the_next_call_opens_another() {
    let old = Old::default();
    let script = old.clone();
    let fixture = Fixture::start(move |seen| {
        script.answer(seen, |seen| match seen.body["params"]["arguments"].as_str() {
            Some("hang") => Vec::new(),
            _ => plain(seen),
        })
    })
    .await;
    fixture.up().await;
    fixture.result(call("echo", "{}")).await;
    let hanging = fixture.lost(call("echo", "\"hang\""));
    let (lost, ()) = tokio::join!(hanging, async {
        fixture.server.saw("tools/call", 2).await;
        old.hang_up();
    });
    assert_eq!((lost.reason, lost.may_have_run), (Reason::Ended, true));
    fixture.result(call("echo", "{}")).await;
    let sessions = of_tools(&fixture);
    assert_ne!(sessions[0], sessions[2]);
    fixture.server.saw("tools/list", 2).await;
}

#[tokio::test]
async fn an_answer_is_taken_before_and_without_that_to_its_post() {
    let old = Old::default();
    let script = old.clone();
    let fixture = Fixture::start(move |seen| match (seen.method().as_str(), script.answer(seen, plain)) {
        ("tools/call", Answer::Whole { status: 202, .. }) => Answer::Silence,
        (_, answer) => answer,
    })
    .await;
    fixture.up().await;
    fixture.result(call("echo", "{}")).await;
}

#[tokio::test]
async fn c003_a_call_that_a_forgotten_session_refuses_is_sent_once_more() {
    let old = Old::default();
    let script = old.clone();
    let fixture = Fixture::start(move |seen| match number(seen) {
        // Behind the line that it keeps open, the server knows the session no more.
        Some(of) if of < 10 && seen.body["params"]["arguments"] == "again" => text(404, "no such session"),
        _ => script.answer(seen, plain),
    })
    .await;
    fixture.up().await;
    fixture.result(call("echo", "{}")).await;
    fixture.result(call("echo", "\"again\"")).await;
    let sessions = of_tools(&fixture);
    assert_eq!((sessions[0], sessions.len()), (sessions[1], 3));
    assert_ne!(sessions[1], sessions[2]);
}

fn able() -> Caller {
    Caller { abilities: Abilities { roots: true, ..Abilities::default() }, ..client(1) }
}

#[tokio::test]
async fn questions_and_log_messages_on_a_line_belong_to_the_call_that_began_last() {
    const LOG: &str =
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"d"}}"#;
    const ROOTS: &str = r#"{"jsonrpc":"2.0","id":"r","method":"roots/list"}"#;
    let old = Old::default();
    let script = old.clone();
    let fixture = Fixture::start(move |seen| {
        script.answer(seen, |seen| match seen.body["params"]["arguments"].as_str() {
            Some("ask") => {
                [r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#, LOG, ROOTS].map(str::to_owned).into()
            }
            _ => plain(seen),
        })
    })
    .await;
    fixture.up().await;
    let mut reply = fixture.link.call(Call {
        caller: able(),
        log_level: Some(LogLevel::Info),
        ..call("echo", "\"ask\"")
    });
    assert!(matches!(reply.next().await, Some(Event::Log(LogLevel::Error, _))));
    let Some(Event::Inquiry(inquiry)) = reply.next().await else { panic!("no question") };
    inquiry.answerer.answer(Reaction::Result(r#"{"roots":[]}"#.to_owned()));
    fixture.server.saw("POST", 2).await;
    let line = of_tools(&fixture)[0];
    for answer in fixture.server.of("POST") {
        assert!(answer.body["result"].is_object() && number(&answer) == Some(line), "{answer:?}");
    }
    drop(reply);
    fixture.server.saw("notifications/cancelled", 1).await;
    // Without a call: refused, unless the client stands by.
    old.say(line, ROOTS);
    fixture.server.saw("POST", 3).await;
    assert_eq!(fixture.server.of("POST")[2].body["error"]["code"], -32601);
    let mut standing = fixture.set.stand(&able());
    let heard = standing.next();
    let said = async {
        loop {
            old.say(line, LOG);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let heard = tokio::select! {
        heard = heard => heard,
        () = said => unreachable!("it goes on"),
        () = tokio::time::sleep(Duration::from_secs(10)) => panic!("nothing is heard"),
    };
    assert!(matches!(heard, (_, Event::Log(LogLevel::Error, _))));
}

#[tokio::test]
async fn what_comes_on_a_shared_line_for_no_call_reaches_nobody() {
    let old = Old::default();
    let fixture = Fixture::with(
        move |seen| {
            old.answer(seen, |seen| {
                let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error"}}"#;
                let ask = r#"{"jsonrpc":"2.0","id":"r","method":"roots/list"}"#;
                let is_call = seen.method() == "tools/call";
                let before = is_call.then(|| [log, ask].map(str::to_owned)).into_iter().flatten();
                before.chain(plain(seen)).collect()
            })
        },
        |up| up.sessions = Sharing::Shared,
    )
    .await;
    fixture.up().await;
    let asked = Call { caller: able(), log_level: Some(LogLevel::Debug), ..call("echo", "{}") };
    let events = fixture.events(asked).await;
    assert!(matches!(&events[..], [Event::Result(_)]), "{events:?}");
    fixture.server.saw("POST", 1).await;
    assert_eq!(fixture.server.of("POST").pop().unwrap().body["error"]["code"], -32601);
}

#[tokio::test]
async fn updates_and_changed_lists_come_on_the_line() {
    let old = Old::default();
    let script = old.clone();
    let fixture = Fixture::start(move |seen| {
        script.answer(seen, |seen| match seen.method().as_str() {
            "initialize" => {
                let answer = r#"{"protocolVersion":"2024-11-05","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true}}}"#;
                body(result(seen, answer))
            }
            "resources/subscribe" => body(result(seen, "{}")),
            _ => plain(seen),
        })
    })
    .await;
    fixture.up().await;
    let mut watching = fixture.set.watch(&fixture.name, "x://a", &client(1)).unwrap();
    fixture.server.saw("resources/subscribe", 1).await;
    let line = number(&fixture.server.of("resources/subscribe")[0]).unwrap();
    old.say(line, r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x://a"}}"#);
    tokio::time::timeout(Duration::from_secs(10), watching.updated()).await.expect("an update");
    assert!(watching.updated().now_or_never().is_none());
    old.hang_up();
    tokio::time::timeout(Duration::from_secs(10), watching.updated()).await.expect("after a reconnect");
    let line = number(&fixture.server.of("resources/subscribe")[1]).unwrap();
    let before = fixture.server.count("tools/list");
    old.say(line, r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    fixture.server.saw("tools/list", before + 1).await;
}

fn body(answer: Answer) -> Vec<String> {
    match answer {
        Answer::Whole { body, .. } => vec![String::from_utf8(body).unwrap()],
        other => panic!("{other:?}"),
    }
}
