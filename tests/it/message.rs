//! JSON-RPC in the middle: ids, tokens, cancellations, log messages and pings never cross.

use std::time::Duration;

use tokio::time::Instant;

use crate::support::{
    Ask, Client, Fake, Gone, Pair, Proxy, Request, Side, Upstream, eras, eventually, json, pairs,
};

pairs! {
    c066_equal_ids_do_not_cross, c070_a_message_without_id_is_no_request, c072_leaving_or_cancelling_cancels_upstream,
    c073_the_progress_token_comes_back_as_sent, c076_log_messages_go_to_whom_they_belong,
}

eras! { c067_the_id_comes_back_as_it_was, c068_strange_ids, c069_an_id_that_is_null_is_refused }

/// Calls with the id that every client uses, and expects the own marker back.
fn own_answers(client: &Client, number: u32) {
    for round in 0..5 {
        let wait = (number * 7 + round * 3) % 40;
        let arguments = format!("{{\"marker\":\"{number}/{round}\",\"wait_ms\":{wait}}}");
        let answer = client.ask(Ask::call("alpha__echo", &arguments).id("1"));
        assert_eq!(answer.id(), Some("1"));
        assert_eq!(answer.raw(&["result", "structuredContent"]), Some(arguments.as_str()));
    }
}

fn c066_equal_ids_do_not_cross(pair: Pair) {
    let (alpha, weir, _) = pair.set_up(pair.fake());
    std::thread::scope(|scope| {
        for number in 0..10 {
            let client = pair.client(&weir);
            scope.spawn(move || own_answers(&client, number));
        }
    });
    let key = |request: &Request| format!("{:?} {:?}", request.session(), request.id());
    let mut keys: Vec<String> = alpha.calls("echo").iter().map(key).collect();
    let all = keys.len();
    keys.sort();
    keys.dedup();
    assert_eq!((all, keys.len()), (50, 50), "ids are unique on each upstream session");
}

fn echoed(client: &Client, id: &str) {
    let good = client.ask(Ask::call("alpha__echo", "{}").id(id));
    assert_eq!((good.status(), good.id()), (200, Some(id)), "result");
    let list = client.ask(Ask::new("tools/list").id(id));
    assert_eq!(list.id(), Some(id), "the gateway's own answer");
    let bad = client.ask(Ask::call("nobody__knows", "{}").id(id));
    assert_eq!((bad.code(), bad.id()), (-32602, Some(id)), "error");
}

fn c067_the_id_comes_back_as_it_was(side: Side) {
    let alpha = Fake::of(side).start();
    let weir = Proxy::before(&alpha).run();
    let client = weir.client(side);
    let long = format!("\"{}\"", "x".repeat(512));
    let uuid = "\"123e4567-e89b-12d3-a456-426614174000\"";
    for id in ["1", "\"1\"", "\"01\"", "\"a-b:c\"", uuid, &long, "\"\\u00e9\\n\"", "\"é\""] {
        echoed(&client, id);
    }
}

fn c068_strange_ids(side: Side) {
    let alpha = Fake::of(side).start();
    let weir = Proxy::before(&alpha).run();
    let client = weir.client(side);
    let largest = ["9007199254740993", "9223372036854775807", "-9223372036854775808"];
    for id in ["0", "-1", "\"\""].iter().chain(&largest) {
        echoed(&client, id);
    }
    for id in ["1.5", "123456789012345678901234567890", "1e3"] {
        let answer = client.ask(Ask::new("tools/list").id(id));
        let exact = answer.status() == 200 && answer.id() == Some(id);
        assert!(exact || (answer.status(), answer.code()) == (400, -32600), "{id}: {answer:?}");
    }
}

fn c069_an_id_that_is_null_is_refused(side: Side) {
    let alpha = Fake::of(side).start();
    let weir = Proxy::before(&alpha).run();
    let client = weir.client(side);
    let before = alpha.asked();
    for id in ["null", "true", "{}", "[1]"] {
        for ask in [Ask::new("tools/list"), Ask::call("alpha__echo", "{}")] {
            let answer = client.ask(ask.id(id));
            assert_eq!((answer.status(), answer.code()), (400, -32600), "{id}");
            assert!(matches!(answer.id(), None | Some("null")), "{id}: {answer:?}");
        }
    }
    assert_eq!(alpha.asked(), before);
}

fn c070_a_message_without_id_is_no_request(pair: Pair) {
    let (alpha, _weir, client) = pair.set_up(pair.fake());
    let request = client.request(&Ask::call("alpha__incr", "{}").id("1"));
    let text = String::from_utf8(request.bytes()).unwrap();
    let (_, body) = text.split_once("\r\n\r\n").unwrap();
    let response = request.body(body.replacen("\"id\":1,", "", 1)).send();
    assert!(matches!(response.status(), 202 | 400), "{}", response.status());
    let text = response.text();
    assert!(json::raw(&text, &["result"]).is_none(), "{text}");
    assert!(!client.call("alpha__echo", "{}").is_failure());
    assert_eq!(alpha.calls("incr").len(), 0, "not executed");
}

#[test]
fn c071_a_cancellation_reaches_the_right_upstream_with_its_own_id() {
    let (alpha, beta) = (Fake::legacy().start(), Fake::legacy().start());
    let weir = Proxy::before(&alpha).upstream("beta", &beta).run();
    let client = weir.legacy();
    std::thread::scope(|scope| {
        let call = client.request(&Ask::call("alpha__slow", "{}").id("\"c1\""));
        let gone = scope.spawn(move || call.try_send().map(|response| response.status()));
        let other = scope.spawn(|| client.ask(Ask::call("beta__slow", "{\"ms\":900}").id("\"c2\"")));
        eventually!(alpha.calls("slow").len() == 1 && beta.calls("slow").len() == 1);
        assert_eq!(client.cancel("\"c1\""), 202);
        eventually!(alpha.seen("notifications/cancelled").len() == 1);
        assert_eq!(other.join().unwrap().said(), "slow", "another call goes on");
        weir.signal("TERM");
        gone.join().ok();
    });
    let (call, told) = (&alpha.calls("slow")[0], &alpha.seen("notifications/cancelled")[0]);
    assert_eq!(told.raw(&["params", "requestId"]), call.id());
    assert_eq!(told.session(), call.session());
    assert_eq!(alpha.seen("notifications/cancelled").len(), 1);
    assert_eq!(beta.seen("notifications/cancelled").len(), 0);
}

/// How the only call of `slow` was given up.
fn given_up(alpha: &Upstream) -> Option<Gone> {
    alpha.calls("slow").first().and_then(|call| alpha.gone(call))
}

fn c072_leaving_or_cancelling_cancels_upstream(pair: Pair) {
    let (alpha, _weir, client) = pair.set_up(pair.fake());
    let sent = client.request(&Ask::call("alpha__slow", "{}").id("7")).send_only();
    eventually!(alpha.calls("slow").len() == 1);
    drop(sent);
    if pair.client == Side::Legacy {
        assert_eq!(given_up(&alpha), None, "a broken stream only detaches a legacy client");
        assert_eq!(client.cancel("7"), 202);
    }
    let begun = Instant::now();
    eventually!(given_up(&alpha).is_some());
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    match pair.upstream {
        Side::Legacy => eventually!(alpha.was_told_to_cancel(&alpha.calls("slow")[0])),
        Side::Modern => assert_eq!(given_up(&alpha), Some(Gone::Closed)),
    }
}

fn c073_the_progress_token_comes_back_as_sent(pair: Pair) {
    let (alpha, _weir, client) = pair.set_up(pair.fake());
    for token in ["5", "\"5\"", "\"5\"", "9007199254740993"] {
        let answer = client.ask(Ask::call("alpha__steps", "{}").progress(token));
        let tokens: Vec<_> = answer.before.iter().map(|m| m.raw(&["params", "progressToken"])).collect();
        assert_eq!(tokens, [Some(token); 3]);
        let first = &answer.before[0];
        assert_eq!(first.raw(&["params", "progress"]), Some("1"));
        assert_eq!(first.raw(&["params", "total"]), Some("3"));
        assert_eq!(first.raw(&["params", "message"]), Some("\"at 1\""));
    }
    let answer = client.call("alpha__steps", "{}");
    assert_eq!((answer.said(), answer.before.len()), ("done".to_owned(), 0), "none without a token");
    assert_eq!(alpha.violations(), Vec::<String>::new());
}

/// The levels and markers of the log messages that came before an answer.
fn heard(client: &Client, marker: u32, level: Option<&str>) -> Vec<(String, String)> {
    let ask = Ask::call("alpha__chatty", &format!("{{\"marker\":{marker}}}"));
    let ask = match level.filter(|_| client.side() == Side::Modern) {
        Some(level) => ask.meta("io.modelcontextprotocol/logLevel", &json::quote(level)),
        None => ask,
    };
    let told = client.ask(ask).before.into_iter().filter(|m| m.method() == "notifications/message");
    told.map(|m| {
        let text = |path: &[&str]| m.raw(path).unwrap_or_default().trim_matches('"').to_owned();
        (text(&["params", "level"]), text(&["params", "data"]))
    })
    .collect()
}

fn c076_log_messages_go_to_whom_they_belong(pair: Pair) {
    let (_alpha, weir, _) = pair.set_up(pair.fake());
    let clients: Vec<(Client, Option<&str>)> = match pair.client {
        Side::Modern => [Some("error"), None, Some("debug"), Some("info")].map(|l| (weir.modern(), l)).into(),
        Side::Legacy => [Some("error"), Some("debug"), Some("info")].map(|l| (weir.legacy(), l)).into(),
    };
    for (client, level) in clients.iter().filter(|(client, _)| client.side() == Side::Legacy) {
        let params = format!("{{\"level\":{}}}", json::quote(level.unwrap()));
        client.ask(Ask::new("logging/setLevel").params(&params)).result();
    }
    std::thread::scope(|scope| {
        for (number, (client, level)) in (0_u32..).zip(&clients) {
            scope.spawn(move || {
                let levels = ["debug", "info", "warning", "error"];
                let from = level.map_or(4, |level| levels.iter().position(|&l| l == level).unwrap());
                let expected: Vec<_> =
                    levels[from..].iter().map(|&l| (l.to_owned(), number.to_string())).collect();
                let turns = [0; 3].map(|_| heard(client, number, *level));
                assert!(turns.iter().all(|turn| *turn == expected), "{level:?}: {turns:?}");
            });
        }
    });
}

#[test]
fn c077_ping_is_answered_at_once() {
    let alpha = Fake::legacy().start();
    let weir = Proxy::before(&alpha).run();
    let client = weir.legacy();
    std::thread::scope(|scope| {
        let call = scope.spawn(|| client.call("alpha__slow", "{\"ms\":600}").said());
        eventually!(alpha.calls("slow").len() == 1);
        for id in ["0", "\"p\""] {
            let begun = Instant::now();
            let answer = client.ask(Ask::new("ping").id(id));
            assert!(begun.elapsed() < Duration::from_millis(200), "{:?}", begun.elapsed());
            assert_eq!(answer.body(), format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}"));
        }
        assert_eq!(call.join().unwrap(), "slow");
    });
}

/// The response that an upstream got to a request of its own.
fn response_to(alpha: &Upstream, id: &str) -> Option<Request> {
    let answers = |r: &Request| r.verb() == "POST" && r.method().is_empty() && r.id() == Some(id);
    alpha.requests().into_iter().find(answers)
}

#[test]
fn c078_a_ping_from_an_upstream_is_answered() {
    let alpha = Fake::legacy().start();
    let weir = Proxy::before(&alpha).run();
    let client = weir.legacy();
    let mut stream = client.listen();
    eventually!(alpha.streams() >= 1);
    for id in ["0", "1", "\"p-1\""] {
        alpha.say(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}"));
        eventually!(response_to(&alpha, id).is_some(), "no answer to ping {id}");
        let answer = response_to(&alpha, id).unwrap();
        assert_eq!(answer.raw(&["result"]), Some("{}"));
        assert_eq!(answer.status, Some(202), "under a session that lives");
    }
    alpha.say("{\"jsonrpc\":\"2.0\",\"id\":\"f\",\"method\":\"foo/bar\"}");
    eventually!(response_to(&alpha, "\"f\"").is_some());
    assert_eq!(response_to(&alpha, "\"f\"").unwrap().raw(&["error", "code"]), Some("-32601"));
    assert!(stream.until_quiet(Duration::from_millis(200)).is_empty(), "clients see none of it");
}

#[test]
fn t028_a_response_that_nobody_waits_for_is_dropped() {
    let alpha = Fake::legacy().start();
    let weir = Proxy::before(&alpha).run();
    let client = weir.legacy();
    let before = alpha.asked();
    for body in [
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}",
        "{\"jsonrpc\":\"2.0\",\"id\":\"w1.x\",\"result\":{}}",
    ] {
        let status = client.post(body).send().status();
        assert!(matches!(status, 202 | 400), "{status}");
    }
    assert_eq!(alpha.asked(), before);
}

eras! { c078_a_ping_on_the_stream_of_a_call }

fn c078_a_ping_on_the_stream_of_a_call(side: Side) {
    let alpha = Fake::legacy()
        .script("tools/call echo", |request, wire| {
            let same = request.id().unwrap_or_default().to_owned();
            wire.event(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{same},\"method\":\"ping\"}}"));
            wire.event("{\"jsonrpc\":\"2.0\",\"id\":\"f\",\"method\":\"foo/bar\"}");
            wire.pause(Duration::from_millis(500));
            wire.result("{\"content\":[{\"type\":\"text\",\"text\":\"after\"}]}");
        })
        .start();
    let weir = Proxy::before(&alpha).run();
    let answer = weir.client(side).call("alpha__echo", "{}");
    assert_eq!((answer.said(), answer.before.len()), ("after".to_owned(), 0));
    let call = &alpha.calls("echo")[0];
    let pong = response_to(&alpha, call.id().unwrap()).expect("an answer to the ping");
    assert_eq!((pong.raw(&["result"]), pong.session()), (Some("{}"), call.session()));
    assert_eq!(response_to(&alpha, "\"f\"").unwrap().raw(&["error", "code"]), Some("-32601"));
}
