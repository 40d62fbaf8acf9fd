//! Requests that are no good HTTP, byte by byte: nothing of them becomes a second request, and nothing reaches an
//! upstream.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use tokio::time::Instant;

use crate::support::{Ask, Fake, Proxy, Side, Upstream, Weir, eventually};

fn set_up() -> (Upstream, Weir) {
    let alpha = Fake::modern().start();
    let weir = Proxy::before(&alpha).listen("limits: { header_timeout: 300ms }").run();
    (alpha, weir)
}

/// Sends these bytes; everything that comes back until the connection is closed or nothing more comes.
fn said(to: SocketAddr, bytes: &[u8]) -> String {
    let mut socket = TcpStream::connect(to).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    socket.write_all(bytes).ok();
    let mut all = Vec::new();
    socket.read_to_end(&mut all).ok();
    String::from_utf8_lossy(&all).into_owned()
}

/// The statuses of the answers in a text.
fn statuses(text: &str) -> Vec<&str> {
    text.split("HTTP/1.1 ").skip(1).filter_map(|answer| answer.get(..3)).collect()
}

/// A call as it stands in a request.
fn call() -> String {
    let meta = "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{}";
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{{\"name\":\"alpha__echo\",\"_meta\":{{{meta}}}}}}}"
    )
}

/// A request with this head (after the usual one) and this body, with nothing added.
fn request(head: &str, body: &str) -> Vec<u8> {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n\
         Mcp-Name: alpha__echo\r\n{head}\r\n{body}"
    )
    .into_bytes()
}

#[test]
fn t002_a_long_target_is_refused() {
    let (_alpha, weir) = set_up();
    let text = said(
        weir.address,
        format!("GET /mcp?{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "x".repeat(9000)).as_bytes(),
    );
    assert_eq!(statuses(&text), ["414"]);
    assert!(!text.contains("xxxx"), "no echo");
}

#[test]
fn t005_t006_t007_framing_that_two_readers_read_differently() {
    let (alpha, weir) = set_up();
    let body = call();
    let chunked = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let second = "GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let both = format!("Transfer-Encoding: chunked\r\nContent-Length: {}\r\n", chunked.len() + second.len());
    let text = said(weir.address, &request(&both, &format!("{chunked}{second}")));
    assert_eq!(statuses(&text).len(), 1, "T005: one answer, then the connection is closed: {text}");
    let one = body.len();
    let bad = [
        format!("Content-Length: {one}\r\nContent-Length: {}\r\n", one + 1),
        "Content-Length: -1\r\n".to_owned(),
        format!("Content-Length: +{one}\r\n"),
        format!("Content-Length: {one}, {}\r\n", one + 1),
        "Transfer-Encoding: xchunked\r\n".to_owned(),
        "Transfer-Encoding: chunked, identity\r\n".to_owned(),
        format!("Content-Length : {one}\r\n"),
        format!("X-Folded: a\r\n b\r\nContent-Length: {one}\r\n"),
        format!("X-Null: a\0b\r\nContent-Length: {one}\r\n"),
        format!("X-Return: a\rb\r\nContent-Length: {one}\r\n"),
    ];
    let before = alpha.calls("echo").len();
    for head in bad {
        let text = said(weir.address, &request(&head, &format!("{body}{second}")));
        assert_eq!(statuses(&text), ["400"], "{head:?}: {text}");
    }
    let old = said(
        weir.address,
        b"POST /mcp HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    );
    assert!(old.contains(" 400 "), "{old}");
    let extension = format!("{:x};a=\nb\r\n{body}\r\n0\r\n\r\n", body.len());
    let text = said(weir.address, &request("Transfer-Encoding: chunked\r\n", &extension));
    assert!(matches!(statuses(&text).as_slice(), ["400"] | []), "{text}");
    assert_eq!(alpha.calls("echo").len(), before, "no upstream contact");
    assert!(!weir.modern().call("alpha__echo", "{}").is_failure());
}

#[test]
fn t008_an_upgrade_is_ignored_and_what_follows_is_a_request_of_its_own() {
    let (_alpha, weir) = set_up();
    let body = call();
    let head = format!("Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: {}\r\n", body.len());
    let second = "GET /nowhere HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let text = said(weir.address, &request(&head, &format!("{body}{second}")));
    assert_eq!(statuses(&text), ["200", "404"], "{text}");
    let foreign = "GET /mcp HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    let text = said(weir.address, &request(&head, &format!("{body}{foreign}")));
    assert_eq!(statuses(&text), ["200", "403"], "it is judged like any other: {text}");
}

#[test]
fn t003_t004_t009_a_refused_body_is_not_read_as_the_next_request() {
    let alpha = Fake::modern().start();
    let weir = Proxy::before(&alpha)
        .listen("limits: { body: 1KiB }")
        .listen("public_url: https://gw.example")
        .listen("allowed_hosts: [localhost, 127.0.0.1]")
        .token("one", "token-1", "\"mcp:admin\"")
        .run();
    let second = "GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n";
    // Its length is announced: nothing of the body is read.
    let text = said(weir.address, &request(&format!("Content-Length: {}\r\n", 1 << 20), second));
    assert_eq!(statuses(&text), ["401"], "T009: without a token: {text}");
    let authorized = "Authorization: Bearer token-1\r\n";
    let text = said(weir.address, &request(&format!("{authorized}Content-Length: {}\r\n", 1 << 20), second));
    assert_eq!(statuses(&text), ["413"], "T003: {text}");
    let chunk = format!("{:x}\r\n{}\r\n", 600, "x".repeat(600));
    let chunks = format!("{chunk}{chunk}{second}");
    let text = said(weir.address, &request(&format!("{authorized}Transfer-Encoding: chunked\r\n"), &chunks));
    assert_eq!(statuses(&text), ["413"], "T004: {text}");
    assert!(alpha.calls("echo").is_empty());
}

#[test]
fn t012_a_connection_without_a_byte_is_closed() {
    let (_alpha, weir) = set_up();
    let mut socket = TcpStream::connect(weir.address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let begun = Instant::now();
    assert_eq!(socket.read_to_end(&mut Vec::new()).unwrap(), 0);
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
}

#[test]
fn t016_t017_t018_methods_and_types_that_are_not_served() {
    let (_alpha, weir) = set_up();
    let client = weir.modern();
    for kind in ["text/plain", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"] {
        let request = client.request(&Ask::new("tools/list").header("Content-Type", kind));
        assert_eq!(request.send().status(), 415, "{kind}");
    }
    let html = client.request(&Ask::new("tools/list").header("Accept", "text/html")).send();
    assert_eq!(html.status(), 406);
    for verb in ["PUT", "PATCH", "TRACE", "HEAD"] {
        let text = said(
            weir.address,
            format!("{verb} /mcp HTTP/1.1\r\nHost: localhost\r\nX-Echo: canary-echo\r\n\r\n").as_bytes(),
        );
        assert_eq!(statuses(&text), ["405"], "{verb}");
        assert!(
            text.to_ascii_lowercase().contains("allow: get, post, delete") && !text.contains("canary-echo"),
            "{text}"
        );
    }
    let text = said(weir.address, b"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n");
    assert!(matches!(statuses(&text).as_slice(), ["400" | "403" | "404" | "405"]), "{text}");
}

#[test]
fn t091_definitions_cannot_be_sent() {
    let (_alpha, weir) = set_up();
    let body = "{\"command\":[\"touch\",\"/tmp/weir-was-here\"],\"url\":\"http://127.0.0.1:1/\"}";
    for path in ["/api/upstreams", "/upstreams", "/api/status", "/config", "/mcp/upstreams"] {
        for address in [weir.address, weir.admin()] {
            let request = format!(
                "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
            let text = said(address, request.as_bytes());
            assert!(matches!(statuses(&text).as_slice(), ["404" | "405"]), "{path}: {text}");
        }
    }
}

#[test]
fn c101_at_the_limit_of_descriptors_it_pauses_and_recovers() {
    let alpha = Fake::modern().start();
    let weir = Proxy::before(&alpha).descriptors(96).run();
    let base = std::fs::read_dir(format!("/proc/{}/fd", weir.pid())).unwrap().count();
    let held: Vec<TcpStream> = (0..200).filter_map(|_| TcpStream::connect(weir.address).ok()).collect();
    eventually!(weir.log().contains("accept.error"), "{}", weir.log());
    let lines = weir.log().matches("accept.error").count();
    assert!(lines < 200, "no busy loop: {lines} lines");
    drop(held);
    let now = || std::fs::read_dir(format!("/proc/{}/fd", weir.pid())).unwrap().count();
    eventually!(now() <= base + 4, "{} descriptors, {base} before", now());
    eventually!(
        weir.client(Side::Modern)
            .request(&Ask::new("tools/list"))
            .try_send()
            .is_some_and(|r| r.status() == 200)
    );
}
