//! The demonstration upstreams, called as the relay calls them.

use futures_util::{FutureExt, StreamExt};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Arguments, Demonstration, clock};
use crate::catalog::Checker;
use crate::config::Builtin;
use crate::exchange::{Call, Caller, Event, Failure};
use crate::principal::Principal;
use crate::protocol::{ListKind, Method};

fn asked(method: Method, name: &str, arguments: &Value, progress: bool) -> Call {
    let params = json!({ "name": name, "arguments": arguments }).to_string();
    Call {
        progress_token: progress.then(|| "\"p\"".to_owned()),
        ..Call::plain(method, name, params, Caller::local(Principal::open()))
    }
}

/// The only event of a call that is answered at once.
fn event(upstream: &Demonstration, call: Call) -> Event {
    let mut events = upstream.call(call).collect::<Vec<_>>().now_or_never().expect("it answers at once");
    assert_eq!(events.len(), 1);
    events.remove(0)
}

fn value(event: &Event) -> Value {
    match event {
        Event::Result(answer) => {
            assert!(answer.stateless);
            serde_json::from_slice(&answer.result).expect("JSON")
        }
        other => panic!("{other:?}"),
    }
}

fn call(upstream: &Demonstration, name: &str, arguments: &Value) -> Value {
    value(&event(upstream, asked(Method::ToolsCall, name, arguments, false)))
}

/// The call is refused with a text that holds this.
fn refused(upstream: &Demonstration, name: &str, arguments: &Value, text: &str) {
    let result = call(upstream, name, arguments);
    assert_eq!((&result["isError"], &result["resultType"]), (&json!(true), &json!("complete")));
    let said = result["content"][0]["text"].as_str().unwrap_or_default();
    assert!(said.contains(text), "{said}");
}

// Where time stands still, no machine is too slow to check a schema.
#[tokio::test(start_paused = true)]
async fn every_definition_is_published_and_every_output_schema_is_kept() {
    for (builtin, count) in [(Builtin::Clock, clock::TOOLS.len()), (Builtin::Notes, 3)] {
        let upstream = Demonstration::new(builtin);
        let inventory = upstream.inventory();
        assert_eq!(inventory.tools.len(), count);
        let mut checker = Checker::new();
        for tool in &inventory.tools {
            assert_eq!(checker.tool(&tool.raw).as_ref(), Ok(&**tool));
            assert!(tool.read_only_hint.is_some());
        }
        assert_eq!(checker.warnings(), Vec::<String>::new());
    }
}

#[test]
fn now_tells_the_time_in_a_zone() {
    let at: Timestamp = "2026-07-28T12:30:15Z".parse().expect("a moment");
    let check = |params: &str, text: &str| {
        let arguments = Arguments::of(params).expect("arguments");
        assert_eq!(clock::now(&arguments, at).map(|said| said.text).as_deref(), Ok(text));
    };
    check("{}", "2026-07-28T12:30:15+00:00 (Tuesday, UTC)");
    check(r#"{"arguments":{"zone":"Europe/Berlin"}}"#, "2026-07-28T14:30:15+02:00 (Tuesday, Europe/Berlin)");

    let clock = Demonstration::new(Builtin::Clock);
    let result = call(&clock, "now", &json!({ "zone": "Asia/Tokyo" }));
    assert_eq!((&result["resultType"], &result["isError"]), (&json!("complete"), &Value::Null));
    assert!(result["structuredContent"]["time"].as_str().is_some_and(|time| time.ends_with("+09:00")));
    refused(&clock, "now", &json!({ "zone": "Mars/Olympus" }), "must be an IANA time zone");
    refused(&clock, "now", &json!({ "zone": "../../etc/passwd" }), "must be an IANA time zone");
    refused(&clock, "now", &json!({ "zone": "x".repeat(9999) }), "must be an IANA time zone");
    refused(&clock, "now", &json!({ "zone": 7 }), "zone must be a string");
    refused(&clock, "now", &json!({ "tz": "UTC" }), "unknown argument \"tz\"; known are: zone");
    refused(&clock, "now", &json!([]), "arguments must be an object");
}

#[test]
fn convert_reads_times_with_and_without_a_date_or_an_offset() {
    let at: Timestamp = "2026-07-28T23:30:00Z".parse().expect("a moment");
    let check = |time: &str, from: &str, wanted: &str| {
        let params =
            json!({ "arguments": { "time": time, "from": from, "to": "Europe/Berlin" } }).to_string();
        let said = clock::convert(&Arguments::of(&params).expect("arguments"), at).map(|said| said.text);
        assert!(said.as_ref().is_ok_and(|text| text.starts_with(wanted)), "{time}: {said:?}");
    };
    check("2026-01-02T03:04", "UTC", "2026-01-02T04:04:00+01:00");
    check("2026-01-02T03:04:05+05:30", "UTC", "2026-01-01T22:34:05+01:00");
    check("10:00", "Asia/Tokyo", "2026-07-29T03:00:00+02:00");
    let clock = Demonstration::new(Builtin::Clock);
    refused(&clock, "convert", &json!({ "time": "soon", "to": "UTC" }), "time must look like");
    refused(&clock, "convert", &json!({ "to": "UTC" }), "time is required");
    refused(&clock, "convert", &json!({ "time": "10:00" }), "to is required");
}

#[tokio::test(start_paused = true)]
async fn timer_reports_progress_where_it_is_wanted() {
    let clock = Demonstration::new(Builtin::Clock);
    let start = tokio::time::Instant::now();
    let call = asked(Method::ToolsCall, "timer", &json!({ "seconds": 3 }), true);
    let events: Vec<Event> = clock.call(call).collect().await;
    assert_eq!((start.elapsed().as_secs(), events.len()), (3, 4));
    for (event, done) in events.iter().zip(1..=3) {
        let Event::Progress(params) = event else { panic!("{event:?}") };
        let wanted = json!({ "progressToken": 0, "progress": done, "total": 3, "message": format!("{} s left", 3 - done) });
        assert_eq!(serde_json::from_str::<Value>(params).expect("JSON"), wanted);
    }
    assert_eq!(value(&events[3])["structuredContent"], json!({ "seconds": 3 }));

    let call = asked(Method::ToolsCall, "timer", &json!({ "seconds": 60.0 }), false);
    let events: Vec<Event> = clock.call(call).collect().await;
    assert_eq!((start.elapsed().as_secs(), events.len()), (63, 1));
}

#[test]
fn timer_refuses_other_lengths() {
    let clock = Demonstration::new(Builtin::Clock);
    for seconds in [json!(0), json!(61), json!(-1), json!(1.5), json!("5"), Value::Null] {
        refused(&clock, "timer", &json!({ "seconds": seconds }), "whole number from 1 to 60");
    }
}

#[test]
fn notes_come_and_go_and_each_is_a_resource() {
    let notes = Demonstration::new(Builtin::Notes);
    let twin = notes.clone();
    let mut changes = notes.changes();
    let added = call(&notes, "add", &json!({ "text": "milk\nand bread" }));
    assert_eq!(added["structuredContent"], json!({ "id": "1", "uri": "note://1" }));
    assert!(changes.has_changed().expect("open"));
    changes.mark_unchanged();

    let listed = call(&twin, "list", &json!({}));
    assert_eq!(listed["structuredContent"], json!({ "notes": [{ "id": "1", "text": "milk\nand bread" }] }));
    assert!(!changes.has_changed().expect("open"));
    let inventory = notes.inventory();
    let resource: Value = serde_json::from_str(&inventory.resources[0].raw).expect("JSON");
    let wanted =
        json!({ "uri": "note://1", "name": "note-1", "title": "milk", "mimeType": "text/plain", "size": 14 });
    assert_eq!((resource, inventory.resources[0].local.as_str()), (wanted, "note://1"));
    let read = value(&event(&notes, asked(Method::ResourcesRead, "note://1", &Value::Null, false)));
    assert_eq!(read["contents"][0]["text"], json!("milk\nand bread"));

    call(&notes, "remove", &json!({ "id": "1" }));
    assert!(changes.has_changed().expect("open"));
    assert!(notes.inventory().resources.is_empty());
    refused(&notes, "remove", &json!({ "id": "1" }), "call list to see the ids");
    refused(&notes, "remove", &json!({ "id": 1 }), "id must be a string");
    assert_eq!(call(&notes, "add", &json!({ "text": "x" }))["structuredContent"]["id"], json!("2"));
}

#[test]
fn notes_have_limits() {
    let notes = Demonstration::new(Builtin::Notes);
    refused(&notes, "add", &json!({ "text": "" }), "1 to 4096 bytes");
    refused(&notes, "add", &json!({ "text": "x".repeat(4097) }), "1 to 4096 bytes");
    refused(&notes, "list", &json!({ "all": true }), "takes no arguments");
    for _ in 0..100 {
        call(&notes, "add", &json!({ "text": "x".repeat(4096) }));
    }
    let mut changes = notes.changes();
    changes.mark_unchanged();
    refused(&notes, "add", &json!({ "text": "x" }), "remove one first");
    assert!(!changes.has_changed().expect("open"));
}

#[test]
fn what_is_not_there_is_unknown_or_not_offered() {
    let notes = Demonstration::new(Builtin::Notes);
    let unknown = |method: Method, name: &str| match event(&notes, asked(method, name, &json!({}), false)) {
        Event::Failed(Failure::Unknown { kind, name }) => Some((kind, name)),
        _ => None,
    };
    assert_eq!(unknown(Method::ToolsCall, "now"), Some((ListKind::Tools, "now".to_owned())));
    for uri in ["note://1", "note://", "note://+1", "note:1", "file:///etc/passwd"] {
        assert_eq!(unknown(Method::ResourcesRead, uri), Some((ListKind::Resources, uri.to_owned())));
    }
    let prompt = event(&notes, asked(Method::PromptsGet, "x", &json!({}), false));
    assert!(matches!(prompt, Event::Failed(Failure::NotOffered("prompts/get"))));
}
