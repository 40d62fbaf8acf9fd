//! HTTP on both legs: negotiation of types, statuses, redirects, compression, streams.

use std::time::Duration;

use tokio::time::Instant;

use crate::support::exchange::Exchange;
use crate::support::upstream::pattern;
use crate::support::{Ask, Client, Fake, Pair, Proxy, Side, Weir, eras, eventually, json, pairs, tool};

pairs! {
    c023_both_types_are_accepted_from_upstreams, c032_c033_compressed_answers_are_decoded,
    c034_the_host_sent_upstream_is_the_upstreams, c036_progress_is_streamed,
}

eras! {
    c024_a_lenient_reading_of_accept, c025_accept_is_parsed, c031_a_redirect_keeps_method_and_body,
    c038_the_media_type_of_requests,
}

fn c023_both_types_are_accepted_from_upstreams(pair: Pair) {
    let (alpha, _weir, client) = pair.set_up(pair.fake());
    assert!(!client.ask(Ask::call("alpha__echo", "{}").header("Accept", "*/*")).is_failure());
    for request in alpha.requests().iter().filter(|request| request.verb() == "POST") {
        let accept = request.header("accept").unwrap_or_default();
        let both = accept.contains("application/json") && accept.contains("text/event-stream");
        assert!(both, "{}: {accept}", request.method());
    }
}

fn c024_a_lenient_reading_of_accept(side: Side) {
    let alpha = Fake::of(side).start();
    let weir = Proxy::before(&alpha).run();
    let client = weir.client(side);
    let list = || Ask::new("tools/list");
    let kind = |ask: Ask| {
        let running = client.start(ask);
        assert_eq!(running.status(), 200);
        running.is_stream()
    };
    kind(list().without("Accept"));
    kind(list().header("Accept", "*/*"));
    assert!(!kind(list().header("Accept", "application/json")), "a client that takes JSON gets JSON");
    assert!(kind(list().header("Accept", "text/event-stream")), "a client that takes streams gets one");
    let answer =
        client.ask(Ask::call("alpha__steps", "{}").progress("1").header("Accept", "application/json"));
    assert_eq!((answer.said(), answer.before.len()), ("done".to_owned(), 0));
}

fn c025_accept_is_parsed(side: Side) {
    let alpha = Fake::of(side).start();
    let weir = Proxy::before(&alpha).run();
    let client = weir.client(side);
    for accept in [
        "text/event-stream,application/json",
        "APPLICATION/JSON , Text/Event-Stream",
        "application/json;q=0.9, text/event-stream;q=0.1",
        "application/*, text/*",
        "text/html, */*;q=0.1",
    ] {
        let running = client.start(Ask::new("tools/list").header("Accept", accept));
        assert_eq!(running.status(), 200, "{accept}");
    }
    let two = client.request(&Ask::new("tools/list").header("Accept", "application/json"));
    assert_eq!(two.header("Accept", "text/event-stream").send().status(), 200, "two lines");
    let stream =
        client.start(Ask::new("tools/list").header("Accept", "application/json;q=0, text/event-stream"));
    assert!(stream.is_stream(), "q=0 takes a type away");
    let html = client.request(&Ask::new("tools/list").header("Accept", "text/html")).send();
    assert!(matches!(html.status(), 406 | 200), "{}", html.status());
}

#[test]
fn c026_an_empty_202_from_upstream_is_enough() {
    let alpha = Fake::legacy().start();
    let weir = Proxy::before(&alpha).run();
    let client = weir.legacy();
    assert_eq!(client.names().len(), 7);
    assert!(!client.call("alpha__echo", "{}").is_failure());
    assert!(alpha.seen("notifications/initialized").iter().all(|request| request.status == Some(202)));
}

#[test]
fn c027_notifications_are_answered_202_and_nothing_else() {
    let alpha = Fake::legacy().start();
    let weir = Proxy::before(&alpha).run();
    let client = weir.legacy();
    for (method, params) in [
        ("notifications/initialized", None),
        ("notifications/cancelled", Some("{\"requestId\":\"unknown\"}")),
        ("notifications/foo", None),
    ] {
        let params = params.map(|raw| format!(",\"params\":{raw}")).unwrap_or_default();
        let response = client.post(format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\"{params}}}")).send();
        assert_eq!(response.status(), 202, "{method}");
        assert!(!response.header("content-type").is_some_and(|kind| kind.contains("json")), "{method}");
        assert_eq!(response.text(), "", "{method}");
    }
}

#[test]
fn c028_an_upstream_without_a_stream_is_not_asked_again_and_again() {
    let (alpha, beta) = (Fake::legacy().without_listening().start(), Fake::legacy().start());
    let weir = Proxy::before(&alpha).upstream("beta", &beta).run();
    let client = weir.legacy();
    let mut stream = client.listen();
    client.call("alpha__incr", "{}");
    assert!(stream.next(Duration::from_millis(1500)).is_none(), "no list_changed");
    let opened = alpha.seen("initialize").len();
    assert!(alpha.verbs("GET").len() <= opened, "{} GETs, {opened} sessions", alpha.verbs("GET").len());
    assert_eq!(client.names().len(), 14);
}

#[test]
fn c029_get_is_a_stream_or_refused() {
    let alpha = Fake::legacy().start();
    let weir = Proxy::before(&alpha).run();
    let stream = weir.legacy().stream(None);
    assert_eq!((stream.status(), stream.is_stream()), (200, true));
    let bare = Exchange::new(weir.address, "GET", "/mcp").header("Accept", "text/event-stream").send();
    assert!(matches!(bare.status(), 400 | 405), "{}", bare.status());
    let wrong = weir.legacy().exchange("GET").header("Accept", "application/json").send();
    assert!(matches!(wrong.status(), 405 | 406), "{}", wrong.status());
    let modern = weir.modern().exchange("GET").header("Accept", "text/event-stream").send();
    assert_eq!(modern.status(), 405);
    assert_eq!(weir.modern().exchange("DELETE").send().status(), 405);
    assert_eq!(Exchange::new(weir.address, "DELETE", "/mcp").send().status(), 400);
    let put = weir.legacy().exchange("PUT").send();
    assert_eq!(put.status(), 405);
    assert!(put.header("allow").is_some_and(|allow| allow.contains("POST")));
}

#[test]
fn c030_both_spellings_of_the_endpoint_are_served() {
    let alpha = Fake::modern().start();
    let weir = Proxy::before(&alpha).run();
    for path in ["/mcp", "/mcp/"] {
        let client = Client::new(weir.address, Side::Legacy).at(path).opened();
        assert_eq!(client.names().len(), 7, "{path}");
    }
    for path in ["/", "/mcp/x", "//mcp", "/mcp/..;/", "/%6dcp", "/MCP"] {
        let body = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";
        assert_eq!(Exchange::post(weir.address, path, body).send().status(), 404, "{path}");
    }
}

fn c031_a_redirect_keeps_method_and_body(side: Side) {
    let alpha = Fake::of(side).moved("/mcp", "/mcp/").start();
    let endless = Fake::of(side).moved("/mcp", "/mcp").start();
    let weir = Proxy::before(&alpha).upstream("endless", &endless).run();
    let client = weir.client(side);
    let answer = client.call("alpha__echo", "{\"n\":1.50}");
    assert_eq!(answer.raw(&["result", "structuredContent"]), Some("{\"n\":1.50}"));
    assert!(!weir.upstream_up("endless"));
    let hops = endless.requests().len();
    assert!(hops < 40, "{hops} requests to a server that redirects to itself");
}

fn c032_c033_compressed_answers_are_decoded(pair: Pair) {
    let tools: Vec<String> = (0..60).map(|number| tool(&format!("tool_number_{number}"))).collect();
    let (_alpha, _weir, client) = pair.set_up(pair.fake().tools(tools).compressing());
    let ask = |ask: Ask| client.request(&ask.header("Accept-Encoding", "gzip, deflate")).send();
    let response = ask(Ask::new("tools/list"));
    assert_eq!(response.header("content-encoding"), None);
    let length: Option<usize> = response.header("content-length").and_then(|value| value.parse().ok());
    let text = response.text();
    assert!(length.is_none_or(|length| length == text.len()), "{length:?} for {} bytes", text.len());
    assert!(json::raw(&text, &["result", "tools"]).is_some(), "{text}");
    assert_eq!(client.call("alpha__tool_number_7", "{\"x\":1}").said(), "{\"x\":1}");
}

fn c034_the_host_sent_upstream_is_the_upstreams(pair: Pair) {
    let alpha = pair.fake().start();
    let weir = Proxy::before(&alpha).listen("allowed_hosts: [gw.example, \"127.0.0.1\"]").run();
    let client = pair.client(&weir);
    let answer = client.ask(Ask::call("alpha__echo", "{}").header("Host", "gw.example"));
    assert!(!answer.is_failure(), "{answer:?}");
    let own = alpha.address().to_string();
    assert!(alpha.requests().iter().all(|request| request.header("host") == Some(&own)));
    let forwarded = |name: &String| name.to_lowercase().starts_with("x-forwarded");
    let fields = alpha.requests().into_iter().flat_map(|request| request.head.fields);
    assert!(!fields.map(|(name, _)| name).any(|name| forwarded(&name)));
}

/// One test for all quiet streams, since it has to wait.
#[test]
fn c035_quiet_streams_are_kept_alive_and_unbuffered() {
    let alpha = Fake::legacy().start();
    let weir = Proxy::before(&alpha).run();
    let (legacy, modern) = (weir.legacy(), weir.modern());
    let quiet = |begin: &(dyn Fn() -> crate::support::client::Running + Sync)| {
        let mut stream = begin();
        assert!(stream.is_stream());
        assert_eq!(stream.header("x-accel-buffering"), Some("no"));
        assert_eq!(stream.header("cache-control"), Some("no-store"));
        stream.next(Duration::from_secs(17));
        assert!(stream.comments() > 0, "a comment within 17 s");
    };
    std::thread::scope(|scope| {
        scope.spawn(|| quiet(&|| legacy.listen()));
        scope.spawn(|| quiet(&|| modern.listen()));
        let begun = Instant::now();
        let running = modern.start(Ask::call("alpha__slow", "{\"ms\":12000}"));
        assert!(begun.elapsed() < Duration::from_secs(11), "the head comes after 10 s of silence");
        assert_eq!(running.header("x-accel-buffering"), Some("no"));
        assert_eq!(running.answer().said(), "slow");
    });
}

fn c036_progress_is_streamed(pair: Pair) {
    let (_alpha, _weir, client) = pair.set_up(pair.fake());
    let begun = Instant::now();
    let answer = client.ask(Ask::call("alpha__steps", "{\"ms\":300}").progress("\"t\""));
    let times: Vec<Duration> = answer.before.iter().map(|message| message.at - begun).collect();
    assert_eq!(times.len(), 3, "{answer:?}");
    for (step, time) in times.iter().enumerate() {
        let written = Duration::from_millis(300) * u32::try_from(step).unwrap();
        assert!(*time < written + Duration::from_millis(250), "step {step} came at {time:?}");
    }
    assert_eq!(answer.said(), "done");
}

#[test]
fn c037_batches_are_refused() {
    let alpha = Fake::legacy().start();
    let weir = Proxy::before(&alpha).run();
    let call =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"alpha__echo\"}}";
    let note = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/foo\"}";
    let session = |revision| Client::new(weir.address, Side::Legacy).revision(revision).opened();
    let clients = [
        session("2025-06-18"),
        session("2025-11-25"),
        weir.modern(),
        Client::new(weir.address, Side::Legacy),
    ];
    for client in clients {
        for body in ["[]".to_owned(), format!("[{call},{call}]"), format!("[{note}]")] {
            let response = client.post(body.clone()).send();
            assert_eq!(response.status(), 400, "{body}");
            assert_eq!(json::raw(&response.text(), &["error", "code"]), Some("-32600"), "{body}");
        }
    }
    assert_eq!(alpha.calls("echo").len(), 0);
}

#[test]
fn t023_a_batch_of_2025_03_26_is_served() {
    let alpha = Fake::legacy().start();
    let weir = Proxy::before(&alpha).run();
    let client = Client::new(weir.address, Side::Legacy).revision("2025-03-26").opened();
    let call = |id: u32| {
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"alpha__echo\",\
             \"arguments\":{{\"n\":{id}}}}}}}"
        )
    };
    let batch = format!("[{},{}]", call(1), call(2));
    let response = client.post(batch).set("Accept", "application/json").send();
    let (status, text) = (response.status(), response.text());
    assert_eq!(status, 200, "{text}");
    let answers = json::value(&text);
    assert_eq!((&answers[0]["id"], &answers[1]["id"]), (&1.into(), &2.into()), "{answers}");
    assert_eq!(answers[1]["result"]["structuredContent"]["n"], 2);
    let many = format!("[{}]", vec![call(1); 65].join(","));
    assert_eq!(client.post(many).send().status(), 400, "at most 64 members");
}

fn c038_the_media_type_of_requests(side: Side) {
    let alpha = Fake::of(side).start();
    let weir = Proxy::before(&alpha).run();
    let client = weir.client(side);
    let sent =
        |kind: &str| client.request(&Ask::new("tools/list").header("Content-Type", kind)).send().status();
    for kind in ["application/json", "application/json; charset=utf-8", "Application/JSON"] {
        assert_eq!(sent(kind), 200, "{kind}");
    }
    for kind in ["text/plain", "text/plain; x=application/json", "application/x-www-form-urlencoded"] {
        assert_eq!(sent(kind), 415, "{kind}");
    }
    let none = client.request(&Ask::new("tools/list").without("Content-Type")).send().status();
    assert!(matches!(none, 400 | 415), "{none}");
}

pairs! { connections_to_upstreams_are_kept, an_answer_that_comes_first_is_json }

fn connections_to_upstreams_are_kept(pair: Pair) {
    let (alpha, _weir, client) = pair.set_up(pair.fake());
    for _ in 0..20 {
        assert!(!client.call("alpha__echo", "{}").is_failure());
    }
    let mut connections: Vec<usize> = alpha.calls("echo").iter().map(|call| call.connection).collect();
    connections.sort_unstable();
    connections.dedup();
    // Each thread that serves clients keeps connections of its own.
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let most = (1 + threads).min(10);
    assert!(connections.len() <= most, "{connections:?} for 20 calls, one after the other");
}

fn an_answer_that_comes_first_is_json(pair: Pair) {
    for fake in [pair.fake(), pair.fake().in_streams()] {
        let (_alpha, _weir, client) = pair.set_up(fake);
        let echo = client.start(Ask::call("alpha__echo", "{}"));
        assert_eq!((echo.is_stream(), echo.header("content-type")), (false, Some("application/json")));
        let steps = client.start(Ask::call("alpha__steps", "{}").progress("1"));
        assert!(steps.is_stream());
        assert_eq!(steps.header("x-accel-buffering"), Some("no"));
        assert_eq!(steps.header("cache-control"), Some("no-store"));
        assert_eq!(steps.answer().before.len(), 3);
    }
}

#[test]
fn t069_no_header_of_an_upstream_reaches_a_client() {
    let alpha = Fake::modern()
        .script("tools/call echo", |_, wire| {
            wire.with("set-cookie", "a=b").with("x-secret", "1").with("access-control-allow-origin", "*");
            wire.result("{\"content\":[]}");
        })
        .start();
    let weir = Proxy::before(&alpha).run();
    let answer = weir.modern().call("alpha__echo", "{}");
    for name in ["set-cookie", "x-secret", "access-control-allow-origin"] {
        assert_eq!(answer.header(name), None);
    }
    assert_eq!(weir.modern().call("alpha__big", "{\"n\":10}").said(), pattern(10));
}

#[test]
fn c039_the_old_transport_announces_an_address_below_the_public_one() {
    let alpha = Fake::legacy().start();
    let weir = Proxy::before(&alpha)
        .listen("public_url: https://gw.example/some/prefix")
        .listen("allowed_hosts: [127.0.0.1]")
        .run();
    let events = |weir: &Weir| {
        Exchange::new(weir.address, "GET", "/mcp/sse").header("Accept", "text/event-stream").send()
    };
    let (mut first, mut second) = (events(&weir).events(), events(&weir).events());
    let endpoint = |events: &mut crate::support::exchange::Events| {
        let (event, _) = events.next(Duration::from_secs(5)).expect("the first event");
        assert_eq!(event.kind.as_deref(), Some("endpoint"));
        event.data.expect("an address")
    };
    let (address, other) = (endpoint(&mut first), endpoint(&mut second));
    assert!(address.starts_with("/some/prefix/mcp/sse?session="), "{address}");
    assert_ne!(address, other);
    // The proxy before the gateway takes the prefix away.
    let inside = address.strip_prefix("/some/prefix").expect("the prefix");
    let hello = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2024-11-05\",\
                 \"capabilities\":{},\"clientInfo\":{\"name\":\"it\",\"version\":\"1\"}}}";
    assert_eq!(Exchange::post(weir.address, inside, hello).send().status(), 202);
    let (answer, _) = first.next(Duration::from_secs(5)).expect("the answer comes on the stream");
    assert!(answer.data.unwrap_or_default().contains("\"protocolVersion\":\"2024-11-05\""));
    let strange = inside.replace("session=w1.", "session=w1.x");
    assert_eq!(Exchange::post(weir.address, &strange, hello).send().status(), 404, "a session of nobody");
    second.close();
    let gone = other.strip_prefix("/some/prefix").expect("the prefix").to_owned();
    eventually!(
        Exchange::post(weir.address, &gone, hello).send().status() == 404,
        "a session that has ended"
    );
}
