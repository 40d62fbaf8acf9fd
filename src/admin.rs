//! What operators and orchestrators ask: alive, ready, numbers, state. On a port of its own.
//!
//! It reads the same snapshot as requests do and changes nothing: GET and HEAD only.

mod changes;
mod health;
mod page;
mod status;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::auth::{self, Authenticators};
use crate::catalog::Snapshot;
use crate::downstream::{Body, Endpoint};
use crate::source::Loading;
use crate::telemetry::Registry;
use crate::upstream::Set;
pub use changes::Changes;

/// What the page may do: nothing but use its own style.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// What the admin listener shows.
#[derive(Debug)]
pub struct Shown {
    /// What requests read.
    pub snapshots: watch::Receiver<Arc<Snapshot>>,
    /// The upstream side.
    pub upstreams: Set,
    /// The client side.
    pub endpoint: Arc<Endpoint>,
    /// Whether the keys of issuers are known.
    pub authenticators: Arc<Authenticators>,
    /// What has changed lately.
    pub changes: Arc<Changes>,
    /// Where the configuration stands.
    pub loading: watch::Receiver<Arc<Loading>>,
    /// The numbers.
    pub registry: Arc<Registry>,
}

/// Answers the admin listener.
#[derive(Debug)]
pub struct Admin {
    shown: Shown,
    on_loopback: bool,
    draining: AtomicBool,
    ever_up: health::EverUp,
    started: Instant,
}

impl Admin {
    /// Takes what it shows.
    #[must_use]
    pub fn new(shown: Shown) -> Self {
        let on_loopback = shown.snapshots.borrow().config.admin.address.ip().is_loopback();
        Self {
            shown,
            on_loopback,
            draining: AtomicBool::new(false),
            ever_up: health::EverUp::default(),
            started: Instant::now(),
        }
    }

    /// Not ready any more.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Whether everything that readiness waits for is there.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        health::ready(self).ready
    }

    /// Answers one request (design contract, section 10).
    #[must_use]
    pub fn answer<B>(&self, request: &Request<B>) -> Response<Body> {
        if !self.admits(request.headers()) {
            return text(StatusCode::FORBIDDEN, "text/plain", "this Host or Origin is not served here\n");
        }
        if request.method() != Method::GET && request.method() != Method::HEAD {
            let mut refusal = text(StatusCode::METHOD_NOT_ALLOWED, "text/plain", "GET and HEAD only\n");
            refusal.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refusal;
        }
        match request.uri().path() {
            "/livez" => text(StatusCode::OK, "text/plain", "ok"),
            "/readyz" => {
                let ready = health::ready(self);
                let status = if ready.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
                json(status, &ready)
            }
            "/metrics" => text(StatusCode::OK, Registry::CONTENT_TYPE, self.shown.registry.render()),
            path @ ("/status" | "/api/status" | "/api/tools") => match self.hidden(request.headers()) {
                Some(refusal) => refusal,
                None => self.state(path),
            },
            _ => text(StatusCode::NOT_FOUND, "text/plain", "not found\n"),
        }
    }

    /// What is shown on loopback, and elsewhere to who has the token.
    fn state(&self, path: &str) -> Response<Body> {
        match path {
            "/api/status" => json(StatusCode::OK, &status::status(self)),
            "/api/tools" => json(StatusCode::OK, &status::tools(self)),
            _ => {
                let page = page::page(&status::status(self), &status::tools(self));
                let mut response = text(StatusCode::OK, "text/html; charset=utf-8", page);
                let headers = response.headers_mut();
                // Names and descriptions come from upstreams; they are escaped, and could do nothing if they were not.
                headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
                headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
                response
            }
        }
    }

    /// The answer to who may not see the state.
    fn hidden(&self, headers: &HeaderMap) -> Option<Response<Body>> {
        let token = self.shown.snapshots.borrow().config.admin.token;
        match token {
            _ if self.on_loopback => None,
            None => Some(text(
                StatusCode::NOT_FOUND,
                "text/plain",
                "shown on loopback only, or with admin.token\n",
            )),
            Some(token) if auth::presents(headers, &token) => None,
            Some(_) => {
                let mut refusal =
                    text(StatusCode::UNAUTHORIZED, "text/plain", "the token of admin.token is needed\n");
                refusal.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                Some(refusal)
            }
        }
    }

    /// Loopback names only on a loopback listener, and no origin but its own.
    fn admits(&self, headers: &HeaderMap) -> bool {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        let own_host = !self.on_loopback || is_loopback(host);
        let origin = headers.get(header::ORIGIN).map(|origin| origin.to_str().unwrap_or_default());
        own_host && origin.is_none_or(|origin| origin == format!("http://{host}"))
    }
}

fn is_loopback(host: &str) -> bool {
    let uri: Option<Uri> = host.parse().ok();
    uri.as_ref().and_then(Uri::host).is_some_and(|name| {
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        name.eq_ignore_ascii_case("localhost")
            || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    })
}

fn text(status: StatusCode, media: &'static str, body: impl Into<bytes::Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::full(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn json(status: StatusCode, value: &impl serde::Serialize) -> Response<Body> {
    let body = serde_json::to_string(value).unwrap_or_else(|_| "{}".to_owned());
    text(status, "application/json", body)
}
