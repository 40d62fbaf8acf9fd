//! What is known of the items of a route, whoever asks: their class, what bars them, and which rules are about them.
//!
//! It depends on nobody's rights, so it is found once for a snapshot, and each decision starts from it: patterns are
//! matched once, not for each principal and each call.

use std::collections::HashMap;
use std::sync::Arc;

use crate::catalog::{Item, Snapshot};
use crate::config::{Route, Upstream};
use crate::names::UpstreamName;
use crate::policy::{self, Asked, Class, Decision, Ruling};
use crate::principal::Rights;
use crate::protocol::ListKind;

/// Where one item stands on a route.
#[derive(Debug)]
pub(super) struct Standing {
    pub(super) class: Class,
    /// What takes it off the route, whoever asks.
    barred: Option<&'static str>,
    /// The rules about it, by their places.
    about: Box<[usize]>,
}

impl Standing {
    pub(super) fn of(upstream: &Upstream, route: &Route, item: &Item) -> Self {
        let class = class_of(upstream, item);
        let barred = match item.kind {
            ListKind::Tools if !route.allow.is_match(&item.name) || route.deny.is_match(&item.name) => {
                Some("tools of the route")
            }
            _ if class != Class::Read && route.read_only => Some("mode of the route"),
            _ if class != Class::Read && upstream.read_only => Some("mode of the upstream"),
            _ => None,
        };
        let about = policy::about(&route.policy, &asked(route, item, class));
        Self { class, barred, about }
    }

    /// What becomes of the item for these rights, and what decided.
    ///
    /// # Errors
    /// What takes it off this route.
    pub(super) fn judge<'r>(
        &self,
        route: &'r Route,
        rights: &Rights,
        item: &Item,
    ) -> Result<(Decision, Ruling<'r>), &'static str> {
        match self.barred {
            Some(barred) => Err(barred),
            None => {
                let asked = asked(route, item, self.class);
                Ok(policy::decide_by(&route.policy, rights, &asked, &self.about))
            }
        }
    }
}

fn asked<'a>(route: &'a Route, item: &'a Item, class: Class) -> Asked<'a> {
    Asked { route: &route.name, upstream: &item.upstream, kind: item.kind, local: item.local(), class }
}

fn class_of(upstream: &Upstream, item: &Item) -> Class {
    match item.kind {
        ListKind::Tools => {
            let entry = &item.entry;
            policy::classify(upstream, &entry.local, entry.read_only_hint, entry.destructive_hint)
        }
        ListKind::Prompts | ListKind::Resources | ListKind::Templates => Class::Read,
    }
}

/// Where all items stand on a route.
#[derive(Debug)]
pub(super) struct Ground {
    generation: u64,
    route: Arc<Route>,
    /// One for each item of the catalog, in its order; `None`: its upstream is not on this route.
    pub(super) standings: Vec<Option<Arc<Standing>>>,
}

impl Ground {
    pub(super) fn of(snapshot: &Snapshot, route: &Arc<Route>) -> Self {
        let upstreams = snapshot.config.upstreams.iter();
        let by_name: HashMap<&UpstreamName, &Arc<Upstream>> = upstreams
            .filter(|upstream| route.upstreams.contains(&upstream.name))
            .map(|upstream| (&upstream.name, upstream))
            .collect();
        let items = ListKind::ALL.into_iter().flat_map(|kind| snapshot.catalog.list(kind));
        let standing =
            |item: &Arc<Item>| Some(Arc::new(Standing::of(by_name.get(&item.upstream)?, route, item)));
        let standings = items.map(standing).collect();
        Self { generation: snapshot.generation, route: Arc::clone(route), standings }
    }

    /// Whether it is that of a route, which may be one of a configuration before, at a snapshot.
    pub(super) fn is_of(&self, snapshot: &Snapshot, route: &Arc<Route>) -> bool {
        self.generation == snapshot.generation && Arc::ptr_eq(&self.route, route)
    }

    /// Whether the snapshot is a later one.
    pub(super) fn is_before(&self, snapshot: &Snapshot) -> bool {
        self.generation < snapshot.generation
    }
}
