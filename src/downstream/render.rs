//! HTTP responses that both eras share.

use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};

use super::Body;

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
