//! Secrets of the whole suite: every token that a test uses, as a client or as a gateway, is known here, and no answer, log
//! or metric of any gateway may hold one.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Shorter ones would be found in innocent words.
const SHORTEST: usize = 7;
/// In bytes.
const LONGEST: usize = 1024 * 1024;

static SECRETS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Remembers a secret.
pub(crate) fn keep(secret: &str) {
    if secret.len() >= SHORTEST {
        SECRETS.lock().unwrap_or_else(PoisonError::into_inner).insert(secret.to_owned());
    }
}

/// Remembers the credential of an upstream's keys.
pub(crate) fn keep_credential(keys: &str) {
    let found = keys.split_once("bearer:").map(|(_, rest)| rest.trim_start().trim_start_matches('"'));
    if let Some(credential) = found.and_then(|rest| rest.split([' ', '"', ',', '}']).next()) {
        keep(credential);
    }
}

/// Fails the test where a secret is said. Very long texts are those that tests made long; they are not searched.
pub(crate) fn check(place: &str, said: &str) {
    if said.len() > LONGEST {
        return;
    }
    let secrets = SECRETS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let leaked = secrets.iter().find(|secret| said.contains(secret.as_str()));
    assert!(leaked.is_none(), "{place} says a secret: {leaked:?} in {said}");
}
