//! Views by route and rights.

use std::sync::Arc;

use dashmap::DashMap;

use super::View;
use super::build::build;
use crate::catalog::Snapshot;
use crate::config::Route;
use crate::names::RouteName;
use crate::principal::Rights;

/// Most views that are kept; beyond it all are dropped and made again as they are asked for.
const MOST: usize = 1024;

/// The views that are in use. One entry per (route, rights); independent of each other.
#[derive(Debug, Default)]
pub struct Views {
    views: DashMap<(RouteName, Rights), Arc<View>>,
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
        let view = Arc::new(build(snapshot, route, rights));
        if self.views.len() >= MOST {
            self.views.clear();
        }
        self.views.insert(key, Arc::clone(&view));
        view
    }
}
