//! Where a keeper publishes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;

use crate::catalog::{Inventory, Material, Presence};
use crate::names::UpstreamName;

/// The place of one upstream among all.
#[derive(Debug, Clone)]
pub(in crate::upstream) struct Publisher {
    name: UpstreamName,
    all: watch::Sender<Material>,
    is_retired: Arc<AtomicBool>,
}

impl Publisher {
    pub(in crate::upstream) fn new(name: UpstreamName, all: watch::Sender<Material>) -> Self {
        Self { name, all, is_retired: Arc::default() }
    }

    /// The least time between two listings of one upstream: what comes closer together is announced once anyway.
    pub(in crate::upstream) fn gap(&self) -> Duration {
        self.all.borrow().config.notify.debounce
    }

    /// Whether something of the upstream is shown now.
    pub(in crate::upstream) fn is_shown(&self) -> bool {
        self.all.borrow().inventories.get(&self.name).and_then(Presence::inventory).is_some()
    }

    /// What names and URIs are taken for it.
    pub(in crate::upstream) fn claims(&self) -> Option<Arc<Inventory>> {
        self.all.borrow().inventories.get(&self.name).and_then(Presence::claims).cloned()
    }

    /// Whether the place belongs to another link, or to none.
    pub(in crate::upstream) fn is_retired(&self) -> bool {
        self.is_retired.load(Ordering::Relaxed)
    }

    /// Publishes where the upstream stands. What is equal to what was published before wakes nobody.
    pub(in crate::upstream) fn publish(&self, presence: Presence) {
        self.all.send_if_modified(|all| {
            let known = all.inventories.get(&self.name);
            if self.is_retired.load(Ordering::Relaxed) || known == Some(&presence) {
                return false;
            }
            let mut next = BTreeMap::clone(&all.inventories);
            next.insert(self.name.clone(), presence);
            all.inventories = Arc::new(next);
            true
        });
    }

    /// Whether both are the place of one link.
    pub(in crate::upstream) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.is_retired, &other.is_retired)
    }

    /// Publishes nothing any more: the place belongs to another link, or to none. To be called while the watch is being
    /// written, so that nothing slips in behind it.
    pub(in crate::upstream) fn retire(&self) {
        self.is_retired.store(true, Ordering::Relaxed);
    }
}
