//! Reading request bodies within limits.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::{Instant, timeout};

use super::refuse::{closing, refusal};
use crate::config::ListenLimits;
use crate::downstream::{Body, is_json};

/// The least that a body must bring in each stretch of the permitted pause: one byte now and then holds nobody up.
const LEAST: usize = 4096;

/// What came since the last look.
struct Window {
    began: Instant,
    bytes: usize,
    length: Duration,
}

impl Window {
    fn count(&mut self, bytes: usize) -> Result<(), StatusCode> {
        self.bytes += bytes;
        if self.began.elapsed() < self.length {
            return Ok(());
        }
        if self.bytes < LEAST {
            return Err(StatusCode::REQUEST_TIMEOUT);
        }
        (self.began, self.bytes) = (Instant::now(), 0);
        Ok(())
    }
}

/// Reads a whole body.
///
/// Takes the head (for `Content-Length`), the body, the most bytes, and the longest pause within it.
///
/// # Errors
/// The status to answer with: 413 above the limit (before reading, where the head says so), 408 for a pause, 400 for
/// broken framing. The connection cannot be used again after an error.
async fn read(
    head: &HeaderMap,
    mut body: Incoming,
    most: usize,
    pause: Duration,
) -> Result<Bytes, StatusCode> {
    let announced =
        head.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|length| length > most) {
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    let mut window = Window { began: Instant::now(), bytes: 0, length: pause };
    let mut first: Option<Bytes> = None;
    let mut rest = BytesMut::new();
    loop {
        let frame = match timeout(pause, body.frame()).await {
            Err(_) => return Err(StatusCode::REQUEST_TIMEOUT),
            Ok(Some(Err(_))) => return Err(StatusCode::BAD_REQUEST),
            Ok(None) => break,
            Ok(Some(Ok(frame))) => frame,
        };
        let Ok(data) = frame.into_data() else { continue };
        window.count(data.len())?;
        let so_far = first.as_ref().map_or(0, Bytes::len) + rest.len();
        if so_far + data.len() > most {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        match first {
            None => {
                first = Some(data);
                rest.reserve(announced.unwrap_or_default().saturating_sub(so_far).min(most));
            }
            Some(_) => rest.extend_from_slice(&data),
        }
    }
    let first = first.unwrap_or_default();
    if rest.is_empty() {
        return Ok(first);
    }
    let mut whole = BytesMut::with_capacity(first.len() + rest.len());
    whole.extend_from_slice(&first);
    whole.extend_from_slice(&rest);
    Ok(whole.freeze())
}

/// The whole body of a POST, up to `most` bytes; empty for other methods.
///
/// # Errors
/// The answer to a body that is not read.
pub(super) async fn of_post(
    limits: &ListenLimits,
    head: &http::request::Parts,
    body: Incoming,
    most: usize,
) -> Result<Bytes, Box<Response<Body>>> {
    if head.method != Method::POST {
        return Ok(Bytes::new());
    }
    if head.headers.get(header::CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        let mut response = refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, "encoded request bodies are not read");
        response.headers_mut().insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        return Err(Box::new(closing(response)));
    }
    if !is_json(&head.headers) {
        let text = "Content-Type must be application/json";
        return Err(Box::new(closing(refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, text))));
    }
    read(&head.headers, body, most, limits.header_timeout).await.map_err(|status| {
        let text = match status {
            StatusCode::PAYLOAD_TOO_LARGE => "the request body is larger than the limit",
            StatusCode::REQUEST_TIMEOUT => "the request body came too slowly",
            _ => "the request body could not be read",
        };
        Box::new(closing(refusal(status, text)))
    })
}
