//! What has changed lately, for people.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::watch;

use crate::catalog::{Catalog, Presence, Snapshot};
use crate::names::UpstreamName;
use crate::protocol::ListKind;

/// Most changes that are kept.
const MOST: usize = 50;
/// Most names of one change, and most characters of one.
const NAMES: usize = 10;
const NAME: usize = 128;

/// One change.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Change {
    at: String,
    /// The upstream that it is of; `None` for the configuration.
    upstream: Option<String>,
    what: String,
}

/// The latest changes, the newest first.
#[derive(Debug, Default)]
pub struct Changes {
    latest: Mutex<VecDeque<Change>>,
}

impl Changes {
    /// Compares snapshots until nobody publishes any more.
    ///
    /// # Cancel safety
    /// A snapshot that was not looked at is looked at, or passed over, the next time.
    pub async fn gather(self: Arc<Self>, mut snapshots: watch::Receiver<Arc<Snapshot>>) {
        let mut before = Arc::clone(&snapshots.borrow_and_update());
        while snapshots.changed().await.is_ok() {
            let now = Arc::clone(&snapshots.borrow_and_update());
            let at = Timestamp::now().round(jiff::Unit::Second).unwrap_or_default().to_string();
            let changes = between(&before, &now);
            let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
            for (upstream, what) in changes {
                let upstream = upstream.map(|name| name.to_string());
                latest.push_front(Change { at: at.clone(), upstream, what });
            }
            latest.truncate(MOST);
            drop(latest);
            before = now;
        }
    }

    /// All that are kept.
    pub(super) fn latest(&self) -> Vec<Change> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// What differs, in words.
fn between(before: &Snapshot, now: &Snapshot) -> Vec<(Option<UpstreamName>, String)> {
    let mut all = Vec::new();
    if !Arc::ptr_eq(&before.config, &now.config) {
        all.push((None, "the configuration was read again".to_owned()));
    }
    for (name, presence) in now.inventories.iter() {
        let known = before.inventories.get(name);
        if known.map(state) != Some(state(presence)) {
            let why = if let Presence::Down { trouble, .. } = presence { trouble.text.as_str() } else { "" };
            let colon = if why.is_empty() { "" } else { ": " };
            all.push((Some(name.clone()), format!("{}{colon}{why}", state(presence))));
        }
    }
    for name in before.inventories.keys().filter(|name| !now.inventories.contains_key(*name)) {
        all.push((Some(name.clone()), "removed".to_owned()));
    }
    if Arc::ptr_eq(&before.catalog, &now.catalog) {
        return all;
    }
    let names: BTreeSet<&UpstreamName> = before.inventories.keys().chain(now.inventories.keys()).collect();
    let lists = ListKind::ALL.map(|kind| (kind, items(&before.catalog, kind), items(&now.catalog, kind)));
    let nothing = Items::new();
    for name in names {
        for (kind, before, now) in &lists {
            let [before, now] = [before, now].map(|all| all.get(name).unwrap_or(&nothing));
            all.extend(difference(*kind, before, now).map(|what| (Some(name.clone()), what)));
        }
    }
    all
}

fn state(presence: &Presence) -> &'static str {
    match presence {
        Presence::Connecting { .. } => "connecting",
        Presence::Up { .. } => "up",
        Presence::Down { last: Some(_), .. } => "lost, its items keep their place",
        Presence::Down { last: None, .. } => "down",
    }
}

/// The items of one upstream: published names, and the hash of each.
type Items<'c> = BTreeMap<&'c str, u64>;

/// The items of one kind, by upstream.
fn items(catalog: &Catalog, kind: ListKind) -> BTreeMap<&UpstreamName, Items<'_>> {
    let mut all: BTreeMap<&UpstreamName, Items<'_>> = BTreeMap::new();
    for item in catalog.list(kind) {
        all.entry(&item.upstream).or_default().insert(&item.name, item.hash);
    }
    all
}

/// How the items of one upstream differ.
fn difference(kind: ListKind, before: &Items<'_>, now: &Items<'_>) -> Option<String> {
    let added = names(now, |name, _| !before.contains_key(name));
    let gone = names(before, |name, _| !now.contains_key(name));
    let other = names(now, |name, hash| before.get(name).is_some_and(|old| *old != hash));
    let parts = [("added", added), ("removed", gone), ("changed", other)];
    let parts: Vec<String> = parts.iter().filter_map(|(word, names)| part(kind, word, names)).collect();
    (!parts.is_empty()).then(|| format!("{}: {}", kind.member(), parts.join("; ")))
}

fn names<'c>(all: &Items<'c>, fits: impl Fn(&str, u64) -> bool) -> Vec<&'c str> {
    all.iter().filter(|(name, hash)| fits(name, **hash)).map(|(name, _)| *name).collect()
}

/// Names of tools and prompts; URIs are only counted, since a query may be a secret.
fn part(kind: ListKind, word: &str, names: &[&str]) -> Option<String> {
    match kind {
        ListKind::Resources | ListKind::Templates => {
            return (!names.is_empty()).then(|| format!("{} {word}", names.len()));
        }
        ListKind::Tools | ListKind::Prompts => {}
    }
    let shown = names.iter().take(NAMES).map(|name| name.chars().take(NAME).collect());
    let shown: Vec<String> = shown.collect();
    let more = names.len().saturating_sub(NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!names.is_empty()).then(|| format!("{word} {}{more}", shown.join(", ")))
}
