//! One HTTP exchange of a test's client: every header and byte of the request is the test's, the answer is read as it
//! comes.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use tokio::time::Instant;

use super::http::{Body, Head};
use super::sse::{self, Item};

/// How long a client waits for what must come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);

/// A request before it is sent.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    to: SocketAddr,
    first: String,
    fields: Vec<(String, String)>,
    body: Vec<u8>,
    framed: bool,
}

impl Exchange {
    /// A request with `Host`, nothing else.
    pub(crate) fn new(to: SocketAddr, verb: &str, target: &str) -> Self {
        let fields = vec![("Host".to_owned(), to.to_string())];
        Self { to, first: format!("{verb} {target} HTTP/1.1"), fields, body: Vec::new(), framed: true }
    }

    /// A POST of JSON that takes both kinds of answer.
    pub(crate) fn post(to: SocketAddr, target: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::new(to, "POST", target)
            .header("Content-Type", "application/json")
            .header("Accept", "application/json, text/event-stream")
            .body(body)
    }

    /// Adds a field; one of this name may be there already.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Takes every field of this name away.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.fields.retain(|(n, _)| !n.eq_ignore_ascii_case(name));
        self
    }

    /// Puts a field in the place of those of this name.
    pub(crate) fn set(self, name: &str, value: &str) -> Self {
        self.without(name).header(name, value)
    }

    /// Goes to another path.
    pub(crate) fn retarget(&mut self, target: &str) {
        let verb = self.first.split(' ').next().unwrap_or_default();
        self.first = format!("{verb} {target} HTTP/1.1");
    }

    /// The body, sent with its length.
    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// No length is added: the fields and the body are exactly what is given.
    pub(crate) fn unframed(mut self) -> Self {
        self.framed = false;
        self
    }

    /// The bytes that are sent.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut text = format!("{}\r\n", self.first);
        for (name, value) in &self.fields {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if self.framed && (!self.body.is_empty() || self.first.starts_with("POST")) {
            text.push_str(&format!("Content-Length: {}\r\n", self.body.len()));
        }
        text.push_str("\r\n");
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }

    /// Sends and reads the head of the answer; `None` when the peer closed without one.
    pub(crate) fn try_send(&self) -> Option<Response> {
        let mut socket = TcpStream::connect(self.to).ok()?;
        socket.set_nodelay(true).ok();
        socket.set_read_timeout(Some(PATIENCE)).ok();
        // A server may refuse a request before it has read all of it; its answer is there all the same.
        socket.write_all(&self.bytes()).ok();
        Response::read(socket).ok().flatten()
    }

    /// Sends and reads the head of the answer.
    pub(crate) fn send(&self) -> Response {
        self.try_send().unwrap_or_else(|| panic!("no answer to {}", self.first))
    }

    /// Sends and reads nothing. Dropping the connection closes it.
    pub(crate) fn send_only(&self) -> TcpStream {
        let mut socket = TcpStream::connect(self.to).expect("somebody listens");
        socket.write_all(&self.bytes()).ok();
        socket
    }
}

/// An answer whose head has come.
#[derive(Debug)]
pub(crate) struct Response {
    /// Its head.
    pub(crate) head: Head,
    socket: TcpStream,
    body: Option<BufReader<Body<BufReader<TcpStream>>>>,
}

impl Response {
    fn read(socket: TcpStream) -> io::Result<Option<Self>> {
        let mut reader = BufReader::new(socket.try_clone()?);
        let Some(head) = Head::read(&mut reader)? else { return Ok(None) };
        let body = Some(BufReader::new(Body::of_answer(&head, reader)));
        Ok(Some(Self { head, socket, body }))
    }

    /// The status.
    pub(crate) fn status(&self) -> u16 {
        self.head.word(1).parse().unwrap_or_default()
    }

    /// A header field.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.get(name)
    }

    /// Whether it is an event stream.
    pub(crate) fn is_stream(&self) -> bool {
        self.header("content-type").is_some_and(|value| value.starts_with("text/event-stream"))
    }

    /// The whole body; a body that breaks off is what came of it.
    pub(crate) fn text(mut self) -> String {
        String::from_utf8(self.take_bytes()).expect("the body is UTF-8")
    }

    fn take_bytes(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if let Some(mut body) = self.body.take() {
            body.read_to_end(&mut bytes).ok();
        }
        bytes
    }

    /// The events of the body, read by a thread of their own.
    pub(crate) fn events(mut self) -> Events {
        let body = self.body.take().expect("the body was not read yet");
        self.socket.set_read_timeout(None).ok();
        let (to, items) = sync_channel(4096);
        thread::spawn(move || sse::read(body, &to));
        Events { items, socket: self.socket, ended: None, comments: 0 }
    }

    /// Whether the peer closes the connection after this answer, within the time that clients wait.
    pub(crate) fn closes(mut self) -> bool {
        self.take_bytes();
        matches!(BufReader::new(&self.socket).fill_buf(), Ok(rest) if rest.is_empty())
    }
}

/// A stream that is being read. Dropping it closes its connection.
#[derive(Debug)]
pub(crate) struct Events {
    items: Receiver<Item>,
    socket: TcpStream,
    ended: Option<bool>,
    comments: usize,
}

impl Events {
    /// The next event, if one comes in this time.
    pub(crate) fn next(&mut self, within: Duration) -> Option<(sse::Event, Instant)> {
        let deadline = Instant::now() + within;
        while self.ended.is_none() {
            match self.items.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(Item::Event(event, at)) => return Some((event, at)),
                Ok(Item::Comment) => self.comments += 1,
                Ok(Item::End(orderly)) => self.ended = Some(orderly),
                Err(RecvTimeoutError::Timeout) => return None,
                Err(RecvTimeoutError::Disconnected) => self.ended = Some(false),
            }
        }
        None
    }

    /// Whether the stream has ended: `Some(true)` in order, `Some(false)` broken off.
    pub(crate) fn ended(&self) -> Option<bool> {
        self.ended
    }

    /// How many comment lines came so far.
    pub(crate) fn comments(&self) -> usize {
        self.comments
    }

    /// Closes the connection.
    pub(crate) fn close(&self) {
        self.socket.shutdown(Shutdown::Both).ok();
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.close();
    }
}
