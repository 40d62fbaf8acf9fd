//! Views by route and rights.

use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use tokio::time::Instant;

use super::View;
use super::build::{build, verdicts};
use super::ground::Ground;
use crate::catalog::Snapshot;
use crate::config::Route;
use crate::names::RouteName;
use crate::principal::Rights;

/// Most views that are kept; beyond it all are dropped and made again as they are asked for.
const MOST: usize = 1024;
/// How long views are got ready before a snapshot is published; the others are made as they are asked for.
const READY: Duration = Duration::from_millis(100);

type Key = (RouteName, Rights);

/// The views that are in use: which one rights have on a route, and one view for equal decisions. Entries are
/// independent of each other.
#[derive(Debug, Default)]
pub struct Views {
    views: DashMap<Key, Arc<View>>,
    equal: DashMap<(RouteName, [u8; 32]), Arc<View>>,
    grounds: DashMap<RouteName, Arc<Ground>>,
    /// Those of the snapshot that comes next.
    coming: DashMap<Key, Arc<View>>,
}

impl Views {
    /// The view of these rights on a route, for this snapshot.
    #[must_use]
    pub fn of(&self, snapshot: &Snapshot, route: &Arc<Route>, rights: &Rights) -> Arc<View> {
        let key = (route.name.clone(), rights.clone());
        let is_current = |view: &Arc<View>| view.is_of(snapshot, route);
        if let Some(view) = self.views.get(&key).filter(|view| is_current(view)) {
            return Arc::clone(&view);
        }
        let coming = self.coming.get(&key).filter(|view| is_current(view)).map(|view| Arc::clone(&view));
        let view = coming.unwrap_or_else(|| self.equal(snapshot, route, rights));
        if self.views.len() >= MOST {
            self.views.clear();
        }
        self.views.insert(key, Arc::clone(&view));
        view
    }

    /// Gets the views ready that are in use, for a snapshot that is about to be published: whoever asks first does not
    /// wait for them. Requests that read the snapshot before it go on with theirs.
    pub fn get_ready(&self, snapshot: &Snapshot) {
        let begun = Instant::now();
        self.coming.clear();
        let used: Vec<Key> = self.views.iter().map(|entry| entry.key().clone()).collect();
        for key in used {
            if begun.elapsed() > READY {
                return;
            }
            if let Some(route) = snapshot.config.route(&key.0) {
                let view = self.equal(snapshot, route, &key.1);
                self.coming.insert(key, view);
            }
        }
    }

    fn ground(&self, snapshot: &Snapshot, route: &Arc<Route>) -> Arc<Ground> {
        if let Some(known) = self.grounds.get(&route.name)
            && known.is_of(snapshot, route)
        {
            return Arc::clone(&known);
        }
        let ground = Arc::new(Ground::of(snapshot, route));
        self.grounds.insert(route.name.clone(), Arc::clone(&ground));
        ground
    }

    /// Drops the views of the snapshots before this one: whoever does not come back holds no old catalog.
    pub fn forget_before(&self, snapshot: &Snapshot) {
        let is_old = |view: &Arc<View>| view.generation < snapshot.generation;
        self.equal.retain(|_, view| !is_old(view));
        self.views.retain(|_, view| !is_old(view));
        self.grounds.retain(|_, ground| !ground.is_before(snapshot));
        // The next ones may be ready already.
        self.coming.retain(|_, view| !is_old(view));
    }

    /// The view of all whom the same is decided for.
    fn equal(&self, snapshot: &Snapshot, route: &Arc<Route>, rights: &Rights) -> Arc<View> {
        let ground = self.ground(snapshot, route);
        let verdicts = verdicts(snapshot, route, rights, &ground);
        let key = (route.name.clone(), verdicts.digest());
        if let Some(view) = self.equal.get(&key)
            && view.is_of(snapshot, route)
        {
            return Arc::clone(&view);
        }
        let view = Arc::new(build(snapshot, route, verdicts, &ground));
        if self.equal.len() >= MOST {
            self.equal.clear();
        }
        self.equal.insert(key, Arc::clone(&view));
        view
    }
}
