//! A small map behind a lock, for what one session has.
//!
//! A map that is made for many cores at once takes a kilobyte and more before anything is in it; most sessions have
//! nothing in theirs, and few requests at a time.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The map. No method waits, and none calls back while the lock is held but those that say so.
#[derive(Debug)]
pub(super) struct Locked<K, V>(Mutex<BTreeMap<K, V>>);

impl<K, V> Default for Locked<K, V> {
    fn default() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }
}

impl<K: Ord, V> Locked<K, V> {
    fn map(&self) -> MutexGuard<'_, BTreeMap<K, V>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn len(&self) -> usize {
        self.map().len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.map().is_empty()
    }

    /// What was there before.
    pub(super) fn insert(&self, key: K, value: V) -> Option<V> {
        self.map().insert(key, value)
    }

    /// Makes a value where there is none. `None` where there is one.
    pub(super) fn begin<T>(&self, key: K, make: impl FnOnce() -> (V, T)) -> Option<T> {
        let mut map = self.map();
        if map.contains_key(&key) {
            return None;
        }
        let (value, told) = make();
        map.insert(key, value);
        Some(told)
    }

    pub(super) fn remove<Q>(&self, key: &Q) -> Option<V>
    where
        K: std::borrow::Borrow<Q>,
        Q: Ord + ?Sized,
    {
        self.map().remove(key)
    }

    /// Takes a value out of which this is true; asked under the lock.
    pub(super) fn remove_if(&self, key: &K, is_it: impl FnOnce(&V) -> bool) {
        let mut map = self.map();
        if map.get(key).is_some_and(is_it) {
            map.remove(key);
        }
    }

    /// Keeps those of which this is true; asked under the lock.
    pub(super) fn retain(&self, keep: impl FnMut(&K, &mut V) -> bool) {
        self.map().retain(keep);
    }
}

impl<K: Ord, V: Clone> Locked<K, V> {
    pub(super) fn get(&self, key: &K) -> Option<V> {
        self.map().get(key).cloned()
    }

    /// All values.
    pub(super) fn all(&self) -> Vec<V> {
        self.map().values().cloned().collect()
    }
}
