//! The side that faces clients: one endpoint, both eras.
//!
//! `negotiate` reads a request once and decides its era; from there on `legacy` and `modern` do not know of each
//! other. Both decode into era-neutral calls and encode what comes back. A session exists only inside `legacy`.

mod accept;
mod body;
mod footing;
mod legacy;
mod metrics;
mod modern;
mod negotiate;
mod render;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use data_encoding::HEXLOWER;
use http::header::AsHeaderName;
use http::{HeaderMap, Method, Response, StatusCode, header};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

pub use body::Body;
use footing::Footing;
pub use metrics::Metrics;

use crate::auth::Authenticators;
use crate::catalog::Snapshot;
use crate::config::{Config, Route};
use crate::exchange::Caller;
use crate::jsonrpc::{Error, Message, Object, RpcError, response_error};
use crate::notify::Hub;
use crate::principal::{Holder, Principal, Voucher};
use crate::protocol::{self, Abilities, code, headers};
use crate::relay::{Relay, Seat};
use crate::seal::{Keyring, random_bytes};
use crate::task::TaskGroup;
use negotiate::Turn;

/// A request whose body has been read, within limits, and whose caller is known.
#[derive(Debug)]
pub struct Inbound {
    /// The HTTP method.
    pub method: Method,
    /// The head.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
    /// Who sent it.
    pub principal: Principal,
    /// Where it came from, if that is known.
    pub peer: Option<IpAddr>,
    /// The route it came in on.
    pub route: Arc<Route>,
    /// Whether the session that it opens, or comes in, says who it comes from.
    pub by_session: bool,
    /// Whether its answer goes into another stream (HTTP+SSE).
    pub piped: bool,
    /// What this request sees, from its head to its end.
    pub snapshot: Arc<Snapshot>,
}

/// What the parts of the endpoint share.
#[derive(Debug)]
struct Shared {
    relay: Arc<Relay>,
    hub: Arc<Hub>,
    authenticators: Arc<Authenticators>,
    keyring: Arc<Keyring>,
    on_loopback: bool,
    /// Cancelled when standing streams must end.
    ending: CancellationToken,
    metrics: Metrics,
    parking: modern::Parking,
}

impl Inbound {
    /// Whom its limits count for.
    fn holder(&self) -> Holder {
        self.principal.holder(self.peer)
    }
}

impl Shared {
    fn seat(&self, request: &Inbound) -> Seat {
        self.relay.seat(Arc::clone(&request.snapshot), Arc::clone(&request.route), &request.principal)
    }

    /// Where a principal stands at this moment, who came in on a route.
    fn seat_now(&self, route: &Arc<Route>, principal: &Principal) -> Seat {
        let snapshot = self.hub.snapshot();
        let route = Arc::clone(snapshot.config.now(route));
        self.relay.seat(snapshot, route, principal)
    }

    /// A principal as it is now on a route: `None` where the route or what the principal rests on is there no more.
    fn again(&self, principal: &Principal, route: &Route) -> Option<Principal> {
        let snapshot = self.hub.snapshot();
        let opened_on = route;
        let route = snapshot.config.route(&route.name)?;
        // A token that was made for another audience would not come in any more.
        let is_for_another = route.policy.audiences != opened_on.policy.audiences;
        if is_for_another && matches!(principal.voucher, Voucher::Issued { .. }) {
            return None;
        }
        self.authenticators.of(&snapshot.config).again(principal, route, Timestamp::now())
    }

    fn caller(&self, principal: &Principal, abilities: Abilities) -> Caller {
        Caller {
            principal: principal.clone(),
            abilities,
            is_mute: false,
            client: None,
            tasking: None,
            session: None,
            on_loopback: self.on_loopback,
        }
    }

    /// The headers of a request that some upstream may be given.
    fn forwardable(&self, seat: &Seat, headers: &HeaderMap) -> HeaderMap {
        let mut kept = HeaderMap::new();
        for name in seat.snapshot.config.upstreams.iter().flat_map(|upstream| &upstream.forward_headers) {
            if kept.contains_key(name) {
                continue;
            }
            for value in headers.get_all(name) {
                kept.append(name.clone(), value.clone());
            }
        }
        kept
    }
}

/// The parts that an endpoint is made of.
#[derive(Debug)]
pub struct Parts {
    /// Carries calls.
    pub relay: Arc<Relay>,
    /// Tells of changes.
    pub hub: Arc<Hub>,
    /// Write challenges, and say whether what outlives a request may go on.
    pub authenticators: Arc<Authenticators>,
    /// Seals session ids.
    pub keyring: Arc<Keyring>,
    /// Where numbers go.
    pub metrics: Metrics,
}

/// Serves the requests of clients.
#[derive(Debug)]
pub struct Endpoint {
    shared: Arc<Shared>,
    legacy: legacy::Legacy,
}

impl Endpoint {
    /// Puts the endpoint together. Its tasks belong to `tasks`.
    #[must_use]
    pub fn new(parts: Parts, config: &Config, tasks: &TaskGroup) -> Self {
        let parking = modern::Parking::new(Arc::clone(&parts.hub), tasks, parts.metrics.parked.clone());
        let shared = Arc::new(Shared {
            relay: parts.relay,
            hub: parts.hub,
            authenticators: parts.authenticators,
            keyring: parts.keyring,
            on_loopback: config.listen.address.ip().is_loopback(),
            ending: CancellationToken::new(),
            metrics: parts.metrics,
            parking,
        });
        let legacy = legacy::Legacy::new(Arc::clone(&shared), tasks);
        Self { shared, legacy }
    }

    /// Answers one request (2025-11-25 and 2026-07-28, transports, Streamable HTTP). Never fails: what goes wrong is
    /// an answer.
    pub async fn serve(&self, request: Inbound) -> Response<Body> {
        match request.method {
            Method::POST => self.post(request).await,
            Method::GET => self.legacy.get(&request),
            Method::DELETE => self.legacy.delete(&request),
            _ => render::method_not_allowed(),
        }
    }

    /// Who holds the session of this route that these headers name, where the session itself says so, and its token is
    /// still good at this moment.
    #[must_use]
    pub fn token_holder(&self, headers: &HeaderMap, route: &Route, now: Timestamp) -> Option<Principal> {
        let sealed = std::str::from_utf8(session_id(headers)?).ok()?;
        self.legacy
            .token_holder(sealed, route)
            .filter(|holder| holder.until.is_none_or(|end| now.as_second() < end))
    }

    /// Whether the body of a POST is for the session that its headers name: it is of the legacy era, and opens none.
    #[must_use]
    pub fn is_within_session(&self, headers: &HeaderMap, body: &Bytes) -> bool {
        match negotiate::decide(headers, body) {
            Turn::Modern(_) => false,
            Turn::Legacy(Message::Request { method, .. }) => method != protocol::Method::Initialize.as_str(),
            Turn::Legacy(_) => true,
            Turn::Refused(refusal) => refusal.is_batch(),
        }
    }

    /// Answers a request to `PATH/sse` (2024-11-05, basic/transports). `query` is that of its address.
    #[must_use]
    pub fn serve_sse(&self, request: Inbound, query: Option<&str>) -> Response<Body> {
        self.legacy.sse(request, query)
    }

    async fn post(&self, request: Inbound) -> Response<Body> {
        let body = request.body.clone();
        match negotiate::decide(&request.headers, &body) {
            Turn::Modern(message) => modern::serve(&self.shared, &request, message).await,
            Turn::Legacy(message) => self.legacy.post(&request, message).await,
            Turn::Refused(refusal) => {
                let batch = if refusal.is_batch() { self.legacy.batch(&request).await } else { None };
                batch.unwrap_or_else(|| refusal.into_response())
            }
        }
    }

    /// Ends standing streams, politely. One that is opened later ends at once.
    pub fn end_streams(&self) {
        self.shared.ending.cancel();
    }

    /// Ends sessions and what they hold.
    pub fn end_sessions(&self) {
        self.legacy.end_all();
    }

    /// The calls of legacy sessions: they go on when their connection breaks.
    #[must_use]
    pub fn calls(&self) -> &TaskGroup {
        self.legacy.calls()
    }

    /// How many calls wait for a stateless client's answers.
    #[must_use]
    pub fn parked(&self) -> usize {
        self.shared.parking.count()
    }

    /// How many streams stand, of both eras.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.shared.hub.streams()
    }

    /// How many legacy sessions there are.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.legacy.count()
    }
}

/// The error for a fault of Weir's own. `cause` goes to the log, under the number that the client is told.
#[must_use]
pub fn internal_error(cause: &str) -> RpcError {
    let request_id = HEXLOWER.encode(&random_bytes::<8>());
    tracing::error!(event = "internal", %request_id, ?cause, "a request failed inside Weir");
    RpcError::own(code::INTERNAL, "internal error", Some(serde_json::json!({ "request_id": request_id })))
}

/// A message that could not be read, as an answer.
fn unreadable(error: &Error) -> Response<Body> {
    let own = RpcError::own(error.code(), &error.to_string(), None);
    let text = response_error(error.id(), own.raw.get());
    render::json(StatusCode::BAD_REQUEST, text)
}

/// Ends at a time in seconds since 1970 UTC, judged by the clock on the wall; never without one.
async fn until(end: Option<i64>) {
    let Some(end) = end else { return std::future::pending().await };
    loop {
        let left = end.saturating_sub(Timestamp::now().as_second());
        let Ok(left @ 1..) = u64::try_from(left) else { return };
        // Looked at again now and then: the clock may be set.
        tokio::time::sleep(Duration::from_secs(left.min(60))).await;
    }
}

/// Name and version of a client, from its raw `Implementation` in the params; cut where they are long.
fn client_name(params: &Object<'_>, key: &str) -> Option<Arc<str>> {
    const LONGEST: usize = 128;
    let info = params.object(key)?;
    let name = info.text("name")?;
    let text = info.text("version").map_or_else(|| name.clone(), |version| format!("{name}/{version}"));
    Some(text.chars().take(LONGEST).collect::<String>().into())
}

/// A header as text; `None` where it is absent or not visible ASCII.
fn header_text(map: &HeaderMap, name: impl AsHeaderName) -> Option<&str> {
    map.get(name).and_then(|value| value.to_str().ok())
}

/// The session id that a request carries.
fn session_id(map: &HeaderMap) -> Option<&[u8]> {
    map.get(headers::SESSION_ID).map(http::HeaderValue::as_bytes)
}

/// Whether a media type header names JSON (parameters allowed).
#[must_use]
pub fn is_json(map: &HeaderMap) -> bool {
    header_text(map, header::CONTENT_TYPE)
        .and_then(|text| text.split(';').next())
        .is_some_and(|media| media.trim().eq_ignore_ascii_case("application/json"))
}
