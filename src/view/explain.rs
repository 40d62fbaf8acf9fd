//! Why somebody sees what: the decision about each item, for operators.

use std::sync::Arc;

use super::build::{class_of, of_route};
use crate::catalog::{Item, Snapshot};
use crate::config::{Config, Route};
use crate::policy::{self, Asked, Class, Decision};
use crate::principal::Rights;
use crate::protocol::ListKind;

/// The decision about one item.
#[derive(Debug)]
pub struct Explained {
    /// The item.
    pub item: Arc<Item>,
    /// Its class.
    pub class: Class,
    /// What was decided.
    pub decision: Decision,
    /// What decided: a rule, the class, the default, or a list of the upstream or the route.
    pub by: String,
}

/// The decisions about all items of a route's upstreams, in the order of the lists.
#[must_use]
pub fn explain(snapshot: &Snapshot, route: &Route, rights: &Rights) -> Vec<Explained> {
    let items = ListKind::ALL.into_iter().flat_map(|kind| snapshot.catalog.list(kind));
    items.filter_map(|item| explain_item(&snapshot.config, route, rights, item)).collect()
}

/// The decision about one item; `None` where its upstream is not on the route.
#[must_use]
pub fn explain_item(config: &Config, route: &Route, rights: &Rights, item: &Arc<Item>) -> Option<Explained> {
    let upstreams = of_route(config, route);
    let upstream = upstreams.iter().find(|upstream| upstream.name == item.upstream)?;
    let class = class_of(upstream, item);
    let hidden = |by: &str| Some((Decision::Hide, by.to_owned()));
    let listed = match item.kind {
        ListKind::Tools if !route.allow.is_match(&item.name) || route.deny.is_match(&item.name) => {
            hidden("tools of the route")
        }
        _ if class != Class::Read && route.read_only => hidden("mode of the route"),
        _ if class != Class::Read && upstream.read_only => hidden("mode of the upstream"),
        _ => None,
    };
    let (decision, by) = listed.unwrap_or_else(|| {
        let asked = Asked {
            route: &route.name,
            upstream: &upstream.name,
            kind: item.kind,
            local: item.local(),
            class,
        };
        let (decision, ruling) = policy::decide(&route.policy, rights, &asked);
        (decision, ruling.to_string())
    });
    Some(Explained { item: Arc::clone(item), class, decision, by })
}
