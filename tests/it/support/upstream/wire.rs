//! The answering end of one connection: whole answers, or bytes and pauses.

use std::io::{self, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::time::Instant;

use super::Request;
use super::server::Shared;
use crate::support::{Side, json};

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gone {
    /// The time was up.
    No,
    /// The peer closed the connection.
    Closed,
    /// `notifications/cancelled` came for the request.
    Cancelled,
    /// The server was stopped.
    Stopped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Silent,
    Stream,
    Done,
    Broken,
}

/// What a script answers with.
pub(crate) struct Wire<'a> {
    socket: &'a TcpStream,
    request: &'a Request,
    /// The server it belongs to.
    pub(super) shared: &'a Shared,
    stage: Stage,
    piece: usize,
    breath: Duration,
    fields: Vec<(String, String)>,
    /// The answer goes out on the standing stream of the session: HTTP+SSE.
    apart: bool,
}

impl<'a> Wire<'a> {
    pub(super) fn new(socket: &'a TcpStream, request: &'a Request, shared: &'a Shared) -> Self {
        let breath = Duration::ZERO;
        let (stage, piece, fields) = (Stage::Silent, usize::MAX, Vec::new());
        Self { socket, request, shared, stage, piece, breath, fields, apart: false }
    }

    /// One whose messages go out on the standing stream of the request's session.
    pub(super) fn apart(socket: &'a TcpStream, request: &'a Request, shared: &'a Shared) -> Self {
        Self { apart: true, ..Self::new(socket, request, shared) }
    }

    /// What the server is called.
    pub(crate) fn label(&self) -> &str {
        &self.shared.fake.label
    }

    /// Whether the connection may be used for a further request.
    pub(super) fn reusable(&self) -> bool {
        self.stage == Stage::Done
    }

    /// A further header field of the answer.
    pub(crate) fn with(&mut self, name: &str, value: &str) -> &mut Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    /// From here on bodies go out in pieces of this many bytes, with a breath between them.
    pub(crate) fn cut(&mut self, piece: usize, breath: Duration) -> &mut Self {
        self.piece = piece;
        self.breath = breath;
        self
    }

    /// A result, in the shape of the server's era.
    pub(crate) fn result(&mut self, raw: &str) {
        let message = self.envelope(raw);
        self.answer(200, &message);
    }

    /// The message that carries this result to the request.
    pub(crate) fn envelope(&self, raw: &str) -> String {
        let whole = match self.shared.fake.side {
            Side::Modern if json::raw(raw, &["resultType"]).is_none() => {
                let rest = raw.trim_start().strip_prefix('{').unwrap_or_default();
                let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
                format!("{{\"resultType\":\"complete\"{comma}{rest}")
            }
            Side::Modern | Side::Legacy => raw.to_owned(),
        };
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{whole}}}", self.id())
    }

    fn id(&self) -> &str {
        self.request.id().unwrap_or("null")
    }

    /// A JSON-RPC error, given as its raw object, with HTTP 200.
    pub(crate) fn error(&mut self, raw: &str) {
        let message = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"error\":{raw}}}", self.id());
        self.answer(200, &message);
    }

    /// A JSON-RPC error with a status of its own.
    pub(crate) fn refuse(&mut self, status: u16, code: i64, message: &str) {
        let text = json::quote(message);
        let id = self.id();
        let message =
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":{code},\"message\":{text}}}}}");
        self.answer(status, &message);
    }

    fn answer(&mut self, status: u16, message: &str) {
        match self.shared.fake.framing {
            _ if self.apart => drop(self.event(message)),
            Some(framing) if status == 200 => self.bytes(&framing(message)).end(),
            _ if self.stage == Stage::Stream => self.event(message).end(),
            _ => self.json(status, &[], message),
        }
    }

    /// A notification on the stream of this request.
    pub(crate) fn notify(&mut self, method: &str, params: &str) -> &mut Self {
        self.event(&format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{params}}}"))
    }

    /// `202 Accepted` without a body.
    pub(crate) fn accepted(&mut self) {
        self.bare(202);
    }

    /// A status without a body.
    pub(crate) fn bare(&mut self, status: u16) {
        self.head(status, &[("content-length", "0")]);
        self.finish();
    }

    /// A JSON body with further header fields.
    pub(crate) fn json(&mut self, status: u16, fields: &[(&str, &str)], body: &str) {
        let packed = self.shared.fake.compresses
            && self.request.header("accept-encoding").is_some_and(|value| value.contains("gzip"));
        let mut all = vec![("content-type", "application/json")];
        all.extend_from_slice(fields);
        if packed {
            all.push(("content-encoding", "gzip"));
            self.body(status, &all, &gzip(body.as_bytes()));
        } else {
            self.body(status, &all, body.as_bytes());
        }
    }

    /// Any body with any type.
    pub(crate) fn page(&mut self, status: u16, kind: &str, body: &str) {
        self.body(status, &[("content-type", kind)], body.as_bytes());
    }

    fn body(&mut self, status: u16, fields: &[(&str, &str)], body: &[u8]) {
        let length = body.len().to_string();
        let whole = self.piece == usize::MAX;
        let framing =
            if whole { ("content-length", length.as_str()) } else { ("transfer-encoding", "chunked") };
        let mut all = fields.to_vec();
        all.push(framing);
        self.head(status, &all);
        if whole {
            self.raw(body);
        } else {
            self.chunks(body).raw(b"0\r\n\r\n");
        }
        self.finish();
    }

    /// Begins an event stream.
    pub(crate) fn stream(&mut self) -> &mut Self {
        if self.stage == Stage::Silent {
            self.head(200, &[("content-type", "text/event-stream"), ("transfer-encoding", "chunked")]);
            self.stage = Stage::Stream;
        }
        self
    }

    /// One event with this data.
    pub(crate) fn event(&mut self, data: &str) -> &mut Self {
        if self.apart {
            self.shared.tell(self.request, data);
            return self;
        }
        self.stream().bytes(format!("event: message\ndata: {data}\n\n").as_bytes())
    }

    /// Bytes of an event stream as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.stream().chunks(bytes)
    }

    /// Ends the event stream.
    pub(crate) fn end(&mut self) {
        self.raw(b"0\r\n\r\n");
        self.finish();
    }

    /// A status line and fields, nothing else.
    pub(crate) fn head(&mut self, status: u16, fields: &[(&str, &str)]) {
        self.shared.note_status(self.request.number, status);
        let mut text = format!("HTTP/1.1 {status} Scripted\r\n");
        let own = self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in fields.iter().copied().chain(own) {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        self.raw(text.as_bytes());
    }

    fn chunks(&mut self, bytes: &[u8]) -> &mut Self {
        for piece in bytes.chunks(self.piece.max(1)) {
            let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
            chunk.extend_from_slice(piece);
            chunk.extend_from_slice(b"\r\n");
            self.raw(&chunk);
            if !self.breath.is_zero() {
                self.pause(self.breath);
            }
        }
        self
    }

    /// Bytes onto the socket as they are.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        let mut socket = self.socket;
        if self.stage != Stage::Broken && !self.apart && socket.write_all(bytes).is_err() {
            self.stage = Stage::Broken;
        }
        self
    }

    fn finish(&mut self) {
        if self.stage != Stage::Broken {
            self.stage = Stage::Done;
        }
    }

    /// Closes the connection here and now.
    pub(crate) fn abort(&mut self) {
        if !self.apart {
            self.socket.shutdown(Shutdown::Both).ok();
        }
        self.stage = Stage::Broken;
    }

    /// Waits, unless the request is given up or the server is stopped.
    pub(crate) fn pause(&mut self, time: Duration) -> Gone {
        let deadline = Instant::now() + time;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Gone::No;
            }
            let gone = self.look(left.min(Duration::from_millis(20)));
            if gone != Gone::No {
                return gone;
            }
        }
    }

    /// Waits until the request is given up; then notes how, and closes.
    pub(crate) fn wait(&mut self) {
        let mut gone = Gone::No;
        while gone == Gone::No {
            gone = self.pause(Duration::from_secs(60));
        }
        self.shared.note_gone(self.request.number, gone);
        self.abort();
    }

    fn look(&mut self, time: Duration) -> Gone {
        if self.shared.is_cancelled(self.request) {
            return Gone::Cancelled;
        }
        if self.shared.stopped() {
            return Gone::Stopped;
        }
        if self.apart {
            std::thread::park_timeout(time);
            return if self.shared.has_line(self.request) { Gone::No } else { Gone::Closed };
        }
        if closed(self.socket, time) {
            self.stage = Stage::Broken;
            return Gone::Closed;
        }
        Gone::No
    }
}

/// Whether the peer closes within this time.
pub(super) fn closed(socket: &TcpStream, time: Duration) -> bool {
    socket.set_read_timeout(Some(time)).ok();
    let seen = socket.peek(&mut [0]);
    socket.set_read_timeout(None).ok();
    match seen {
        Ok(count) => count == 0,
        Err(fault) => !matches!(fault.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut),
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}
