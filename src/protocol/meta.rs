//! Keys of `_meta` (2026-07-28, basic, "_meta") and Weir's own.

/// The revision of a modern request.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Name and version of a modern client.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// Capabilities of a modern client, for this request.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The log level a modern client wants for this request.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// Which `subscriptions/listen` request a notification belongs to.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// Name and version of a modern server.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The token by which progress is reported.
pub const PROGRESS_TOKEN: &str = "progressToken";
/// Which task a message belongs to (2025-11-25, basic/utilities/tasks, "Related Task Metadata").
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// The full name of a tool whose published name was shortened.
pub const WEIR_NAME: &str = "dev.weir/name";
/// The upstreams that are missing from a list.
pub const WEIR_MISSING: &str = "dev.weir/missing";

/// The members of a request's `_meta` that belong to one leg and are written anew on the next.
pub const PER_LEG: [&str; 4] = [PROTOCOL_VERSION, CLIENT_INFO, CLIENT_CAPABILITIES, LOG_LEVEL];
