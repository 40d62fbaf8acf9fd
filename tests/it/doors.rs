//! Doors closed by default: who may come in, what may come in, and what of it goes further.

use std::process::Output;
use std::time::Duration;

use tokio::time::Instant;

use crate::support::eventually::holds;
use crate::support::exchange::Exchange;
use crate::support::proxy::weir;
use crate::support::{Ask, Client, Fake, Pair, Proxy, Side, Weir, eras, eventually, json, pairs};

pairs! { c091_nothing_of_the_client_travels_upstream }

eras! { t014_a_client_that_reads_nothing_is_given_up }

const PING: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";

/// Every kind of request that there is, without a session.
pub(crate) fn kinds(weir: &Weir) -> Vec<Exchange> {
    let list = weir.modern().request(&Ask::new("tools/list"));
    let call = weir.modern().request(&Ask::call("alpha__echo", "{}"));
    let initialize = weir.post("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{}}");
    let bare = |verb| Exchange::new(weir.address, verb, "/mcp").header("Accept", "text/event-stream");
    vec![list, call, initialize, bare("GET"), bare("DELETE"), weir.post("not json")]
}

#[test]
fn c092_a_foreign_origin_is_refused_before_anything_else() {
    let alpha = Fake::modern().start();
    let weir = Proxy::before(&alpha).listen("allowed_origins: [\"https://app.example\"]").run();
    let before = alpha.asked();
    for origin in [
        "https://evil.example",
        "null",
        "https://app.example.evil",
        "https://app.example:444",
        "http://app.example",
    ] {
        for exchange in kinds(&weir) {
            let response = exchange.header("Origin", origin).send();
            assert_eq!(response.status(), 403, "{origin}");
            assert_eq!(response.header("access-control-allow-origin"), None);
        }
    }
    assert_eq!(alpha.asked(), before);
    let list = || weir.modern().request(&Ask::new("tools/list"));
    assert_eq!(list().header("Origin", "https://app.example").send().status(), 200);
    assert_eq!(list().send().status(), 200);
    let two = list().header("Origin", "https://app.example").header("Origin", "https://evil.example").send();
    assert!(matches!(two.status(), 400 | 403), "{}", two.status());
}

#[test]
fn c092_a_loopback_listener_takes_loopback_origins() {
    let alpha = Fake::modern().start();
    let weir = Proxy::before(&alpha).run();
    for (origin, status) in [
        ("http://localhost:3000", 200),
        ("http://127.0.0.1", 200),
        ("http://[::1]:8080", 200),
        ("https://app.example", 403),
        ("http://localhost.evil.example", 403),
        ("http://127.0.0.1.evil.example", 403),
    ] {
        let list = weir.modern().request(&Ask::new("tools/list")).header("Origin", origin);
        assert_eq!(list.send().status(), status, "{origin}");
    }
}

#[test]
fn t040_a_foreign_host_is_refused() {
    let alpha = Fake::modern().start();
    let weir = Proxy::before(&alpha).run();
    for host in ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example"] {
        for exchange in kinds(&weir) {
            assert_eq!(exchange.set("Host", host).send().status(), 403, "{host}");
        }
    }
    for host in ["localhost", "localhost:1", "127.0.0.1", "[::1]:9", "LOCALHOST"] {
        let list = weir.modern().request(&Ask::new("tools/list").header("Host", host));
        assert_eq!(list.send().status(), 200, "{host}");
    }
}

#[test]
fn t047_a_host_that_cannot_be_read_is_refused() {
    let alpha = Fake::modern().start();
    let weir = Proxy::before(&alpha).run();
    let list = || weir.modern().request(&Ask::new("tools/list"));
    for host in ["localhost/x", "localhost?x", "localhost#x", "user@localhost", "local\\host", ""] {
        let status = list().set("Host", host).send().status();
        assert!(matches!(status, 400 | 403), "{host:?}: {status}");
    }
    assert_eq!(list().without("Host").send().status(), 400, "none");
    assert_eq!(list().header("Host", "localhost").send().status(), 400, "two");
}

#[test]
fn c093_preflight_names_what_clients_need() {
    let alpha = Fake::modern().start();
    let weir = Proxy::before(&alpha)
        .listen("allowed_origins: [\"https://app.example\"]")
        .token("ci", "secret", "\"mcp:read\"")
        .run();
    let wanted = "authorization, content-type, mcp-session-id, mcp-protocol-version, mcp-method, mcp-name, last-event-id";
    let preflight = |origin: &str| {
        Exchange::new(weir.address, "OPTIONS", "/mcp")
            .header("Origin", origin)
            .header("Access-Control-Request-Method", "POST")
            .header("Access-Control-Request-Headers", wanted)
            .send()
    };
    let good = preflight("https://app.example");
    assert!((200..300).contains(&good.status()), "{}", good.status());
    assert_eq!(good.header("access-control-allow-origin"), Some("https://app.example"));
    assert!(good.header("vary").is_some_and(|vary| vary.to_lowercase().contains("origin")));
    let allowed = good.header("access-control-allow-headers").unwrap_or_default().to_lowercase();
    assert!(wanted.split(", ").all(|name| allowed.contains(name)), "{allowed}");
    let methods = good.header("access-control-allow-methods").unwrap_or_default();
    assert!(["GET", "POST", "DELETE"].iter().all(|method| methods.contains(method)), "{methods}");
    assert_eq!(preflight("https://evil.example").header("access-control-allow-origin"), None);
}

#[test]
fn c094_every_answer_to_an_allowed_origin_says_so() {
    let alpha = Fake::modern().start();
    let weir = Proxy::before(&alpha)
        .listen("allowed_origins: [\"https://app.example\"]")
        .listen("limits: { body: 64KiB }")
        .token("ci", "secret", "\"mcp:read\"")
        .run();
    let client = Client::new(weir.address, Side::Modern).token("secret");
    let list = client.request(&Ask::new("tools/list"));
    let call = client.request(&Ask::call("alpha__echo", "{}"));
    let stranger = Client::new(weir.address, Side::Legacy).token("secret").with_session("x");
    let cases = [
        (200, list.clone()),
        (401, list.clone().without("Authorization")),
        (403, call),
        (404, stranger.post(PING)),
        (400, client.post("{")),
        (405, client.exchange("PUT")),
        (413, client.post("x".repeat(100_000))),
        (200, list.set("Accept", "text/event-stream")),
    ];
    for (status, exchange) in cases {
        let response = exchange.header("Origin", "https://app.example").send();
        assert_eq!(response.status(), status);
        assert_eq!(response.header("access-control-allow-origin"), Some("https://app.example"), "{status}");
        let exposed = response.header("access-control-expose-headers").unwrap_or_default().to_lowercase();
        assert!(
            exposed.contains("mcp-session-id") && exposed.contains("www-authenticate"),
            "{status}: {exposed}"
        );
    }
}

fn c091_nothing_of_the_client_travels_upstream(pair: Pair) {
    let keys = "credential: { bearer: \"upstreams-own\" }\nforward_headers: [X-Tenant]";
    let (alpha, _weir, client) = pair.set_up_with(pair.fake(), keys);
    let mut ask = Ask::call("alpha__echo", "{}").header("X-Tenant", "t1");
    let sent = [
        "Authorization",
        "Cookie",
        "Proxy-Authorization",
        "X-Api-Key",
        "Referer",
        "X-Forwarded-For",
        "X-Forwarded-Proto",
        "X-Forwarded-Host",
        "Forwarded",
        "X-Secret",
        "X-Real-IP",
        "X-Original-URL",
        "User-Agent",
        "Accept-Language",
    ];
    for name in sent {
        ask = ask.header(name, "CANARY");
    }
    assert!(
        !client.ask(ask.header("Connection", "X-Secret").header("Origin", "http://localhost")).is_failure()
    );
    for request in alpha.requests() {
        let fields = &request.head.fields;
        assert!(fields.iter().all(|(_, value)| !value.contains("CANARY")), "{fields:?}");
        assert!(request.header("origin").is_none() && request.header("referer").is_none());
        assert_eq!(request.header("authorization"), Some("Bearer upstreams-own"), "{}", request.method());
    }
    let known = [
        "host",
        "accept",
        "accept-encoding",
        "content-type",
        "content-length",
        "user-agent",
        "authorization",
        "mcp-protocol-version",
        "mcp-method",
        "mcp-name",
        "mcp-session-id",
        "x-tenant",
        "traceparent",
        "connection",
        "transfer-encoding",
    ];
    let call = &alpha.calls("echo")[0];
    assert_eq!(call.header("x-tenant"), Some("t1"), "on the list of what passes");
    let strange = |name: &String| !known.contains(&name.to_lowercase().as_str());
    assert!(!call.head.fields.iter().any(|(name, _)| strange(name)), "{:?}", call.head);
}

#[test]
fn t001_a_large_head_is_refused() {
    let alpha = Fake::modern().start();
    let weir = Proxy::before(&alpha).run();
    let list = || weir.modern().request(&Ask::new("tools/list"));
    assert_eq!(list().header("X-Long", &"x".repeat(20_000)).send().status(), 200, "below the limit");
    assert_eq!(list().header("X-Long", &"x".repeat(40_000)).send().status(), 431);
    let many = (0..110).fold(list(), |list, number| list.header(&format!("X-{number}"), "1"));
    assert_eq!(many.send().status(), 431, "more than 100 fields");
    let body = "{}";
    let long = Exchange::post(weir.address, &format!("/mcp?{}", "q".repeat(9000)), body).send();
    assert_eq!(long.status(), 414, "T002");
    assert_eq!(list().send().status(), 200, "the next one is served");
}

/// A call whose body has exactly this many bytes.
fn sized(client: &Client, bytes: usize) -> Exchange {
    let call = |fill: usize| {
        let ask = Ask::call("alpha__echo", &format!("{{\"x\":\"{}\"}}", "x".repeat(fill))).id("1");
        client.request(&ask)
    };
    let head = |exchange: &Exchange| exchange.bytes().windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 4;
    let empty = call(0);
    let own = empty.bytes().len() - head(&empty);
    call(bytes - own)
}

#[test]
fn c102_the_body_limit_holds_at_the_boundary() {
    const LIMIT: usize = 1 << 20;
    let alpha = Fake::modern().start();
    let weir = Proxy::before(&alpha).listen("limits: { body: 1MiB }").run();
    for client in [weir.modern(), weir.legacy()] {
        assert_eq!(sized(&client, LIMIT).send().status(), 200);
        let over = sized(&client, LIMIT + 1).send();
        assert_eq!(over.status(), 413);
        assert_eq!(json::raw(&over.text(), &["error", "code"]), Some("-32600"));
    }
    let client = weir.modern();
    let before = alpha.asked();
    let begun = Instant::now();
    let announced = client.post("{").unframed().header("Content-Length", "999999999").send();
    assert_eq!(announced.status(), 413, "T003: before the body is read");
    assert!(begun.elapsed() < Duration::from_secs(1));
    assert!(announced.closes(), "what follows is not read as a request");
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    let chunked = client.post(chunk.repeat(20)).unframed().header("Transfer-Encoding", "chunked").send();
    assert_eq!(chunked.status(), 413, "T004: without a length");
    assert_eq!(alpha.asked(), before);
    assert_eq!(client.names().len(), 7);
}

#[test]
fn c102_the_default_limit_is_large() {
    let alpha = Fake::modern().start();
    let weir = Proxy::before(&alpha).run();
    assert_eq!(sized(&weir.modern(), 5 << 20).send().status(), 200);
}

#[test]
fn t013_t087_connections_are_limited() {
    let alpha = Fake::modern().start();
    let weir = Proxy::before(&alpha).listen("limits: { connections: 3 }").run();
    let list = weir.modern().request(&Ask::new("tools/list"));
    let held = [0; 3].map(|_| std::net::TcpStream::connect(weir.address).unwrap());
    let refused = |response: Option<crate::support::exchange::Response>| {
        response.is_none_or(|r| r.status() == 503 && r.header("retry-after").is_some())
    };
    eventually!(refused(list.try_send()), "a fourth connection is refused");
    assert_eq!(weir.admin_get("/livez").0, 200, "the admin address stays in reach");
    drop(held);
    eventually!(list.try_send().is_some_and(|response| response.status() == 200));
}

#[test]
fn t015_a_compressed_request_is_refused() {
    let alpha = Fake::modern().start();
    let weir = Proxy::before(&alpha).run();
    let packed = weir.modern().request(&Ask::new("tools/list")).header("Content-Encoding", "gzip").send();
    assert_eq!(packed.status(), 415);
}

#[test]
fn t010_a_head_that_never_ends_is_given_up() {
    let alpha = Fake::modern().start();
    let weir = Proxy::before(&alpha).listen("limits: { header_timeout: 300ms }").run();
    let mut socket = std::net::TcpStream::connect(weir.address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    std::io::Write::write_all(&mut socket, b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-").unwrap();
    let begun = Instant::now();
    std::io::Read::read_to_end(&mut socket, &mut Vec::new()).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    let slow = weir.modern().post("{\"jsonrpc\"").unframed().header("Content-Length", "1000").send();
    assert_eq!(slow.status(), 408, "T011: a body that pauses");
}

/// Reads what is there until the other side has closed.
fn rest(mut socket: std::net::TcpStream) -> usize {
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let (mut buffer, mut all) = (vec![0; 65_536], 0);
    loop {
        match std::io::Read::read(&mut socket, &mut buffer) {
            Ok(0) => return all,
            Ok(count) => all += count,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return all,
            Err(error) => panic!("the connection is open: {error}"),
        }
    }
}

/// Large answers take their time where everything else runs as well.
const LONG: Duration = Duration::from_secs(30);

fn t014_a_client_that_reads_nothing_is_given_up(side: Side) {
    let alpha = Fake::of(side).start();
    let weir = Proxy::before(&alpha).listen("limits: { header_timeout: 300ms }").run();
    let client = weir.client(side);
    let whole = client.request(&Ask::call("alpha__big", "{\"n\":12000000}")).send_only();
    let steps = Ask::call("alpha__steps", "{\"count\":100000}").progress("\"p\"");
    let stream = client.request(&steps).send_only();
    eventually!(weir.metric("weir_calls_in_flight", &[]) == Some(2.0));
    // What it did not take is not kept, and in the era where a connection is the call, that ends too.
    if side == Side::Modern {
        let none = || weir.metric("weir_upstream_calls_in_flight", &[]) == Some(0.0);
        assert!(holds(LONG, none), "the calls end upstream");
    }
    assert!(holds(LONG, || weir.log().contains("stream.stalled")), "{}", weir.log());
    assert!(rest(whole) < 12_000_000, "cut");
    rest(stream);
    assert!(!client.call("alpha__echo", "{}").is_failure());
}

#[test]
fn c097_errors_show_nothing_internal() {
    let beta =
        Fake::modern().script("tools/call", |_, wire| wire.page(500, "text/plain", "token=sekret")).start();
    let weir = Proxy::new()
        .upstream_at("alpha", "http://127.0.0.1:1/mcp?key=sekret", "")
        .upstream_at("beta", &format!("{}?key=sekret", beta.url()), "")
        .run();
    let client = weir.modern();
    let answers = [
        client.call("alpha__echo", "{}"),
        client.call("beta__echo", "{}"),
        client.ask(Ask::new("tools/list")),
    ];
    for answer in answers {
        assert!(
            !answer.body().contains("sekret") && !answer.body().contains("127.0.0.1"),
            "{}",
            answer.body()
        );
    }
    assert!(!weir.log().contains("sekret"), "{}", weir.log());
    assert!(!weir.admin_get("/metrics").1.contains("sekret"));
}

/// Runs `weir serve` with a configuration that it must refuse.
fn refused(text: &str) -> Output {
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("routes.yaml");
    std::fs::write(&file, text).unwrap();
    weir().args(["serve", "--admin", "127.0.0.1:0", "--config"]).arg(&file).output().unwrap()
}

#[test]
fn c095_a_configuration_that_cannot_be_used_is_exit_2() {
    let upstream = "upstreams: { a: { builtin: clock } }\n";
    for (text, words) in [
        ("upstreams: [", vec!["routes.yaml:"]),
        (
            "listen: { address: \"127.0.0.1:0\" }\nupstreams: { a: { builtin: clock, timout: 5s } }",
            vec!["timout", ":2:"],
        ),
        (&format!("listen: {{ address: \"0.0.0.0:0\" }}\n{upstream}"), vec!["access"]),
        (&format!("listen: {{ address: \"127.0.0.1:0\" }}\naccess: {{}}\n{upstream}"), vec!["access"]),
        (&format!("listen: {{ address: \"127.0.0.1:0\" }}\n{upstream}{upstream}"), vec!["upstreams"]),
        ("upstreams: { a__b: { builtin: clock } }", vec!["a__b", "namespace"]),
    ] {
        let output = refused(text);
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}: {told}");
        for word in words {
            assert!(told.contains(word), "{word} is not in {told}");
        }
    }
}

#[test]
fn a_configuration_that_cannot_be_read_is_exit_2() {
    let output = weir().args(["serve", "--config", "/nonexistent/routes.yaml"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nonexistent/routes.yaml"));
}

#[test]
fn t127_open_access_off_loopback_has_to_be_written_out() {
    let alpha = Fake::modern().start();
    let text = format!(
        "listen: {{ address: \"0.0.0.0:0\" }}\nupstreams: {{ alpha: {{ url: \"{}\" }} }}\n",
        alpha.url()
    );
    assert_eq!(refused(&text).status.code(), Some(2));
    let weir = Proxy::before(&alpha).section("access: open\n").address("0.0.0.0:0").run();
    assert!(weir.printed[0].starts_with("listening http://0.0.0.0:"), "{:?}", weir.printed);
}
