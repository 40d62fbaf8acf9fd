//! What Weir sends to an upstream as its own credential.

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use secrecy::ExposeSecret as _;

use crate::config::Credential;

/// The headers of a credential, marked so that no log shows them. `None` where a value cannot stand in a header.
pub(super) fn headers(credential: &Credential) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    match credential {
        Credential::None => {}
        Credential::Bearer(token) => {
            headers.insert(AUTHORIZATION, sensitive(&format!("Bearer {}", token.expose_secret()))?);
        }
        Credential::Headers(list) => {
            for (name, value) in list {
                headers.insert(name.clone(), sensitive(value.expose_secret())?);
            }
        }
    }
    Some(headers)
}

fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}
