//! Static tokens.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::scope::{Meaning, scopes};
use crate::config::check::value::token_hash;
use crate::config::file::{self, At};
use crate::config::model::Token;
use crate::config::problem::Findings;
use crate::principal::Principal;

/// Reads `access.tokens`.
pub(super) fn tokens(block: &file::AccessBlock, meaning: &Meaning<'_>, findings: &Findings) -> Vec<Token> {
    let mut seen = HashSet::new();
    let entries = block.tokens.written().map(|at| at.value.as_slice()).unwrap_or_default();
    entries
        .iter()
        .filter_map(|at| {
            let token = token(at, meaning, findings)?;
            if !seen.insert(token.hash) {
                findings.error(&at.place.member("hash"), "the same hash stands in an earlier entry");
            }
            Some(token)
        })
        .collect()
}

fn token(at: &At<file::Token>, meaning: &Meaning<'_>, findings: &Findings) -> Option<Token> {
    let entry = &at.value;
    if entry.name.is_absent() {
        findings.error(&at.place.member("name"), "this key is missing; it names the principal");
    }
    if entry.hash.is_absent() {
        findings.error(&at.place.member("hash"), "this key is missing; \"weir token\" prints one");
    }
    let scopes = scopes(&entry.scopes, Some(meaning), findings);
    if entry.scopes.is_absent() {
        findings.warning(&at.place.member("scopes"), "without scopes this token may do nothing");
    }
    let groups = entry.groups.written().map(|at| at.value.as_slice()).unwrap_or_default();
    let groups: BTreeSet<Arc<str>> = groups.iter().map(|group| group.value.as_str().into()).collect();
    let not_after = entry.not_after.written().and_then(|at| last_day(at, findings));
    let name = entry.name.written().filter(|at| is_subject(at, findings))?;
    let hash = entry.hash.written().and_then(|at| token_hash(at, findings))?;
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
