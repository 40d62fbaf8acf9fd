//! From the head of a request to a principal, or to a challenge.
//!
//! An [`Authenticator`] is made from one configuration and asked once per request, before the body is looked at.
//! A credential that is present and not accepted is refused, never treated as absent. What a refusal says is the
//! same whatever was wrong with a token; the log gets the difference as [`Refusal::event`], never the token.

mod bearer;
mod challenge;
mod metadata;

use http::{HeaderMap, StatusCode};
use jiff::Timestamp;

use crate::config::{Access, Config};
use crate::principal::{Principal, Scope};

use bearer::{Presented, Tokens};
use challenge::Challenger;
use metadata::Metadata;

/// Decides who sent a request.
#[derive(Debug)]
pub struct Authenticator {
    /// `None`: access is open.
    tokens: Option<Tokens>,
    challenger: Challenger,
    metadata: Metadata,
}

/// Why a request has no principal, as the answer to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// 401, or 400 for a request that is malformed.
    pub status: StatusCode,
    /// The value of `WWW-Authenticate`.
    pub www_authenticate: String,
    /// What the log calls it.
    pub event: &'static str,
}

impl Authenticator {
    /// An authenticator for this configuration.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let tokens = match &config.access {
            Access::Open => None,
            Access::Tokens(tokens) => Some(Tokens::new(tokens)),
        };
        let public_url = config.listen.public_url.as_deref();
        let metadata = match (&tokens, public_url) {
            (Some(_), Some(url)) => Metadata::new(url, config.routes.iter().map(AsRef::as_ref)),
            (None, _) | (_, None) => Metadata::default(),
        };
        Self { tokens, challenger: Challenger::new(public_url), metadata }
    }

    /// Finds the principal of a request with these headers to the route at this path.
    ///
    /// # Errors
    /// [`Refusal`] when there is no credential, or none that is accepted now.
    pub fn authenticate(
        &self,
        headers: &HeaderMap,
        path: &str,
        now: Timestamp,
    ) -> Result<Principal, Refusal> {
        let Some(tokens) = &self.tokens else { return Ok(Principal::open()) };
        let token = match bearer::presented(headers) {
            Presented::Token(token) => token,
            Presented::Nothing => return Err(self.missing(path)),
            Presented::Twice => return Err(self.twice(path)),
            Presented::Malformed => return Err(self.bad("auth.malformed", path)),
        };
        tokens.find(token, now).ok_or_else(|| self.bad("auth.invalid", path))
    }

    /// The protected resource metadata at a path of the listener, as JSON, where there is some.
    #[must_use]
    pub fn metadata(&self, path: &str) -> Option<&str> {
        self.metadata.at(path)
    }

    /// The challenge for a caller whose token lacks these scopes, all of them at once.
    #[must_use]
    pub fn insufficient_scope(&self, scopes: &[Scope], path: &str) -> String {
        self.challenger.insufficient_scope(scopes, path)
    }

    fn missing(&self, path: &str) -> Refusal {
        Refusal {
            status: StatusCode::UNAUTHORIZED,
            www_authenticate: self.challenger.missing(path),
            event: "auth.missing",
        }
    }

    fn twice(&self, path: &str) -> Refusal {
        Refusal {
            status: StatusCode::BAD_REQUEST,
            www_authenticate: self.challenger.bad_request(path),
            event: "auth.malformed",
        }
    }

    fn bad(&self, event: &'static str, path: &str) -> Refusal {
        Refusal { status: StatusCode::UNAUTHORIZED, www_authenticate: self.challenger.bad_token(path), event }
    }
}

#[cfg(test)]
mod tests;
