//! Values of `WWW-Authenticate` (RFC 6750, section 3; RFC 9728, section 5.1). Built from configuration only, never
//! from what the request says.

use std::fmt::Write as _;

use super::metadata::{first_scope, place, split_origin};
use crate::config::Route;
use crate::principal::Scope;

/// Writes challenges.
#[derive(Debug)]
pub(super) struct Challenger {
    /// Origin and path prefix of the configured public URL.
    public: Option<(String, String)>,
}

impl Challenger {
    pub(super) fn new(public_url: Option<&str>) -> Self {
        Self { public: public_url.map(split_origin) }
    }

    /// No credential was sent: no error is named (RFC 6750, section 3.1).
    pub(super) fn missing(&self, route: &Route) -> String {
        challenge(&[("resource_metadata", self.metadata(&route.path)), ("scope", Some(first_scope(route)))])
    }

    /// The token is not accepted, whatever the reason.
    pub(super) fn bad_token(&self, route: &Route) -> String {
        self.error("invalid_token", "The access token is not valid here", route)
    }

    /// More than one credential was sent.
    pub(super) fn bad_request(&self, route: &Route) -> String {
        self.error("invalid_request", "Send exactly one Authorization header", route)
    }

    /// The token lacks scopes.
    pub(super) fn insufficient_scope(&self, scopes: &[Scope], path: &str) -> String {
        let scopes: Vec<&str> =
            scopes.iter().map(Scope::as_str).filter(|scope| is_scope_token(scope)).collect();
        challenge(&[
            ("error", Some("insufficient_scope".to_owned())),
            ("scope", Some(scopes.join(" ")).filter(|scopes| !scopes.is_empty())),
            ("resource_metadata", self.metadata(path)),
        ])
    }

    fn error(&self, error: &str, description: &str, route: &Route) -> String {
        challenge(&[
            ("error", Some(error.to_owned())),
            ("error_description", Some(description.to_owned())),
            ("resource_metadata", self.metadata(&route.path)),
            ("scope", Some(first_scope(route))),
        ])
    }

    /// Where the metadata of the route at this path is; unknown without a public URL.
    fn metadata(&self, path: &str) -> Option<String> {
        self.public.as_ref().map(|(origin, prefix)| format!("{origin}{}", place(prefix, path)))
    }
}

/// One challenge with the parameters that have a value, each a quoted string.
fn challenge(parameters: &[(&str, Option<String>)]) -> String {
    let mut out = String::from("Bearer");
    let mut separator = " ";
    for (name, value) in parameters.iter().filter_map(|(name, value)| Some((name, value.as_ref()?))) {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"");
        // Writing to a string cannot fail.
        write!(out, "{separator}{name}=\"{value}\"").unwrap_or_default();
        separator = ", ";
    }
    out
}

/// RFC 6749, section 3.3, `scope-token`.
fn is_scope_token(scope: &str) -> bool {
    !scope.is_empty() && scope.bytes().all(|c| matches!(c, 0x21 | 0x23..=0x5b | 0x5d..=0x7e))
}
