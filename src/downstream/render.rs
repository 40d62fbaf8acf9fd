//! HTTP responses that both eras share.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use serde_json::json;
use tokio::time::timeout;

use super::Body;
use super::accept::Accepts;
use crate::protocol::{comment, encode_event};

/// How long the head of an answer waits for the first message.
pub(super) const HEAD_WAIT: Duration = Duration::from_secs(10);
/// When to try again what cannot be had for the moment, in seconds.
pub(super) const RETRY_AFTER: &str = "5";
/// After this much silence a stream gets a comment.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How Weir introduces itself to clients, as raw JSON (`Implementation` in the schemas).
pub(super) fn server_info() -> String {
    json!({ "name": "weir", "title": "Weir", "version": env!("CARGO_PKG_VERSION") }).to_string()
}

/// A message of Weir's own as JSON, or as the one event of a stream for clients that take nothing else.
pub(super) fn json_or_event(pieces: Vec<Bytes>, accepts: Accepts) -> Response<Body> {
    match accepts {
        Accepts::Events => {
            let text = String::from_utf8_lossy(&pieces.concat()).into_owned();
            events(stream::iter([encode_event(None, &text)]))
        }
        Accepts::Both | Accepts::Json | Accepts::Nothing => self::pieces(StatusCode::OK, pieces),
    }
}

/// Adds a comment after each stretch of silence.
pub(super) fn with_comments(
    messages: impl Stream<Item = Bytes> + Send + 'static,
) -> impl Stream<Item = Bytes> + Send {
    let messages: Pin<Box<dyn Stream<Item = Bytes> + Send>> = Box::pin(messages);
    stream::unfold(messages, |mut messages| async move {
        // Cancel-safe: `next` of a boxed stream takes nothing until it is ready.
        match timeout(KEEP_ALIVE, messages.next()).await {
            Ok(Some(message)) => Some((message, messages)),
            Ok(None) => None,
            Err(_) => Some((comment(), messages)),
        }
    })
}

/// A response with a JSON body.
pub(super) fn json(status: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    pieces(status, vec![text.into()])
}

/// A response with a JSON body in pieces.
pub(super) fn pieces(status: StatusCode, pieces: Vec<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::pieces(pieces));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A response without a body.
pub(super) fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// An event stream. It asks proxies not to buffer and nobody to store (2026-07-28, transports/streamable-http,
/// "Receiving Messages").
pub(super) fn events(stream: impl Stream<Item = Bytes> + Send + 'static) -> Response<Body> {
    let mut response = Response::new(Body::stream(stream));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

/// 405 with the methods of the endpoint.
pub(super) fn method_not_allowed() -> Response<Body> {
    let mut response = empty(StatusCode::METHOD_NOT_ALLOWED);
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, POST, DELETE, OPTIONS"));
    response
}

/// Adds a header whose value Weir made; one that is no legal value is left out.
pub(super) fn with_header(mut response: Response<Body>, name: HeaderName, value: &str) -> Response<Body> {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
    response
}
