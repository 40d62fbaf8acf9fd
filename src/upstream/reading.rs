//! One message of an upstream, read.

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::jsonrpc::{self, Id, Message, RpcError};

/// A question as it came.
#[derive(Debug)]
pub(super) struct Asked {
    /// The upstream's id.
    pub(super) id: Id,
    /// Its method.
    pub(super) method: String,
    /// Its raw params, `{}` where absent.
    pub(super) params: String,
}

/// What an upstream sent.
#[derive(Debug)]
pub(super) enum Incoming {
    /// A notification: its method and raw params.
    Notice {
        /// Its method.
        method: String,
        /// Its params as they came, `{}` where absent.
        params: String,
    },
    /// A request of the upstream's own.
    Question(Asked),
    /// A result, as a slice of the message.
    Result {
        /// The id of the request it answers.
        id: Id,
        /// The raw result.
        result: Bytes,
    },
    /// An error.
    Error {
        /// The id of the request it answers, where it has one.
        id: Option<Id>,
        /// The error.
        error: RpcError,
    },
}

/// Reads one message. The result stays where it is: no byte of it is copied.
pub(super) fn read(bytes: &Bytes) -> Result<Incoming, jsonrpc::Error> {
    Ok(match Message::of(bytes)? {
        Message::Request { id, method, params } => {
            Incoming::Question(Asked { id, method, params: params.as_json().to_owned() })
        }
        Message::Notification { method, params } => {
            Incoming::Notice { method, params: params.as_json().to_owned() }
        }
        Message::Result { id, result } => Incoming::Result { id, result: bytes.slice_ref(result.as_bytes()) },
        Message::Error { id, error } => Incoming::Error { id, error: rpc_error(error) },
    })
}

fn rpc_error(raw: &str) -> RpcError {
    serde_json::from_str::<&RawValue>(raw).map_or_else(|_| RpcError::own(0, "", None), RpcError::new)
}
