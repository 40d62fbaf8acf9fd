//! Listing everything that an upstream offers.
//!
//! Every page of every list that it declared is read, one list after the other, within the upstream's limits. What
//! is broken is left out alone and named. A list that the upstream refuses on a later listing keeps its last good
//! content; a fault of the transport fails the whole listing, so that half a list never replaces a whole one.

mod pages;

use std::collections::HashMap;
use std::sync::Arc;

use super::fault::Fault;
use super::peer::Peer;
use crate::catalog::definition::{self, Checker};
use crate::catalog::{Entry, Inventory, LeftOut};
use crate::config::Upstream;
use crate::protocol::{ListKind, Ttl};

use pages::{Pages, Read};

/// What a listing found.
#[derive(Debug)]
pub(super) struct Listed {
    /// What the upstream offers.
    pub(super) inventory: Inventory,
    /// Whether nothing was refused or cut.
    pub(super) is_whole: bool,
}

/// Lists everything. `last` is what the upstream offered before.
pub(super) async fn list(
    peer: &Peer,
    upstream: &Upstream,
    last: Option<&Inventory>,
) -> Result<Listed, Fault> {
    let mut inventory = Inventory {
        revision: peer.revision(),
        offer: peer.offer().clone(),
        instructions: peer.instructions().cloned(),
        tools: Vec::new(),
        prompts: Vec::new(),
        resources: Vec::new(),
        templates: Vec::new(),
        left_out: Vec::new(),
        warnings: Vec::new(),
        ttl: None,
    };
    let mut checker = Checker::new();
    let mut is_whole = true;
    for kind in ListKind::ALL.into_iter().filter(|kind| peer.offer().lists(*kind)) {
        let old = last.map_or(&[][..], |last| last.list(kind));
        let (items, trouble) = match Pages::of(peer, upstream, kind).read().await? {
            Read::Items { items, ttl, trouble } => {
                inventory.ttl = smaller(inventory.ttl, ttl);
                (Some(items), trouble)
            }
            Read::Refused { words, items } => {
                let items = Some(items).filter(|_| old.is_empty());
                (items, Some(format!("{}: the upstream refused: {words}", kind.member())))
            }
        };
        is_whole &= trouble.is_none();
        inventory.warnings.extend(trouble);
        let entries = items.map_or_else(
            || old.to_vec(),
            |items| {
                let left_out = &mut inventory.left_out;
                Sorting { kind, checker: &mut checker, left_out }.sort(&items, old)
            },
        );
        *slot(&mut inventory, kind) = entries;
    }
    inventory.warnings.extend(checker.warnings());
    Ok(Listed { inventory, is_whole })
}

fn slot(inventory: &mut Inventory, kind: ListKind) -> &mut Vec<Arc<Entry>> {
    match kind {
        ListKind::Tools => &mut inventory.tools,
        ListKind::Prompts => &mut inventory.prompts,
        ListKind::Resources => &mut inventory.resources,
        ListKind::Templates => &mut inventory.templates,
    }
}

fn smaller(one: Option<Ttl>, other: Option<Ttl>) -> Option<Ttl> {
    match (one, other) {
        (Some(one), Some(other)) => {
            Some(Ttl { fresh: one.fresh.min(other.fresh), public: one.public && other.public })
        }
        (one, other) => one.or(other),
    }
}

/// Turning raw items into entries.
struct Sorting<'a> {
    kind: ListKind,
    checker: &'a mut Checker,
    left_out: &'a mut Vec<LeftOut>,
}

impl Sorting<'_> {
    /// Definitions that did not change keep their entry and are not checked again. Of two items with one name the
    /// first stays; the second is named, unless it is the same item once more.
    fn sort(&mut self, items: &[Arc<str>], old: &[Arc<Entry>]) -> Vec<Arc<Entry>> {
        let known: HashMap<&str, &Arc<Entry>> = old.iter().map(|entry| (entry.raw.as_ref(), entry)).collect();
        let mut names: HashMap<String, Arc<str>> = HashMap::with_capacity(items.len());
        let mut entries = Vec::with_capacity(items.len());
        for raw in items {
            let entry = match known.get(raw.as_ref()) {
                Some(entry) => Ok(Arc::clone(entry)),
                None => self.check(raw).map(Arc::new),
            };
            match entry {
                Ok(entry) => match names.get(entry.local.as_str()) {
                    None => {
                        names.insert(entry.local.as_str().to_owned(), Arc::clone(raw));
                        entries.push(entry);
                    }
                    Some(first) if first == raw => {}
                    Some(_) => self.leave_out(&entry),
                },
                Err(left_out) => self.left_out.push(left_out),
            }
        }
        entries
    }

    fn check(&mut self, raw: &str) -> Result<Entry, LeftOut> {
        match self.kind {
            ListKind::Tools => self.checker.tool(raw),
            ListKind::Prompts | ListKind::Resources | ListKind::Templates => {
                definition::plain(self.kind, raw)
            }
        }
    }

    fn leave_out(&mut self, entry: &Entry) {
        let name = entry.local.as_str().chars().take(128).collect();
        self.left_out.push(LeftOut { name, reason: "the upstream lists this name twice".to_owned() });
    }
}
