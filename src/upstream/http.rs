//! HTTP towards one upstream: the only place that knows reqwest.
//!
//! A request is built from nothing: the head that the caller of [`Http`] gives, the operator's credential, and what
//! HTTP itself needs. No header of a client gets here except those of `forward_headers`, which a call carries. No proxy
//! of the environment is used, no compressed answer is asked for, and no redirect is followed but a 307 or 308 to
//! the same scheme, host and port, which keeps method and body. Addresses never reach a log line: only the kind of
//! an error does.

mod answered;
mod gunzip;

use std::fmt;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderValue};
use reqwest::{Method, Request, Response, Url};

use super::credential;
use super::fault::Fault;
use crate::config::{Credential, Upstream};
use crate::exchange::Reason;

pub(super) use answered::{Answered, Body, Form};

/// Both media types on every POST, whatever the client wants (2025-11-25 and 2026-07-28, transports).
const ACCEPT_BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const ACCEPT_EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const MOST_REDIRECTS: usize = 3;

/// Servers of Node and of uvicorn close a connection that was idle for 5 s. Weir lets go first, so that no call is
/// written into a connection that is just being closed, which would end in "outcome unknown".
const IDLE_CONNECTION: Duration = Duration::from_secs(4);
/// Finds out that the host behind a quiet standing stream is gone.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// Why no client could be made for an upstream.
#[derive(Debug, thiserror::Error)]
pub(super) enum BuildError {
    /// The URL is not one that HTTP can be spoken to.
    #[error("the URL cannot be used")]
    Url,
    /// A header of the credential holds a character that no header may hold.
    #[error("the credential cannot stand in a header")]
    Credential,
    /// TLS could not be set up.
    #[error("the HTTP client cannot be set up")]
    Client(#[source] reqwest::Error),
}

/// The connections to one upstream.
pub(super) struct Http {
    client: reqwest::Client,
    url: Url,
    credential: RwLock<HeaderMap>,
    largest: usize,
}

impl fmt::Debug for Http {
    /// Nothing of the address or the credential.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").finish_non_exhaustive()
    }
}

/// The head of a request, and where it goes if not to the upstream's own address.
#[derive(Debug, Clone, Default)]
pub(super) struct Destination {
    /// The head.
    pub(super) head: HeaderMap,
    place: Option<Place>,
}

/// An address. It may hold a secret, so it is not shown.
#[derive(Clone)]
struct Place(Url);

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").finish_non_exhaustive()
    }
}

impl From<HeaderMap> for Destination {
    fn from(head: HeaderMap) -> Self {
        Self { head, place: None }
    }
}

impl Http {
    /// Prepares the way to an endpoint. Does not connect.
    pub(super) fn new(endpoint: &http::Uri, upstream: &Upstream) -> Result<Self, BuildError> {
        let url = Url::parse(&endpoint.to_string()).map_err(|_url| BuildError::Url)?;
        let credential = RwLock::new(headers_of(&upstream.credential)?);
        let client = reqwest::Client::builder()
            .user_agent(concat!("weir/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .no_proxy()
            .http1_only()
            .connect_timeout(upstream.timeout.connect)
            .pool_idle_timeout(IDLE_CONNECTION)
            .tcp_keepalive(KEEPALIVE)
            .build()
            .map_err(BuildError::Client)?;
        Ok(Self { client, url, credential, largest: upstream.limits.answer })
    }

    /// Another credential from the next request on.
    pub(super) fn present(&self, credential: HeaderMap) {
        *self.credential.write().unwrap_or_else(PoisonError::into_inner) = credential;
    }

    /// Posts one JSON-RPC message.
    pub(super) async fn post(&self, to: impl Into<Destination>, body: String) -> Result<Answered, Fault> {
        let mut to = to.into();
        to.head.insert(ACCEPT, ACCEPT_BOTH);
        to.head.insert(CONTENT_TYPE, JSON);
        self.send(Method::POST, to, Bytes::from(body)).await
    }

    /// An address that the upstream itself named, absolute or not; `None` for one of another scheme, host or port,
    /// where its credential must not go.
    pub(super) fn place(&self, named: &str) -> Option<Destination> {
        let url = self.url.join(named.trim()).ok().filter(|url| url.origin() == self.url.origin())?;
        Some(Destination { head: HeaderMap::new(), place: Some(Place(url)) })
    }

    /// Opens a standing stream, or resumes one.
    pub(super) async fn get(&self, mut head: HeaderMap) -> Result<Answered, Fault> {
        head.insert(ACCEPT, ACCEPT_EVENTS);
        self.send(Method::GET, head.into(), Bytes::new()).await
    }

    /// Ends a session.
    pub(super) async fn delete(&self, head: HeaderMap) -> Result<Answered, Fault> {
        self.send(Method::DELETE, head.into(), Bytes::new()).await
    }

    async fn send(&self, method: Method, to: Destination, body: Bytes) -> Result<Answered, Fault> {
        let Destination { mut head, place } = to;
        head.extend(self.credential.read().unwrap_or_else(PoisonError::into_inner).clone());
        let mut url = place.map_or_else(|| self.url.clone(), |Place(url)| url);
        let mut hops = 0;
        loop {
            let mut request = Request::new(method.clone(), url);
            *request.headers_mut() = head.clone();
            if method == Method::POST {
                *request.body_mut() = Some(body.clone().into());
            }
            let response = self.client.execute(request).await.map_err(|error| fault(&error))?;
            match self.redirected(&response) {
                Some(next) if hops < MOST_REDIRECTS => url = next,
                _ => return Ok(Answered::new(response, self.largest)),
            }
            hops += 1;
        }
    }

    /// Where a redirect leads that may be followed with method, body and credential.
    fn redirected(&self, response: &Response) -> Option<Url> {
        if !matches!(response.status().as_u16(), 307 | 308) {
            return None;
        }
        let location = response.headers().get(LOCATION)?.to_str().ok()?;
        let next = response.url().join(location).ok()?;
        (next.origin() == self.url.origin()).then_some(next)
    }
}

/// The headers of a credential.
///
/// # Errors
/// [`BuildError::Credential`].
pub(super) fn headers_of(credential: &Credential) -> Result<HeaderMap, BuildError> {
    credential::headers(credential).ok_or(BuildError::Credential)
}

/// What an error of the client means. The error itself may name an address, so it is logged without one.
fn fault(error: &reqwest::Error) -> Fault {
    let fault = if error.is_connect() {
        Fault::unsent(Reason::Unreachable)
    } else if error.is_builder() {
        Fault::unsent(Reason::NotMcp)
    } else if error.is_timeout() {
        Fault::sent(Reason::TimedOut)
    } else {
        Fault::sent(Reason::Ended)
    };
    tracing::debug!(fault = %fault, "a request to an upstream failed");
    fault
}
