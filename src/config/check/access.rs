//! Who may call.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::hosts::is_loopback;
use super::listen::Listener;
use super::upstream::Known;
use crate::config::file::{self, At, Field};
use crate::config::model::{Access, Token};
use crate::config::problem::{Findings, Place};
use crate::principal::{Principal, Scope};

const SOURCES: &str = "tokens, generate, jwt, introspection, mtls, anonymous";

/// Why a listener off loopback is refused.
pub(crate) const NEEDS_ACCESS: &str = "this address can be reached from other machines, so \"access\" must say who \
                                       may call; \"access: open\" lets anybody in";

/// Reads `access`, and whether `access: open` was written out.
pub(super) fn access(
    field: Field<file::Access>,
    listener: &Listener,
    upstreams: &[Known],
    findings: &Findings,
) -> (Access, bool) {
    match field {
        Field::Absent if is_loopback(listener.listen.address) => (Access::Open, false),
        Field::Absent => {
            findings.error(&listener.place, NEEDS_ACCESS);
            (Access::Open, false)
        }
        Field::Bad => (Access::Tokens(Vec::new()), false),
        Field::Written(At { value: file::Access::Word(_), .. }) => (Access::Open, true),
        Field::Written(At { place, value: file::Access::Block(block), .. }) => {
            (Access::Tokens(tokens(&block, &place, upstreams, findings)), false)
        }
    }
}

fn tokens(block: &file::AccessBlock, place: &Place, upstreams: &[Known], findings: &Findings) -> Vec<Token> {
    let empty = |list: Option<usize>| list.is_none_or(|length| length == 0);
    let none = empty(block.tokens.written().map(|at| at.value.len()))
        && empty(block.jwt.written().map(|at| at.value.len()))
        && empty(block.introspection.written().map(|at| at.value.len()))
        && block.generate.is_absent()
        && block.mtls.is_absent()
        && block.anonymous.is_absent();
    if none {
        findings.error(place, &format!("names no source of credentials; accepted: one or more of {SOURCES}"));
    }
    let mut seen = HashSet::new();
    let entries = block.tokens.written().map(|at| at.value.as_slice()).unwrap_or_default();
    entries
        .iter()
        .filter_map(|at| {
            let token = token(at, upstreams, findings)?;
            if !seen.insert(token.hash) {
                findings.error(&at.place.member("hash"), "the same hash stands in an earlier entry");
            }
            Some(token)
        })
        .collect()
}

fn token(at: &At<file::Token>, upstreams: &[Known], findings: &Findings) -> Option<Token> {
    let entry = &at.value;
    if entry.name.is_absent() {
        findings.error(&at.place.member("name"), "this key is missing; it names the principal");
    }
    if entry.hash.is_absent() {
        findings.error(&at.place.member("hash"), "this key is missing; \"weir token\" prints one");
    }
    let scopes = scopes(&entry.scopes, upstreams, findings);
    if entry.scopes.is_absent() {
        findings.warning(&at.place.member("scopes"), "without scopes this token may do nothing");
    }
    let groups = entry.groups.written().map(|at| at.value.as_slice()).unwrap_or_default();
    let groups: BTreeSet<Arc<str>> = groups.iter().map(|group| group.value.as_str().into()).collect();
    let not_after = entry.not_after.written().and_then(|at| last_day(at, findings));
    let name = entry.name.written().filter(|at| is_subject(at, findings))?;
    let hash = entry.hash.written().and_then(|at| hash(at, findings))?;
    Some(Token { hash, principal: Principal::fixed(&name.value, scopes, groups), not_after })
}

fn is_subject(at: &At<String>, findings: &Findings) -> bool {
    let fits =
        !at.value.is_empty() && at.value.chars().count() <= 128 && !at.value.contains(char::is_control);
    if !fits {
        findings.error(&at.place, "accepted: 1 to 128 characters, no control characters");
    }
    fits
}

fn hash(at: &At<String>, findings: &Findings) -> Option<[u8; 32]> {
    let hash = at.value.strip_prefix("sha256:").and_then(unhex);
    if hash.is_none() {
        findings.error(&at.place, "not a hash; accepted: sha256: and 64 lower-case hexadecimal digits");
    }
    hash
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let digit = |c: u8| match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'a'..=b'f' => Some(c - b'a' + 10),
        _ => None,
    };
    let digits: Vec<u8> = text.bytes().map(digit).collect::<Option<_>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    let bytes: Vec<u8> = pairs.iter().map(|[high, low]| high << 4 | low).collect();
    if rest.is_empty() { bytes.try_into().ok() } else { None }
}

/// Scopes as RFC 6749, section 3.3, writes them.
fn scopes(field: &Field<Vec<At<String>>>, upstreams: &[Known], findings: &Findings) -> BTreeSet<Scope> {
    let list = field.written().map(|at| at.value.as_slice()).unwrap_or_default();
    list.iter()
        .filter_map(|at| {
            let legal = |c: u8| c.is_ascii_graphic() && !matches!(c, b'"' | b'\\');
            let fits = !at.value.is_empty() && at.value.bytes().all(legal);
            if !fits {
                findings
                    .error(&at.place, &format!("{} is not a scope; one entry holds one scope", at.shown()));
            } else if !is_asked_for(&at.value, upstreams) {
                let text = "no tool asks for this scope; accepted: mcp:CLASS, UPSTREAM:CLASS, UPSTREAM:tool:NAME, \
                            with read, write or destructive as CLASS";
                findings.warning(&at.place, text);
            }
            fits.then(|| Scope::new(&at.value))
        })
        .collect()
}

/// Whether anything is reached by this scope.
fn is_asked_for(scope: &str, upstreams: &[Known]) -> bool {
    let Some((family, rest)) = scope.split_once(':') else { return false };
    let is_class = matches!(rest, "read" | "write" | "destructive");
    match family {
        "mcp" => is_class || rest == "admin",
        _ => {
            let is_tool = rest.strip_prefix("tool:").is_some_and(|name| !name.is_empty());
            (is_class || is_tool) && upstreams.iter().any(|known| known.name.as_str() == family)
        }
    }
}

/// The end of a day, in seconds since 1970.
fn last_day(at: &At<String>, findings: &Findings) -> Option<i64> {
    let end = at
        .value
        .parse::<Date>()
        .ok()
        .filter(|_| at.value.len() == 10)
        .and_then(|day| day.tomorrow().ok())
        .and_then(|next| next.to_zoned_datetime(TimeZone::UTC).ok());
    if end.is_none() {
        findings.error(&at.place, &format!("{} is not a day; accepted: YYYY-MM-DD", at.shown()));
    }
    end.map(|end| end.timestamp().as_second())
}
