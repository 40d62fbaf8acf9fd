//! Listing everything that an upstream offers.
//!
//! Every page of every list that it declared is read, one list after the other, within the upstream's limits. What
//! is broken is left out alone and named. A list that the upstream refuses on a later listing keeps its last good
//! content; a fault of the transport fails the whole listing, so that half a list never replaces a whole one.

mod pages;

use std::collections::HashSet;
use std::sync::Arc;

use super::fault::Fault;
use super::peer::Peer;
use crate::catalog::{Checker, Entry, Inventory, LeftOut};
use crate::config::Upstream;
use crate::protocol::{ListKind, Ttl};

use pages::{End, Pages, Read};

/// What a listing found.
#[derive(Debug)]
pub(super) struct Listed {
    /// What the upstream offers.
    pub(super) inventory: Inventory,
    /// Whether nothing was refused or cut.
    pub(super) is_whole: bool,
    /// Whether the upstream refused a list.
    pub(super) is_refused: bool,
}

/// Lists everything. `last` is what the upstream offered before; `checker` is the same from listing to listing.
pub(super) async fn list(
    peer: &Peer,
    upstream: &Upstream,
    last: Option<&Inventory>,
    checker: &mut Checker,
) -> Result<Listed, Fault> {
    let mut read = Vec::with_capacity(ListKind::ALL.len());
    for kind in ListKind::ALL.into_iter().filter(|kind| peer.offer().lists(*kind)) {
        read.push((kind, Pages::of(peer, upstream, kind).read().await?));
    }
    let mut inventory = blank(peer);
    let (mut is_whole, mut is_refused) = (true, false);
    checker.renew();
    for (kind, Read { items, ttl, end }) in read {
        let old = last.map_or(&[][..], |last| last.list(kind));
        let keeps_old = matches!(end, End::Refused(_)) && !old.is_empty();
        is_refused |= matches!(end, End::Refused(_));
        inventory.ttl = smaller(inventory.ttl, ttl);
        if let Some(warning) = end.warning(kind) {
            is_whole = false;
            inventory.warnings.push(warning);
        }
        let entries = if keeps_old {
            old.to_vec()
        } else {
            check(kind, &items, checker, &mut inventory.left_out).await
        };
        *slot(&mut inventory, kind) = entries;
    }
    inventory.warnings.extend(checker.warnings());
    inventory.is_whole = is_whole;
    Ok(Listed { inventory, is_whole, is_refused })
}

fn blank(peer: &Peer) -> Inventory {
    Inventory {
        instructions: peer.instructions().cloned(),
        ..Inventory::empty(peer.revision(), peer.offer().clone())
    }
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

/// Turns raw items into entries. An item that comes once more, byte for byte, is no news and no loss.
async fn check(
    kind: ListKind,
    items: &[Arc<str>],
    checker: &mut Checker,
    left_out: &mut Vec<LeftOut>,
) -> Vec<Arc<Entry>> {
    let mut seen: HashSet<&str> = HashSet::with_capacity(items.len());
    let mut entries = Vec::with_capacity(items.len());
    for item in items.iter().filter(|item| seen.insert(item)) {
        let entry = match kind {
            ListKind::Tools => checker.tool(item),
            ListKind::Prompts | ListKind::Resources | ListKind::Templates => checker.plain(kind, item),
        };
        match entry {
            Ok(entry) => entries.push(Arc::new(entry)),
            Err(reason) => left_out.push(reason),
        }
        // A schema may take milliseconds to compile; others have work too.
        tokio::task::yield_now().await;
    }
    entries
}
