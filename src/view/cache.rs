//! Views by route and rights.

use std::sync::Arc;

use dashmap::DashMap;

use super::View;
use super::build::{build, verdicts};
use crate::catalog::Snapshot;
use crate::config::Route;
use crate::names::RouteName;
use crate::principal::Rights;

/// Most views that are kept; beyond it all are dropped and made again as they are asked for.
const MOST: usize = 1024;

/// The views that are in use: which one rights have on a route, and one view for equal decisions. Entries are
/// independent of each other.
#[derive(Debug, Default)]
pub struct Views {
    views: DashMap<(RouteName, Rights), Arc<View>>,
    equal: DashMap<(RouteName, [u8; 32]), Arc<View>>,
}

impl Views {
    /// The view of these rights on a route, for this snapshot.
    #[must_use]
    pub fn of(&self, snapshot: &Snapshot, route: &Route, rights: &Rights) -> Arc<View> {
        let key = (route.name.clone(), rights.clone());
        if let Some(view) = self.views.get(&key)
            && view.generation == snapshot.generation
        {
            return Arc::clone(&view);
        }
        let view = self.equal(snapshot, route, rights);
        if self.views.len() >= MOST {
            self.views.clear();
        }
        self.views.insert(key, Arc::clone(&view));
        view
    }

    /// The view of all whom the same is decided for.
    fn equal(&self, snapshot: &Snapshot, route: &Route, rights: &Rights) -> Arc<View> {
        let verdicts = verdicts(snapshot, route, rights);
        let key = (route.name.clone(), verdicts.digest());
        if let Some(view) = self.equal.get(&key)
            && view.generation == snapshot.generation
        {
            return Arc::clone(&view);
        }
        let view = Arc::new(build(snapshot, route, verdicts));
        // Whoever does not come back holds no old catalog.
        self.equal.retain(|_, view| view.generation == snapshot.generation);
        self.views.retain(|_, view| view.generation == snapshot.generation);
        if self.equal.len() >= MOST {
            self.equal.clear();
        }
        self.equal.insert(key, Arc::clone(&view));
        view
    }
}
