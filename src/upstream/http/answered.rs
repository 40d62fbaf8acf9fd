//! The head and body of an upstream's answer.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::addresses::InFlight;
use super::gunzip::Gunzip;
use super::plain::Flow;
use crate::exchange::Reason;
use crate::protocol::headers;
use crate::upstream::fault::Fault;
use crate::upstream::stdio::Lines;

/// So much is read of the rest of a body, and so long, to keep its connection.
const REST: usize = 64 * 1024;
const FINISH: Duration = Duration::from_millis(500);

/// What the body is, by its `Content-Type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::upstream) enum Form {
    /// One JSON document.
    Json,
    /// Server-sent events.
    Events,
    /// Lines of a child.
    Lines,
    /// Neither, or nothing.
    Other,
}

/// An answer whose body has not been read.
#[derive(Debug)]
pub(in crate::upstream) struct Answered {
    /// The HTTP status.
    pub(in crate::upstream) status: u16,
    /// What the body is.
    pub(in crate::upstream) form: Form,
    /// The session header, which means something on the answer to `initialize` only.
    pub(in crate::upstream) session: Option<HeaderValue>,
    /// The body.
    pub(in crate::upstream) body: Body,
    /// What a child says, in place of a body.
    pub(in crate::upstream) lines: Option<Lines>,
    /// The number of the upstream's address that it came from.
    pub(in crate::upstream) from: usize,
    /// Whether nobody was asked: Weir knows the answer.
    pub(in crate::upstream) is_unsent: bool,
}

/// A head, and where its body comes from.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Plain(Flow),
    Client(Box<reqwest::Response>),
    /// There is no body.
    Nothing,
}

impl From<http::Response<Flow>> for Received {
    fn from(response: http::Response<Flow>) -> Self {
        let (head, flow) = response.into_parts();
        Self { status: head.status, headers: head.headers, source: Source::Plain(flow) }
    }
}

impl From<reqwest::Response> for Received {
    fn from(mut response: reqwest::Response) -> Self {
        let headers = std::mem::take(response.headers_mut());
        Self { status: response.status(), headers, source: Source::Client(Box::new(response)) }
    }
}

impl Source {
    fn length(&self) -> Option<usize> {
        let length = match self {
            Self::Plain(flow) => flow.length(),
            Self::Client(response) => response.content_length(),
            Self::Nothing => None,
        };
        length.and_then(|length| usize::try_from(length).ok())
    }

    async fn chunk(&mut self) -> Result<Option<Bytes>, Fault> {
        match self {
            Self::Plain(flow) => flow.chunk().await,
            Self::Client(response) => response.chunk().await.map_err(|error| super::fault(&error)),
            Self::Nothing => Ok(None),
        }
    }
}

/// A body being read, unpacked where needed, each chunk within the upstream's limit.
#[derive(Debug)]
pub(in crate::upstream) struct Body {
    source: Source,
    packing: Packing,
    largest: usize,
    /// Its length by the head, packed.
    announced: Option<usize>,
    /// Counts as long as the body is there.
    _in_flight: Option<InFlight>,
}

#[derive(Debug)]
enum Packing {
    Plain,
    Gzip(Box<Gunzip>),
    Unknown,
}

impl Packing {
    fn of(coding: &str, largest: usize) -> Self {
        match coding.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Self::Plain,
            "gzip" | "x-gzip" => Self::Gzip(Box::new(Gunzip::new(largest))),
            _ => Self::Unknown,
        }
    }
}

impl Answered {
    pub(super) fn new(received: Received, largest: usize) -> Self {
        let text = |name: HeaderName| received.headers.get(name).and_then(|value| value.to_str().ok());
        let media = text(CONTENT_TYPE).and_then(|value| value.split(';').next()).unwrap_or_default().trim();
        let form = if media.eq_ignore_ascii_case("application/json") {
            Form::Json
        } else if media.eq_ignore_ascii_case("text/event-stream") {
            Form::Events
        } else {
            Form::Other
        };
        let packing = text(CONTENT_ENCODING).map_or(Packing::Plain, |coding| Packing::of(coding, largest));
        Self {
            status: received.status.as_u16(),
            form,
            session: received.headers.get(headers::SESSION_ID).cloned(),
            body: Body {
                announced: received.source.length(),
                source: received.source,
                packing,
                largest,
                _in_flight: None,
            },
            lines: None,
            from: 0,
            is_unsent: false,
        }
    }

    /// It came from this address, where it counts until it has been read.
    pub(super) fn counted(mut self, from: usize, in_flight: Option<InFlight>) -> Self {
        self.from = from;
        self.body._in_flight = in_flight;
        self
    }

    /// An answer of nobody: Weir knows it.
    pub(super) fn nobody(status: u16) -> Self {
        Self { is_unsent: true, ..Self::of_child(status, None) }
    }

    /// An answer of a child, which has no body.
    pub(in crate::upstream) fn of_child(status: u16, lines: Option<Lines>) -> Self {
        let (source, packing) = (Source::Nothing, Packing::Plain);
        let body = Body { source, packing, largest: 0, announced: None, _in_flight: None };
        let form = if lines.is_some() { Form::Lines } else { Form::Other };
        Self { status, form, session: None, body, lines, from: 0, is_unsent: false }
    }

    /// Whether the status is a success.
    pub(in crate::upstream) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl Body {
    /// The largest document or event that may stand in the body.
    pub(in crate::upstream) fn largest(&self) -> usize {
        self.largest
    }

    /// The next bytes; `None` at the end.
    pub(in crate::upstream) async fn chunk(&mut self) -> Result<Option<Bytes>, Fault> {
        let chunk = self.source.chunk().await?;
        match (chunk, &mut self.packing) {
            (_, Packing::Unknown) => Err(Fault::sent(Reason::NotMcp)),
            (Some(packed), Packing::Gzip(gunzip)) => gunzip.feed(&packed).map(Some),
            (chunk, _) => Ok(chunk),
        }
    }

    /// Reads what little is left of a body that nobody wants, so that its connection can be used again. A body that
    /// does not end soon is given up, and its connection with it.
    pub(in crate::upstream) async fn finish(&mut self) {
        let rest = async {
            let mut left = REST;
            while let (1.., Ok(Some(chunk))) = (left, self.source.chunk().await) {
                left = left.saturating_sub(chunk.len());
            }
        };
        if tokio::time::timeout(FINISH, rest).await.is_err() {
            tracing::trace!("an answer went on after its end");
        }
    }

    /// The whole body. A body that came in one piece is not copied.
    pub(in crate::upstream) async fn whole(&mut self) -> Result<Bytes, Fault> {
        let Some(first) = self.chunk().await? else { return Ok(Bytes::new()) };
        let Some(second) = self.within(first.len()).await? else { return Ok(first) };
        let so_far = first.len() + second.len();
        let mut whole = BytesMut::with_capacity(self.length().unwrap_or(so_far * 2).max(so_far));
        whole.extend_from_slice(&first);
        whole.extend_from_slice(&second);
        while let Some(more) = self.within(whole.len()).await? {
            whole.extend_from_slice(&more);
        }
        Ok(whole.freeze())
    }

    /// How long it is, where its head said so and that is possible.
    fn length(&self) -> Option<usize> {
        let is_plain = matches!(self.packing, Packing::Plain);
        self.announced.filter(|length| is_plain && *length <= self.largest)
    }

    async fn within(&mut self, so_far: usize) -> Result<Option<Bytes>, Fault> {
        let chunk = self.chunk().await?;
        if so_far + chunk.as_ref().map_or(0, Bytes::len) > self.largest {
            return Err(Fault::sent(Reason::TooLarge));
        }
        Ok(chunk)
    }
}
