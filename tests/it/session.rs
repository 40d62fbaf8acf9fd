//! Sessions of either side: opened, kept apart, lost and ended without the other side noticing.

use std::time::Duration;

use tokio::time::Instant;

use crate::support::exchange::Exchange;
use crate::support::{Ask, Client, Fake, Proxy, Request, Side, Upstream, Weir, eras, eventually};

const SESSIONS: &str = "weir_sessions";

/// How many client sessions live.
fn living(weir: &Weir) -> f64 {
    weir.metric(SESSIONS, &[]).unwrap_or(0.0)
}

/// The session ids that came with these requests, each once, in order of appearance.
fn sessions_of(requests: &[Request]) -> Vec<String> {
    let mut all = Vec::new();
    for id in requests.iter().filter_map(Request::session) {
        if !all.contains(&id.to_owned()) {
            all.push(id.to_owned());
        }
    }
    all
}

#[test]
fn c001_an_unknown_session_is_answered_404() {
    let alpha = Fake::legacy().start();
    let weir = Proxy::before(&alpha).run();
    let before = alpha.asked();
    for id in ["00000000-dead-beef-0000-000000000000", "w1.AAAA", "x"] {
        let stranger = Client::new(weir.address, Side::Legacy).with_session(id);
        assert_eq!(stranger.ask(Ask::new("tools/list")).status(), 404, "POST {id}");
        assert_eq!(stranger.stream(None).status(), 404, "GET {id}");
        assert_eq!(stranger.delete(), 404, "DELETE {id}");
    }
    assert_eq!(alpha.asked(), before, "no upstream traffic");
}

#[test]
fn c002_a_missing_session_id_is_answered_400() {
    let alpha = Fake::legacy().start();
    let weir = Proxy::before(&alpha).run();
    weir.legacy();
    let answer = Client::new(weir.address, Side::Legacy).ask(Ask::new("tools/list"));
    assert_eq!((answer.status(), answer.code()), (400, -32600));
    assert!(answer.error().contains("session"), "{}", answer.error());
    assert_eq!(weir.modern().ask(Ask::new("tools/list")).status(), 200);
}

eras! { c003_a_lost_upstream_session_is_rebuilt, c010_a_session_of_another_process_fails_fast }

fn c003_a_lost_upstream_session_is_rebuilt(side: Side) {
    let (alpha, beta) = (Fake::legacy().label("a").start(), Fake::legacy().label("b").start());
    let weir = Proxy::before(&alpha).upstream("beta", &beta).run();
    let client = weir.client(side);
    assert_eq!(client.call("alpha__echo", "{\"n\":1}").said(), "{\"n\":1}");
    let untouched = beta.asked();
    alpha.forget();
    assert_eq!(client.call("alpha__echo", "{\"n\":2}").said(), "{\"n\":2}");

    let calls = alpha.calls("echo");
    assert_eq!(calls.iter().map(|call| call.status).collect::<Vec<_>>(), [Some(200), Some(404), Some(200)]);
    assert_eq!(calls[0].session(), calls[1].session());
    assert_ne!(calls[1].session(), calls[2].session());
    let between: Vec<Request> = alpha.requests()[calls[1].number..calls[2].number].to_vec();
    let opened = between.iter().find(|request| request.method() == "initialize").expect("a new handshake");
    assert_eq!(opened.session(), None);
    let ready = between.iter().filter(|request| request.session() == calls[2].session());
    assert_eq!(ready.map(Request::method).next().as_deref(), Some("notifications/initialized"));
    assert_eq!(beta.asked(), untouched, "beta is left alone");
}

#[test]
fn c003_many_calls_rebuild_a_lost_session_once() {
    let alpha = Fake::legacy().start();
    let weir = Proxy::before(&alpha).run();
    let client = weir.legacy();
    client.call("alpha__incr", "{}");
    let lost = alpha.calls("incr")[0].session().map(str::to_owned);
    alpha.forget();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert!(!client.call("alpha__incr", "{}").is_failure()));
        }
    });
    let mut later = sessions_of(&alpha.calls("incr"));
    later.retain(|id| Some(id) != lost.as_ref());
    assert_eq!(later.len(), 1, "one new session for all of them: {later:?}");
}

#[test]
fn c004_the_clients_session_id_is_not_forwarded() {
    let alpha = Fake::legacy().label("alpha").start();
    let weir = Proxy::before(&alpha).run();
    let client = weir.legacy();
    client.call("alpha__echo", "{}");
    let again = client.initialize();
    assert_eq!(again.status(), 200);
    let renewed = client.with_session(again.header("mcp-session-id").expect("an id"));
    assert_eq!(renewed.notify("notifications/initialized", None), 202);
    assert!(!renewed.call("alpha__echo", "{}").is_failure());
    assert_eq!(alpha.violations(), Vec::<String>::new());
    let foreign = sessions_of(&alpha.requests()).into_iter().find(|id| !id.starts_with("alpha-session-"));
    assert_eq!(foreign, None);
}

#[test]
fn c005_the_session_id_is_the_gateways_own() {
    let alpha = Fake::legacy().start();
    let weir = Proxy::before(&alpha).run();
    let (one, other) = (weir.legacy(), weir.legacy());
    assert!(!one.call("alpha__echo", "{}").is_failure());
    let (one, other) = (one.session().unwrap(), other.session().unwrap());
    assert!(one.len() <= 512 && one.bytes().all(|byte| (0x21..=0x7e).contains(&byte)), "{one}");
    assert_ne!(one, other);
    assert!(!sessions_of(&alpha.requests()).iter().any(|id| id == one));
}

/// X three times, Y once, a second session of X once, X once more: what the counter said the last three times.
fn counted(keys: &str) -> [String; 3] {
    let alpha = Fake::legacy().start();
    let scopes = "\"mcp:destructive\"";
    let weir = Proxy::new()
        .upstream_with("alpha", &alpha, keys)
        .token("x", "token-x", scopes)
        .token("y", "token-y", scopes)
        .run();
    let open = |token| Client::new(weir.address, Side::Legacy).token(token).opened();
    let (x, y, second) = (open("token-x"), open("token-y"), open("token-x"));
    for expected in ["1", "2", "3"] {
        assert_eq!(x.call("alpha__incr", "{}").said(), expected);
    }
    [&y, &second, &x].map(|client| client.call("alpha__incr", "{}").said())
}

#[test]
fn c006_state_is_kept_apart_by_client_session() {
    assert_eq!(counted("sessions: client"), ["1", "1", "4"]);
    assert_eq!(counted(""), ["1", "1", "4"], "the default for url");
}

#[test]
fn c006_state_is_kept_apart_by_principal() {
    assert_eq!(counted("sessions: principal"), ["1", "4", "5"]);
}

#[test]
fn c006_state_is_shared_where_the_operator_says_so() {
    assert_eq!(counted("sessions: shared"), ["4", "5", "6"]);
}

#[test]
fn c007_a_session_that_never_finishes_initialize_is_reaped() {
    let alpha = Fake::legacy().start();
    let weir = Proxy::before(&alpha).listen("sessions: { initialize: 500ms }").run();
    let body = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\
                \"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"it\",\"version\":\"1\"}}}";
    for _ in 0..50 {
        drop(weir.post(body).send_only());
    }
    let opened = Client::new(weir.address, Side::Legacy);
    let id = opened.initialize().header("mcp-session-id").map(str::to_owned).unwrap();
    assert!(living(&weir) > 0.0, "the gauge counts them");
    eventually!(living(&weir) == 0.0, "{} sessions stay", living(&weir));
    assert_eq!(opened.with_session(&id).ask(Ask::new("tools/list")).status(), 404);
}

#[test]
fn c008_idle_sessions_are_removed_everywhere() {
    let alpha = Fake::legacy().start();
    let weir = Proxy::before(&alpha).listen("sessions: { idle: 1s }").run();
    let clients: Vec<Client> = (0..20).map(|_| weir.legacy()).collect();
    for client in &clients {
        client.call("alpha__incr", "{}");
    }
    let used = sessions_of(&alpha.calls("incr"));
    assert_eq!(used.len(), 20);
    eventually!(living(&weir) == 0.0);
    assert_eq!(clients[0].ask(Ask::new("tools/list")).status(), 404);
    let ended = || alpha.sessions().iter().all(|id| !used.contains(id));
    eventually!(ended(), "upstream sessions that stay: {:?}", alpha.sessions());
}

fn one_session(upstream: &Upstream, tool: &str) -> String {
    upstream.calls(tool)[0].session().expect("a session").to_owned()
}

#[test]
fn c009_delete_ends_the_session_and_those_behind_it() {
    let (alpha, beta) = (Fake::legacy().start(), Fake::legacy().start());
    let gamma = Fake::legacy().script("DELETE", |_, wire| wire.bare(405)).start();
    let weir = Proxy::before(&alpha).upstream("beta", &beta).upstream("gamma", &gamma).run();
    let client = weir.legacy();
    for name in ["alpha", "beta", "gamma"] {
        client.call(&format!("{name}__incr"), "{}");
    }
    assert_eq!(client.delete(), 204);
    for upstream in [&alpha, &beta, &gamma] {
        let own = one_session(upstream, "incr");
        eventually!(upstream.verbs("DELETE").iter().any(|request| request.session() == Some(&own)));
    }
    assert_eq!(client.ask(Ask::new("tools/list")).status(), 404);
    assert_eq!(client.stream(None).status(), 404);
    assert_eq!(client.delete(), 404);
}

fn c010_a_session_of_another_process_fails_fast(side: Side) {
    let alpha = Fake::of(side).start();
    let (one, other) = (Proxy::before(&alpha).run(), Proxy::before(&alpha).run());
    let client = one.legacy();
    let session = client.session().unwrap().to_owned();
    let stray = Client::new(other.address, Side::Legacy).with_session(&session);
    let (before, begun) = (alpha.asked(), Instant::now());
    assert_eq!(stray.ask(Ask::new("tools/list")).status(), 404);
    assert_eq!(stray.ask(Ask::call("alpha__echo", "{}")).status(), 404);
    assert!(begun.elapsed() < Duration::from_secs(1));
    assert_eq!(alpha.asked(), before);
}

#[test]
fn c011_the_handshake_is_complete_and_in_order() {
    let alpha = Fake::legacy().start();
    let weir = Proxy::before(&alpha).run();
    assert_eq!(weir.legacy().names().len(), 7);
    let asked: Vec<Request> = alpha.requests().into_iter().filter(|r| r.verb() == "POST").collect();
    let order: Vec<(String, Option<u16>)> =
        asked.iter().skip_while(|r| r.method() != "initialize").map(|r| (r.method(), r.status)).collect();
    assert_eq!(order[0], ("initialize".to_owned(), Some(200)));
    assert_eq!(order[1], ("notifications/initialized".to_owned(), Some(202)));
    assert_eq!(order[2], ("tools/list".to_owned(), Some(200)));
    assert_eq!(alpha.violations(), Vec::<String>::new());
}

#[test]
fn c012_a_lost_notification_stream_does_not_end_the_upstream_session() {
    let alpha = Fake::legacy()
        .script("GET", |_, wire| {
            wire.stream().pause(Duration::from_millis(150));
            wire.end();
        })
        .start();
    let weir = Proxy::before(&alpha).run();
    let client = weir.legacy();
    let mut stream = client.listen();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(2) {
        assert!(!client.call("alpha__incr", "{}").is_failure());
    }
    assert_eq!(sessions_of(&alpha.calls("incr")).len(), 1);
    assert!(stream.next(Duration::ZERO).is_none(), "no list_changed");
    let reopened = alpha.verbs("GET").len();
    assert!(reopened < 30, "{reopened} GETs within two seconds");
}

#[test]
fn an_idle_upstream_session_is_ended_and_opened_again() {
    let alpha = Fake::legacy().start();
    let weir = Proxy::new().upstream_with("alpha", &alpha, "idle: 300ms").run();
    let client = weir.legacy();
    client.call("alpha__incr", "{}");
    let own = one_session(&alpha, "incr");
    eventually!(!alpha.sessions().contains(&own));
    assert!(alpha.verbs("DELETE").iter().any(|request| request.session() == Some(&own)));
    assert_eq!(client.call("alpha__incr", "{}").said(), "1");
}

#[test]
fn a_session_has_a_longest_life() {
    let alpha = Fake::legacy().start();
    let weir = Proxy::before(&alpha).listen("sessions: { max_age: 1s }").run();
    let client = weir.legacy();
    assert_eq!(client.ask(Ask::new("ping")).status(), 200);
    eventually!(client.ask(Ask::new("ping")).status() == 404);
}

/// Each kind of request that is refused before there is a session.
fn refused(weir: &Weir) -> Vec<(&'static str, Exchange)> {
    let initialize = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\
                      \"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"it\",\"version\":\"1\"}}}";
    vec![
        ("ping", weir.post("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}")),
        ("list", weir.post("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}")),
        ("origin", weir.post(initialize).header("Origin", "https://evil.example")),
        ("host", weir.post(initialize).set("Host", "evil.example")),
        ("params", weir.post("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":7}")),
        ("no params", weir.post("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}")),
        ("body", weir.post("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"")),
        ("get", Exchange::new(weir.address, "GET", "/mcp").header("Accept", "text/event-stream")),
    ]
}

#[test]
fn c013_a_refused_request_leaves_no_session_behind() {
    let alpha = Fake::legacy().start();
    let weir = Proxy::before(&alpha).run();
    let before = alpha.asked();
    for (what, exchange) in refused(&weir) {
        for _ in 0..10 {
            let response = exchange.send();
            assert!(response.header("mcp-session-id").is_none(), "{what}");
            let status = response.status();
            let text = response.text();
            let refused = (400..500).contains(&status) || text.contains("\"error\"");
            assert!(refused, "{what}: {status} {text}");
        }
    }
    assert_eq!(living(&weir), 0.0);
    assert_eq!(alpha.asked(), before);
}

eras! { an_upstream_without_session_ids_is_used_directly }

fn an_upstream_without_session_ids_is_used_directly(side: Side) {
    let alpha = Fake::legacy().without_sessions().start();
    let weir = Proxy::before(&alpha).run();
    for _ in 0..2 {
        assert!(!weir.client(side).call("alpha__echo", "{}").is_failure());
    }
    assert!(alpha.requests().iter().all(|request| request.session().is_none()));
    assert_eq!(alpha.verbs("DELETE").len(), 0);
    assert_eq!(alpha.violations(), Vec::<String>::new());
}

#[test]
fn c103_the_session_id_stays_short_with_many_upstreams() {
    let upstreams: Vec<Upstream> =
        (0..12).map(|_| Fake::legacy().label(&"long".repeat(45)).start()).collect();
    let mut proxy = Proxy::new();
    for (number, upstream) in upstreams.iter().enumerate() {
        proxy = proxy.upstream(&format!("u{number}"), upstream);
    }
    let weir = proxy.run();
    let client = weir.legacy();
    for number in 0..12 {
        assert!(!client.call(&format!("u{number}__incr"), "{}").is_failure());
    }
    assert!(client.session().unwrap().len() <= 512);
}

#[test]
fn t056_sessions_are_limited() {
    let alpha = Fake::legacy().start();
    let limited = |limit: &str| Proxy::before(&alpha).listen(&format!("sessions: {{ {limit} }}"));
    let open = |weir: &Weir| Client::new(weir.address, Side::Legacy).token("t").initialize();
    let weir = limited("per_principal: 2").token("x", "t", "\"mcp:read\"").run();
    let statuses = [0; 3].map(|_| open(&weir).status());
    assert_eq!(statuses, [200, 200, 429]);
    let weir = limited("total: 2").token("x", "t", "\"mcp:read\"").run();
    assert_eq!([0; 2].map(|_| open(&weir).status()), [200, 200]);
    let over = open(&weir);
    assert_eq!((over.status(), over.code()), (503, 503));
    assert!(over.header("retry-after").is_some());
}

#[test]
fn t058_one_id_twice_in_flight_in_a_session_is_refused() {
    let alpha = Fake::legacy().start();
    let weir = Proxy::before(&alpha).run();
    let client = weir.legacy();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| client.ask(Ask::call("alpha__slow", "{\"ms\":700}").id("\"same\"")));
        eventually!(alpha.calls("slow").len() == 1);
        let second = client.ask(Ask::call("alpha__echo", "{}").id("\"same\""));
        assert_eq!((second.status(), second.code()), (400, -32600));
        assert_eq!(first.join().unwrap().said(), "slow");
    });
    assert_eq!(alpha.calls("echo").len(), 0);
}
