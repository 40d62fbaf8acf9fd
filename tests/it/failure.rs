//! Failures are told: by whom, what happened, what to do; never twice executed, never with anything internal.

use std::time::Duration;

use tokio::time::Instant;

use crate::support::client::Answer;
use crate::support::upstream::Wire;
use crate::support::{Ask, Client, Fake, Pair, Proxy, Request, Side, eras, eventually, json, pairs};

pairs! {
    c112_t075_pages_of_upstreams_are_translated, c113_a_failing_tool_is_no_failing_server,
    c114_t074_a_hung_call_times_out_and_is_cancelled, c115_errors_keep_code_message_and_data,
    c118_nothing_is_executed_twice, c118_what_may_be_repeated_is_repeated_once, a_refused_credential_is_told,
    an_upstream_that_is_down_is_told, a_full_upstream_is_told,
}

eras! { c116_unknown_tools, c117_malformed_envelopes, t019_duplicate_members_are_refused, t021_what_is_no_json }

/// That this is the failure answer to request `id` about alpha, with nothing internal.
fn assert_told(answer: &Answer, id: &str, words: &[&str]) {
    assert_eq!((answer.status(), answer.id()), (200, Some(id)), "{answer:?}");
    assert!(answer.is_failure(), "{answer:?}");
    let text = answer.said();
    for word in words.iter().chain(&["alpha"]) {
        assert!(text.contains(word), "{word} is not in {text:?}");
    }
    for internal in ["127.0.0.1", "http:", "localhost", "SECRET", "hyper", "reqwest", "error sending"] {
        assert!(!text.contains(internal), "{internal} is in {text:?}");
    }
}

fn c112_t075_pages_of_upstreams_are_translated(pair: Pair) {
    let page = format!("<html>SECRET stack trace {}</html>", "x".repeat(20_000));
    let answers: [(&str, u16, &str, String); 4] = [
        ("echo", 502, "text/html", page.clone()),
        ("fail", 503, "text/plain", String::new()),
        ("big", 500, "text/plain", "SECRET".to_owned()),
        ("incr", 200, "text/html", page),
    ];
    let mut fake = pair.fake();
    for (tool, status, kind, body) in answers.clone() {
        fake = fake.script(&format!("tools/call {tool}"), move |_, wire| wire.page(status, kind, &body));
    }
    let (_alpha, _weir, client) = pair.set_up(fake);
    for (tool, status, _, _) in answers {
        let begun = Instant::now();
        let answer = client.ask(Ask::call(&format!("alpha__{tool}"), "{}").id("\"e1\""));
        assert!(begun.elapsed() < Duration::from_secs(1), "{tool}: {:?}", begun.elapsed());
        let word = if status == 200 { "not MCP".to_owned() } else { status.to_string() };
        assert_told(&answer, "\"e1\"", &[&word]);
    }
    assert_eq!(client.call("alpha__steps", "{}").said(), "done", "the session lives on");
}

fn c113_a_failing_tool_is_no_failing_server(pair: Pair) {
    let error = |raw: &'static str| move |_: &Request, wire: &mut Wire<'_>| wire.error(raw);
    let fake = pair
        .fake()
        .script("tools/call echo", error("{\"code\":-32602,\"message\":\"bad\"}"))
        .script("tools/call big", error("{\"code\":-32603,\"message\":\"broken\"}"))
        .script("tools/call incr", error("{\"code\":42,\"message\":\"app\"}"));
    let (_alpha, weir, client) = pair.set_up(fake);
    for _ in 0..6 {
        assert!(client.call("alpha__fail", "{}").is_failure());
        for (tool, code) in [("echo", -32602), ("big", -32603), ("incr", 42)] {
            let answer = client.call(&format!("alpha__{tool}"), "{}");
            assert_eq!((answer.status(), answer.code()), (200, code), "{tool}");
        }
    }
    assert!(weir.upstream_up("alpha"));
    assert_eq!(client.call("alpha__steps", "{}").said(), "done");
}

fn c114_t074_a_hung_call_times_out_and_is_cancelled(pair: Pair) {
    let fake = pair
        .fake()
        .script("tools/call echo", |_, wire| wire.wait())
        .script("tools/call big", |_, wire| {
            wire.head(200, &[("content-type", "application/json"), ("content-length", "100")]);
            wire.wait();
        })
        .script("tools/call fail", |_, wire| wire.stream().wait());
    let (alpha, _weir, client) = pair.set_up_with(fake, "timeout: { call: 400ms, tools: { \"steps\": 5s } }");
    std::thread::scope(|scope| {
        let long = scope.spawn(|| client.ask(Ask::call("alpha__steps", "{\"ms\":250}").progress("1")).said());
        for tool in ["echo", "big", "fail"] {
            let begun = Instant::now();
            let answer = client.ask(Ask::call(&format!("alpha__{tool}"), "{}").id("\"h\""));
            let time = begun.elapsed();
            assert_told(&answer, "\"h\"", &["in time", "outcome unknown"]);
            assert!(time > Duration::from_millis(390) && time < Duration::from_secs(1), "{tool}: {time:?}");
        }
        assert_eq!(long.join().unwrap(), "done", "other calls are unaffected");
    });
    for tool in ["echo", "big", "fail"] {
        eventually!(alpha.gone(&alpha.calls(tool)[0]).is_some(), "{tool} goes on");
        assert_eq!(alpha.calls(tool).len(), 1, "a time-out is never repeated");
    }
    if pair.upstream == Side::Legacy {
        eventually!(alpha.was_told_to_cancel(&alpha.calls("echo")[0]));
    }
}

#[test]
fn c114_progress_extends_a_call_up_to_its_maximum() {
    let alpha = Fake::legacy().start();
    let keys = "timeout: { call: 400ms, call_max: 1200ms }";
    let weir = Proxy::new().upstream_with("alpha", &alpha, keys).run();
    let client = weir.modern();
    let steps =
        |count: u32| Ask::call("alpha__steps", &format!("{{\"ms\":200,\"count\":{count}}}")).progress("1");
    assert_eq!(client.ask(steps(4)).said(), "done", "800 ms with progress every 200");
    let begun = Instant::now();
    let cut = client.ask(steps(20));
    assert!(cut.is_failure(), "{cut:?}");
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}

fn c115_errors_keep_code_message_and_data(pair: Pair) {
    const ERROR: &str =
        "{\"code\":-32602,\"message\":\"x must be > 0\",\"data\":{\"field\":\"x\",\"n\":9007199254740993}}";
    const RESULT: &str = "[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"},{\"type\":\"image\",\
                          \"data\":\"AAAA\",\"mimeType\":\"image/png\"}]";
    let fake = pair
        .fake()
        .script("tools/call echo", |_, wire| wire.error(ERROR))
        .script("tools/call big", |_, wire| {
            wire.result(&format!("{{\"content\":{RESULT},\"isError\":true}}"))
        });
    let (_alpha, _weir, client) = pair.set_up(fake);
    let answer = client.call("alpha__echo", "{}");
    assert_eq!(answer.code(), -32602);
    assert_eq!(answer.error(), "x must be > 0");
    assert_eq!(answer.raw(&["error", "data"]), Some("{\"field\":\"x\",\"n\":9007199254740993}"));
    let answer = client.call("alpha__big", "{}");
    assert_eq!(answer.raw(&["result", "content"]), Some(RESULT));
    assert!(answer.is_failure());
}

fn c116_unknown_tools(side: Side) {
    let alpha = Fake::of(side).start();
    let weir = Proxy::before(&alpha).run();
    let client = weir.client(side);
    let before = alpha.asked();
    for name in [
        "nope",
        "",
        "alpha__",
        "__echo",
        "alpha__nope",
        "echo",
        "Alpha__echo",
        "alpha__echo ",
        "alpha__alpha__echo",
    ] {
        let answer = client.ask(Ask::call(name, "{}").id("\"u\""));
        assert_eq!((answer.status(), answer.code(), answer.id()), (200, -32602, Some("\"u\"")), "{name:?}");
        assert_eq!(answer.error(), format!("Unknown tool: {name}"));
    }
    let long = client.call(&"n".repeat(5000), "{}");
    assert_eq!(long.error(), format!("Unknown tool: {}", "n".repeat(128)));
    for params in ["{}", "{\"name\":7}", "{\"name\":null,\"arguments\":{}}"] {
        let answer = client.ask(Ask::new("tools/call").params(params).header("Mcp-Name", "x"));
        assert!(matches!(answer.code(), -32602 | -32020), "{params}: {answer:?}");
    }
    assert_eq!(alpha.asked(), before, "no upstream was asked");
}

fn c117_malformed_envelopes(side: Side) {
    let alpha = Fake::of(side).start();
    let weir = Proxy::before(&alpha).run();
    let client = weir.client(side);
    let before = alpha.asked();
    for (body, code, id) in [
        ("{\"jsonrpc\":", -32700, None),
        ("", -32700, None),
        ("{\"id\":5,\"method\":\"tools/list\"}", -32600, Some("5")),
        ("{\"jsonrpc\":\"1.0\",\"id\":5,\"method\":\"tools/list\"}", -32600, Some("5")),
        ("{\"jsonrpc\":\"2.0\",\"id\":5}", -32600, Some("5")),
        ("{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":7}", -32600, Some("5")),
        ("{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/list\",\"params\":\"x\"}", -32602, Some("5")),
        ("7", -32600, None),
        ("\"x\"", -32600, None),
    ] {
        let response = client.post(body).send();
        assert_eq!(response.status(), 400, "{body}");
        assert!(
            response.header("content-type").is_some_and(|kind| kind.starts_with("application/json")),
            "{body}"
        );
        let text = response.text();
        assert_eq!(json::value(&text)["error"]["code"], code, "{body}: {text}");
        assert_eq!(json::raw(&text, &["id"]).filter(|raw| *raw != "null"), id, "{body}: {text}");
    }
    assert_eq!(alpha.asked(), before);
}

/// Sends a body as it is, with the headers of a call of echo.
fn refused(client: &Client, body: impl Into<Vec<u8>>) -> (u16, i64) {
    let response = client.request(&Ask::call("alpha__echo", "{}")).body(body).send();
    let status = response.status();
    (status, json::value(&response.text())["error"]["code"].as_i64().unwrap_or_default())
}

fn t019_duplicate_members_are_refused(side: Side) {
    let alpha = Fake::of(side).start();
    let weir = Proxy::before(&alpha).run();
    let client = weir.client(side);
    let text = String::from_utf8(client.request(&Ask::call("alpha__echo", "{}").id("1")).bytes()).unwrap();
    let (_, good) = text.split_once("\r\n\r\n").unwrap();
    for (from, to) in [
        ("\"id\":1", "\"id\":1,\"id\":2"),
        ("\"method\":", "\"method\":\"tools/list\",\"method\":"),
        ("\"name\":\"alpha", "\"name\":\"alpha__fail\",\"name\":\"alpha"),
        ("\"name\":\"alpha", "\"n\\u0061me\":\"alpha__fail\",\"name\":\"alpha"),
        ("\"params\":{", "\"params\":{\"_meta\":{\"a\":1,\"a\":2},"),
    ] {
        let body = good.replacen(from, to, 1);
        assert_eq!(refused(&client, body), (400, -32600), "{to}");
    }
    let inside = good.replacen("\"arguments\":{}", "\"arguments\":{\"a\":1,\"a\":2}", 1);
    assert_eq!(client.request(&Ask::call("alpha__echo", "{}")).body(inside).send().status(), 200);
    assert_eq!(alpha.calls("echo").len(), 1);
    assert_eq!(
        alpha.calls("echo")[0].arguments(),
        Some("{\"a\":1,\"a\":2}"),
        "arguments are not looked into"
    );
}

fn t021_what_is_no_json(side: Side) {
    let alpha = Fake::of(side).start();
    let weir = Proxy::before(&alpha).run();
    let client = weir.client(side);
    let list = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}";
    let utf16: Vec<u8> = list.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let broken = [
        format!("{list} x").into_bytes(),
        format!("{list}{list}").into_bytes(),
        format!("\u{feff}{list}").into_bytes(),
        utf16,
        [list.as_bytes(), b"\xff"].concat(),
        b"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"tools/list\"}".to_vec(),
    ];
    for body in broken {
        let shown = String::from_utf8_lossy(&body).into_owned();
        assert_eq!(refused(&client, body), (400, -32700), "{shown}");
    }
    let deep = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{{\"x\":{}",
        "[".repeat(200)
    );
    let deep = format!("{deep}{}}}}}", "]".repeat(200));
    assert_eq!(refused(&client, deep), (400, -32600), "nested too deeply");
}

fn c118_nothing_is_executed_twice(pair: Pair) {
    let fake = pair
        .fake()
        .script("tools/call echo", |_, wire| wire.abort())
        .script("tools/call big", |_, wire| {
            wire.head(200, &[("content-type", "application/json"), ("content-length", "100")]);
            wire.abort();
        })
        .script("tools/call fail", |_, wire| {
            wire.stream().bytes(b"data: {\"jsonrpc\":").abort();
        });
    let (alpha, _weir, client) = pair.set_up(fake);
    for tool in ["echo", "big", "fail"] {
        for number in 0..5 {
            let marker = format!("{{\"marker\":\"{tool}{number}\"}}");
            let answer = client.ask(Ask::call(&format!("alpha__{tool}"), &marker).id("\"x\""));
            assert_told(&answer, "\"x\"", &["outcome unknown"]);
            let executed = alpha.calls(tool).iter().filter(|call| call.arguments() == Some(&marker)).count();
            assert_eq!(executed, 1, "{marker}");
        }
    }
}

fn c118_what_may_be_repeated_is_repeated_once(pair: Pair) {
    let tools = ["echo", "big", "fail"].map(|name| {
        let hint = if name == "echo" { "idempotentHint" } else { "openWorldHint" };
        format!("{{\"name\":\"{name}\",\"inputSchema\":{{\"type\":\"object\"}},\"annotations\":{{\"{hint}\":true}}}}")
    });
    let cut = |_: &Request, wire: &mut Wire<'_>| wire.abort();
    let fake = pair.fake().tools(tools).script("tools/call", cut);
    let (alpha, _weir, client) = pair.set_up_with(fake, "classes: { read: [big] }");
    for (tool, times) in [("echo", 2), ("big", 2), ("fail", 1)] {
        assert!(client.call(&format!("alpha__{tool}"), "{}").is_failure());
        assert_eq!(alpha.calls(tool).len(), times, "{tool}");
    }
}

fn a_refused_credential_is_told(pair: Pair) {
    let fake = pair
        .fake()
        .script("tools/call echo", |_, wire| {
            wire.with("www-authenticate", "Bearer resource_metadata=\"https://SECRET\"").page(
                401,
                "text/plain",
                "SECRET",
            );
        })
        .script("tools/call big", |_, wire| wire.page(403, "text/plain", "SECRET"))
        .script("tools/call fail", |_, wire| wire.error("{\"code\":-32001,\"message\":\"SECRET\"}"));
    let (_alpha, _weir, client) = pair.set_up_with(fake, "credential_error_codes: [-32001]");
    for tool in ["echo", "big", "fail"] {
        let answer = client.ask(Ask::call(&format!("alpha__{tool}"), "{}").id("4"));
        assert_told(&answer, "4", &["credential", "refused", "operator"]);
        assert_eq!(answer.header("www-authenticate"), None);
    }
}

fn an_upstream_that_is_down_is_told(pair: Pair) {
    let (alpha, _weir, client) = pair.set_up(pair.fake());
    assert!(!client.call("alpha__echo", "{}").is_failure());
    alpha.stop();
    for _ in 0..3 {
        let begun = Instant::now();
        let answer = client.ask(Ask::call("alpha__echo", "{}").id("\"d\""));
        assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
        assert_told(&answer, "\"d\"", &["try again"]);
    }
}

fn a_full_upstream_is_told(pair: Pair) {
    let (alpha, _weir, client) = pair.set_up_with(pair.fake(), "concurrency: { calls: 1, queue: 0 }");
    std::thread::scope(|scope| {
        let first = scope.spawn(|| client.call("alpha__slow", "{\"ms\":600}").said());
        eventually!(alpha.calls("slow").len() == 1);
        let answer = client.ask(Ask::call("alpha__echo", "{}").id("1"));
        assert_told(&answer, "1", &["try again"]);
        assert_eq!(first.join().unwrap(), "slow");
    });
    assert!(!client.call("alpha__echo", "{}").is_failure(), "the place is free again");
    assert_eq!(alpha.calls("echo").len(), 1);
}
