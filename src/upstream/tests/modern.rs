//! A stateless upstream.

use std::time::Duration;

use futures_util::StreamExt as _;

use super::server::{Answer, Piece, Seen, empty, error, events, json, result};
use super::support::{Fixture, call, modern};
use crate::config::ToolTimeout;
use crate::exchange::{Call, Event, Reason};
use crate::protocol::{ListKind, LogLevel, Method, headers};

/// Refuses every header that does not fit its body, as the specification asks of servers.
fn strict(seen: &Seen) -> Answer {
    let params = &seen.body["params"];
    let meta = &params["_meta"];
    let decoded = |name: &str| seen.header(name).map(|value| headers::decode(value.as_bytes()).unwrap());
    let name = params["name"].as_str().or(params["uri"].as_str()).map(str::to_owned);
    let fits = seen.header("mcp-method") == Some(&seen.method())
        && decoded("mcp-name") == name
        && seen.header("mcp-protocol-version") == meta["io.modelcontextprotocol/protocolVersion"].as_str()
        && meta["io.modelcontextprotocol/clientInfo"]["name"] == "weir"
        && meta["io.modelcontextprotocol/clientCapabilities"].is_object()
        && seen.header("mcp-session-id").is_none();
    if fits { modern(seen) } else { error(seen, 400, -32020, "header mismatch") }
}

fn plain(method: Method, params: &str) -> Call {
    Call { method, params: params.to_owned(), ..call("x", "{}") }
}

#[tokio::test]
async fn c121_headers_are_computed_from_the_body_that_goes_out() {
    let fixture = Fixture::start(|seen| match seen.method().as_str() {
        "resources/read" | "prompts/get" if !matches!(strict(seen), Answer::Whole { status: 400, .. }) => {
            result(seen, r#"{"contents":[]}"#)
        }
        _ => strict(seen),
    })
    .await;
    fixture.up().await;
    for tool in ["echo", "café", " padded ", "=?base64?eA==?="] {
        fixture.result(call(tool, "{}")).await;
    }
    fixture.result(plain(Method::ResourcesRead, r#"{"uri":"file:///日本.txt"}"#)).await;
    fixture.result(plain(Method::PromptsGet, r#"{"name":"p","arguments":{}}"#)).await;
    fixture.result(plain(Method::List(ListKind::Tools), "{}")).await;
    let mut mirrored = call("echo", "{}");
    mirrored.mirrored = vec![
        ("mcp-param-region".to_owned(), "us-west1".to_owned()),
        ("authorization".to_owned(), "stolen".to_owned()),
    ];
    fixture.result(mirrored).await;
    let last = fixture.server.seen().pop().unwrap();
    assert_eq!(last.header("mcp-param-region"), Some("us-west1"));
    assert_eq!(last.header("authorization"), None);
    assert!(fixture.server.seen().iter().all(|seen| seen.headers.values().all(|value| !value.contains('|'))));
}

#[tokio::test]
async fn the_params_pass_byte_for_byte_beside_weirs_own_members() {
    let fixture = Fixture::start(modern).await;
    fixture.up().await;
    let mut call = call("echo", r#"{"n":9007199254740993,"b":1.0}"#);
    call.params =
        r#"{"name":"echo","_meta":{"x/y":[1],"traceparent":"t"},"arguments":{"n":1},"more":null}"#.to_owned();
    call.log_level = Some(LogLevel::Warning);
    call.log_asked = true;
    call.progress_token = Some("5".to_owned());
    fixture.result(call).await;
    let seen = fixture.server.seen().pop().unwrap();
    let params = &seen.body["params"];
    assert_eq!(params["_meta"]["x/y"][0], 1);
    assert_eq!(params["_meta"]["io.modelcontextprotocol/logLevel"], "warning");
    assert_eq!(params["_meta"]["progressToken"], seen.body["id"]);
    assert!(params["more"].is_null() && params["arguments"]["n"] == 1);
}

#[tokio::test]
async fn events_come_in_order_and_foreign_ones_are_dropped() {
    let fixture = Fixture::start(|seen| match seen.method().as_str() {
        "tools/call" => {
            let id = seen.id();
            let progress = |token: &str, n: u32| {
                format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{n},"x":1.0}}}}"#)
            };
            let log = |level: &str| {
                format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"{level}","data":"d"}}}}"#)
            };
            let answer = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#);
            events(
                &[
                    &progress(&id, 1),
                    &progress("\"invented\"", 2),
                    "garbage",
                    &log("debug"),
                    &log("error"),
                    r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}"#,
                    r#"{"jsonrpc":"2.0","method":"notifications/unknown"}"#,
                    &answer("99"),
                    &progress(&id, 3),
                    &answer(&id),
                    &answer(&id),
                ],
                None,
            )
        }
        _ => modern(seen),
    })
    .await;
    fixture.up().await;
    let mut call = call("echo", "{}");
    call.progress_token = Some("\"tok\"".to_owned());
    call.log_level = Some(LogLevel::Info);
    call.log_asked = true;
    let found: Vec<String> = fixture
        .events(call)
        .await
        .iter()
        .map(|event| match event {
            Event::Progress(params) => format!("progress {}", params.split(r#""progress":"#).nth(1).unwrap()),
            Event::Log(level, _) => format!("log {}", level.as_str()),
            Event::Result(answer) => format!("result {}", answer.stateless),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(found, [r#"progress 1,"x":1.0}"#, "log error", r#"progress 3,"x":1.0}"#, "result true"]);
}

#[tokio::test]
async fn c073_without_a_token_there_is_none_and_no_progress() {
    let fixture = Fixture::start(|seen| match seen.method().as_str() {
        "tools/call" => {
            assert!(seen.body["params"]["_meta"]["progressToken"].is_null());
            let progress = format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{},"progress":1}}}}"#,
                seen.id()
            );
            let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, seen.id());
            events(&[&progress, &answer], None)
        }
        _ => modern(seen),
    })
    .await;
    fixture.up().await;
    assert_eq!(fixture.events(call("echo", "{}")).await.len(), 1);
}

#[tokio::test]
async fn c114_a_hung_call_times_out_and_its_stream_is_closed() {
    for hung in [Answer::Silence, events(&[], Some(Piece::Hold))] {
        let fixture = Fixture::with(
            move |seen| match seen.method().as_str() {
                "tools/call" => hung.clone(),
                _ => modern(seen),
            },
            |up| up.timeout.call = Duration::from_millis(150),
        )
        .await;
        fixture.up().await;
        let mut read = call("echo", "{}");
        read.repeatable = true;
        let lost = fixture.lost(read).await;
        assert_eq!((lost.reason, lost.may_have_run), (Reason::TimedOut, true));
        assert_eq!(fixture.server.count("tools/call"), 1, "a time-out is never repeated");
        assert_eq!(
            fixture.server.count("notifications/cancelled"),
            0,
            "the closed stream is the cancellation"
        );
    }
}

#[tokio::test]
async fn progress_extends_a_call_up_to_its_end() {
    let fixture = Fixture::with(
        |seen| match seen.method().as_str() {
            "tools/call" => {
                let progress = format!(
                    "data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":{},\"progress\":1}}}}\n\n",
                    seen.id()
                );
                let step = [Piece::Text(progress), Piece::Wait(Duration::from_millis(120))];
                Answer::Stream { headers: Vec::new(), pieces: step.iter().cycle().take(40).cloned().collect() }
            }
            _ => modern(seen),
        },
        |up| {
            up.timeout.call = Duration::from_millis(300);
            up.timeout.call_max = Duration::from_millis(900);
        },
    )
    .await;
    fixture.up().await;
    let mut call = call("echo", "{}");
    call.progress_token = Some("1".to_owned());
    let mut found = fixture.events(call).await;
    assert!(matches!(found.pop(), Some(Event::Failed(_))));
    assert!(found.len() >= 5, "longer than `call` alone: {}", found.len());
}

#[tokio::test]
async fn c118_a_call_that_may_have_run_is_not_sent_again_unless_it_may_run_twice() {
    let cuts: [fn(&Seen) -> Answer; 3] = [
        |_| Answer::Cut,
        |_| Answer::Stream { headers: Vec::new(), pieces: vec![Piece::Cut] },
        |_| events(&[r#"{"jsonrpc":"2.0","method":"notifications/unknown"}"#], None),
    ];
    for cut in cuts {
        let fixture = Fixture::start(move |seen| match seen.method().as_str() {
            "tools/call" => cut(seen),
            _ => modern(seen),
        })
        .await;
        fixture.up().await;
        let lost = fixture.lost(call("echo", "{}")).await;
        assert_eq!((lost.reason, lost.may_have_run), (Reason::Ended, true));
        assert_eq!(fixture.server.count("tools/call"), 1);
        let mut read = call("echo", "{}");
        read.repeatable = true;
        fixture.lost(read).await;
        assert_eq!(fixture.server.count("tools/call"), 3, "once more, and not again");
    }
}

#[tokio::test]
async fn stale_headers_are_cured_by_listing_again() {
    let fixture = Fixture::start(|seen| match seen.method().as_str() {
        "tools/call" if seen.body["params"]["arguments"] == "never" || seen.number < 4 => {
            error(seen, 400, -32020, "Header mismatch")
        }
        _ => modern(seen),
    })
    .await;
    fixture.up().await;
    let before = fixture.server.count("tools/list");
    fixture.result(call("echo", "{}")).await;
    assert_eq!(fixture.server.count("tools/call"), 2);
    assert!(fixture.server.count("tools/list") > before);
    let lost = fixture.lost(call("echo", "\"never\"")).await;
    assert_eq!(lost.reason, Reason::NotMcp);
    assert_eq!(fixture.server.count("tools/call"), 4);
}

#[tokio::test]
async fn a_header_that_became_required_is_written_on_the_repetition() {
    let fixture = Fixture::start(|seen| match (seen.method().as_str(), seen.number) {
        ("tools/list", 3..) => {
            let region = r#"{"type":"string","x-mcp-header":"Region"}"#;
            let schema = format!(r#"{{"type":"object","properties":{{"region":{region}}}}}"#);
            result(seen, &format!(r#"{{"tools":[{{"name":"echo","inputSchema":{schema}}}]}}"#))
        }
        ("tools/call", _) if seen.header("mcp-param-region") != Some("=?base64?w7xiZXI=?=") => {
            error(seen, 400, -32020, "Mcp-Param-Region is missing")
        }
        _ => modern(seen),
    })
    .await;
    fixture.up().await;
    let mut asked = call("echo", r#"{"region":"über"}"#);
    asked.mirrored = vec![("mcp-param-other".to_owned(), "stays".to_owned())];
    fixture.result(asked).await;
    let last = fixture.server.of("tools/call").pop().unwrap();
    assert_eq!(last.header("mcp-param-other"), Some("stays"));
}

#[tokio::test]
async fn a_tool_or_a_call_may_have_a_time_of_its_own() {
    let fixture = Fixture::with(
        |seen| match seen.method().as_str() {
            "tools/call" => Answer::Silence,
            _ => modern(seen),
        },
        |up| {
            let slow = globset::GlobSetBuilder::new().add(globset::Glob::new("quick*").unwrap()).build();
            up.timeout.tools = vec![ToolTimeout {
                glob: "slow".to_owned(),
                tools: slow.unwrap(),
                limit: Duration::from_millis(50),
            }];
        },
    )
    .await;
    fixture.up().await;
    assert_eq!(fixture.lost(call("quick-one", "{}")).await.reason, Reason::TimedOut);
    let short = Call { timeout: Some(Duration::from_millis(50)), ..call("other", "{}") };
    assert_eq!(fixture.lost(short).await.reason, Reason::TimedOut);
}

#[tokio::test]
async fn c127_questions_are_told_apart_from_other_results() {
    let fixture = Fixture::start(|seen| match seen.method().as_str() {
        "tools/call" if seen.body["params"]["arguments"] == "ask" => {
            result(seen, r#"{"resultType":"input_required","requestState":"s"}"#)
        }
        "tools/call" => result(seen, r#"{"resultType":"other","text":"input_required"}"#),
        _ => modern(seen),
    })
    .await;
    fixture.up().await;
    let asked = fixture.events(call("echo", "\"ask\"")).await.pop();
    assert!(matches!(asked, Some(Event::Asks(_))), "{asked:?}");
    assert!(fixture.result(call("echo", "{}")).await.contains("other"));
}

/// A modern server with a listen stream; `after` is what follows the acknowledgement.
fn listening(seen: &Seen, after: Vec<Piece>) -> Answer {
    match seen.method().as_str() {
        "server/discover" => result(
            seen,
            r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}}}"#,
        ),
        "subscriptions/listen" => {
            let ack = format!(
                "data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{{\"_meta\":{{\"io.modelcontextprotocol/subscriptionId\":{}}},\"notifications\":{{\"toolsListChanged\":true}}}}}}\n\n",
                seen.id()
            );
            let pieces = std::iter::once(Piece::Text(ack)).chain(after).collect();
            Answer::Stream { headers: Vec::new(), pieces }
        }
        _ => modern(seen),
    }
}

const CHANGED: &str = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n";

#[tokio::test]
async fn an_announced_change_is_listed_at_once() {
    let fixture = Fixture::start(|seen| match seen.method().as_str() {
        "tools/list" if seen.number > 2 => {
            result(seen, r#"{"tools":[{"name":"a","inputSchema":{"type":"object"}},{"name":"b","inputSchema":{"type":"object"}}]}"#)
        }
        _ => {
            let burst = vec![Piece::Text(CHANGED.to_owned()); 20];
            let wait = Piece::Wait(Duration::from_millis(200));
            listening(seen, std::iter::once(wait).chain(burst).chain([Piece::Hold]).collect())
        }
    })
    .await;
    fixture.up().await;
    let asked = &fixture.server.of("subscriptions/listen")[0].body["params"]["notifications"];
    assert_eq!(asked, &serde_json::json!({"toolsListChanged": true}), "the lists that it has");
    fixture.stands(|presence| presence.inventory().is_some_and(|i| i.tools.len() == 2)).await;
    assert_eq!(fixture.server.count("tools/list"), 2, "twenty notices are one listing");
    assert_eq!(fixture.server.count("subscriptions/listen"), 1);
}

#[tokio::test]
async fn a_stream_that_ends_is_opened_again_and_what_was_missed_is_listed() {
    let fixture = Fixture::start(|seen| {
        let hold = if seen.number > 3 { vec![Piece::Hold] } else { Vec::new() };
        listening(seen, hold)
    })
    .await;
    fixture.up().await;
    fixture.server.saw("subscriptions/listen", 2).await;
    fixture.server.saw("tools/list", 2).await;
}

#[tokio::test]
async fn a_stream_that_cannot_be_opened_now_is_tried_again() {
    let troubles: [fn(&Seen) -> Answer; 5] = [
        |seen| error(seen, 200, -32603, "busy"),
        |seen| error(seen, 400, -32603, "busy"),
        |seen| json(200, format!("{{\"id\":{}", seen.id())),
        |_| events(&["no"], None),
        |_| empty(405),
    ];
    for trouble in troubles {
        let fixture = Fixture::start(move |seen| match seen.method().as_str() {
            "subscriptions/listen" if seen.number < 4 => trouble(seen),
            _ => listening(seen, vec![Piece::Hold]),
        })
        .await;
        fixture.up().await;
        fixture.server.saw("subscriptions/listen", 2).await;
    }
    let fixture = Fixture::start(|seen| match seen.method().as_str() {
        "subscriptions/listen" => error(seen, 200, -32601, "Method not found"),
        _ => listening(seen, Vec::new()),
    })
    .await;
    fixture.up().await;
    fixture.server.saw("subscriptions/listen", 1).await;
}

#[tokio::test]
async fn without_a_stream_an_upstream_is_listed_again_from_time_to_time() {
    let fixture = Fixture::with(modern, |up| up.refresh = Duration::from_millis(60)).await;
    fixture.up().await;
    fixture.server.saw("tools/list", 3).await;
    assert_eq!(fixture.server.count("subscriptions/listen"), 1, "asked once");
}

#[tokio::test]
async fn dropping_a_reply_closes_the_stream_and_frees_its_place() {
    let fixture = Fixture::with(
        |seen| match seen.method().as_str() {
            "tools/call" if seen.body["params"]["arguments"] == "hang" => Answer::Silence,
            _ => modern(seen),
        },
        |up| up.concurrency.calls = Some(1),
    )
    .await;
    fixture.up().await;
    let reply = fixture.link.call(call("echo", "\"hang\""));
    tokio::select! {
        _ = reply.into_future() => panic!("it hangs"),
        () = fixture.server.saw("tools/call", 1) => {}
    }
    fixture.result(call("echo", "{}")).await;
}
