//! What clients want to hear of an upstream outside of their calls.
//!
//! Wishes are kept by [`Party`]: those who share a session of the upstream, or would. They outlive sessions,
//! connections and even the era of the upstream; whoever speaks to it now (`legacy/attend.rs`, `modern/updates.rs`)
//! looks here what to listen for, and says here what came. Nothing is queued but what a standing client is asked:
//! ten updates of a resource before anyone looks are one.

mod party;
mod want;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use super::legacy::Key;
use crate::protocol::Abilities;

pub(super) use party::Party;
pub(super) use want::Want;
pub(super) use want::{Said, Stander};
pub use want::{Standing, Watching};

/// All wishes towards one upstream.
#[derive(Debug, Default)]
pub(super) struct Wishes {
    parties: Mutex<HashMap<Key, Arc<Party>>>,
    /// Counts the parties that came.
    came: watch::Sender<u64>,
    /// Counts how often the set of wanted resources became another one.
    turned: watch::Sender<u64>,
    /// The upstream said somewhere that one of its lists changed.
    pub(super) changed: Notify,
}

impl Wishes {
    /// The updates of one resource, as this party reads it.
    pub(super) fn watch(self: &Arc<Self>, key: Key, abilities: &Abilities, uri: &str) -> Watching {
        let (party, updates) = self.join(key, abilities, |party| party.watch(uri));
        self.turn();
        Watching::new(Want::resource(self, party, uri), updates)
    }

    /// A client stands by: what its session says to no call goes to `to`.
    pub(super) fn stand(self: &Arc<Self>, key: Key, abilities: &Abilities, to: Stander) -> Want {
        let (party, number) = self.join(key, abilities, |party| party.stand(to));
        Want::stand(self, party, number)
    }

    /// A call is running.
    pub(super) fn call(self: &Arc<Self>, key: Key, abilities: &Abilities) -> Want {
        let (party, ()) = self.join(key, abilities, Party::call);
        Want::call(self, party)
    }

    /// Joins a party, which is founded where there is none. Both under one lock, so that none is left meanwhile.
    fn join<T>(&self, key: Key, abilities: &Abilities, wish: impl FnOnce(&Party) -> T) -> (Arc<Party>, T) {
        let mut parties = self.parties_now();
        let is_new = !parties.contains_key(&key);
        let party =
            parties.entry(key).or_insert_with_key(|key| Arc::new(Party::new(key.clone(), abilities.clone())));
        let joined = (Arc::clone(party), wish(party));
        drop(parties);
        if is_new {
            self.came.send_modify(|count| *count += 1);
        }
        joined
    }

    /// Whether nobody wants anything.
    pub(super) fn are_none(&self) -> bool {
        self.parties_now().is_empty()
    }

    /// A wish is given up; a party without any is dissolved.
    fn leave(&self, party: &Arc<Party>, give_up: impl FnOnce(&Party)) {
        let mut parties = self.parties_now();
        give_up(party);
        let is_current = parties.get(party.key()).is_some_and(|current| Arc::ptr_eq(current, party));
        if is_current && !party.is_wanted() {
            parties.remove(party.key());
        }
    }

    fn turn(&self) {
        self.turned.send_modify(|count| *count += 1);
    }

    /// Those who want something now.
    pub(super) fn parties(&self) -> Vec<Arc<Party>> {
        self.parties_now().values().cloned().collect()
    }

    /// The party that shares a session.
    pub(super) fn party(&self, key: &Key) -> Option<Arc<Party>> {
        self.parties_now().get(key).cloned()
    }

    /// Changes when a party comes.
    pub(super) fn came(&self) -> watch::Receiver<u64> {
        self.came.subscribe()
    }

    /// Changes when other resources are wanted.
    pub(super) fn turned(&self) -> watch::Receiver<u64> {
        self.turned.subscribe()
    }

    /// Every resource that anybody watches.
    pub(super) fn resources(&self) -> BTreeSet<String> {
        self.parties().iter().flat_map(|party| party.resources()).collect()
    }

    /// A resource was updated, whoever watches it.
    pub(super) fn updated(&self, uri: &str) {
        self.parties().iter().for_each(|party| party.updated(uri));
    }

    fn parties_now(&self) -> MutexGuard<'_, HashMap<Key, Arc<Party>>> {
        self.parties.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
