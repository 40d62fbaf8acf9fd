//! Loopback, and which `Host` and `Origin` are let in.

use std::net::SocketAddr;

use http::Uri;

use crate::config::file::At;
use crate::config::model::{Allowed, Listen};
use crate::config::problem::Findings;

/// Whether only this machine reaches an address.
pub(crate) fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// The hosts that are let in where the file names none.
pub(super) fn default_hosts(address: SocketAddr, public_url: Option<&str>) -> Allowed {
    let public = public_url.and_then(|url| url.parse::<Uri>().ok()).and_then(|url| {
        let authority = url.authority()?.as_str().to_ascii_lowercase();
        Some(authority)
    });
    match (is_loopback(address), public) {
        (true, None) => Allowed::Loopback,
        (false, None) => Allowed::Any,
        (true, Some(host)) => {
            Allowed::These(vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "[::1]".to_owned(), host])
        }
        (false, Some(host)) => Allowed::These(vec![host]),
    }
}

/// The origins that are let in where the file names none.
pub(super) fn default_origins(address: SocketAddr) -> Allowed {
    if is_loopback(address) { Allowed::Loopback } else { Allowed::These(Vec::new()) }
}

/// The same listener at another address: what was a default becomes that address's default.
pub(crate) fn moved(listen: &Listen, address: SocketAddr) -> Listen {
    let public_url = listen.public_url.as_deref();
    let mut to = Listen { address, ..listen.clone() };
    if listen.allowed_hosts == default_hosts(listen.address, public_url) {
        to.allowed_hosts = default_hosts(address, public_url);
    }
    if listen.allowed_origins == default_origins(listen.address) {
        to.allowed_origins = default_origins(address);
    }
    to
}

/// One origin: scheme, host and perhaps a port, nothing behind it.
pub(super) fn origin(at: &At<String>, findings: &Findings) -> Option<String> {
    let text = at.value.to_ascii_lowercase();
    let whole = text
        .parse::<Uri>()
        .ok()
        .filter(|uri| {
            uri.scheme().is_some() && uri.authority().is_some_and(|host| !host.as_str().contains('@'))
        })
        .is_some_and(|uri| uri.path() == "/" && uri.query().is_none())
        && !text.ends_with('/')
        && !text.contains('#');
    if !whole {
        let shown = at.shown();
        let hint = format!("{shown} is not an origin; accepted: SCHEME://HOST or SCHEME://HOST:PORT");
        findings.error(&at.place, &hint);
    }
    whole.then_some(text)
}

/// One `Host` value: a name or address, perhaps with a port.
pub(super) fn host(at: &At<String>, findings: &Findings) -> Option<String> {
    let text = at.value.to_ascii_lowercase();
    let plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'-' | b'_' | b':' | b'[' | b']');
    let whole = text.bytes().all(plain) && text.parse::<http::uri::Authority>().is_ok();
    if !whole {
        let hint = format!("{} is not a host; accepted: HOST or HOST:PORT", at.shown());
        findings.error(&at.place, &hint);
    }
    whole.then_some(text)
}
