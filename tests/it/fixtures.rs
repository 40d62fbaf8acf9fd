//! Proof of the fixtures: the clients of the tests talk to the fake servers directly.

use std::time::Duration;

use crate::support::{Ask, Client, Fake, Gone, Side, Upstream, eras, eventually, json, schema, tool};

const SOON: Duration = Duration::from_secs(5);

fn direct(fake: Fake, side: Side) -> (Upstream, Client) {
    let upstream = fake.start();
    let client = Client::ready(upstream.address(), side);
    (upstream, client)
}

eras! {
    a_client_lists_and_calls, pages_are_followed, progress_comes_as_it_is_written, changes_are_announced,
    the_log_level_is_obeyed, answers_may_be_streams, answers_may_be_compressed, a_server_stops_and_starts_again,
    a_script_may_cut_an_answer,
}

fn a_client_lists_and_calls(side: Side) {
    let (upstream, client) = direct(Fake::of(side), side);
    assert_eq!(client.names(), ["echo", "slow", "incr", "steps", "big", "fail", "chatty"]);
    let answer = client.call("echo", "{\"n\":9007199254740993}");
    assert_eq!(answer.raw(&["result", "structuredContent", "n"]), Some("9007199254740993"));
    assert_eq!(client.call("nope", "{}").code(), -32602);
    assert_eq!(client.call("incr", "{}").said(), "1");
    assert_eq!(client.call("incr", "{}").said(), "2");
    assert_eq!(client.call("big", "{\"n\":100000}").said().len(), 100_000);
    assert!(client.call("fail", "{}").is_failure());
    assert_eq!(upstream.violations(), Vec::<String>::new());
    assert_eq!(upstream.calls("incr").len(), 2);
    assert_eq!(upstream.calls("echo")[0].status, Some(200));
}

fn pages_are_followed(side: Side) {
    let tools: Vec<String> = (0..25).map(|n| tool(&format!("t{n}"))).collect();
    let (upstream, client) = direct(Fake::of(side).tools(tools).page(10), side);
    assert_eq!(client.names().len(), 25);
    assert_eq!(upstream.seen("tools/list").len(), 3);
}

fn progress_comes_as_it_is_written(side: Side) {
    let (_upstream, client) = direct(Fake::of(side), side);
    let answer = client.ask(Ask::call("steps", "{\"ms\":200}").progress("\"p\""));
    assert_eq!(answer.before.len(), 3);
    let times: Vec<_> = answer.before.iter().map(|message| message.at).collect();
    assert!(times[2] - times[0] >= Duration::from_millis(100), "they came apart");
    assert_eq!(answer.before[0].raw(&["params", "progressToken"]), Some("\"p\""));
}

fn changes_are_announced(side: Side) {
    let (upstream, client) = direct(Fake::of(side), side);
    let mut stream = client.listen();
    eventually!(upstream.streams() == 1);
    upstream.set_tools([tool("new1")]);
    upstream.announce();
    let message = stream.next(SOON).expect("the announcement");
    assert_eq!(message.method(), "notifications/tools/list_changed");
    assert_eq!(client.names(), ["new1"]);
    upstream.close_streams();
    assert_eq!(stream.ended(SOON), Some(true));
}

fn the_log_level_is_obeyed(side: Side) {
    let (_upstream, client) = direct(Fake::of(side), side);
    let ask = Ask::call("chatty", "{\"marker\":7}");
    let ask = match side {
        Side::Legacy => {
            client.ask(Ask::new("logging/setLevel").params("{\"level\":\"warning\"}")).result();
            ask
        }
        Side::Modern => ask.meta("io.modelcontextprotocol/logLevel", "\"warning\""),
    };
    assert_eq!(client.ask(ask).before.len(), 2);
}

fn answers_may_be_streams(side: Side) {
    let (_upstream, client) = direct(Fake::of(side).in_streams(), side);
    let running = client.start(Ask::call("echo", "{}"));
    assert!(running.is_stream());
    assert_eq!(running.answer().said(), "{}");
}

fn answers_may_be_compressed(side: Side) {
    let (_upstream, client) = direct(Fake::of(side).compressing(), side);
    assert_eq!(client.call("echo", "{}").header("content-encoding"), None);
    let asked = Ask::call("echo", "{}").header("Accept-Encoding", "gzip");
    let response = client.request(&asked).send();
    assert_eq!(response.header("content-encoding"), Some("gzip"));
}

fn a_server_stops_and_starts_again(side: Side) {
    let (upstream, client) = direct(Fake::of(side), side);
    assert_eq!(client.call("echo", "{}").status(), 200);
    upstream.stop();
    assert!(client.request(&Ask::call("echo", "{}")).try_send().is_none());
    upstream.restart();
    let status = client.call("echo", "{}").status();
    assert_eq!(status, if side == Side::Legacy { 404 } else { 200 });
}

fn a_script_may_cut_an_answer(side: Side) {
    let fake = Fake::of(side).script("tools/call echo", |_, wire| {
        wire.cut(1, Duration::ZERO);
        wire.result("{\"content\":[{\"type\":\"text\",\"text\":\"天気😀\"}]}");
    });
    let (_upstream, client) = direct(fake, side);
    assert_eq!(client.call("echo", "{}").said(), "天気😀");
}

#[test]
fn a_strict_legacy_server_refuses_what_deviates() {
    let upstream = Fake::legacy().start();
    let client = Client::new(upstream.address(), Side::Legacy);
    assert_eq!(client.ask(Ask::new("tools/list")).status(), 400);
    let client = client.with_session("unknown");
    assert_eq!(client.ask(Ask::new("tools/list")).status(), 404);
    assert_eq!(client.initialize().status(), 400, "a session id on initialize");
    let fresh = Client::new(upstream.address(), Side::Legacy);
    let session = fresh.initialize().header("mcp-session-id").map(str::to_owned);
    let fresh = fresh.with_session(&session.expect("an id"));
    assert_eq!(fresh.ask(Ask::new("tools/list")).code(), -32600, "before notifications/initialized");
    let ready = Client::ready(upstream.address(), Side::Legacy);
    assert_eq!(ready.ask(Ask::new("ping").header("Host", "gw.example")).status(), 421);
    assert_eq!(ready.ask(Ask::new("ping").header("Accept", "application/json")).status(), 406);
    assert_eq!(ready.ask(Ask::new("ping").header("MCP-Protocol-Version", "2025-06-18")).status(), 400);
    assert_eq!(ready.delete(), 204);
    assert_eq!(ready.ask(Ask::new("ping")).status(), 404);
}

#[test]
fn a_strict_modern_server_refuses_what_deviates() {
    let annotated = "{\"name\":\"q\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"region\":\
                     {\"type\":\"string\",\"x-mcp-header\":\"Region\"}}}}";
    let upstream = Fake::modern().tools([annotated]).start();
    let client = Client::new(upstream.address(), Side::Modern);
    let call = || Ask::call("q", "{\"region\":\"é\"}");
    assert_eq!(client.ask(call()).code(), -32020, "a mirrored argument is missing");
    assert_eq!(client.ask(call().header("Mcp-Param-Region", "=?base64?w6k=?=")).status(), 200);
    for wrong in ["Mcp-Name", "Mcp-Method", "MCP-Protocol-Version"] {
        assert_eq!(client.ask(Ask::call("q", "{}").header(wrong, "other")).code(), -32020, "{wrong}");
    }
    let bare = Ask::call("q", "{}").meta("io.modelcontextprotocol/clientCapabilities", "");
    assert_eq!(client.ask(bare).code(), -32602);
    assert_eq!(client.ask(Ask::new("foo/bar")).status(), 404);
    assert_eq!(client.exchange("GET").send().status(), 405);
}

#[test]
fn a_cancelled_call_is_noted() {
    let (upstream, client) = direct(Fake::legacy(), Side::Legacy);
    let running = std::thread::scope(|scope| {
        let call = scope.spawn(|| client.request(&Ask::call("slow", "{}").id("\"c1\"")).try_send().is_some());
        eventually!(upstream.calls("slow").len() == 1);
        assert_eq!(client.cancel("\"c1\""), 202);
        call.join().unwrap()
    });
    assert!(!running, "the server closes without an answer");
    assert_eq!(upstream.gone(&upstream.calls("slow")[0]), Some(Gone::Cancelled));
}

#[test]
fn a_call_whose_client_leaves_is_noted() {
    let (upstream, client) = direct(Fake::modern(), Side::Modern);
    drop(client.request(&Ask::call("slow", "{}")).send_only());
    eventually!(upstream.calls("slow").first().is_some_and(|call| upstream.gone(call) == Some(Gone::Closed)));
}

#[test]
fn raw_members_keep_their_characters() {
    let text = "{\"a\":{\"b\": 1.50 ,\"c\":[1, 2]}}";
    assert_eq!(json::raw(text, &["a", "b"]), Some("1.50"));
    assert_eq!(json::raw(text, &["a", "c"]), Some("[1, 2]"));
    assert_eq!(json::raw(text, &["a", "d"]), None);
}

#[test]
fn a_message_that_breaks_the_schema_is_noticed() {
    let missing = !std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/spec").exists()
        && !std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/spec").exists();
    let broken = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":[{\"name\":7}]}}";
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
        let check = || schema::check(revision, "tools/list", broken);
        assert_eq!(std::panic::catch_unwind(check).is_err(), !missing, "{revision}");
    }
}
