//! One JSON-RPC message, borrowed from the bytes it came in.

use super::object::ObjectError;
use super::scan::scan_members;
use super::{Error, Id, Object, Text};

/// A message as it was read. Raw members point into the text.
#[derive(Debug)]
pub enum Message<'a> {
    /// Something with a method and an id.
    Request {
        /// Its id.
        id: Id,
        /// Its method, decoded.
        method: String,
        /// Its params, opened one level; empty where absent.
        params: Object<'a>,
    },
    /// Something with a method and no id.
    Notification {
        /// Its method, decoded.
        method: String,
        /// Its params, opened one level; empty where absent.
        params: Object<'a>,
    },
    /// An answer with a result.
    Result {
        /// The id of the request it answers.
        id: Id,
        /// The result, raw.
        result: &'a str,
    },
    /// An answer with an error.
    Error {
        /// The id of the request it answers; `None` where the peer gave null.
        id: Option<Id>,
        /// The error object, raw.
        error: &'a str,
    },
}

/// Keys on which a decision is made, and which may therefore not stand beside a variant of themselves.
const ENVELOPE_KEYS: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];
const PARAMS_KEYS: [&str; 4] = ["name", "uri", "arguments", "_meta"];

impl<'a> Message<'a> {
    /// Reads one message from bytes of which nothing is known.
    ///
    /// # Errors
    /// [`Error`] as [`super::scan`] and [`Message::read`].
    pub fn of(bytes: &'a [u8]) -> Result<Self, Error> {
        let (text, members) = scan_members(bytes)?;
        Self::in_envelope(Object::of_members(text, &members), text)
    }

    /// Reads one message from text that passed [`super::scan`]; of other text nothing is promised but that it ends.
    ///
    /// # Errors
    /// [`Error`] when it is a batch, no JSON-RPC 2.0 message, or holds a key twice in the envelope, in
    /// `params` or in `params._meta`.
    pub fn read(text: &'a str) -> Result<Self, Error> {
        Self::in_envelope(Object::reread(text), text)
    }

    fn in_envelope(envelope: Result<Object<'a>, ObjectError>, text: &'a str) -> Result<Self, Error> {
        let envelope = envelope.map_err(|error| match error {
            ObjectError::Duplicate(key) => Error::DuplicateKey { key, id: None },
            ObjectError::NotAnObject => not_an_object(text),
        })?;
        let id = envelope.get("id").filter(|raw| *raw != "null" || envelope.get("error").is_none());
        let id = id.map(Id::read).transpose().map_err(|reason| Error::Invalid { reason, id: None })?;
        if let Some(key) = envelope.variant_of(&ENVELOPE_KEYS) {
            return Err(Error::DuplicateKey { key: key.to_owned(), id });
        }
        if envelope.text("jsonrpc").as_deref() != Some("2.0") {
            return Err(Error::Invalid { reason: "jsonrpc must be \"2.0\"", id });
        }
        match (envelope.get("method"), envelope.get("result"), envelope.get("error")) {
            (Some(_), None, None) => Self::with_method(&envelope, id),
            (None, Some(result), None) => {
                let id = id.ok_or(Error::Invalid { reason: "a response needs an id", id: None })?;
                Ok(Self::Result { id, result })
            }
            (None, None, Some(error)) => Ok(Self::Error { id, error }),
            _ => Err(Error::Invalid { reason: "one of method, result and error is needed", id }),
        }
    }

    fn with_method(envelope: &Object<'a>, id: Option<Id>) -> Result<Self, Error> {
        let Some(method) = envelope.text("method") else {
            return Err(Error::Invalid { reason: "method must be a string", id });
        };
        let params = match envelope.get("params") {
            None => Object::default(),
            Some(raw) => open_params(raw, id.as_ref())?,
        };
        Ok(match id {
            Some(id) => Self::Request { id, method, params },
            None => Self::Notification { method, params },
        })
    }
}

fn not_an_object(text: &str) -> Error {
    match serde_json::from_str::<&serde_json::value::RawValue>(text) {
        Ok(raw) if raw.get().starts_with('[') => Error::Batch,
        Ok(_) => Error::Invalid { reason: "a message must be an object", id: None },
        Err(_) => Error::Parse,
    }
}

fn open_params<'a>(raw: &'a str, id: Option<&Id>) -> Result<Object<'a>, Error> {
    let refuse = |error| match error {
        ObjectError::Duplicate(key) => Error::DuplicateKey { key, id: id.cloned() },
        ObjectError::NotAnObject => Error::Params { id: id.cloned() },
    };
    let params = Object::reread(raw).map_err(refuse)?;
    if let Some(key) = params.variant_of(&PARAMS_KEYS) {
        return Err(Error::DuplicateKey { key: key.to_owned(), id: id.cloned() });
    }
    if let Some(meta) = params.get("_meta") {
        let meta = Object::reread(meta).map_err(refuse)?;
        return Ok(params.with_opened("_meta", meta));
    }
    Ok(params)
}

/// A request as text: id, method and raw params (left out where empty).
#[must_use]
pub fn request(id: Option<&Id>, method: &str, params: &str) -> String {
    let mut text = Text::sized(params.len() + method.len() + 80);
    text.member("jsonrpc", "\"2.0\"");
    if let Some(id) = id {
        text.member("id", id.as_json());
    }
    text.text("method", method);
    if !params.is_empty() {
        text.member("params", params);
    }
    text.close()
}

/// A response with a raw result.
#[must_use]
pub fn response_result(id: &Id, result: &str) -> String {
    let mut text = Text::sized(result.len() + 80);
    text.member("jsonrpc", "\"2.0\"");
    text.member("id", id.as_json());
    text.member("result", result);
    text.close()
}

/// A response with a raw error object. Without an id the member is left out (2026-07-28 schema, `JSONRPCErrorResponse`).
#[must_use]
pub fn response_error(id: Option<&Id>, error: &str) -> String {
    let mut text = Text::object();
    text.member("jsonrpc", "\"2.0\"");
    if let Some(id) = id {
        text.member("id", id.as_json());
    }
    text.member("error", error);
    text.close()
}
