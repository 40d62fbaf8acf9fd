//! What Weir says towards upstreams that a client can do.
//!
//! It lists with everything that it can carry to some client, so that every client sees the superset; a call says
//! what its own client can do.

use std::collections::BTreeMap;

use crate::protocol::Abilities;

/// For the first word to an upstream, and for listing and listening where it has no extensions.
pub(super) const LISTING_CAPABILITIES: &str =
    r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}}}"#;

/// For calls: nothing can be asked of a client yet.
pub(super) const NO_CAPABILITIES: &str = "{}";

/// The extension for user interfaces, and what its servers look for in the settings of a client (the extension
/// `io.modelcontextprotocol/ui`, "Client and Server Capabilities").
const APPS: &str = "io.modelcontextprotocol/ui";
const APPS_SETTINGS: &str = r#"{"mimeTypes":["text/html;profile=mcp-app"]}"#;

/// For listing and listening at an upstream with these extensions.
pub(super) fn listing(extensions: &BTreeMap<String, String>) -> String {
    let settings = |name: &str| if name == APPS { APPS_SETTINGS } else { "{}" }.to_owned();
    Abilities {
        elicitation_form: true,
        elicitation_url: true,
        sampling: true,
        sampling_tools: true,
        extensions: extensions.keys().map(|name| (name.clone(), settings(name))).collect(),
        ..Abilities::default()
    }
    .to_json()
}
