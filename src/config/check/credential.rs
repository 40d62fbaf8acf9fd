//! Secrets, and headers towards upstreams.

use http::{HeaderName, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};

use crate::config::file::{self, At, Entries, Field, SecretText};
use crate::config::model::Credential;
use crate::config::problem::{Findings, Place};

const FORMS: &str = "bearer, headers, client_credentials, token_exchange, claim, per_principal";

/// Names that begin like this never pass from clients, and no credential may set them.
const PROTOCOL_PREFIXES: [&str; 4] = ["mcp-", "content-", "accept", "proxy-"];

/// Hop-by-hop names, and `Host`.
const PROTOCOL_NAMES: [&str; 7] =
    ["host", "connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"];

/// Further names that never pass from clients.
const NEVER_FORWARDED: [&str; 4] = ["authorization", "cookie", "origin", "forwarded"];

/// Reads `credential`.
pub(super) fn credential(field: Field<file::Credential>, findings: &Findings) -> Credential {
    let Field::Written(at) = field else { return Credential::None };
    let (place, block) = (at.place, at.value);
    let written = [
        !block.bearer.is_absent(),
        !block.headers.is_absent(),
        !block.client_credentials.is_absent(),
        !block.token_exchange.is_absent(),
        !block.claim.is_absent(),
        !block.per_principal.is_absent(),
    ];
    match written.into_iter().filter(|written| *written).count() {
        0 => findings.error(&place, &format!("holds none of {FORMS}; exactly one is accepted")),
        1 => {}
        _ => findings.error(&place, &format!("holds more than one of {FORMS}; exactly one is accepted")),
    }
    if block.claim.is_absent() {
        for place in [block.header.place(), block.prefix.place()].into_iter().flatten() {
            findings.error(place, "stands beside claim only");
        }
    }
    match (block.bearer.written(), block.headers.written()) {
        (Some(at), _) => bearer(at, findings).map_or(Credential::None, Credential::Bearer),
        (None, Some(at)) => Credential::Headers(headers(&at.value, &at.place, findings)),
        (None, None) => Credential::None,
    }
}

/// A secret that is not empty; one that stands in the file itself is a warning.
fn secret<'a>(at: &'a At<SecretText>, findings: &Findings) -> Option<&'a str> {
    let text = at.value.0.as_str();
    if text.is_empty() {
        findings.error(&at.place, "the secret is empty");
        return None;
    }
    if at.template.is_none() {
        findings
            .warning(&at.place, "a secret stands in this file; write ${env:NAME} or ${file:PATH} instead");
    }
    Some(text)
}

fn bearer(at: &At<SecretText>, findings: &Findings) -> Option<SecretString> {
    let text: SecretString = secret(at, findings)?.into();
    if let Some(problem) = bearer_problem(&text) {
        findings.error(&at.place, problem);
        return None;
    }
    Some(text)
}

/// Why a text cannot be a bearer token, if it cannot.
pub(crate) fn bearer_problem(token: &SecretString) -> Option<&'static str> {
    let fits = token.expose_secret().bytes().all(|c| c.is_ascii_graphic());
    (!fits).then_some(
        "the secret holds characters that no bearer token holds; accepted: visible ASCII without spaces",
    )
}

fn headers(
    entries: &Entries<SecretText>,
    place: &Place,
    findings: &Findings,
) -> Vec<(HeaderName, SecretString)> {
    if entries.0.is_empty() {
        findings.error(place, "names no header");
    }
    let mut headers = Vec::new();
    for (key, field) in &entries.0 {
        let name = header_name(key, findings);
        let value = field.written().and_then(|at| header_value(at, findings));
        let Some((name, value)) = name.zip(value) else { continue };
        if is_protocol(&name) {
            findings.error(&key.place, "the protocol sets this header itself");
        } else if headers.iter().any(|(earlier, _)| *earlier == name) {
            findings.error(&key.place, "this header stands here twice; case does not matter");
        }
        headers.push((name, value));
    }
    headers
}

fn header_value(at: &At<SecretText>, findings: &Findings) -> Option<SecretString> {
    let text = secret(at, findings)?;
    if HeaderValue::from_str(text).is_err() || !text.is_ascii() || text.trim() != text {
        findings.error(
            &at.place,
            "the secret holds characters that no header value holds; accepted: visible ASCII",
        );
        return None;
    }
    Some(text.into())
}

fn header_name(at: &At<String>, findings: &Findings) -> Option<HeaderName> {
    at.value
        .parse()
        .inspect_err(|_| findings.error(&at.place, &format!("{} is not a header name", at.shown())))
        .ok()
}

fn is_protocol(name: &HeaderName) -> bool {
    PROTOCOL_NAMES.contains(&name.as_str())
        || PROTOCOL_PREFIXES.iter().any(|prefix| name.as_str().starts_with(prefix))
}

/// Reads `forward_headers`.
pub(super) fn forwarded(list: &[At<String>], findings: &Findings) -> Vec<HeaderName> {
    let mut names = Vec::new();
    for at in list {
        let Some(name) = header_name(at, findings) else { continue };
        let text = name.as_str();
        if is_protocol(&name) || NEVER_FORWARDED.contains(&text) || text.starts_with("x-forwarded-") {
            findings.error(&at.place, &format!("{} never passes from clients to an upstream", at.shown()));
        } else if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}
