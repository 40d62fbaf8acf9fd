//! Answers of the gateway itself, before a request reaches a route's endpoint.

use std::any::Any;
use std::sync::Arc;

use http::{HeaderValue, Response, StatusCode, header};

use crate::auth::Refusal;
use crate::config::Route;
use crate::downstream::{Body, internal_error};
use crate::jsonrpc::{RpcError, response_error};
use crate::protocol::code;
use crate::telemetry::{AuditLine, AuditLog};

/// An answer of the doors: a JSON-RPC error without id, and the end of the connection.
pub(super) fn refusal(status: StatusCode, text: &str) -> Response<Body> {
    let code = match status {
        StatusCode::SERVICE_UNAVAILABLE => code::UNAVAILABLE,
        _ => code::INVALID_REQUEST,
    };
    let text = response_error(None, RpcError::own(code, text, None).raw.get());
    let mut response = Response::new(Body::full(text));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Closes the connection after this answer.
pub(super) fn closing(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The audit line of a refused authentication. It is written where there is room: nothing is done for such a request.
fn recorded(audit: &Arc<AuditLog>, refused: &Refusal, route: &Route) {
    let now = jiff::Timestamp::now();
    let line = AuditLine {
        v: 1,
        time: now.round(jiff::Unit::Millisecond).unwrap_or(now).to_string(),
        event: "auth",
        route: route.name.to_string(),
        decision: "refused",
        rule: Some(refused.reason.to_owned()),
        outcome: refused.event,
        status: refused.status.as_u16(),
        ..AuditLine::default()
    };
    if let Ok(slot) = audit.reserve() {
        slot.write(&line);
    }
}

/// The answer to a request without a good credential.
pub(super) fn unauthenticated(
    audit: Option<&Arc<AuditLog>>,
    refused: &Refusal,
    route: &Route,
) -> Response<Body> {
    if let Some(audit) = audit {
        recorded(audit, refused, route);
    }
    let Refusal { event, reason, .. } = *refused;
    tracing::info!(event, reason, route = %route.name, "a request without a good token");
    let text = match refused.status {
        StatusCode::SERVICE_UNAVAILABLE => "tokens cannot be verified at the moment; try again",
        _ => "a valid token is needed",
    };
    let mut response = refusal(refused.status, text);
    let headers = response.headers_mut();
    match refused.www_authenticate.as_deref().map(HeaderValue::from_str) {
        Some(Ok(challenge)) => headers.insert(header::WWW_AUTHENTICATE, challenge),
        Some(Err(_)) | None => headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5")),
    };
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    closing(response)
}

/// A panic as an answer; what it said goes to the log.
pub(super) fn panicked(panic: &(dyn Any + Send)) -> Response<Body> {
    let said = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    let error = internal_error(&said);
    let mut response = Response::new(Body::full(response_error(None, error.raw.get())));
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::panicked;
    use crate::downstream::Body;

    #[test]
    fn t126_a_panic_is_an_answer_that_shows_nothing_of_it() {
        let panics: [Box<dyn std::any::Any + Send>; 3] =
            [Box::new("canary at src/x.rs:1"), Box::new("canary".to_owned()), Box::new(5)];
        for panic in panics {
            let response = panicked(&*panic);
            assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
            let Body::Pieces(pieces) = response.into_body() else { panic!("it is whole") };
            let text = String::from_utf8(Vec::from(pieces).concat()).unwrap();
            assert!(text.contains("-32603") && text.contains("request_id"), "{text}");
            assert!(!text.contains("canary") && !text.contains("src/"), "{text}");
        }
    }
}
