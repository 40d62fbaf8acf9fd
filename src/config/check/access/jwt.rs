//! Issuers of JWTs.

use std::path::Path;
use std::sync::Arc;

use http::Uri;

use crate::config::check::value::{duration, seconds};
use crate::config::file::{self, At, Field};
use crate::config::model::{Algorithm, Issuer, KeySource};
use crate::config::problem::{Findings, Place};

/// Reads `access.jwt`. Relative paths begin at `folder`.
pub(super) fn issuers(
    field: &Field<Vec<At<file::Jwt>>>,
    folder: &Path,
    findings: &Findings,
) -> Vec<Arc<Issuer>> {
    let mut all: Vec<Arc<Issuer>> = Vec::new();
    for at in field.written().map(|at| at.value.as_slice()).unwrap_or_default() {
        let Some(issuer) = issuer(at, folder, findings) else { continue };
        if all.iter().any(|other| other.issuer == issuer.issuer) {
            findings.error(&at.place.member("issuer"), "this issuer stands in an earlier entry");
        }
        all.push(Arc::new(issuer));
    }
    all
}

fn issuer(at: &At<file::Jwt>, folder: &Path, findings: &Findings) -> Option<Issuer> {
    let block = &at.value;
    if block.issuer.is_absent() {
        findings.error(&at.place.member("issuer"), "this key is missing; it names who signs");
    }
    let algorithms = algorithms(&block.algorithms, findings);
    let leeway = duration(&block.leeway, seconds(30), findings);
    let name = block.issuer.written().filter(|at| {
        let is_good = is_address(&at.value);
        if !is_good {
            findings.error(&at.place, &format!("{} is not an issuer; {ADDRESS}", at.shown()));
        }
        is_good
    })?;
    let keys = keys(&block.jwks, (&at.place, &name.value), folder, findings);
    Some(Issuer {
        issuer: name.value.clone(),
        audiences: texts(&block.audiences),
        keys: keys?,
        algorithms,
        require_typ: block.require_typ.written().map(|at| at.value.clone()),
        leeway,
        scope_claims: or(texts(&block.scope_claims), &["scope", "scp"], block.scope_claims.is_absent()),
        group_claims: or(texts(&block.group_claims), &["groups"], block.group_claims.is_absent()),
    })
}

const ADDRESS: &str = "accepted: an https:// address, or an http:// one on loopback, without query";

/// An https address, or one on loopback.
fn is_address(text: &str) -> bool {
    let Ok(uri) = text.parse::<Uri>() else { return false };
    let host = uri.host().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let is_loopback =
        host == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    let is_safe = match uri.scheme_str() {
        Some("https") => true,
        Some("http") => is_loopback,
        _ => false,
    };
    is_safe && !host.is_empty() && uri.query().is_none() && !text.contains(['#', '@'])
}

fn keys(
    field: &Field<file::Jwks>,
    (place, issuer): (&Place, &str),
    folder: &Path,
    findings: &Findings,
) -> Option<KeySource> {
    let none = file::Jwks::default();
    let block = field.written().map_or(&none, |at| &at.value);
    let place = field.place().cloned().unwrap_or_else(|| place.member("jwks"));
    let discovery = block.discovery.written().is_some_and(|at| at.value);
    let given = [discovery, !block.url.is_absent(), !block.file.is_absent()];
    match given.into_iter().filter(|given| *given).count() {
        0 if block.discovery.written().is_some() => {
            findings.error(&place, "holds no way to the keys; accepted: discovery: true, url or file");
            return None;
        }
        0 | 1 => {}
        _ => {
            findings.error(&place, "holds more than one of discovery, url, file; exactly one is accepted");
            return None;
        }
    }
    if let Some(at) = block.file.written() {
        return Some(KeySource::File(folder.join(&at.value)));
    }
    if let Some(at) = block.url.written() {
        if !is_address(&at.value) {
            findings.error(&at.place, &format!("not an address for keys; {ADDRESS}"));
            return None;
        }
        return Some(KeySource::Url(at.value.clone()));
    }
    let own = issuer.parse::<Uri>().ok().and_then(|uri| uri.host().map(str::to_owned)).unwrap_or_default();
    Some(KeySource::Discovery(or(texts(&block.hosts), &[&own], block.hosts.is_absent())))
}

fn algorithms(field: &Field<Vec<At<String>>>, findings: &Findings) -> Vec<Algorithm> {
    let Some(list) = field.written() else {
        return vec![Algorithm::Rs256, Algorithm::Es256, Algorithm::EdDsa];
    };
    if list.value.is_empty() {
        findings.error(&list.place, "names no algorithm, so no token would be accepted");
    }
    let names = Algorithm::NAMES.map(|(_, name)| name).join(", ");
    let read = |at: &At<String>| {
        let known = Algorithm::parse(&at.value);
        if known.is_none() {
            findings.error(&at.place, &format!("{} is not accepted here; accepted: {names}", at.shown()));
        }
        known
    };
    list.value.iter().filter_map(read).collect()
}

fn texts(field: &Field<Vec<At<String>>>) -> Vec<String> {
    let list = field.written().map(|at| at.value.as_slice()).unwrap_or_default();
    list.iter().map(|at| at.value.clone()).collect()
}

fn or(list: Vec<String>, default: &[&str], is_absent: bool) -> Vec<String> {
    if is_absent { default.iter().map(|text| (*text).to_owned()).collect() } else { list }
}
