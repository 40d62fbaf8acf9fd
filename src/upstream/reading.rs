//! One message of an upstream, read.

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::jsonrpc::{self, Id, Message, Object, RpcError, scan};

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
    let text = scan(bytes)?;
    Ok(match Message::read(text)? {
        Message::Request { id, method, .. } => Incoming::Question(Asked { id, method, params: params(text) }),
        Message::Notification { method, .. } => Incoming::Notice { method, params: params(text) },
        Message::Result { id, result } => Incoming::Result { id, result: bytes.slice_ref(result.as_bytes()) },
        Message::Error { id, error } => Incoming::Error { id, error: rpc_error(error) },
    })
}

/// The raw params of a message, which is opened again for them: requests and notifications are few and small.
fn params(text: &str) -> String {
    Object::open(text).and_then(|message| message.get("params")).unwrap_or("{}").to_owned()
}

fn rpc_error(raw: &str) -> RpcError {
    serde_json::from_str::<&RawValue>(raw).map_or_else(|_| RpcError::own(0, "", None), RpcError::new)
}
