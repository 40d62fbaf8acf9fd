//! Why bytes are not a JSON-RPC message, and the error object of JSON-RPC.

use serde_json::value::RawValue;

use super::Object;

/// Why a text could not be read. Each variant knows the JSON-RPC code it is answered with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Not JSON, or not UTF-8, or more than one document: -32700.
    #[error("the body is not JSON")]
    Parse,
    /// Nested deeper than [`super::MAX_DEPTH`]: -32600.
    #[error("the body is nested too deeply")]
    Depth,
    /// A JSON array where one message belongs: -32600.
    #[error("a batch is not allowed here")]
    Batch,
    /// JSON, but no JSON-RPC 2.0 message: -32600, with the id where it could be read.
    #[error("{reason}")]
    Invalid {
        /// What is wrong, in words for the client.
        reason: &'static str,
        /// The id of the request, where it could be read.
        id: Option<super::Id>,
    },
    /// A key that occurs twice, or beside a variant of itself in other letters: -32600.
    #[error("a member occurs twice: {key}")]
    DuplicateKey {
        /// The key, cut to 64 characters.
        key: String,
        /// The id of the request, where it could be read.
        id: Option<super::Id>,
    },
    /// `params` is not an object: -32602 with the id.
    #[error("params must be an object")]
    Params {
        /// The id of the request.
        id: Option<super::Id>,
    },
}

impl Error {
    /// The JSON-RPC code for the answer.
    #[must_use]
    pub fn code(&self) -> i64 {
        match self {
            Self::Parse => -32700,
            Self::Params { .. } => -32602,
            Self::Depth | Self::Batch | Self::Invalid { .. } | Self::DuplicateKey { .. } => -32600,
        }
    }

    /// The id for the answer, where one could be read.
    #[must_use]
    pub fn id(&self) -> Option<&super::Id> {
        match self {
            Self::Invalid { id, .. } | Self::DuplicateKey { id, .. } | Self::Params { id } => id.as_ref(),
            Self::Parse | Self::Depth | Self::Batch => None,
        }
    }
}

/// A JSON-RPC error object as a peer sent it: the code is read, the whole object stays bytes.
#[derive(Debug, Clone)]
pub struct RpcError {
    /// The `code` member; 0 where it is missing or no integer.
    pub code: i64,
    /// The whole error object.
    pub raw: Box<RawValue>,
}

impl RpcError {
    /// Reads the code of an error object and keeps the rest.
    #[must_use]
    pub fn new(raw: &RawValue) -> Self {
        let code = Object::read(raw.get())
            .ok()
            .and_then(|object| object.get("code").and_then(|code| code.parse().ok()))
            .unwrap_or_default();
        Self { code, raw: raw.to_owned() }
    }

    /// An error of Weir's own, with optional structured data.
    #[must_use]
    pub fn own(code: i64, message: &str, data: Option<serde_json::Value>) -> Self {
        let mut object = serde_json::Map::new();
        object.insert("code".into(), code.into());
        object.insert("message".into(), message.into());
        if let Some(data) = data {
            object.insert("data".into(), data);
        }
        let text = serde_json::Value::Object(object).to_string();
        let raw = RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned());
        Self { code, raw }
    }

    /// The `message` member, empty where it is missing.
    #[must_use]
    pub fn message(&self) -> String {
        Object::read(self.raw.get())
            .ok()
            .and_then(|object| object.get("message").and_then(|text| serde_json::from_str(text).ok()))
            .unwrap_or_default()
    }
}
