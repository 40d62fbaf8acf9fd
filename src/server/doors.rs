//! Who may come in at all: the shape of the head, `Host` and `Origin`.
//!
//! A browser that was tricked into talking to a loopback port shows itself by one of the two (2026-07-28,
//! transports/streamable-http, "Security & Endpoint"), so both are checked before anything else.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri, Version, header};
use tokio::sync::watch;

use super::refuse::{closing, refusal};
use crate::auth::Authenticators;
use crate::catalog::Snapshot;
use crate::config::{Allowed, Listen};
use crate::downstream::{Body, Endpoint};
use crate::telemetry::AuditLog;

/// Longest request target, in bytes.
const LONGEST_TARGET: usize = 8 * 1024;

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

    pub(super) fn is_shut(&self) -> bool {
        self.shut.load(Ordering::Relaxed)
    }
}

/// What the doors need to know.
pub(super) struct Doors {
    pub(super) snapshots: watch::Receiver<Arc<Snapshot>>,
    pub(super) authenticators: Arc<Authenticators>,
    pub(super) audit: Option<Arc<AuditLog>>,
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) gate: Arc<Gate>,
}

/// The answer to a request that may not come in.
pub(super) fn refused<B>(listen: &Listen, request: &Request<B>) -> Option<Response<Body>> {
    if let Err(status) = check_head(request, listen.limits.header) {
        return Some(closing(refusal(status, "the request head is not acceptable")));
    }
    if !host_allowed(&listen.allowed_hosts, request.headers()) {
        tracing::warn!(event = "host.reject", "a request for a host that is not served");
        return Some(closing(refusal(StatusCode::FORBIDDEN, "this Host is not served here")));
    }
    if !origin_allowed(&listen.allowed_origins, request.headers()) {
        tracing::warn!(event = "origin.reject", "a request from an origin that is not allowed");
        return Some(closing(refusal(StatusCode::FORBIDDEN, "this Origin is not allowed")));
    }
    None
}

/// Checks the shape of a request head.
///
/// # Errors
/// 414, 431, or 400 for a head that two readers could read differently.
pub(super) fn check_head<B>(request: &Request<B>, most_header_bytes: usize) -> Result<(), StatusCode> {
    if request.uri().path_and_query().is_some_and(|target| target.as_str().len() > LONGEST_TARGET) {
        return Err(StatusCode::URI_TOO_LONG);
    }
    let bytes: usize =
        request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if bytes > most_header_bytes {
        return Err(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    }
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host,
        (None, None) if request.version() < Version::HTTP_11 => return Ok(()),
        _ => return Err(StatusCode::BAD_REQUEST),
    };
    let host = host.to_str().map_err(|_why| StatusCode::BAD_REQUEST)?;
    let legal = !host.is_empty()
        && host
            .bytes()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'-' | b'_' | b':' | b'[' | b']'));
    let authority = request.uri().authority().map(|authority| authority.as_str());
    if !legal || authority.is_some_and(|authority| !authority.eq_ignore_ascii_case(host)) {
        return Err(StatusCode::BAD_REQUEST);
    }
    Ok(())
}

/// Whether the `Host` of a request is served.
pub(super) fn host_allowed(allowed: &Allowed, headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).map(str::to_ascii_lowercase);
    match allowed {
        Allowed::Any => true,
        Allowed::Loopback => host.is_none_or(|host| is_loopback(without_port(&host))),
        Allowed::These(list) => {
            host.is_some_and(|host| list.iter().any(|known| *known == host || *known == without_port(&host)))
        }
    }
}

/// Whether a request carries no `Origin`, or exactly one that may call.
pub(super) fn origin_allowed(allowed: &Allowed, headers: &HeaderMap) -> bool {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    match (origins.next(), origins.next()) {
        (None, _) => true,
        (Some(origin), None) => is_origin_allowed(allowed, origin),
        (Some(_), Some(_)) => false,
    }
}

/// Whether this origin may call.
pub(super) fn is_origin_allowed(allowed: &Allowed, origin: &HeaderValue) -> bool {
    let Ok(origin) = origin.to_str() else { return false };
    match allowed {
        Allowed::Any => true,
        Allowed::These(list) => list.iter().any(|known| known == origin),
        Allowed::Loopback => {
            let uri: Option<Uri> = origin.parse().ok();
            let web = uri
                .as_ref()
                .and_then(Uri::scheme_str)
                .is_some_and(|scheme| matches!(scheme, "http" | "https"));
            let host = uri.as_ref().and_then(Uri::host).map(str::to_ascii_lowercase);
            let bare = uri.as_ref().is_some_and(|uri| uri.path() == "/" && uri.query().is_none());
            let plain = !origin.contains('@') && !origin.ends_with('/');
            web && bare && plain && host.is_some_and(|host| is_loopback(&host))
        }
    }
}

fn is_loopback(host: &str) -> bool {
    if host == "localhost" {
        return true;
    }
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// A host without `:PORT`; brackets of an IPv6 address stay.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|c| c.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, Request, StatusCode, header};

    use super::{check_head, host_allowed, origin_allowed};
    use crate::config::Allowed;

    fn with(name: &header::HeaderName, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name.clone(), HeaderValue::from_str(value).expect("a header value"));
        }
        headers
    }

    #[test]
    fn t040_only_served_hosts_come_in() {
        for good in ["localhost", "LOCALHOST:8080", "127.0.0.1:1", "[::1]:8080", "[::1]"] {
            assert!(host_allowed(&Allowed::Loopback, &with(&header::HOST, &[good])), "{good}");
        }
        for bad in ["evil.example", "localhost.evil.example", "10.0.0.1:8080"] {
            assert!(!host_allowed(&Allowed::Loopback, &with(&header::HOST, &[bad])), "{bad}");
        }
        let these = Allowed::These(vec!["gw.example".to_owned()]);
        assert!(host_allowed(&these, &with(&header::HOST, &["gw.example:443"])));
        assert!(!host_allowed(&these, &with(&header::HOST, &["other.example"])));
    }

    #[test]
    fn t041_only_allowed_origins_come_in() {
        let these = Allowed::These(vec!["https://gw.example".to_owned()]);
        assert!(origin_allowed(&these, &with(&header::ORIGIN, &[])));
        assert!(origin_allowed(&these, &with(&header::ORIGIN, &["https://gw.example"])));
        let bad: [&[&str]; 5] = [
            &["null"],
            &["https://gw.example.evil"],
            &["https://gw.example:444"],
            &["https://gw.example", "https://gw.example"],
            &["http://gw.example"],
        ];
        for origins in bad {
            assert!(!origin_allowed(&these, &with(&header::ORIGIN, origins)), "{origins:?}");
        }
        for good in ["http://localhost:3000", "http://127.0.0.1", "https://[::1]:8443"] {
            assert!(origin_allowed(&Allowed::Loopback, &with(&header::ORIGIN, &[good])), "{good}");
        }
        for bad in
            ["http://evil.example", "http://localhost@evil.example", "http://localhost.evil.example", "null"]
        {
            assert!(!origin_allowed(&Allowed::Loopback, &with(&header::ORIGIN, &[bad])), "{bad}");
        }
    }

    #[test]
    fn t047_ambiguous_heads_are_refused() {
        let check = |hosts: &[&str], target: &str| {
            let mut request = Request::new(());
            *request.headers_mut() = with(&header::HOST, hosts);
            *request.uri_mut() = target.parse().expect("a target");
            check_head(&request, 32 * 1024)
        };
        assert_eq!(check(&["a.example"], "/mcp"), Ok(()));
        for hosts in [&[][..], &[""], &["a", "b"], &["a/b"], &["a?b"], &["u@a"], &["a#b"]] {
            assert_eq!(check(hosts, "/mcp"), Err(StatusCode::BAD_REQUEST), "{hosts:?}");
        }
        assert_eq!(check(&["a.example"], "http://b.example/mcp"), Err(StatusCode::BAD_REQUEST));
        let long = format!("/mcp?{}", "x".repeat(8192));
        assert_eq!(check(&["a.example"], &long), Err(StatusCode::URI_TOO_LONG));
    }
}
