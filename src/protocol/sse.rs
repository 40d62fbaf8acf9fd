//! Server-sent events, in and out (WHATWG HTML, "Server-sent events", parsing and interpreting an event stream).
//!
//! [`Decoder`] is fed chunks as they come and gives whole events; where a chunk is cut does not matter. It looks at
//! each byte once and never holds more than one event of the permitted size. What it does not do: follow event ids
//! or reconnect; that is for the side that owns the connection. The encoders write nothing but legal events: text
//! with line breaks is split over `data` lines.

use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;
use memchr::memchr2;

const MARK: [u8; 3] = [0xEF, 0xBB, 0xBF];

/// One event. Those that carry neither data, id nor retry are not reported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// The value of `event`, where it was given.
    pub event: Option<String>,
    /// The data lines joined with LF; `None` where there were none or all was empty.
    pub data: Option<String>,
    /// The value of `id`, where this event gave one.
    pub id: Option<String>,
    /// The value of `retry`, where this event gave one.
    pub retry: Option<Duration>,
}

/// An event is larger than permitted. The stream cannot be read any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is too long")]
pub struct TooLong;

/// Turns the bytes of an event stream into events.
#[derive(Debug)]
pub struct Decoder {
    max_event_bytes: usize,
    /// How many bytes of a byte-order mark have been seen; `None` once the stream is past its beginning.
    mark: Option<usize>,
    /// The last byte was a CR that ended a line, so an LF that follows belongs to it.
    after_cr: bool,
    /// The beginning of a line whose end has not come yet.
    line: Vec<u8>,
    pending: Pending,
}

/// The event that is being read.
#[derive(Debug, Default)]
struct Pending {
    event: Option<String>,
    /// Every data line with an LF after it, as the standard keeps it.
    data: Vec<u8>,
    id: Option<String>,
    retry: Option<Duration>,
}

impl Decoder {
    /// A decoder that refuses events of more than this many bytes (field names and values together).
    #[must_use]
    pub fn new(max_event_bytes: usize) -> Self {
        Self {
            max_event_bytes,
            mark: Some(0),
            after_cr: false,
            line: Vec::new(),
            pending: Pending::default(),
        }
    }

    /// Takes the next bytes of the stream; returns the events that they complete. What a stream's end leaves
    /// incomplete is no event.
    ///
    /// # Errors
    /// [`TooLong`] when an event exceeds the limit; the decoder is of no use after that.
    pub fn feed(&mut self, chunk: &[u8]) -> Result<Vec<SseEvent>, TooLong> {
        let mut events = Vec::new();
        let mut rest = self.skip_mark(chunk);
        while let Some(&first) = rest.first() {
            if std::mem::take(&mut self.after_cr) && first == b'\n' {
                rest = rest.get(1..).unwrap_or_default();
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', rest) else {
                self.keep(rest)?;
                break;
            };
            let (part, ending) = rest.split_at(end);
            self.after_cr = ending.first() == Some(&b'\r');
            events.extend(self.end_line(part)?);
            rest = ending.get(1..).unwrap_or_default();
        }
        Ok(events)
    }

    /// Skips one byte-order mark at the very beginning; returns what is left of the chunk.
    fn skip_mark<'c>(&mut self, chunk: &'c [u8]) -> &'c [u8] {
        let Some(seen) = self.mark else { return chunk };
        let wanted = MARK.get(seen..).unwrap_or_default();
        let fits = wanted.iter().zip(chunk).take_while(|(mark, byte)| mark == byte).count();
        if fits == wanted.len() {
            self.mark = None;
        } else if fits == chunk.len() {
            self.mark = Some(seen + fits);
        } else {
            self.mark = None;
            // It was no mark after all: what earlier chunks brought of it is text.
            self.line.extend_from_slice(MARK.get(..seen).unwrap_or_default());
            return chunk;
        }
        chunk.get(fits..).unwrap_or_default()
    }

    /// Keeps the beginning of a line. Of a comment its first byte is enough.
    fn keep(&mut self, part: &[u8]) -> Result<(), TooLong> {
        let comment = self.line.first().or(part.first()) == Some(&b':');
        if comment {
            self.line.clear();
            self.line.push(b':');
            return Ok(());
        }
        self.fits(part.len())?;
        self.line.extend_from_slice(part);
        Ok(())
    }

    fn fits(&self, more: usize) -> Result<(), TooLong> {
        let held = self.line.len() + self.pending.len();
        if held.saturating_add(more) > self.max_event_bytes { Err(TooLong) } else { Ok(()) }
    }

    /// Ends a line with its last part; returns the event if the line ended one.
    fn end_line(&mut self, part: &[u8]) -> Result<Option<SseEvent>, TooLong> {
        if self.line.is_empty() {
            if part.is_empty() {
                return Ok(std::mem::take(&mut self.pending).finish());
            }
            if part.first() != Some(&b':') {
                self.fits(part.len())?;
                self.pending.field(part);
            }
            return Ok(None);
        }
        self.keep(part)?;
        let line = std::mem::take(&mut self.line);
        self.pending.field(&line);
        Ok(None)
    }
}

impl Pending {
    fn len(&self) -> usize {
        let text = |value: &Option<String>| value.as_ref().map_or(0, String::len);
        self.data.len() + text(&self.event) + text(&self.id)
    }

    /// Takes one line that is neither empty nor a comment, except for comments kept in part, which begin with `:`.
    fn field(&mut self, line: &[u8]) {
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        let value = value.get(1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                self.data.reserve(value.len() + 1);
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"event" => self.event = Some(text(value.to_vec())),
            b"id" if !value.contains(&0) => self.id = Some(text(value.to_vec())),
            b"retry" => self.retry = milliseconds(value).or(self.retry),
            _ => {}
        }
    }

    fn finish(mut self) -> Option<SseEvent> {
        self.data.pop();
        let data = if self.data.is_empty() { None } else { Some(text(self.data)) };
        if data.is_none() && self.id.is_none() && self.retry.is_none() {
            return None;
        }
        let event = self.event.filter(|name| !name.is_empty());
        Some(SseEvent { event, data, id: self.id, retry: self.retry })
    }
}

/// Decodes as the standard says: what is not UTF-8 is replaced. Moves where it can.
fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn milliseconds(value: &[u8]) -> Option<Duration> {
    if !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok().map(Duration::from_millis)
}

/// A `message` event. Line breaks in `data` (CRLF, CR, LF) begin a new data line.
#[must_use]
pub fn encode_event(id: Option<&str>, data: &str) -> Bytes {
    let mut out = begun(id, data.len());
    push_data(&mut out, data);
    out.into()
}

/// The beginning of a `message` event, with room for so many bytes of data.
fn begun(id: Option<&str>, length: usize) -> String {
    let mut out = String::with_capacity(length + 64);
    out.push_str("event: message\n");
    if let Some(id) = id {
        push_id(&mut out, id);
    }
    out
}

/// A `message` event whose data come in pieces of text.
#[must_use]
pub fn encode_pieces(id: Option<&str>, pieces: &[Bytes]) -> Bytes {
    if pieces.iter().any(|piece| memchr2(b'\r', b'\n', piece).is_some()) {
        return encode_event(id, &String::from_utf8_lossy(&pieces.concat()));
    }
    let length: usize = pieces.iter().map(Bytes::len).sum();
    let mut out = begun(id, length).into_bytes();
    out.extend_from_slice(b"data: ");
    pieces.iter().for_each(|piece| out.extend_from_slice(piece));
    out.extend_from_slice(b"\n\n");
    out.into()
}

/// An event of another name, which Weir writes itself and keeps to one word (2024-11-05, basic/transports).
#[must_use]
pub fn encode_named(event: &str, data: &str) -> Bytes {
    let mut out = format!("event: {event}\n");
    push_data(&mut out, data);
    out.into()
}

fn push_data(out: &mut String, data: &str) {
    let mut rest = Some(data);
    while let Some(text) = rest {
        let end = memchr2(b'\r', b'\n', text.as_bytes()).unwrap_or(text.len());
        let (line, tail) = text.split_at(end);
        out.push_str("data: ");
        out.push_str(line);
        out.push('\n');
        rest = tail.strip_prefix("\r\n").or_else(|| tail.strip_prefix(['\r', '\n']));
    }
    out.push('\n');
}

/// An event that gives an id and a time to come back after, and no message (2025-11-25, transports, "Sending
/// Messages to the Server").
#[must_use]
pub fn encode_priming(id: &str, retry: Duration) -> Bytes {
    let mut out = String::new();
    push_id(&mut out, id);
    // Writing to a string cannot fail.
    writeln!(out, "retry: {}\ndata:\n", retry.as_millis()).unwrap_or_default();
    out.into()
}

/// A comment, which keeps a silent stream alive.
#[must_use]
pub fn comment() -> Bytes {
    Bytes::from_static(b":\n\n")
}

fn push_id(out: &mut String, id: &str) {
    out.push_str("id: ");
    out.extend(id.chars().filter(|c| !matches!(c, '\n' | '\r' | '\0')));
    out.push('\n');
}

#[cfg(test)]
mod tests;
