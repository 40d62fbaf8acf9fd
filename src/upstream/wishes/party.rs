//! Those who share one session of an upstream, and what they want.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::Stander;
use crate::protocol::Abilities;
use crate::upstream::legacy::Key;

/// A party.
#[derive(Debug)]
pub(in crate::upstream) struct Party {
    key: Key,
    abilities: Abilities,
    wanted: Mutex<Wanted>,
    turned: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Wanted {
    resources: BTreeMap<String, Resource>,
    /// Who stands by, the latest last.
    stands: Vec<(u64, Stander)>,
    numbers: u64,
    calls: usize,
}

#[derive(Debug)]
struct Resource {
    watchers: usize,
    updates: watch::Sender<u64>,
}

impl Party {
    pub(super) fn new(key: Key, abilities: Abilities) -> Self {
        Self { key, abilities, wanted: Mutex::default(), turned: watch::Sender::new(0) }
    }

    /// Whose session it shares.
    pub(in crate::upstream) fn key(&self) -> &Key {
        &self.key
    }

    /// What its client can be asked.
    pub(in crate::upstream) fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    /// Changes with what it wants.
    pub(in crate::upstream) fn turned(&self) -> watch::Receiver<u64> {
        self.turned.subscribe()
    }

    /// Whether it wants anything at all.
    pub(in crate::upstream) fn is_wanted(&self) -> bool {
        let wanted = self.now();
        !wanted.resources.is_empty() || !wanted.stands.is_empty() || wanted.calls > 0
    }

    /// The resources that are watched.
    pub(in crate::upstream) fn resources(&self) -> Vec<String> {
        self.now().resources.keys().cloned().collect()
    }

    /// Whether a resource is watched, which takes a session even where there is none yet.
    pub(in crate::upstream) fn watches(&self) -> bool {
        !self.now().resources.is_empty()
    }

    /// Where what belongs to no call goes: to the client that stands by, the latest where there are several.
    pub(in crate::upstream) fn stander(&self) -> Option<Stander> {
        self.now().stands.last().map(|(_, to)| to.clone())
    }

    /// A resource was updated, or one below it (2025-11-25, server/resources, "Subscriptions").
    pub(in crate::upstream) fn updated(&self, uri: &str) {
        let wanted = self.now();
        for (_, resource) in wanted.resources.iter().filter(|(watched, _)| covers(watched, uri)) {
            resource.updates.send_modify(|count| *count += 1);
        }
    }

    /// Updates may have been missed.
    pub(in crate::upstream) fn all_updated(&self) {
        self.now().resources.values().for_each(|resource| resource.updates.send_modify(|count| *count += 1));
    }

    pub(super) fn watch(&self, uri: &str) -> watch::Receiver<u64> {
        let updates = {
            let mut wanted = self.now();
            let fresh = || Resource { watchers: 0, updates: watch::Sender::new(0) };
            let resource = wanted.resources.entry(uri.to_owned()).or_insert_with(fresh);
            resource.watchers += 1;
            resource.updates.subscribe()
        };
        self.turn();
        updates
    }

    /// True where nobody watches the resource any more.
    pub(super) fn unwatch(&self, uri: &str) -> bool {
        let is_last = {
            let mut wanted = self.now();
            let Some(resource) = wanted.resources.get_mut(uri) else { return false };
            resource.watchers = resource.watchers.saturating_sub(1);
            let is_last = resource.watchers == 0;
            if is_last {
                wanted.resources.remove(uri);
            }
            is_last
        };
        self.turn();
        is_last
    }

    pub(super) fn stand(&self, to: Stander) -> u64 {
        let number = {
            let mut wanted = self.now();
            wanted.numbers += 1;
            let number = wanted.numbers;
            wanted.stands.push((number, to));
            number
        };
        self.turn();
        number
    }

    pub(super) fn unstand(&self, number: u64) {
        self.now().stands.retain(|(of, _)| *of != number);
        self.turn();
    }

    pub(super) fn call(&self) {
        self.now().calls += 1;
        self.turn();
    }

    pub(super) fn uncall(&self) {
        {
            let mut wanted = self.now();
            wanted.calls = wanted.calls.saturating_sub(1);
        }
        self.turn();
    }

    fn turn(&self) {
        self.turned.send_modify(|count| *count += 1);
    }

    fn now(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an update of `uri` is one of what is watched: the same, or a part of it.
pub(in crate::upstream) fn covers(watched: &str, uri: &str) -> bool {
    uri.strip_prefix(watched)
        .is_some_and(|rest| rest.is_empty() || watched.ends_with('/') || rest.starts_with(['/', '?', '#']))
}

#[cfg(test)]
mod tests {
    use super::covers;

    #[test]
    fn an_update_below_a_watched_resource_is_one_of_it() {
        for (watched, uri, wanted) in [
            ("file:///a", "file:///a", true),
            ("file:///a", "file:///a/b", true),
            ("file:///a/", "file:///a/b", true),
            ("file:///a", "file:///a#x", true),
            ("file:///a", "file:///ab", false),
            ("file:///a/b", "file:///a", false),
        ] {
            assert_eq!(covers(watched, uri), wanted, "{watched} {uri}");
        }
    }
}
