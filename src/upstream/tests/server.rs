//! A scripted HTTP/1.1 server: a closure from what was seen to what is answered.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::task::TaskGroup;

/// One request as the server saw it.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) verb: String,
    pub(super) path: String,
    /// Names in lower case; a header that came twice has its values joined with `|`.
    pub(super) headers: HashMap<String, String>,
    pub(super) body: Value,
    /// How many requests came before this one.
    pub(super) number: usize,
}

impl Seen {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The JSON-RPC method, or the HTTP verb where there is no body.
    pub(super) fn method(&self) -> String {
        self.body["method"].as_str().map_or_else(|| self.verb.clone(), str::to_owned)
    }

    /// The raw id, as it goes into an answer.
    pub(super) fn id(&self) -> String {
        self.body["id"].to_string()
    }
}

/// What a server does with a request.
#[derive(Debug, Clone)]
pub(super) enum Answer {
    /// A whole body.
    Whole { status: u16, headers: Vec<(String, String)>, body: Vec<u8> },
    /// An event stream: its pieces, and what follows them.
    Stream { headers: Vec<(String, String)>, pieces: Vec<Piece> },
    /// Nothing at all, for as long as the client waits.
    Silence,
    /// The connection is closed without a word.
    Cut,
}

/// One piece of a stream.
#[derive(Debug, Clone)]
pub(super) enum Piece {
    Text(String),
    /// Closes the connection in the middle.
    Cut,
    /// Keeps the stream open until the client goes.
    Hold,
    /// Keeps the stream open for a moment.
    Wait(Duration),
    /// Whatever comes from a channel, until that is closed; once.
    Feed(Feed),
}

/// The end of a channel, taken by the first who asks.
pub(super) type Feed = Arc<Mutex<Option<mpsc::Receiver<String>>>>;

pub(super) fn json(status: u16, body: impl Into<String>) -> Answer {
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    Answer::Whole { status, headers, body: body.into().into_bytes() }
}

pub(super) fn text(status: u16, body: &str) -> Answer {
    let headers = vec![("content-type".to_owned(), "text/html".to_owned())];
    Answer::Whole { status, headers, body: body.as_bytes().to_vec() }
}

pub(super) fn empty(status: u16) -> Answer {
    Answer::Whole { status, headers: Vec::new(), body: Vec::new() }
}

pub(super) fn result(seen: &Seen, result: &str) -> Answer {
    json(200, format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, seen.id()))
}

pub(super) fn error(seen: &Seen, status: u16, code: i64, message: &str) -> Answer {
    let error = format!(r#"{{"code":{code},"message":"{message}"}}"#);
    json(status, format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, seen.id()))
}

/// An event stream with one event per text.
pub(super) fn events(texts: &[&str], end: Option<Piece>) -> Answer {
    let pieces = texts.iter().map(|text| Piece::Text(format!("data: {text}\n\n")));
    Answer::Stream { headers: Vec::new(), pieces: pieces.chain(end).collect() }
}

impl Answer {
    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        if let Self::Whole { headers, .. } | Self::Stream { headers, .. } = &mut self {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }
}

/// A running server; it ends with its task group.
#[derive(Debug, Clone)]
pub(super) struct Server {
    pub(super) port: u16,
    log: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// Starts a server on a free port.
    pub(super) async fn start(
        tasks: &TaskGroup,
        script: impl Fn(&Seen) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self { port: listener.local_addr().unwrap().port(), log: Arc::default() };
        let (log, script, group) = (Arc::clone(&server.log), Arc::new(script), tasks.clone());
        tasks.spawn_until_cancelled("server", async move {
            while let Ok((socket, _)) = listener.accept().await {
                let serving = connection(socket, Arc::clone(&log), Arc::clone(&script));
                group.spawn_until_cancelled("connection", serving);
            }
        });
        server
    }

    /// Everything that was seen so far.
    pub(super) fn seen(&self) -> Vec<Seen> {
        self.log.lock().unwrap().clone()
    }

    /// How many requests with this method (or verb) were seen.
    pub(super) fn count(&self, method: &str) -> usize {
        self.seen().iter().filter(|seen| seen.method() == method).count()
    }

    /// The requests with this method (or verb).
    pub(super) fn of(&self, method: &str) -> Vec<Seen> {
        self.seen().into_iter().filter(|seen| seen.method() == method).collect()
    }

    /// Waits until so many requests with this method were seen.
    pub(super) async fn saw(&self, method: &str, count: usize) {
        let waiting = async {
            while self.count(method) < count {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let in_time = tokio::time::timeout(Duration::from_secs(10), waiting).await;
        let methods: Vec<String> = self.seen().iter().map(Seen::method).collect();
        assert!(in_time.is_ok(), "{method} was not seen {count} times in {methods:?}");
    }
}

async fn connection<S>(mut socket: TcpStream, log: Arc<Mutex<Vec<Seen>>>, script: Arc<S>)
where
    S: Fn(&Seen) -> Answer + Send + Sync,
{
    let mut buffer = Vec::new();
    while let Some(mut seen) = read(&mut socket, &mut buffer).await {
        {
            let mut log = log.lock().unwrap();
            seen.number = log.len();
            log.push(seen.clone());
        }
        match script(&seen) {
            Answer::Cut => return,
            Answer::Silence => return gone(&mut socket).await,
            Answer::Whole { status, headers, body } => {
                let head = head(status, &headers, &format!("content-length: {}", body.len()));
                let _sent = socket.write_all(&[head.into_bytes(), body].concat()).await;
            }
            Answer::Stream { mut headers, pieces } => {
                headers.push(("content-type".to_owned(), "text/event-stream".to_owned()));
                let head = head(200, &headers, "transfer-encoding: chunked");
                let _sent = socket.write_all(head.as_bytes()).await;
                if stream(&mut socket, pieces).await.is_none() {
                    return;
                }
            }
        }
    }
}

/// Writes the pieces; `None` where the connection ends with them.
async fn stream(socket: &mut TcpStream, pieces: Vec<Piece>) -> Option<()> {
    for piece in pieces {
        match piece {
            Piece::Text(text) => {
                let chunk = format!("{:x}\r\n{text}\r\n", text.len());
                let _sent = socket.write_all(chunk.as_bytes()).await;
            }
            Piece::Cut => return None,
            Piece::Hold => {
                gone(socket).await;
                return None;
            }
            Piece::Wait(time) => tokio::time::sleep(time).await,
            Piece::Feed(feed) => {
                let mut feed = feed.lock().unwrap().take()?;
                while let Some(text) = feed.recv().await {
                    let chunk = format!("{:x}\r\n{text}\r\n", text.len());
                    socket.write_all(chunk.as_bytes()).await.ok()?;
                }
            }
        }
    }
    socket.write_all(b"0\r\n\r\n").await.ok()
}

fn head(status: u16, headers: &[(String, String)], framing: &str) -> String {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("HTTP/1.1 {status} X\r\n{headers}{framing}\r\n\r\n")
}

/// Waits until the client has closed.
async fn gone(socket: &mut TcpStream) {
    let mut rest = [0; 64];
    while socket.read(&mut rest).await.is_ok_and(|count| count > 0) {}
}

async fn read(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Seen> {
    let end = loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        fill(socket, buffer).await?;
    };
    let head = String::from_utf8(buffer[..end].to_vec()).unwrap();
    let mut lines = head.trim_end().split("\r\n");
    let mut start = lines.next()?.split(' ');
    let mut headers = HashMap::new();
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        headers
            .entry(name.to_ascii_lowercase())
            .and_modify(|old: &mut String| *old = format!("{old}|{}", value.trim()))
            .or_insert_with(|| value.trim().to_owned());
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    while buffer.len() < end + length {
        fill(socket, buffer).await?;
    }
    let body = serde_json::from_slice(&buffer[end..end + length]).unwrap_or(Value::Null);
    buffer.drain(..end + length);
    let (verb, path) = (start.next()?.to_owned(), start.next()?.to_owned());
    Some(Seen { verb, path, headers, body, number: 0 })
}

async fn fill(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<()> {
    let mut chunk = vec![0; 16384];
    let count = socket.read(&mut chunk).await.ok().filter(|count| *count > 0)?;
    buffer.extend_from_slice(&chunk[..count]);
    Some(())
}
