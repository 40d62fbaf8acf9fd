//! MCP as data and pure codecs: revisions, methods, headers, `_meta` keys, error codes, lists, event streams.
//!
//! This is the only place that spells method names, header names, `_meta` keys and error codes. It does no I/O and
//! takes no decisions: which era a peer speaks is decided in `downstream/negotiate.rs` and `upstream/connect.rs`.

mod ability;
mod capability;
pub mod code;
pub mod headers;
mod input;
mod lines;
mod listing;
pub mod meta;
mod method;
mod revision;
mod sse;

pub use ability::{Abilities, Question};
pub use capability::{Offer, TASKS, Tasking};
pub use input::{InputRequired, REQUESTS, RESPONSES, Request as InputRequest, STATE, retried};
pub use lines::{LineDecoder, encode_line};
pub use listing::{ListKind, Page, Ttl};
pub use method::{LogLevel, Method, notification};
pub use revision::{Era, Revision};
pub use sse::{
    Decoder, SseEvent, TooLong, comment, encode_event, encode_named, encode_pieces, encode_priming,
};
