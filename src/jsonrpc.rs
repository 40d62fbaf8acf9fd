//! JSON-RPC 2.0 envelopes with everything that Weir does not own kept as the bytes that came.
//!
//! Owns ids, messages, raw objects and the scan of untrusted bytes. It never builds a `serde_json::Value` of a
//! peer's data: a `Value` drops duplicate keys, number precision and key order. Invariant: a text that passed
//! [`scan`] and [`Message::read`] has no duplicate key in its envelope, `params` or `_meta`, no lone surrogate and
//! no nesting deeper than [`MAX_DEPTH`], so two readers of it see the same call.

mod canonical;
mod edit;
mod error;
mod id;
mod message;
mod object;
mod scan;
mod split;

pub use canonical::canonical;
pub use edit::{Edit, Text, quoted};
pub use error::{Error, RpcError};
pub use id::Id;
pub use message::{Message, request, response_error, response_result};
pub use object::Object;
pub use scan::{MAX_DEPTH, mentioning, scan};

#[cfg(test)]
mod tests;
