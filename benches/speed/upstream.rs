//! An upstream of both eras. It takes what it is told from the call, and from the path which tools it has.

use std::io::{BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use super::http::{between, read_body, read_head};

/// How long an answer takes at `/slow/N`.
const SLOW: Duration = Duration::from_millis(50);

/// How many tools there are at `/list/N`.
pub(crate) const TOOLS: usize = 100;

/// Starts it; where it is.
pub(crate) fn start() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || converse(stream));
        }
    });
    address
}

fn converse(stream: TcpStream) {
    stream.set_nodelay(true).expect("nodelay");
    let mut stream = BufReader::new(stream);
    // What a large call answers is made once.
    let mut text = String::new();
    while let Some(head) = read_head(&mut stream) {
        let body = if head.starts_with("POST") { read_body(&mut stream, &head) } else { String::new() };
        if head.starts_with("POST /slow/") && body.contains("\"id\":") {
            std::thread::park_timeout(SLOW);
        }
        if stream.get_mut().write_all(answer(&head, &body, &mut text).as_bytes()).is_err() {
            return;
        }
    }
}

fn answer(head: &str, body: &str, text: &mut String) -> String {
    let id = between(body, "\"id\":", &[',', '}']).unwrap_or("null");
    let modern = body.contains("io.modelcontextprotocol/protocolVersion");
    let of_modern = if modern { r#","resultType":"complete""# } else { "" };
    let cached = if modern { r#","ttlMs":60000,"cacheScope":"public""# } else { "" };
    let result = if !head.starts_with("POST") {
        return "HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n".to_owned();
    } else if body.contains("\"tools/call\"") {
        let bytes: usize =
            between(body, "\"bytes\":", &['}']).and_then(|text| text.trim().parse().ok()).unwrap_or(1);
        if text.len() != bytes {
            *text = "x".repeat(bytes);
        }
        format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]{of_modern}}}"#)
    } else if body.contains("\"tools/list\"") {
        format!(r#"{{"tools":[{}]{of_modern}{cached}}}"#, tools(head))
    } else if body.contains("\"initialize\"") {
        r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}"#
            .to_owned()
    } else if body.contains("\"server/discover\"") && modern {
        format!(
            r#"{{"supportedVersions":["2026-07-28"],"capabilities":{{"tools":{{}}}}{of_modern}{cached}}}"#
        )
    } else {
        return "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n".to_owned();
    };
    let message = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
    if head.starts_with("POST /events") && body.contains("\"tools/call\"") {
        return events(&message);
    }
    let session = if body.contains("\"initialize\"") { "mcp-session-id: bench\r\n" } else { "" };
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{session}content-length: {}\r\n\r\n{message}",
        message.len()
    )
}

/// The answer as an event, behind a log message.
fn events(message: &str) -> String {
    let log =
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"working"}}"#;
    let chunk = |message: &str| format!("{:x}\r\ndata: {message}\n\n\r\n", message.len() + 8);
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n{}{}0\r\n\r\n",
        chunk(log),
        chunk(message)
    )
}

fn tools(head: &str) -> String {
    if !head.starts_with("POST /list/") {
        return r#"{"name":"big","inputSchema":{"type":"object"}}"#.to_owned();
    }
    (0..TOOLS).map(tool).collect::<Vec<_>>().join(",")
}

/// A definition of about 1.1 KiB.
fn tool(number: usize) -> String {
    let describe =
        "Looks the record up, checks that the caller may see it, and returns it with its history. ";
    let argument = |name: &str| {
        format!(
            r#""{name}":{{"type":"string","description":"The {name} of the record, as the list of records names it.","maxLength":120}}"#
        )
    };
    let arguments: Vec<String> = ["project", "record", "revision", "locale", "format"].map(argument).to_vec();
    format!(
        r#"{{"name":"record_action_{number:03}","title":"Record action {number}","description":"{}","inputSchema":{{"type":"object","properties":{{{}}},"required":["project","record"],"additionalProperties":false}},"annotations":{{"readOnlyHint":{}}}}}"#,
        describe.repeat(3),
        arguments.join(","),
        number.is_multiple_of(2)
    )
}
