//! HTTP towards one upstream: the only place that knows its clients. Where there is no TLS that is `plain`, else reqwest.
//!
//! A request is built from nothing: the head that the caller of [`Http`] gives, the operator's credential, and what
//! HTTP itself needs. No header of a client gets here except those of `forward_headers`, which a call carries. No proxy
//! of the environment is used, no compressed answer is asked for, and no redirect is followed but a 307 or 308 to
//! the same scheme, host and port, which keeps method and body. Addresses never reach a log line: only the kind of
//! an error does.

mod addresses;
mod answered;
mod gunzip;
mod plain;

use std::fmt;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderValue};
use reqwest::{Method, Request, Url};

use super::credential;
use super::fault::Fault;
use crate::config::{Credential, Upstream};
use crate::exchange::Reason;
use crate::protocol::{Method as Asked, headers};
use crate::task::TaskGroup;

use addresses::{Address, Addresses, Outcome, target};
use answered::Received;
pub(super) use answered::{Answered, Body, Form};
use plain::Plain;

/// Both media types on every POST, whatever the client wants (2025-11-25 and 2026-07-28, transports).
const ACCEPT_BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const ACCEPT_EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const MOST_REDIRECTS: usize = 3;
/// What Weir calls itself towards upstreams.
const NAME: &str = concat!("weir/", env!("CARGO_PKG_VERSION"));

/// Servers of Node and of uvicorn close a connection that was idle for 5 s. Weir lets go first, so that no call is
/// written into a connection that is just being closed, which would end in "outcome unknown".
const IDLE_CONNECTION: Duration = Duration::from_secs(4);
/// Finds out within half a minute that the host behind a quiet standing stream is gone.
const KEEPALIVE: Duration = Duration::from_secs(15);
const KEEPALIVE_ANSWER: Duration = Duration::from_secs(5);
/// Probes without an answer, and bytes that nobody acknowledges, end a connection: it leads to where nobody is any more.
const KEEPALIVE_PROBES: u32 = 3;
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);
/// What may be on its way and unread over HTTP/2, in bytes: of one answer, and of all on a connection.
const STREAM_WINDOW: u32 = 1024 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024 * 1024;

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
    /// For addresses with TLS, where HTTP/2 may be spoken. Made only where there are some: it reads all certificates that the
    /// machine trusts.
    client: Option<reqwest::Client>,
    /// By the number of an address, for those without.
    plain: Vec<Option<Plain>>,
    addresses: Addresses,
    credential: RwLock<HeaderMap>,
    largest: usize,
    /// A request that is given up after so long without a head says something of its address.
    patience: Duration,
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

/// An address, and the number of the upstream's own that it belongs to. It may hold a secret, so it is not shown.
#[derive(Clone)]
struct Place(usize, Url);

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
    /// Prepares the way to a server at these endpoints. Does not connect.
    pub(super) fn new(
        endpoints: &[http::Uri],
        upstream: &Upstream,
        tasks: &TaskGroup,
    ) -> Result<Self, BuildError> {
        let url = |endpoint: &http::Uri| Url::parse(&endpoint.to_string()).map_err(|_url| BuildError::Url);
        let urls: Vec<Url> = endpoints.iter().map(url).collect::<Result<_, _>>()?;
        let plain: Vec<Option<Plain>> =
            urls.iter().map(|url| Plain::new(url, upstream.timeout.connect, tasks)).collect();
        let credential = RwLock::new(headers_of(&upstream.credential)?);
        let is_secured = plain.iter().any(Option::is_none);
        let client = is_secured.then(|| Self::client(upstream)).transpose().map_err(BuildError::Client)?;
        Ok(Self {
            client,
            plain,
            addresses: Addresses::new(upstream.name.clone(), urls),
            credential,
            largest: upstream.limits.answer,
            patience: upstream.timeout.call,
        })
    }

    fn client(upstream: &Upstream) -> Result<reqwest::Client, reqwest::Error> {
        let client = reqwest::Client::builder()
            .user_agent(NAME)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .no_proxy()
            // HTTP/2 where the server's TLS agrees to it. All calls share one connection there, so what one of them leaves
            // unread must not take the room of the others: a stream has little, the connection has much.
            .http2_initial_stream_window_size(STREAM_WINDOW)
            .http2_initial_connection_window_size(CONNECTION_WINDOW)
            .http2_keep_alive_interval(KEEPALIVE)
            .http2_keep_alive_timeout(KEEPALIVE_ANSWER)
            .connect_timeout(upstream.timeout.connect)
            .pool_idle_timeout(IDLE_CONNECTION)
            .tcp_keepalive(KEEPALIVE)
            .tcp_keepalive_interval(KEEPALIVE_ANSWER)
            .tcp_keepalive_retries(KEEPALIVE_PROBES);
        #[cfg(target_os = "linux")]
        let client = client.tcp_user_timeout(UNACKNOWLEDGED);
        client.build()
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

    /// An address that the upstream itself named, absolute or not, in an answer that came `from` one of its own; `None`
    /// for one of another scheme, host or port, where its credential must not go.
    pub(super) fn place(&self, named: &str, from: usize) -> Option<Destination> {
        let own = &self.addresses.get(from)?.url;
        let url = own.join(named.trim()).ok().filter(|url| url.origin() == own.origin())?;
        Some(Destination { head: HeaderMap::new(), place: Some(Place(from, url)) })
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

    /// Sends a request where it belongs. A session whose address cannot be reached any more is lost, and answered so,
    /// where there is another address: there it may be opened again.
    async fn send(&self, method: Method, to: Destination, body: Bytes) -> Result<Answered, Fault> {
        let Destination { mut head, place } = to;
        head.extend(self.credential.read().unwrap_or_else(PoisonError::into_inner).clone());
        let (number, place) = match place {
            Some(Place(number, url)) => (number, Some(url)),
            None => (self.addresses.choose(&head), None),
        };
        let Some(address) = self.addresses.get(number) else {
            return Err(Fault::unsent(Reason::Unreachable));
        };
        let in_flight = (!is_standing(&method, &head)).then(|| address.enter());
        let waiting = self.addresses.wait(number, self.patience);
        let sent = Box::pin(self.execute((number, &method), (address, place), &head, body)).await;
        waiting.over(outcome(&sent));
        let received = match sent {
            Ok(received) => received,
            Err(fault) if fault.reason == Reason::Unreachable && self.addresses.over(&head) => {
                return Ok(Answered::nobody(404));
            }
            Err(fault) => return Err(fault),
        };
        let answered = Answered::new(received, self.largest).counted(number, in_flight);
        match &answered.session {
            Some(session) if answered.is_success() && opens_session(&head) => {
                self.addresses.opened(session, number)
            }
            _ if method == Method::DELETE || answered.status == 404 => {
                self.addresses.over(&head);
            }
            _ => {}
        }
        Ok(answered)
    }

    async fn execute(
        &self,
        (number, method): (usize, &Method),
        (address, mut place): (&Address, Option<Url>),
        head: &HeaderMap,
        body: Bytes,
    ) -> Result<Received, Fault> {
        let mut hops = 0;
        loop {
            let url = place.as_ref().unwrap_or(&address.url);
            let received = match self.plain.get(number).and_then(Option::as_ref) {
                Some(plain) => {
                    let target = place.as_ref().map_or_else(|| address.target.clone(), target);
                    let target = target.ok_or_else(|| Fault::unsent(Reason::NotMcp))?;
                    plain.send((method, target), head.clone(), body.clone()).await?.into()
                }
                None => self.secured(method, url, head, &body).await?,
            };
            match redirected(url, &received) {
                next @ Some(_) if hops < MOST_REDIRECTS => place = next,
                _ => return Ok(received),
            }
            hops += 1;
        }
    }

    async fn secured(
        &self,
        method: &Method,
        url: &Url,
        head: &HeaderMap,
        body: &Bytes,
    ) -> Result<Received, Fault> {
        let mut request = Request::new(method.clone(), url.clone());
        *request.headers_mut() = head.clone();
        if *method == Method::POST {
            *request.body_mut() = Some(body.clone().into());
        }
        let Some(client) = &self.client else { return Err(Fault::unsent(Reason::Unreachable)) };
        client.execute(request).await.map(Received::from).map_err(|error| fault(&error))
    }
}

/// Whether the answer to a request with this head may open a session: it names none, and its sender knows of them.
fn opens_session(head: &HeaderMap) -> bool {
    !head.contains_key(headers::SESSION_ID) && !head.contains_key(headers::METHOD)
}

/// Whether a request asks for a stream that stands: that is no load.
fn is_standing(method: &Method, head: &HeaderMap) -> bool {
    let listens = head.get(headers::METHOD).is_some_and(|name| name == Asked::Listen.as_str());
    *method == Method::GET || listens
}

/// What a request says of the address that it went to.
fn outcome(sent: &Result<Received, Fault>) -> Outcome {
    match sent {
        Ok(received) if matches!(received.status.as_u16(), 502..=504) => Outcome::Failed,
        Ok(_) => Outcome::Answered,
        Err(fault) if fault.reason == Reason::Unreachable => Outcome::Unreachable,
        Err(_) => Outcome::Failed,
    }
}

/// Where a redirect leads that may be followed with method, body and credential: nowhere but to the same origin.
fn redirected(asked: &Url, received: &Received) -> Option<Url> {
    if !matches!(received.status.as_u16(), 307 | 308) {
        return None;
    }
    let location = received.headers.get(LOCATION)?.to_str().ok()?;
    let next = asked.join(location).ok()?;
    (next.origin() == asked.origin()).then_some(next)
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
    logged(if error.is_connect() {
        Fault::unsent(Reason::Unreachable)
    } else if error.is_builder() {
        Fault::unsent(Reason::NotMcp)
    } else if error.is_timeout() {
        Fault::sent(Reason::TimedOut)
    } else {
        Fault::sent(Reason::Ended)
    })
}

fn logged(fault: Fault) -> Fault {
    tracing::debug!(fault = %fault, "a request to an upstream failed");
    fault
}
