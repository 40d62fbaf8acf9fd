//! Batches, inside sessions that negotiated 2025-03-26 (2025-03-26, transports, "Sending Messages to the Server").
//!
//! The members are served one after the other, each as if it had come alone from a client that takes JSON only, and
//! the answers go back as one array. Other revisions have no batches.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::value::RawValue;

use super::{Legacy, encode};
use crate::downstream::{Body, Inbound, render, session_id};
use crate::jsonrpc::{Message, scan};
use crate::protocol::{Method, Revision};

/// Most members of a batch.
const MOST: usize = 64;
/// After so many bytes of answers no further member is served.
const LARGEST: usize = 64 * 1024 * 1024;

/// Answers a batch; `None` where none may be.
pub(super) async fn serve(legacy: &Legacy, request: &Inbound) -> Option<Response<Body>> {
    let session = match legacy.session(request) {
        Ok(session) => session,
        Err(refusal) => return session_id(&request.headers).map(|_| *refusal),
    };
    if session.revision != Revision::V2025_03_26 {
        return None;
    }
    let text = scan(&request.body).ok()?;
    let members: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    if members.is_empty() || members.len() > MOST {
        return None;
    }
    let mut messages = Vec::with_capacity(members.len());
    for member in &members {
        let message = Message::read(member.get()).ok()?;
        let opens =
            matches!(&message, Message::Request { method, .. } if method == Method::Initialize.as_str());
        if opens {
            return Some(encode::refused(StatusCode::BAD_REQUEST, "initialize cannot stand in a batch"));
        }
        messages.push(message);
    }
    let alone = alone(request);
    let mut answers: Vec<Bytes> = Vec::new();
    let mut bytes = 0;
    for message in messages {
        if bytes > LARGEST {
            let text = "the answers of this batch are too large; send its members one by one";
            return Some(encode::refused(StatusCode::PAYLOAD_TOO_LARGE, text));
        }
        let answer = Box::pin(legacy.post(&alone, message)).await;
        match answer.into_body() {
            Body::Pieces(pieces) if !pieces.is_empty() => {
                let answer = Vec::from(pieces).concat();
                bytes += answer.len();
                answers.push(Bytes::from(answer));
            }
            Body::Pieces(_) | Body::Stream(_) => {}
        }
    }
    if answers.is_empty() {
        return Some(render::empty(StatusCode::ACCEPTED));
    }
    let mut pieces = vec![Bytes::from_static(b"[")];
    for (index, answer) in answers.into_iter().enumerate() {
        if index > 0 {
            pieces.push(Bytes::from_static(b","));
        }
        pieces.push(answer);
    }
    pieces.push(Bytes::from_static(b"]"));
    Some(render::pieces(StatusCode::OK, pieces))
}

/// The request with an `Accept` that admits JSON only.
fn alone(request: &Inbound) -> Inbound {
    let mut headers = request.headers.clone();
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    Inbound {
        peer: request.peer,
        by_session: request.by_session,
        method: request.method.clone(),
        headers,
        body: Bytes::new(),
        principal: request.principal.clone(),
        route: Arc::clone(&request.route),
        piped: request.piped,
        snapshot: Arc::clone(&request.snapshot),
    }
}
