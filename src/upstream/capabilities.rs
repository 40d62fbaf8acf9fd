//! What Weir says towards upstreams that a client can do.
//!
//! It lists with everything that it can carry to some client, so that every client sees the superset; a call says
//! what its own client can do.

/// For listing and listening.
pub(super) const LISTING_CAPABILITIES: &str =
    r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}}}"#;

/// For calls: nothing can be asked of a client yet.
pub(super) const NO_CAPABILITIES: &str = "{}";
