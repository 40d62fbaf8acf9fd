//! What legacy params say.

use std::sync::Arc;

use crate::downstream::client_name;
use crate::jsonrpc::Object;
use crate::protocol::{Abilities, Revision};
use crate::view::Form;

/// What a client said when it opened its session.
#[derive(Debug)]
pub(super) struct Hello {
    /// The revision that the session speaks.
    pub(super) revision: Revision,
    /// What the client can be asked.
    pub(super) abilities: Abilities,
    /// Name and version of the client.
    pub(super) client: Option<Arc<str>>,
    /// Whether it came over HTTP+SSE, where streams are neither primed nor resumed.
    pub(super) piped: bool,
}

/// Reads the params of `initialize` (2025-11-25, basic/lifecycle, "Version Negotiation"): the asked revision where it
/// is a legacy one that Weir speaks, else the newest legacy one.
///
/// # Errors
/// What is missing, in words for the client.
pub(super) fn initialize(params: &Object<'_>, piped: bool) -> Result<Hello, &'static str> {
    let asked = params.text("protocolVersion").ok_or("params.protocolVersion must be a string")?;
    let capabilities = params.get("capabilities").filter(|raw| raw.starts_with('{'));
    let capabilities = capabilities.ok_or("params.capabilities must be an object")?;
    params.object("clientInfo").ok_or("params.clientInfo must be an object")?;
    let revision =
        Revision::parse(&asked).map_or(Revision::NEWEST_LEGACY, |asked| asked.min(Revision::NEWEST_LEGACY));
    let client = client_name(params, "clientInfo");
    Ok(Hello { revision, abilities: Abilities::read(capabilities), client, piped })
}

/// In which form a client of this revision gets tool definitions (design contract, section 5, "Losses between eras").
pub(super) fn form(revision: Revision) -> Form {
    if revision < Revision::V2025_06_18 { Form::Whole } else { Form::ObjectOutput }
}
