//! The layers around the endpoint, outermost first.

use std::any::Any;
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use tokio::sync::watch;
use tower::util::BoxCloneSyncService;
use tower::{ServiceBuilder, ServiceExt as _, service_fn};
use tower_http::cors::{AllowOrigin, CorsLayer};

use super::entrance::{self, Admitted};
use super::{body, doors};
use crate::admin::Admin;
use crate::auth::{Authenticator, Refusal};
use crate::catalog::Snapshot;
use crate::config::{Listen, Route};
use crate::downstream::{Body, Endpoint, Inbound, internal_error, is_json};
use crate::jsonrpc::{RpcError, response_error};
use crate::protocol::{code, headers};
use crate::telemetry::{AuditLine, AuditLog};

/// A service that a listener can run.
pub type McpService = BoxCloneSyncService<Request<Incoming>, Response<Body>, Infallible>;

/// Whether new work is still taken.
#[derive(Debug, Default)]
pub struct Gate {
    shut: AtomicBool,
}

impl Gate {
    /// Refuses new work with 503 from now on.
    pub fn shut(&self) {
        self.shut.store(true, Ordering::Relaxed);
    }

    fn is_shut(&self) -> bool {
        self.shut.load(Ordering::Relaxed)
    }
}

/// What the doors need to know.
pub(super) struct Doors {
    listen: Listen,
    snapshots: watch::Receiver<Arc<Snapshot>>,
    pub(super) authenticator: Arc<Authenticator>,
    audit: Option<Arc<AuditLog>>,
    pub(super) endpoint: Arc<Endpoint>,
    gate: Arc<Gate>,
}

/// The service of the MCP listener.
#[must_use]
pub fn mcp_service(
    listen: &Listen,
    snapshots: watch::Receiver<Arc<Snapshot>>,
    (authenticator, audit): (Arc<Authenticator>, Option<Arc<AuditLog>>),
    endpoint: Arc<Endpoint>,
    gate: Arc<Gate>,
) -> McpService {
    let cors = cors(listen);
    let doors = Arc::new(Doors { listen: listen.clone(), snapshots, authenticator, audit, endpoint, gate });
    let inner = Arc::clone(&doors);
    let inside = ServiceBuilder::new()
        // Within the doors, so that a foreign origin is told nothing; around everything else, so that every answer
        // to an allowed one can be read by it.
        .layer(cors)
        .service(service_fn(move |request| guarded(Arc::clone(&inner), request)));
    let outside = service_fn(move |request: Request<Incoming>| {
        let refused = refused_at_the_door(&doors, &request);
        let inside = inside.clone();
        async move {
            match refused {
                Some(refusal) => Ok(refusal),
                None => inside.oneshot(request).await,
            }
        }
    });
    BoxCloneSyncService::new(outside)
}

fn cors(listen: &Listen) -> CorsLayer {
    let allowed = listen.allowed_origins.clone();
    let names = [
        header::AUTHORIZATION.as_str(),
        header::CONTENT_TYPE.as_str(),
        header::ACCEPT.as_str(),
        headers::SESSION_ID,
        headers::PROTOCOL_VERSION,
        headers::METHOD,
        headers::NAME,
        headers::LAST_EVENT_ID,
    ];
    let exposed = [
        HeaderName::from_static(headers::SESSION_ID),
        header::WWW_AUTHENTICATE,
        HeaderName::from_static(headers::PROTOCOL_VERSION),
    ];
    CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(move |origin, _| doors::is_origin_allowed(&allowed, origin)))
        .allow_methods([Method::GET, Method::POST, Method::DELETE])
        .allow_headers(names.map(HeaderName::from_static))
        .expose_headers(exposed)
        .max_age(Duration::from_secs(600))
}

/// An answer of the doors: a JSON-RPC error without id, and the end of the connection.
fn refusal(status: StatusCode, text: &str) -> Response<Body> {
    let code = match status {
        StatusCode::SERVICE_UNAVAILABLE => code::UNAVAILABLE,
        _ => code::INVALID_REQUEST,
    };
    let text = response_error(None, RpcError::own(code, text, None).raw.get());
    let mut response = Response::new(Body::full(text));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn closing(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

fn refused_at_the_door(doors: &Doors, request: &Request<Incoming>) -> Option<Response<Body>> {
    if let Err(status) = doors::check_head(request, doors.listen.limits.header) {
        return Some(closing(refusal(status, "the request head is not acceptable")));
    }
    if !doors::host_allowed(&doors.listen.allowed_hosts, request.headers()) {
        tracing::warn!(event = "host.reject", "a request for a host that is not served");
        return Some(closing(refusal(StatusCode::FORBIDDEN, "this Host is not served here")));
    }
    if !doors::origin_allowed(&doors.listen.allowed_origins, request.headers()) {
        tracing::warn!(event = "origin.reject", "a request from an origin that is not allowed");
        return Some(closing(refusal(StatusCode::FORBIDDEN, "this Origin is not allowed")));
    }
    None
}

/// A panic ends its own request only.
async fn guarded(doors: Arc<Doors>, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let outcome = AssertUnwindSafe(serve(doors, request)).catch_unwind().await;
    outcome.unwrap_or_else(|panic| Ok(panicked(&*panic)))
}

async fn serve(doors: Arc<Doors>, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let (head, body) = request.into_parts();
    if let Some(document) = doors.authenticator.metadata(head.uri.path()) {
        return Ok(metadata(&head.method, document));
    }
    let snapshot = snapshot(&doors).await;
    let Some((route, door)) = route(&snapshot, head.uri.path()) else {
        return Ok(refusal(StatusCode::NOT_FOUND, "nothing is served at this path"));
    };
    if head.uri.query().is_some_and(|query| query.contains("access_token=")) {
        tracing::warn!(event = "auth.query_token", route = %route.name, "a token in an address is not looked at");
    }
    if !matches!(head.method, Method::GET | Method::POST | Method::DELETE) {
        let mut response = refusal(StatusCode::METHOD_NOT_ALLOWED, "GET, POST and DELETE are served here");
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, POST, DELETE, OPTIONS"));
        return Ok(closing(response));
    }
    let Admitted { principal, body, by_session } = match entrance::admit(&doors, &head, body, &route).await {
        Ok(admitted) => admitted,
        Err(refusal) => return Ok(*refusal),
    };
    if doors.gate.is_shut() {
        let mut response =
            refusal(StatusCode::SERVICE_UNAVAILABLE, "this gateway is shutting down; try again");
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        return Ok(closing(response));
    }
    let body = match body.read(&doors, &head, doors.listen.limits.body).await {
        Ok(body) => body,
        Err(response) => return Ok(*response),
    };
    let inbound = Inbound {
        method: head.method,
        headers: head.headers,
        body,
        principal,
        route,
        by_session,
        piped: matches!(door, Door::Sse),
        snapshot,
    };
    Ok(match door {
        Door::Endpoint => Box::pin(doors.endpoint.serve(inbound)).await,
        Door::Sse => doors.endpoint.serve_sse(inbound, head.uri.query()),
    })
}

/// The audit line of a refused authentication. It is written where there is room: nothing is done for such a request.
fn recorded(audit: &Arc<AuditLog>, refused: &Refusal, route: &Route) {
    let now = jiff::Timestamp::now();
    let line = AuditLine {
        v: 1,
        time: now.round(jiff::Unit::Millisecond).unwrap_or(now).to_string(),
        event: "auth",
        route: route.name.to_string(),
        decision: "refused",
        rule: Some(refused.reason.to_owned()),
        outcome: refused.event,
        status: refused.status.as_u16(),
        ..AuditLine::default()
    };
    if let Ok(slot) = audit.reserve() {
        slot.write(&line);
    }
}

/// The answer to a request without a good credential.
pub(super) fn unauthenticated(doors: &Doors, refused: &Refusal, route: &Route) -> Response<Body> {
    if let Some(audit) = &doors.audit {
        recorded(audit, refused, route);
    }
    let Refusal { event, reason, .. } = *refused;
    tracing::info!(event, reason, route = %route.name, "a request without a good token");
    let text = match refused.status {
        StatusCode::SERVICE_UNAVAILABLE => "tokens cannot be verified at the moment; try again",
        _ => "a valid token is needed",
    };
    let mut response = refusal(refused.status, text);
    let headers = response.headers_mut();
    match refused.www_authenticate.as_deref().map(HeaderValue::from_str) {
        Some(Ok(challenge)) => headers.insert(header::WWW_AUTHENTICATE, challenge),
        Some(Err(_)) | None => headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5")),
    };
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    closing(response)
}

/// Protected resource metadata: for everybody, from everywhere.
fn metadata(method: &Method, document: &str) -> Response<Body> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        let mut response = refusal(StatusCode::METHOD_NOT_ALLOWED, "GET and HEAD only");
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD, OPTIONS"));
        return closing(response);
    }
    let mut response = Response::new(Body::full(document.to_owned()));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("max-age=300"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    response
}

/// What this request sees. One that comes before the first catalog waits for it, which takes two seconds at most: an
/// empty list would be wrong for as long as the client keeps it.
async fn snapshot(doors: &Doors) -> Arc<Snapshot> {
    let now = Arc::clone(&doors.snapshots.borrow());
    if now.generation > 0 {
        return now;
    }
    let mut snapshots = doors.snapshots.clone();
    match snapshots.wait_for(|snapshot| snapshot.generation > 0).await {
        Ok(first) => Arc::clone(&first),
        Err(_closed) => now,
    }
}

/// Which way into a route a path is.
#[derive(Debug, Clone, Copy)]
enum Door {
    /// The endpoint of Streamable HTTP.
    Endpoint,
    /// That of HTTP+SSE.
    Sse,
}

/// The route of a path; `/x` and `/x/` are the same, and nothing else is normalised.
fn route(snapshot: &Snapshot, path: &str) -> Option<(Arc<Route>, Door)> {
    let fits = |known: &str| path == known || path.strip_suffix('/') == Some(known);
    snapshot.config.routes.iter().find_map(|route| {
        if fits(&route.path) {
            return Some((Arc::clone(route), Door::Endpoint));
        }
        let inner = path.strip_prefix(route.path.as_str())?;
        (inner == "/sse").then(|| (Arc::clone(route), Door::Sse))
    })
}

/// The whole body of a POST, up to `most` bytes.
pub(super) async fn read(
    doors: &Doors,
    head: &http::request::Parts,
    body: Incoming,
    most: usize,
) -> Result<Bytes, Box<Response<Body>>> {
    if head.method != Method::POST {
        return Ok(Bytes::new());
    }
    if head.headers.get(header::CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        let mut response = refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, "encoded request bodies are not read");
        response.headers_mut().insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        return Err(Box::new(closing(response)));
    }
    if !is_json(&head.headers) {
        let text = "Content-Type must be application/json";
        return Err(Box::new(closing(refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, text))));
    }
    body::read(&head.headers, body, most, doors.listen.limits.header_timeout).await.map_err(|status| {
        let text = match status {
            StatusCode::PAYLOAD_TOO_LARGE => "the request body is larger than the limit",
            StatusCode::REQUEST_TIMEOUT => "the request body came too slowly",
            _ => "the request body could not be read",
        };
        Box::new(closing(refusal(status, text)))
    })
}

/// A panic as an answer; what it said goes to the log.
fn panicked(panic: &(dyn Any + Send)) -> Response<Body> {
    let said = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default();
    let error = internal_error(&said);
    let mut response = Response::new(Body::full(response_error(None, error.raw.get())));
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The service of the admin listener.
#[must_use]
pub fn admin_service(admin: Arc<Admin>) -> McpService {
    BoxCloneSyncService::new(service_fn(move |request: Request<Incoming>| {
        let admin = Arc::clone(&admin);
        async move { Ok(admin.answer(&request)) }
    }))
}
