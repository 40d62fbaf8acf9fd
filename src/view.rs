//! What one caller may see of the catalog.
//!
//! A view is the set of items that the access decision allows to equal rights on one route, with its list pages
//! joined once. Views are kept by rights, never by connection, and are rebuilt when the snapshot is a new one. Lists,
//! calls and announcements all read the same view, so what is listed is what may be called and what is told.

mod build;
mod cache;
mod explain;
mod ground;
mod pages;

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;

pub use cache::Views;
pub use explain::{Explained, explain, explain_named};
pub use pages::Form;

use crate::catalog::{Item, Snapshot};
use crate::config::Route;
use crate::names::UpstreamName;
use crate::policy::Class;
use crate::principal::Scope;
use crate::protocol::{ListKind, Offer};
use ground::Standing;
use pages::Pages;

/// An item that the caller may see and use.
#[derive(Debug, Clone)]
pub struct Shown {
    /// The item.
    pub item: Arc<Item>,
    /// Its class; read for everything but tools.
    pub class: Class,
}

/// An item on the route, and where it stands there.
#[derive(Debug)]
struct Held {
    item: Arc<Item>,
    standing: Arc<Standing>,
    fate: Fate,
}

/// What becomes of it.
#[derive(Debug)]
enum Fate {
    Shown(Shown),
    /// These scopes would show it.
    StepUp(Vec<Scope>),
    Hidden,
}

/// Where a name leads for this caller.
#[derive(Debug)]
pub enum Found<'v> {
    /// To an item that it may use.
    Shown(&'v Shown),
    /// To one that needs these scopes.
    StepUp(&'v [Scope]),
    /// To nothing, or to something it may not know of.
    Nothing,
}

/// The list kinds that are announced together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hashes {
    /// Of the tools.
    pub tools: u64,
    /// Of the prompts.
    pub prompts: u64,
    /// Of resources and templates.
    pub resources: u64,
}

/// One page of a list, ready to be sent.
#[derive(Debug, Clone)]
pub struct Page {
    /// The items, joined with commas, without brackets.
    pub items: Bytes,
    /// The position of the next page, if there is one.
    pub next: Option<usize>,
}

/// Raw `capabilities` as they are announced.
#[derive(Debug, Default)]
pub struct Announced {
    /// To clients with a session.
    pub to_sessions: String,
    /// To stateless clients.
    pub to_stateless: String,
}

/// What equal rights see on one route.
#[derive(Debug)]
pub struct View {
    /// The generation of the snapshot it was made from.
    pub generation: u64,
    route: Arc<Route>,
    /// A hash of each visible list; order does not count.
    pub hashes: Hashes,
    /// The visible upstreams, in file order.
    pub upstreams: Vec<UpstreamName>,
    /// The merged capabilities of the visible upstreams.
    pub offer: Offer,
    /// What is announced to clients, as raw JSON: extensions and tasks depend on how a client speaks.
    pub announced: Announced,
    /// The merged instructions, if there are any.
    pub instructions: Option<String>,
    /// `_meta["dev.weir/missing"]` as raw JSON, if an upstream is missing.
    pub missing: Option<String>,
    /// How long lists may be held fresh, in milliseconds.
    pub ttl_ms: u64,
    /// Whether lists may be shared between callers.
    pub public: bool,
    /// What is on the route, shown or not.
    held: HashMap<(ListKind, String), Held>,
    /// Whether scopes would show more.
    may_grow: bool,
    order: HashMap<ListKind, Vec<Shown>>,
    sequences: HashMap<ListKind, u64>,
    pages: Pages,
}

impl View {
    /// Whether it is that of a route, which may be one of a configuration before, at a snapshot.
    fn is_of(&self, snapshot: &Snapshot, route: &Arc<Route>) -> bool {
        self.generation == snapshot.generation && Arc::ptr_eq(&self.route, route)
    }

    /// Where a published name or URI leads.
    #[must_use]
    pub fn find(&self, kind: ListKind, name: &str) -> Found<'_> {
        match self.held(kind, name).map(|held| &held.fate) {
            Some(Fate::Shown(shown)) => Found::Shown(shown),
            Some(Fate::StepUp(scopes)) => Found::StepUp(scopes),
            Some(Fate::Hidden) | None => Found::Nothing,
        }
    }

    /// An item of the route, shown or not; for records, never for answers.
    #[must_use]
    pub fn item(&self, kind: ListKind, name: &str) -> Option<&Arc<Item>> {
        self.held(kind, name).map(|held| &held.item)
    }

    fn held(&self, kind: ListKind, name: &str) -> Option<&Held> {
        self.held.get(&(kind, name.to_owned()))
    }

    /// The items of a kind that are on the route and are not shown, each with the scopes that would show it; none where
    /// no scope would.
    pub fn unseen(&self, kind: ListKind) -> impl Iterator<Item = (&Arc<Item>, &[Scope])> {
        self.held.iter().filter(move |((of, _), _)| *of == kind).filter_map(|(_, held)| match &held.fate {
            Fate::Shown(_) => None,
            Fate::StepUp(scopes) => Some((&held.item, scopes.as_slice())),
            Fate::Hidden => Some((&held.item, &[][..])),
        })
    }

    /// All visible items of a list, in order.
    #[must_use]
    pub fn list(&self, kind: ListKind) -> &[Shown] {
        self.order.get(&kind).map_or(&[], Vec::as_slice)
    }

    /// The page that begins at item number `position`; `None` when no page begins there.
    #[must_use]
    pub fn page(&self, kind: ListKind, form: Form, position: usize) -> Option<Page> {
        self.pages.get(kind, form, position)
    }

    /// A hash of one list in its order, which a cursor into it must match.
    #[must_use]
    pub fn sequence(&self, kind: ListKind) -> u64 {
        self.sequences.get(&kind).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
