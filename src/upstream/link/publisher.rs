//! Where a keeper publishes.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

use crate::catalog::{Inventories, Presence};
use crate::names::UpstreamName;

/// The place of one upstream among all.
#[derive(Debug, Clone)]
pub(in crate::upstream) struct Publisher {
    name: UpstreamName,
    all: watch::Sender<Arc<Inventories>>,
}

impl Publisher {
    pub(in crate::upstream) fn new(name: UpstreamName, all: watch::Sender<Arc<Inventories>>) -> Self {
        Self { name, all }
    }

    /// Publishes where the upstream stands. What is equal to what was published before wakes nobody.
    pub(in crate::upstream) fn publish(&self, presence: Presence) {
        self.all.send_if_modified(|all| {
            if all.get(&self.name) == Some(&presence) {
                return false;
            }
            let mut next = BTreeMap::clone(all);
            next.insert(self.name.clone(), presence);
            *all = Arc::new(next);
            true
        });
    }
}
