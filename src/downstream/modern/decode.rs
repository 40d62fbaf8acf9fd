//! From head and body to what is asked, with the checks in the order of the design contract.

use std::sync::Arc;

use http::{HeaderMap, HeaderName, Response, StatusCode};

use super::encode;
use crate::downstream::{Body, client_name};
use crate::jsonrpc::{Id, Object};
use crate::protocol::{Abilities, LogLevel, Method, Revision, code, headers, meta};

/// What a modern request asks.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) method: Method,
    /// The tool, prompt or URI; empty where the method names none.
    pub(super) name: String,
    pub(super) progress_token: Option<String>,
    pub(super) log_level: Option<LogLevel>,
    /// What the client can be asked.
    pub(super) abilities: Abilities,
    /// Name and version of the client.
    pub(super) client: Option<Arc<str>>,
    /// `Mcp-Param-*` as they came.
    pub(super) mirrored: Vec<(String, String)>,
}

/// A refusal is an answer already; boxed, since it is rare and large.
type Refusal = Box<Response<Body>>;

/// Checks a request and reads what decides about it.
///
/// # Errors
/// The answer to send instead: required `_meta` (-32602), version header (-32020), revision (-32022), mirrored
/// headers (-32020), unknown method (404), params that lack a name (-32602).
pub(super) fn read(head: &HeaderMap, id: &Id, method: &str, params: &Object<'_>) -> Result<Ask, Refusal> {
    let inner = params.object("_meta").unwrap_or_default();
    let version = required_meta(id, &inner)?;
    if single(head, headers::PROTOCOL_VERSION) != Some(version.as_str()) {
        return Err(mismatch(id, "MCP-Protocol-Version does not match the body"));
    }
    if Revision::parse(&version).is_none_or(|revision| revision != Revision::NEWEST) {
        return Err(Box::new(encode::unsupported(id, &version)));
    }
    if single(head, headers::METHOD) != Some(method) {
        return Err(mismatch(id, "Mcp-Method does not match the body"));
    }
    let known = Method::modern(method);
    let name = match known.and_then(Method::name_member) {
        Some(member) => mirrored_name(head, id, params, member)?,
        None => String::new(),
    };
    let known = known.ok_or_else(|| Box::new(encode::unknown_method(id, method)))?;
    Ok(Ask {
        method: known,
        name,
        progress_token: progress_token(&inner),
        abilities: Abilities::read(inner.get(meta::CLIENT_CAPABILITIES).unwrap_or("{}")),
        log_level: inner.text(meta::LOG_LEVEL).and_then(|level| LogLevel::parse(&level)),
        client: client_name(&inner, meta::CLIENT_INFO),
        mirrored: mirrored_params(head),
    })
}

/// The version of the request, once both required members are there and of the right type.
fn required_meta(id: &Id, inner: &Object<'_>) -> Result<String, Refusal> {
    let refuse =
        |text: String| Box::new(encode::error(id, StatusCode::BAD_REQUEST, code::INVALID_PARAMS, &text));
    let version = inner
        .text(meta::PROTOCOL_VERSION)
        .ok_or_else(|| refuse(format!("params._meta lacks {} (a string)", meta::PROTOCOL_VERSION)))?;
    if inner.object(meta::CLIENT_CAPABILITIES).is_none() {
        return Err(refuse(format!("params._meta lacks {} (an object)", meta::CLIENT_CAPABILITIES)));
    }
    Ok(version)
}

fn mismatch(id: &Id, text: &str) -> Refusal {
    let text = format!("Header mismatch: {text}");
    Box::new(encode::error(id, StatusCode::BAD_REQUEST, code::HEADER_MISMATCH, &text))
}

/// A header that occurs exactly once, trimmed.
fn single(head: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = head.get_all(name).iter();
    let value = values.next().filter(|_| values.next().is_none())?;
    value.to_str().ok().map(str::trim)
}

/// The name in the body, once `Mcp-Name` has been seen to mirror it.
fn mirrored_name(head: &HeaderMap, id: &Id, params: &Object<'_>, member: &str) -> Result<String, Refusal> {
    let Some(name) = params.text(member) else {
        let text = format!("params.{member} must be a string");
        return Err(Box::new(encode::error(id, StatusCode::OK, code::INVALID_PARAMS, &text)));
    };
    let mut values = head.get_all(headers::NAME).iter();
    let header = values.next().and_then(|value| headers::decode(value.as_bytes()));
    if values.next().is_some() || header.as_deref() != Some(name.as_str()) {
        return Err(mismatch(id, "Mcp-Name does not match the body"));
    }
    Ok(name)
}

fn progress_token(inner: &Object<'_>) -> Option<String> {
    inner.get(meta::PROGRESS_TOKEN).filter(|raw| Id::read(raw).is_ok()).map(str::to_owned)
}

fn mirrored_params(head: &HeaderMap) -> Vec<(String, String)> {
    head.iter()
        .filter(|(name, _)| name.as_str().starts_with(headers::PARAM_PREFIX))
        .map(|(name, value)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        })
        .collect()
}
