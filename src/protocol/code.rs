//! JSON-RPC error codes that Weir writes (2026-07-28, basic, "Error Codes"; 2025-11-25 for the legacy ones).

/// The body is not JSON.
pub const PARSE: i64 = -32700;
/// JSON, but not a valid request.
pub const INVALID_REQUEST: i64 = -32600;
/// Unknown method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// Bad params, unknown names, missing `_meta` members.
pub const INVALID_PARAMS: i64 = -32602;
/// Something failed behind the request.
pub const INTERNAL: i64 = -32603;
/// Unknown resource, revisions up to 2025-11-25; never sent to a modern client.
pub const LEGACY_RESOURCE_NOT_FOUND: i64 = -32002;
/// A URL elicitation is needed, 2025-11-25 only; never sent to a modern client.
pub const LEGACY_URL_ELICITATION: i64 = -32042;
/// Header and body differ, or a header is missing (2026-07-28).
pub const HEADER_MISMATCH: i64 = -32020;
/// The request needs a capability that the client did not declare (2026-07-28).
pub const MISSING_CAPABILITY: i64 = -32021;
/// The revision is not spoken (2026-07-28).
pub const UNSUPPORTED_REVISION: i64 = -32022;
/// The token lacks a scope: equal to the HTTP status, outside the reserved range.
pub const FORBIDDEN: i64 = 403;
/// A limit of the caller is reached.
pub const TOO_MANY: i64 = 429;
/// Draining or full.
pub const UNAVAILABLE: i64 = 503;
