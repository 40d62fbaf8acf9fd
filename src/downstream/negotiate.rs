//! The era of a request, decided once (design contract, section 5, "The era of a client").

use http::{HeaderMap, Response, StatusCode};

use super::{Body, header_text, render, session_id, unreadable};
use crate::jsonrpc::{Error, Id, Message, RpcError, response_error};
use crate::protocol::{Era, Method, Revision, code, headers, meta};

/// Whose turn it is to answer.
#[derive(Debug)]
pub(super) enum Turn<'b> {
    /// A stateless request.
    Modern(Message<'b>),
    /// Part of a session, or the beginning of one.
    Legacy(Message<'b>),
    /// Nobody's.
    Refused(Refusal),
}

/// Why a request has no era.
#[derive(Debug)]
pub(super) enum Refusal {
    /// It could not be read.
    Unreadable(Error),
    /// Modern by its head, without the metadata: the missing members.
    NoMetadata(Option<Id>),
    /// Neither a session nor metadata.
    NoSession(Option<Id>),
}

impl Refusal {
    /// Whether it is an array, which one revision has a meaning for.
    pub(super) fn is_batch(&self) -> bool {
        matches!(self, Self::Unreadable(Error::Batch))
    }

    /// HTTP 400, with the id where there is one.
    pub(super) fn into_response(self) -> Response<Body> {
        let (code, message, id) = match self {
            Self::Unreadable(error) => return unreadable(&error),
            Self::NoMetadata(id) => {
                let text = format!(
                    "params._meta lacks {} and {}",
                    meta::PROTOCOL_VERSION,
                    meta::CLIENT_CAPABILITIES
                );
                (code::INVALID_PARAMS, text, id)
            }
            Self::NoSession(id) => {
                let text = "no session: send initialize first, or the _meta of 2026-07-28".to_owned();
                (code::INVALID_REQUEST, text, id)
            }
        };
        let error = RpcError::own(code, &message, None);
        render::json(StatusCode::BAD_REQUEST, response_error(id.as_ref(), error.raw.get()))
    }
}

/// Reads the body once and applies the rules in their order.
pub(super) fn decide<'b>(head: &HeaderMap, body: &'b [u8]) -> Turn<'b> {
    let message = match Message::of(body) {
        Ok(message) => message,
        Err(error) => return Turn::Refused(Refusal::Unreadable(error)),
    };
    let (method, id) = match &message {
        Message::Request { method, id, .. } => (method.as_str(), Some(id.clone())),
        Message::Notification { method, .. } => (method.as_str(), None),
        Message::Result { .. } | Message::Error { .. } => ("", None),
    };
    if has_metadata(&message) {
        return Turn::Modern(message);
    }
    if method == Method::Initialize.as_str() && id.is_some() {
        return Turn::Legacy(message);
    }
    let version = version(head);
    if session_id(head).is_some() && version != Version::Other {
        return Turn::Legacy(message);
    }
    let modern_by_head = method == Method::Discover.as_str()
        || version == Version::Other
        || head.contains_key(headers::METHOD);
    match (modern_by_head, &message) {
        (true, Message::Request { .. }) => Turn::Refused(Refusal::NoMetadata(id)),
        (true, Message::Notification { .. } | Message::Result { .. } | Message::Error { .. }) => {
            Turn::Modern(message)
        }
        (false, _) => Turn::Refused(Refusal::NoSession(id)),
    }
}

fn has_metadata(message: &Message<'_>) -> bool {
    match message {
        Message::Request { params, .. } | Message::Notification { params, .. } => {
            params.object("_meta").is_some_and(|inner| inner.get(meta::PROTOCOL_VERSION).is_some())
        }
        Message::Result { .. } | Message::Error { .. } => false,
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Version {
    Absent,
    Legacy,
    Other,
}

fn version(head: &HeaderMap) -> Version {
    if !head.contains_key(headers::PROTOCOL_VERSION) {
        return Version::Absent;
    }
    match header_text(head, headers::PROTOCOL_VERSION).and_then(Revision::parse) {
        Some(revision) if revision.era() == Era::Legacy => Version::Legacy,
        Some(_) | None => Version::Other,
    }
}

/// Whether a GET or DELETE comes from a modern client, for whom neither exists.
pub(super) fn is_modern_head(head: &HeaderMap) -> bool {
    header_text(head, headers::PROTOCOL_VERSION)
        .and_then(Revision::parse)
        .is_some_and(|revision| revision.era() == Era::Modern)
}
