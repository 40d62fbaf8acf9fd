//! From the head of a request to a principal, or to a challenge.
//!
//! An [`Authenticator`] is made from one configuration and asked once per request, before the body is looked at.
//! A credential that is present and not accepted is refused, never treated as absent. What a refusal says is the
//! same whatever was wrong with a token; the log gets the difference as [`Refusal::event`], never the token.

mod bearer;
mod challenge;
mod fetch;
mod generate;
mod jwt;
mod keys;
mod metadata;
mod seen;
mod succession;

use std::path::Path;
use std::sync::Arc;

use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use crate::config::{Config, Issuer, Policy, Route, Token};
use crate::principal::{Grant, Principal, Rights, Scope, Voucher};
use crate::task::TaskGroup;

pub use generate::new_token;
pub use succession::{Authenticators, Prepared};

use bearer::{Presented, Tokens};
use challenge::Challenger;
use fetch::Fetcher;
use jwt::{Jwts, Reject};
use keys::Keys;
use metadata::Metadata;
use seen::Seen;

/// Decides who sent a request.
#[derive(Debug)]
pub struct Authenticator {
    /// `None`: access is open.
    sources: Option<Sources>,
    /// What begins the audiences of routes.
    public_url: String,
    challenger: Challenger,
    metadata: Metadata,
    seen: Seen,
}

/// Where principals come from, in the order in which they are asked.
#[derive(Debug)]
struct Sources {
    tokens: Tokens,
    jwts: Jwts,
    takes_initialize_tokens: bool,
}

/// Why a request has no principal, as the answer to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// 401; 400 for a request that is malformed; 503 where the keys of an issuer cannot be had.
    pub status: StatusCode,
    /// The value of `WWW-Authenticate`; none with 503.
    pub www_authenticate: Option<String>,
    /// What the log calls it.
    pub event: &'static str,
    /// What was wrong with the credential, for the log alone.
    pub reason: &'static str,
}

/// Why the authenticator cannot work.
#[derive(Debug, thiserror::Error)]
pub enum SetUpError {
    /// TLS cannot be set up.
    #[error("the keys of issuers cannot be fetched")]
    Keys(#[from] reqwest::Error),
    /// The generated token can be neither made nor read.
    #[error("the token of access.generate, {path}, can be neither made nor read")]
    Token {
        /// Where it should be.
        path: String,
        /// What the operating system says.
        #[source]
        source: std::io::Error,
    },
}

impl Authenticator {
    /// An authenticator for this configuration.
    ///
    /// # Errors
    /// [`SetUpError::Token`] when the token of `access.generate` cannot be read.
    pub fn new(config: &Config) -> Result<Self, SetUpError> {
        Self::after(config, None)
    }

    /// An authenticator for this configuration that has the keys which the one before it knows.
    fn after(config: &Config, before: Option<&Self>) -> Result<Self, SetUpError> {
        let known = before.and_then(|before| before.sources.as_ref()).map(|sources| &sources.jwts);
        let keys = |issuer: &Arc<Issuer>| {
            Keys::new(Arc::clone(issuer), known.and_then(|known| known.keys_like(issuer)))
        };
        let generated = config.access.guard().and_then(|guard| guard.generate.as_deref());
        let generated = generated.map(own_token).transpose()?.flatten();
        let sources = config.access.guard().map(|guard| Sources {
            tokens: Tokens::new(guard.tokens.iter().chain(&generated)),
            jwts: Jwts::new(guard.issuers.iter().map(keys).collect()),
            takes_initialize_tokens: guard.initialize_token,
        });
        let public_url = config.listen.public_url.as_deref();
        let issuers = config.access.guard().map(|guard| guard.issuers.as_slice());
        let metadata = match (issuers, public_url) {
            (Some(issuers), Some(url)) => {
                Metadata::new(url, issuers, config.routes.iter().map(AsRef::as_ref))
            }
            (None, _) | (_, None) => Metadata::default(),
        };
        Ok(Self {
            sources,
            public_url: public_url.unwrap_or_default().to_owned(),
            challenger: Challenger::new(public_url),
            metadata,
            seen: Seen::default(),
        })
    }

    /// Starts the tasks that keep the keys of issuers.
    ///
    /// # Errors
    /// [`SetUpError`] when TLS cannot be set up.
    pub fn keep_keys(&self, tasks: &TaskGroup) -> Result<(), SetUpError> {
        let Some(sources) = self.sources.as_ref().filter(|sources| !sources.jwts.is_empty()) else {
            return Ok(());
        };
        let fetcher = Fetcher::new()?;
        for keys in sources.jwts.keys() {
            tasks.spawn_until_cancelled("keys", Box::pin(Arc::clone(keys).keep(fetcher.clone())));
        }
        Ok(())
    }

    /// The issuers of tokens, and whether there ever was a key of each.
    #[must_use]
    pub fn issuers(&self) -> Vec<(String, bool)> {
        let keys = self.sources.iter().flat_map(|sources| sources.jwts.keys());
        keys.map(|keys| (keys.issuer.issuer.clone(), keys.current().is_loaded)).collect()
    }

    /// Finds the principal of a request with these headers to a route. Its scopes are those that the route's words make
    /// of them.
    ///
    /// # Errors
    /// [`Refusal`] when there is no credential, or none that is accepted now.
    pub async fn authenticate(
        &self,
        headers: &HeaderMap,
        route: &Arc<Route>,
        now: Timestamp,
    ) -> Result<Principal, Refusal> {
        let Some(sources) = &self.sources else { return Ok(Principal::open()) };
        let token = match bearer::presented(headers) {
            Presented::Token(token) => token,
            Presented::Nothing => {
                let anonymous = route.policy.anonymous.clone().map(Principal::anonymous);
                return anonymous
                    .map(|caller| on_route(&caller, &route.policy))
                    .ok_or_else(|| self.missing(route));
            }
            Presented::Twice => return Err(self.twice(route)),
            Presented::Malformed => return Err(self.bad(("auth.malformed", "format"), route)),
        };
        let principal = self.holder(sources, token, route, now).await?;
        Ok(self.seen.on_route(principal, route))
    }

    /// The principal as it is here, on a route: `None` where what it rests on is not accepted any more.
    #[must_use]
    pub fn again(&self, principal: &Principal, route: &Route, now: Timestamp) -> Option<Principal> {
        let found = match (&principal.voucher, &self.sources) {
            (Voucher::Open, None) => return Some(principal.clone()),
            (Voucher::Open, Some(_)) | (_, None) => return None,
            (Voucher::Anonymous, Some(_)) => Principal::anonymous(route.policy.anonymous.clone()?),
            (Voucher::Token(hash), Some(sources)) => sources.tokens.with_hash(hash, now)?,
            (Voucher::Issued { grant, terms }, Some(sources)) => {
                sources.jwts.keys().iter().find(|keys| keys.terms == *terms)?;
                Principal { rights: Rights::Granted(Arc::clone(grant)), ..principal.clone() }
            }
        };
        (found.subject == principal.subject).then(|| on_route(&found, &route.policy))
    }

    /// Whether legacy clients may send a static token in `initialize`.
    #[must_use]
    pub fn takes_initialize_tokens(&self) -> bool {
        self.sources.as_ref().is_some_and(|sources| sources.takes_initialize_tokens)
    }

    /// Who holds a static token.
    ///
    /// # Errors
    /// [`Refusal`] when it is none that is accepted now.
    pub fn holder_of_static(&self, token: &str, route: &Route, now: Timestamp) -> Result<Principal, Refusal> {
        let found = self.sources.as_ref().and_then(|sources| sources.tokens.find(token, now));
        found
            .map(|principal| on_route(&principal, &route.policy))
            .ok_or_else(|| self.bad(("auth.invalid", "static"), route))
    }

    /// Who holds a token. The first source that recognises it decides alone.
    async fn holder(
        &self,
        sources: &Sources,
        token: &str,
        route: &Route,
        now: Timestamp,
    ) -> Result<Principal, Refusal> {
        if let Some(principal) = sources.tokens.find(token, now) {
            return Ok(principal);
        }
        if sources.jwts.is_empty() || token.matches('.').count() < 2 {
            return Err(self.bad(("auth.invalid", "static"), route));
        }
        let found = sources.jwts.principal(token, &self.audiences(route), now).await;
        found.map_err(|reject| match reject {
            Reject::NoKeys => Refusal {
                status: StatusCode::SERVICE_UNAVAILABLE,
                www_authenticate: None,
                event: "auth.unavailable",
                reason: reject.label(),
            },
            reject => self.bad(("auth.invalid", reject.label()), route),
        })
    }

    /// What tokens for a route must be made for, one of it. Issuers may have further ones.
    fn audiences(&self, route: &Route) -> Vec<String> {
        if route.policy.audiences.is_empty() {
            vec![format!("{}{}", self.public_url, route.path)]
        } else {
            route.policy.audiences.clone()
        }
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

    fn missing(&self, route: &Route) -> Refusal {
        Refusal {
            status: StatusCode::UNAUTHORIZED,
            www_authenticate: Some(self.challenger.missing(route)),
            event: "auth.missing",
            reason: "missing",
        }
    }

    fn twice(&self, route: &Route) -> Refusal {
        Refusal {
            status: StatusCode::BAD_REQUEST,
            www_authenticate: Some(self.challenger.bad_request(route)),
            event: "auth.malformed",
            reason: "twice",
        }
    }

    fn bad(&self, (event, reason): (&'static str, &'static str), route: &Route) -> Refusal {
        Refusal {
            status: StatusCode::UNAUTHORIZED,
            www_authenticate: Some(self.challenger.bad_token(route)),
            event,
            reason,
        }
    }
}

/// The SHA-256 of a text: tokens are kept and compared as theirs.
fn sha256(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// Whether a request presents the bearer token with this SHA-256.
#[must_use]
pub fn presents(headers: &HeaderMap, hash: &[u8; 32]) -> bool {
    bearer::presents(headers, hash)
}

/// Makes the token of `access.generate` where there is none yet.
///
/// # Errors
/// [`SetUpError::Token`] when its file cannot be made.
pub fn generate(config: &Config) -> Result<(), SetUpError> {
    let Some(path) = config.access.guard().and_then(|guard| guard.generate.as_deref()) else { return Ok(()) };
    if generate::make(path).map_err(|source| unusable(path, source))? {
        tracing::warn!(event = "token.generated", path = %path.display(), "made a token for everything; it is in this file");
    }
    Ok(())
}

/// The token that Weir made for itself.
fn own_token(path: &Path) -> Result<Option<Token>, SetUpError> {
    generate::read(path).map_err(|source| unusable(path, source))
}

fn unusable(path: &Path, source: std::io::Error) -> SetUpError {
    SetUpError::Token { path: path.display().to_string(), source }
}

/// A principal as a route sees it: with the scopes that its own imply there, and its name where rules ask for names.
#[must_use]
pub fn on_route(principal: &Principal, policy: &Policy) -> Principal {
    let grant = match &principal.rights {
        Rights::All => return principal.clone(),
        Rights::Granted(grant) => grant,
    };
    let holder = policy.names(&principal.subject).then(|| principal.subject.clone());
    let grant = Grant { scopes: policy.words.expanded(&grant.scopes), holder, ..Grant::clone(grant) };
    Principal { rights: Rights::Granted(Arc::new(grant)), ..principal.clone() }
}

#[cfg(test)]
mod tests;
