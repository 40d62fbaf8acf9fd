//! From inventories to the catalog. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::claims::Claims;
use super::item::hash;
use super::{Catalog, Entry, Inventories, Item, LeftOut};
use crate::config::{Config, Upstream};
use crate::jsonrpc::{Edit, Object, quoted};
use crate::names::{LocalName, Published, UpstreamName};
use crate::protocol::{ListKind, meta};

/// An item before it is known whether it keeps its name.
struct Candidate<'c> {
    upstream: &'c Upstream,
    position: usize,
    entry: &'c Arc<Entry>,
    published: Published,
    /// Whether its upstream has given up its place in the lists.
    is_withdrawn: bool,
}

impl Candidate<'_> {
    /// Who wins a name, smallest first (design contract, section 4): one with a namespace, then the upstream that
    /// stands first in the file, then the smaller local name.
    fn rank(&self) -> (bool, usize, &str) {
        (self.upstream.namespace.is_empty(), self.position, self.entry.local.as_str())
    }
}

/// Builds the catalog of a configuration from what its upstreams offer. Never fails: what cannot be published is
/// named in [`Catalog::left_out`].
#[must_use]
pub fn build(config: &Config, inventories: &Inventories) -> Catalog {
    let mut catalog = Catalog::default();
    for upstream in &config.upstreams {
        if let Some(inventory) = inventories.get(&upstream.name).and_then(|presence| presence.inventory()) {
            let left_out = inventory.left_out.iter().map(|left| (upstream.name.clone(), left.clone()));
            catalog.left_out.extend(left_out);
        }
    }
    let mut claims = Claims::default();
    // Resources first: a tool may name one as its user interface.
    for kind in [ListKind::Resources, ListKind::Templates, ListKind::Prompts, ListKind::Tools] {
        let candidates = candidates(config, inventories, kind);
        let candidates = told_apart(kind, candidates, &mut claims);
        let (items, lost) = settle(kind, &candidates, &mut claims);
        catalog.left_out.extend(lost);
        catalog.put(kind, items);
    }
    catalog
}

fn candidates<'c>(config: &'c Config, inventories: &'c Inventories, kind: ListKind) -> Vec<Candidate<'c>> {
    let mut all = Vec::new();
    for (position, upstream) in config.upstreams.iter().enumerate() {
        let Some(presence) = inventories.get(&upstream.name) else { continue };
        let Some(inventory) = presence.claims() else { continue };
        let is_withdrawn = presence.inventory().is_none();
        let entries: Vec<&Arc<Entry>> = inventory
            .list(kind)
            .iter()
            .filter(|entry| kind != ListKind::Tools || upstream.tools.admits(entry.local.as_str()))
            .collect();
        let published = publish(config, upstream, kind, &entries);
        all.extend(entries.into_iter().zip(published).map(|(entry, published)| Candidate {
            upstream,
            position,
            entry,
            published,
            is_withdrawn,
        }));
    }
    all
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
fn told_apart<'c>(
    kind: ListKind,
    mut candidates: Vec<Candidate<'c>>,
    claims: &mut Claims<'c>,
) -> Vec<Candidate<'c>> {
    match kind {
        ListKind::Tools | ListKind::Prompts => return candidates,
        ListKind::Resources | ListKind::Templates => {}
    }
    for candidate in &mut candidates {
        let upstream = &candidate.upstream.name;
        if !claims.claim(candidate.entry.local.as_str(), upstream) {
            candidate.published = Published::marked(&candidate.entry.local, upstream);
        }
    }
    candidates
}

/// Gives each name to one candidate; the others are left out. That of an upstream without a place keeps its name from
/// the others and is not published.
fn settle<'c>(
    kind: ListKind,
    candidates: &[Candidate<'c>],
    claims: &mut Claims<'c>,
) -> (Vec<Arc<Item>>, Vec<(UpstreamName, LeftOut)>) {
    let mut winners: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, candidate) in candidates.iter().enumerate() {
        let name = candidate.published.name.as_str();
        let holder = winners.get(name).and_then(|held| candidates.get(*held));
        if holder.is_none_or(|held| candidate.rank() < held.rank()) {
            winners.insert(name, index);
        }
    }
    let mut items = Vec::with_capacity(winners.len());
    let mut left_out = Vec::new();
    for (index, candidate) in candidates.iter().enumerate() {
        let name = candidate.published.name.as_str();
        let winner = winners.get(name).copied().unwrap_or(index);
        let raw = definition(kind, candidate, claims);
        if candidate.is_withdrawn {
            continue;
        }
        if winner == index {
            items.push(Arc::new(item(kind, candidate, raw)));
            continue;
        }
        let holder = candidates.get(winner);
        let lost = if holder.is_some_and(|held| held.is_withdrawn) { ", which is lost" } else { "" };
        let holder = holder.map_or("", |held| held.upstream.name.as_str());
        let reason = format!("the name {name} belongs to upstream {holder}{lost}");
        let name = candidate.entry.local.as_str().chars().take(128).collect();
        left_out.push((candidate.upstream.name.clone(), LeftOut { name, reason }));
    }
    (items, left_out)
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
        name: candidate.published.name.as_str().to_owned(),
        entry: Arc::clone(candidate.entry),
        hash: hash(&raw),
        object_output,
        free_output: kind == ListKind::Tools && !object_typed,
        raw,
    }
}

/// The definition as clients get it: the upstream's bytes with the published name, and that of its user interface.
fn definition<'c>(kind: ListKind, candidate: &Candidate<'c>, claims: &mut Claims<'c>) -> Arc<str> {
    let published = candidate.published.name.as_str();
    let interface = (kind == ListKind::Tools)
        .then(|| claims.interface(&candidate.entry.raw, &candidate.upstream.name))
        .flatten();
    let raw = &interface.map_or_else(|| Arc::clone(&candidate.entry.raw), Arc::from);
    let Some(object) = Object::open(raw) else { return Arc::clone(raw) };
    if candidate.published.full.is_none() && candidate.entry.local.as_str() == published {
        return Arc::clone(raw);
    }
    let mut edit = Edit::new().set(kind.key(), quoted(published));
    if let Some(full) = &candidate.published.full {
        let full = quoted(full.as_str());
        let inner = object.object("_meta").unwrap_or_default();
        edit = edit.set("_meta", Edit::new().set(meta::WEIR_NAME, full).apply(&inner));
    }
    edit.apply(&object).into()
}
