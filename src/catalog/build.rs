//! From inventories to the catalog. Pure, but for what a [`Builder`] remembers so as not to make it again.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use super::claims::{self, Claims};
use super::item::hash;
use super::{Catalog, Entry, Inventories, Inventory, Item, LeftOut};
use crate::config::{Config, Upstream};
use crate::jsonrpc::{Edit, Object, quoted};
use crate::names::{LocalName, Published, UpstreamName};
use crate::protocol::{ListKind, meta};

/// Resources first: a tool may name one as its user interface.
const ORDER: [ListKind; 4] = [ListKind::Resources, ListKind::Templates, ListKind::Prompts, ListKind::Tools];

/// Builds one catalog after the other. What an upstream offers as it did before is named and written as it was before,
/// under the same configuration: a change of one upstream costs what that upstream offers.
#[derive(Debug, Default)]
pub struct Builder {
    config: Option<Arc<Config>>,
    shelves: HashMap<(UpstreamName, ListKind), Shelf>,
}

/// One list of one upstream under its published names.
#[derive(Debug)]
struct Shelf {
    inventory: Arc<Inventory>,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    entry: Arc<Entry>,
    published: Published,
    /// Whether its definition depends on the URIs that other upstreams have.
    has_interface: bool,
    /// What was made of it under that name.
    item: OnceLock<Arc<Item>>,
}

/// An item before it is known whether it keeps its name.
struct Candidate<'c> {
    upstream: &'c Upstream,
    position: usize,
    row: &'c Row,
    /// Its name with the label of its upstream, where the one it has belongs to another.
    marked: Option<Published>,
    /// Whether its upstream has given up its place in the lists.
    is_withdrawn: bool,
}

impl Candidate<'_> {
    fn published(&self) -> &Published {
        self.marked.as_ref().unwrap_or(&self.row.published)
    }

    /// Who wins a name, smallest first (design contract, section 4): one with a namespace, then the upstream that
    /// stands first in the file, then the smaller local name.
    fn rank(&self) -> (bool, usize, &str) {
        (self.upstream.namespace.is_empty(), self.position, self.row.entry.local.as_str())
    }
}

/// Builds the catalog of a configuration from what its upstreams offer. Never fails: what cannot be published is
/// named in [`Catalog::left_out`].
#[must_use]
pub fn build(config: &Config, inventories: &Inventories) -> Catalog {
    Builder::default().make(config, inventories)
}

impl Builder {
    /// As [`build`], with what is remembered of the catalog before.
    #[must_use]
    pub fn build(&mut self, config: &Arc<Config>, inventories: &Inventories) -> Catalog {
        if !self.config.as_ref().is_some_and(|known| Arc::ptr_eq(known, config)) {
            self.shelves.clear();
            self.config = Some(Arc::clone(config));
        }
        self.make(config, inventories)
    }

    fn make(&mut self, config: &Config, inventories: &Inventories) -> Catalog {
        self.stock(config, inventories);
        let mut catalog = Catalog::default();
        for upstream in &config.upstreams {
            if let Some(inventory) = inventories.get(&upstream.name).and_then(|presence| presence.inventory())
            {
                let left_out = inventory.left_out.iter().map(|left| (upstream.name.clone(), left.clone()));
                catalog.left_out.extend(left_out);
            }
        }
        let mut claims = Claims::default();
        for kind in ORDER {
            let mut candidates = self.candidates(config, inventories, kind);
            tell_apart(kind, &mut candidates, &mut claims);
            let (items, lost) = settle(kind, &candidates, &mut claims);
            catalog.left_out.extend(lost);
            catalog.put(kind, items);
        }
        catalog
    }

    /// Names what each upstream offers, where that is not what it offered before.
    fn stock(&mut self, config: &Config, inventories: &Inventories) {
        let claimed = |name: &UpstreamName| inventories.get(name).and_then(|presence| presence.claims());
        self.shelves.retain(|(name, _), shelf| {
            claimed(name).is_some_and(|inventory| Arc::ptr_eq(inventory, &shelf.inventory))
        });
        for upstream in &config.upstreams {
            let Some(inventory) = claimed(&upstream.name) else { continue };
            for kind in ORDER {
                let shelf = self.shelves.entry((upstream.name.clone(), kind));
                shelf.or_insert_with(|| Shelf::new(config, upstream, (inventory, kind)));
            }
        }
    }

    fn candidates<'c>(
        &'c self,
        config: &'c Config,
        inventories: &Inventories,
        kind: ListKind,
    ) -> Vec<Candidate<'c>> {
        let mut all = Vec::new();
        for (position, upstream) in config.upstreams.iter().enumerate() {
            let Some(shelf) = self.shelves.get(&(upstream.name.clone(), kind)) else { continue };
            let presence = inventories.get(&upstream.name);
            let is_withdrawn = presence.and_then(|presence| presence.inventory()).is_none();
            let rows = shelf.rows.iter();
            all.extend(rows.map(|row| Candidate { upstream, position, row, marked: None, is_withdrawn }));
        }
        all
    }
}

impl Shelf {
    fn new(config: &Config, upstream: &Upstream, (inventory, kind): (&Arc<Inventory>, ListKind)) -> Self {
        let is_tool = kind == ListKind::Tools;
        let admits = |entry: &&Arc<Entry>| !is_tool || upstream.tools.admits(entry.local.as_str());
        let entries: Vec<&Arc<Entry>> = inventory.list(kind).iter().filter(admits).collect();
        let published = publish(config, upstream, kind, &entries);
        let rows = entries.into_iter().zip(published).map(|(entry, published)| Row {
            entry: Arc::clone(entry),
            published,
            has_interface: is_tool && claims::may_name_interface(&entry.raw),
            item: OnceLock::new(),
        });
        Self { rows: rows.collect(), inventory: Arc::clone(inventory) }
    }
}

fn publish(config: &Config, upstream: &Upstream, kind: ListKind, entries: &[&Arc<Entry>]) -> Vec<Published> {
    match kind {
        ListKind::Tools | ListKind::Prompts => {
            let locals: Vec<LocalName> = entries
                .iter()
                .map(|entry| upstream.tools.rename.get(&entry.local).unwrap_or(&entry.local).clone())
                .collect();
            config.names.publish(&upstream.namespace, &locals)
        }
        ListKind::Resources | ListKind::Templates => {
            entries.iter().map(|entry| Published::unchanged(&entry.local)).collect()
        }
    }
}

/// URIs that two upstreams publish: that of the later one in the file gets its label.
fn tell_apart<'c>(kind: ListKind, candidates: &mut [Candidate<'c>], claims: &mut Claims<'c>) {
    match kind {
        ListKind::Tools | ListKind::Prompts => return,
        ListKind::Resources | ListKind::Templates => {}
    }
    for candidate in candidates {
        let (local, upstream) = (&candidate.row.entry.local, &candidate.upstream.name);
        if !claims.claim(local.as_str(), upstream) {
            candidate.marked = Some(Published::marked(local, upstream));
        }
    }
}

/// Gives each name to one candidate; the others are left out. That of an upstream without a place keeps its name from
/// the others and is not published.
fn settle<'c>(
    kind: ListKind,
    candidates: &[Candidate<'c>],
    claims: &mut Claims<'c>,
) -> (Vec<Arc<Item>>, Vec<(UpstreamName, LeftOut)>) {
    let mut winners: HashMap<&str, usize> = HashMap::with_capacity(candidates.len());
    for (index, candidate) in candidates.iter().enumerate() {
        let name = candidate.published().name.as_str();
        let holder = winners.get(name).and_then(|held| candidates.get(*held));
        if holder.is_none_or(|held| candidate.rank() < held.rank()) {
            winners.insert(name, index);
        }
    }
    let mut items = Vec::with_capacity(winners.len());
    let mut left_out = Vec::new();
    for (index, candidate) in candidates.iter().enumerate() {
        let name = candidate.published().name.as_str();
        let winner = winners.get(name).copied().unwrap_or(index);
        // Also of those that are not published: their URIs stay taken.
        let item = published(kind, candidate, claims);
        if candidate.is_withdrawn {
            continue;
        }
        if winner == index {
            items.push(item);
            continue;
        }
        let holder = candidates.get(winner);
        let lost = if holder.is_some_and(|held| held.is_withdrawn) { ", which is lost" } else { "" };
        let holder = holder.map_or("", |held| held.upstream.name.as_str());
        let reason = format!("the name {name} belongs to upstream {holder}{lost}");
        let name = candidate.row.entry.local.as_str().chars().take(128).collect();
        left_out.push((candidate.upstream.name.clone(), LeftOut { name, reason }));
    }
    (items, left_out)
}

/// What becomes of a candidate that keeps its name; made once, where it depends on nobody else.
fn published<'c>(kind: ListKind, candidate: &Candidate<'c>, claims: &mut Claims<'c>) -> Arc<Item> {
    let row = candidate.row;
    if candidate.marked.is_some() || row.has_interface {
        let raw = definition(kind, candidate, claims);
        return Arc::new(item(kind, candidate, raw));
    }
    Arc::clone(row.item.get_or_init(|| {
        let raw = definition(kind, candidate, claims);
        Arc::new(item(kind, candidate, raw))
    }))
}

fn item(kind: ListKind, candidate: &Candidate<'_>, raw: Arc<str>) -> Item {
    let output = (kind == ListKind::Tools).then(|| Object::open(&raw)).flatten();
    let has_output = output.as_ref().is_some_and(|tool| tool.get("outputSchema").is_some());
    let object_typed = output
        .as_ref()
        .and_then(|tool| tool.object("outputSchema"))
        .is_some_and(|schema| schema.text("type").as_deref() == Some("object"));
    let object_output = (has_output && !object_typed)
        .then(|| output.as_ref().map(|tool| Edit::new().remove("outputSchema").apply(tool).into()))
        .flatten();
    Item {
        kind,
        upstream: candidate.upstream.name.clone(),
        name: candidate.published().name.as_str().to_owned(),
        entry: Arc::clone(&candidate.row.entry),
        hash: hash(&raw),
        object_output,
        free_output: kind == ListKind::Tools && !object_typed,
        raw,
    }
}

/// The definition as clients get it: the upstream's bytes with the published name, and that of its user interface.
fn definition<'c>(kind: ListKind, candidate: &Candidate<'c>, claims: &mut Claims<'c>) -> Arc<str> {
    let published = candidate.published().name.as_str();
    let interface = (kind == ListKind::Tools)
        .then(|| claims.interface(&candidate.row.entry.raw, &candidate.upstream.name))
        .flatten();
    let raw = &interface.map_or_else(|| Arc::clone(&candidate.row.entry.raw), Arc::from);
    let Some(object) = Object::open(raw) else { return Arc::clone(raw) };
    if candidate.published().full.is_none() && candidate.row.entry.local.as_str() == published {
        return Arc::clone(raw);
    }
    let mut edit = Edit::new().set(kind.key(), quoted(published));
    if let Some(full) = &candidate.published().full {
        let full = quoted(full.as_str());
        let inner = object.object("_meta").unwrap_or_default();
        edit = edit.set("_meta", Edit::new().set(meta::WEIR_NAME, full).apply(&inner));
    }
    edit.apply(&object).into()
}
