//! HTTP towards an upstream.

use std::io::Write as _;

use super::server::{Answer, Seen, empty, error, json, result, text};
use super::support::{Fixture, call, echo, legacy, modern};
use crate::catalog::Presence;
use crate::config::Credential;
use crate::exchange::{Event, Reason};

#[tokio::test]
async fn c023_both_media_types_are_accepted_on_every_post() {
    let fixture = Fixture::start(|seen| {
        let accept = seen.header("accept").unwrap_or_default();
        let both = accept.contains("application/json") && accept.contains("text/event-stream");
        match seen.verb.as_str() {
            "POST" if !both => text(406, "not acceptable"),
            "GET" if !accept.contains("text/event-stream") => text(406, "not acceptable"),
            _ => legacy(seen),
        }
    })
    .await;
    fixture.up().await;
    fixture.result(call("echo", "{}")).await;
    assert!(fixture.server.seen().iter().all(|seen| !seen.headers.contains_key("accept-encoding")));
}

#[tokio::test]
async fn c031_a_redirect_to_the_same_place_keeps_method_and_body() {
    let fixture = Fixture::start(|seen| match seen.path.as_str() {
        "/mcp" => empty(307).with("location", "/mcp/"),
        _ => legacy(seen),
    })
    .await;
    fixture.up().await;
    let result = fixture.result(call("echo", r#"{"x":1}"#)).await;
    assert!(result.contains(r#"{\"x\":1}"#), "{result}");
}

#[tokio::test]
async fn c031_a_loop_of_redirects_ends() {
    let fixture = Fixture::start(|_| empty(308).with("location", "/mcp")).await;
    let down = fixture.stands(|presence| matches!(presence, Presence::Down { .. })).await;
    let Presence::Down { trouble, .. } = down else { panic!("{down:?}") };
    assert_eq!(trouble.label, "status");
    assert!(fixture.server.seen().len() <= 2 * 4, "three hops for each of two questions");
}

#[tokio::test]
async fn a_redirect_elsewhere_or_one_that_changes_the_method_is_not_followed() {
    let other = Fixture::start(legacy).await;
    let elsewhere = format!("http://127.0.0.1:{}/mcp", other.server.port);
    other.up().await;
    let before = other.server.seen().len();
    for (status, location) in [(307, elsewhere.as_str()), (302, "/other"), (301, "/other"), (303, "/other")] {
        let location = location.to_owned();
        let fixture = Fixture::start(move |_| empty(status).with("location", &location)).await;
        fixture.stands(|presence| matches!(presence, Presence::Down { .. })).await;
        assert!(fixture.server.seen().iter().all(|seen| seen.path == "/mcp"));
    }
    assert_eq!(other.server.seen().len(), before, "the credential goes nowhere else");
}

fn packed(answer: Answer, encoding: &str) -> Answer {
    let Answer::Whole { status, headers, body } = answer else { return answer };
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(&body).unwrap();
    Answer::Whole { status, headers, body: encoder.finish().unwrap() }.with("content-encoding", encoding)
}

#[tokio::test]
async fn c032_gzip_is_unpacked() {
    let fixture = Fixture::start(|seen| packed(legacy(seen), "gzip")).await;
    fixture.up().await;
    let long = format!(r#""{}""#, "abc".repeat(100_000));
    let result = fixture.result(call("echo", &long)).await;
    assert!(result.len() > 300_000);
}

#[tokio::test]
async fn another_encoding_is_not_mcp_and_a_bomb_is_cut() {
    let fixture = Fixture::start(|seen| match seen.body["params"]["arguments"].as_str() {
        Some("br") => echo(seen).with("content-encoding", "br"),
        Some("bomb") => packed(json(200, " ".repeat(4 << 20)), "gzip"),
        Some("large") => json(200, " ".repeat(4 << 20)),
        _ => modern(seen),
    })
    .await;
    fixture.up().await;
    assert_eq!(fixture.lost(call("echo", "\"br\"")).await.reason, Reason::NotMcp);
    assert_eq!(fixture.lost(call("echo", "\"bomb\"")).await.reason, Reason::TooLarge);
    assert_eq!(fixture.lost(call("echo", "\"large\"")).await.reason, Reason::TooLarge);
}

#[tokio::test]
async fn c112_what_is_not_mcp_is_a_failure_and_no_page_content() {
    fn script(seen: &Seen) -> Answer {
        match seen.body["params"]["arguments"].as_u64() {
            Some(200) => text(200, "<html>"),
            Some(404) => text(404, "<html>"),
            Some(502) => text(502, "<html>"),
            Some(503) => empty(503),
            Some(1) => json(200, "{\"no\":1}"),
            Some(2) => json(200, r#"{"jsonrpc":"2.0","id":7,"result":{}}"#),
            Some(3) => empty(202),
            Some(401) => empty(401),
            Some(5) => error(seen, 200, -32001, "bad token"),
            _ => legacy(seen),
        }
    }
    let fixture = Fixture::with(script, |up| up.credential_error_codes = vec![-32001]).await;
    fixture.up().await;
    fixture.result(call("echo", "{}")).await;
    for (arguments, reason, may_have_run) in [
        ("200", Reason::NotMcp, true),
        ("502", Reason::Status(502), true),
        ("503", Reason::Status(503), true),
        ("1", Reason::NotMcp, true),
        ("2", Reason::NotMcp, true),
        ("3", Reason::NotMcp, true),
        ("401", Reason::Credential, false),
        ("5", Reason::Credential, false),
    ] {
        let lost = fixture.lost(call("echo", arguments)).await;
        assert_eq!((lost.reason, lost.may_have_run), (reason, may_have_run), "{arguments}");
    }
}

#[tokio::test]
async fn an_error_of_the_upstream_passes_whole() {
    const ERRORS: [&str; 3] = [
        r#"{"code":-32602,"message":"x must be > 0","data":{"n":9007199254740993}}"#,
        r#"{"code":-32002,"message":"Resource not found","data":{"uri":"x://a"}}"#,
        r#"{"code":-32042,"message":"go there","data":{"elicitations":[{"mode":"url","elicitationId":"e","url":"https://h/","message":"m"}]}}"#,
    ];
    for (status, error, of_era) in ERRORS.into_iter().flat_map(|error| {
        let legacy = [200, 400, 422].map(|status| (status, error, legacy as fn(&Seen) -> Answer));
        legacy.into_iter().chain([(200, error, modern as fn(&Seen) -> Answer)])
    }) {
        let fixture = Fixture::start(move |seen| match seen.method().as_str() {
            "tools/call" => {
                json(status, format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, seen.id()))
            }
            _ => of_era(seen),
        })
        .await;
        fixture.up().await;
        match fixture.events(call("echo", "{}")).await.pop() {
            Some(Event::Error(found)) => assert_eq!(found.raw.get(), error, "{status}"),
            other => panic!("{status}: {other:?}"),
        }
        assert!(matches!(fixture.set.material().borrow().inventories[&fixture.name], Presence::Up { .. }));
    }
}

#[tokio::test]
async fn the_result_is_the_upstreams_bytes() {
    const RESULT: &str = r#"{ "b":1.0, "a":[1e3,0.10],"\u0061\u00e9":"\ud83d\ude00" }"#;
    let fixture = Fixture::start(|seen| match seen.method().as_str() {
        "tools/call" => result(seen, RESULT),
        _ => modern(seen),
    })
    .await;
    fixture.up().await;
    assert_eq!(fixture.result(call("echo", "{}")).await, RESULT);
}

#[tokio::test]
async fn the_credential_goes_along_and_a_dead_address_is_unreachable() {
    let fixture = Fixture::with(
        |seen| if seen.header("authorization") == Some("Bearer t0ken") { legacy(seen) } else { empty(401) },
        |up| up.credential = Credential::Bearer("t0ken".to_owned().into()),
    )
    .await;
    fixture.up().await;
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let fixture = Fixture::with(legacy, |up| {
        up.kind = crate::config::Kind::Http {
            urls: vec![format!("http://127.0.0.1:{closed}/mcp").parse().unwrap()],
        };
    })
    .await;
    fixture.stands(|presence| matches!(presence, Presence::Down { .. })).await;
    let lost = fixture.lost(call("echo", "{}")).await;
    assert_eq!((lost.reason, lost.may_have_run), (Reason::Unreachable, false));
    assert!(lost.since.is_some(), "it was so before this call");
    assert_eq!(fixture.set.status()[0].state, "down");
}
