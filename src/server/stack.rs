//! The layers around the endpoint, outermost first.

use std::convert::Infallible;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use tokio::sync::watch;
use tower::{Layer as _, ServiceExt as _, service_fn};
use tower_http::cors::{AllowOrigin, CorsLayer};

use super::accept::{Answering, Service};
use super::doors::{self, Doors, Gate};
use super::entrance::{self, Admitted, Entrance};
use super::refuse::{closing, panicked, refusal};
use crate::admin::Admin;
use crate::auth::Authenticators;
use crate::catalog::Snapshot;
use crate::config::Route;
use crate::downstream::{Body, Endpoint, Inbound};
use crate::protocol::headers;
use crate::telemetry::AuditLog;

/// The service of the MCP listener.
#[must_use]
pub fn mcp_service(
    snapshots: watch::Receiver<Arc<Snapshot>>,
    (authenticators, audit): (Arc<Authenticators>, Option<Arc<AuditLog>>),
    endpoint: Arc<Endpoint>,
    gate: Arc<Gate>,
) -> Service {
    let cors = cors(snapshots.clone());
    let doors = Arc::new(Doors { snapshots, authenticators, audit, endpoint, gate });
    Arc::new(move |request, from| {
        let refused = doors::refused(&doors.snapshots.borrow().config.listen, &request);
        if let Some(refusal) = refused {
            return Box::pin(std::future::ready(refusal));
        }
        let doors = Arc::clone(&doors);
        // Within the doors, so that a foreign origin is told nothing; around everything else, so that every answer to an
        // allowed one can be read by it. Who sends no origin is no page of a browser, and needs none of it.
        if request.headers().contains_key(header::ORIGIN) || request.method() == Method::OPTIONS {
            return across_origins(&cors, doors, (request, from));
        }
        Box::pin(guarded(doors, request, from))
    })
}

/// Answers a page of an allowed origin, or its question whether it may ask.
fn across_origins(
    cors: &CorsLayer,
    doors: Arc<Doors>,
    (request, from): (Request<Incoming>, IpAddr),
) -> Answering {
    let inner = service_fn(move |request| {
        let doors = Arc::clone(&doors);
        async move { Ok::<_, Infallible>(guarded(doors, request, from).await) }
    });
    let service = cors.layer(inner);
    Box::pin(async move {
        let Ok(response) = service.oneshot(request).await;
        response
    })
}

fn cors(snapshots: watch::Receiver<Arc<Snapshot>>) -> CorsLayer {
    let is_allowed = move |origin: &HeaderValue| {
        doors::is_origin_allowed(&snapshots.borrow().config.listen.allowed_origins, origin)
    };
    let names = [
        header::AUTHORIZATION,
        header::CONTENT_TYPE,
        header::ACCEPT,
        headers::SESSION_ID,
        headers::PROTOCOL_VERSION,
        headers::METHOD,
        headers::NAME,
        headers::LAST_EVENT_ID,
    ];
    let exposed = [headers::SESSION_ID, header::WWW_AUTHENTICATE, headers::PROTOCOL_VERSION];
    CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(move |origin, _| is_allowed(origin)))
        .allow_methods([Method::GET, Method::POST, Method::DELETE])
        .allow_headers(names)
        .expose_headers(exposed)
        .max_age(Duration::from_secs(600))
}

/// A panic ends its own request only.
async fn guarded(doors: Arc<Doors>, request: Request<Incoming>, from: IpAddr) -> Response<Body> {
    let outcome = AssertUnwindSafe(serve(doors, request, from)).catch_unwind().await;
    outcome.unwrap_or_else(|panic| panicked(&*panic))
}

async fn serve(doors: Arc<Doors>, request: Request<Incoming>, from: IpAddr) -> Response<Body> {
    let (head, body) = request.into_parts();
    let snapshot = snapshot(&doors).await;
    let authenticator = doors.authenticators.of(&snapshot.config);
    if let Some(document) = authenticator.metadata(head.uri.path()) {
        return metadata(&head.method, document);
    }
    let Some((route, door)) = route(&snapshot, head.uri.path()) else {
        return refusal(StatusCode::NOT_FOUND, "nothing is served at this path");
    };
    if head.uri.query().is_some_and(|query| query.contains("access_token=")) {
        tracing::warn!(event = "auth.query_token", route = %route.name, "a token in an address is not looked at");
    }
    if !matches!(head.method, Method::GET | Method::POST | Method::DELETE) {
        let mut response = refusal(StatusCode::METHOD_NOT_ALLOWED, "GET, POST and DELETE are served here");
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, POST, DELETE, OPTIONS"));
        return closing(response);
    }
    let listen = &snapshot.config.listen;
    let entrance = Entrance { doors: &doors, authenticator: &authenticator, limits: &listen.limits };
    let Admitted { principal, body, by_session } = match entrance::admit(&entrance, &head, body, &route).await
    {
        Ok(admitted) => admitted,
        Err(refusal) => return *refusal,
    };
    if doors.gate.is_shut() {
        let mut response =
            refusal(StatusCode::SERVICE_UNAVAILABLE, "this gateway is shutting down; try again");
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        return closing(response);
    }
    let body = match body.read(&listen.limits, &head, listen.limits.body).await {
        Ok(body) => body,
        Err(response) => return *response,
    };
    let inbound = Inbound {
        method: head.method,
        headers: head.headers,
        body,
        principal,
        peer: Some(from),
        route,
        by_session,
        piped: matches!(door, Door::Sse),
        snapshot,
    };
    match door {
        Door::Endpoint => Box::pin(doors.endpoint.serve(inbound)).await,
        Door::Sse => doors.endpoint.serve_sse(inbound, head.uri.query()),
    }
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

/// The service of the admin listener.
#[must_use]
pub fn admin_service(admin: Arc<Admin>) -> Service {
    Arc::new(move |request, _from| {
        let answer = admin.answer(&request);
        Box::pin(std::future::ready(answer))
    })
}
