//! Why somebody sees what: the decision about each item, for operators.

use std::sync::Arc;

use super::View;
use super::ground::Standing;
use crate::catalog::{Item, Snapshot};
use crate::config::{Config, Route, Upstream};
use crate::policy::{Class, Decision};
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

/// The decision about an item of a view, shown or not, for rights that see so.
#[must_use]
pub fn explain_named(
    view: &View,
    route: &Route,
    rights: &Rights,
    named: (ListKind, &str),
) -> Option<Explained> {
    let held = view.held(named.0, named.1)?;
    Some(explained(route, rights, &held.item, &held.standing))
}

/// The decision about one item; `None` where its upstream is not on the route.
fn explain_item(config: &Config, route: &Route, rights: &Rights, item: &Arc<Item>) -> Option<Explained> {
    let is_its = |upstream: &&Arc<Upstream>| upstream.name == item.upstream;
    let upstream = config.upstreams.iter().find(is_its).filter(|up| route.upstreams.contains(&up.name))?;
    Some(explained(route, rights, item, &Standing::of(upstream, route, item)))
}

fn explained(route: &Route, rights: &Rights, item: &Arc<Item>, standing: &Standing) -> Explained {
    let (decision, by) = match standing.judge(route, rights, item) {
        Ok((decision, ruling)) => (decision, ruling.to_string()),
        Err(operator) => (Decision::Hide, operator.to_owned()),
    };
    Explained { item: Arc::clone(item), class: standing.class, decision, by }
}
