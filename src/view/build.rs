//! From snapshot, route and rights to a view. Pure.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::ground::{Ground, Standing};
use super::pages::Pages;
use super::{Announced, Fate, Hashes, Held, Shown, View};
use crate::catalog::{Inventory, Item, Presence, Snapshot};
use crate::config::{Config, Route, Upstream};
use crate::names::UpstreamName;
use crate::policy::{self, Asked, Class, Decision};
use crate::principal::Rights;
use crate::protocol::{ListKind, Offer, TASKS};

/// The longest time for which Weir lets a list be held fresh.
const LONGEST_TTL_MS: u64 = 300_000;
/// Most bytes of instructions, per upstream and in all.
const UPSTREAM_INSTRUCTIONS: usize = 2048;
const ALL_INSTRUCTIONS: usize = 16 * 1024;

/// What equal decisions come to: the key of a view.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Verdicts {
    /// One for each item of the route's upstreams, in the order of the catalog; `None`: not on this route.
    decisions: Vec<Option<Decision>>,
    /// The upstreams that are missing, as far as these rights reach into them.
    missing: Option<String>,
}

impl Verdicts {
    /// A digest of the verdicts.
    pub(super) fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        for decision in &self.decisions {
            match decision {
                None => hash.update([0]),
                Some(Decision::Hide) => hash.update([1]),
                Some(Decision::Allow) => hash.update([2]),
                Some(Decision::StepUp(scopes)) => {
                    hash.update([3]);
                    scopes.iter().for_each(|scope| hash.update(format!("{scope} ")));
                }
            }
        }
        hash.update(self.missing.as_deref().unwrap_or_default());
        hash.finalize().into()
    }
}

/// Decides about every item.
pub(super) fn verdicts(snapshot: &Snapshot, route: &Route, rights: &Rights, ground: &Ground) -> Verdicts {
    let items = ListKind::ALL.into_iter().flat_map(|kind| snapshot.catalog.list(kind));
    let decided = |(item, standing): (&Arc<Item>, &Option<Arc<Standing>>)| {
        let judged = standing.as_ref()?.judge(route, rights, item);
        judged.ok().map(|(decision, _)| decision)
    };
    let decisions = items.zip(&ground.standings).map(decided).collect();
    let upstreams = of_route(&snapshot.config, route);
    Verdicts { decisions, missing: missing(snapshot, (route, &upstreams), rights) }
}

/// Makes the view of these verdicts.
pub(super) fn build(snapshot: &Snapshot, route: &Arc<Route>, verdicts: Verdicts, ground: &Ground) -> View {
    let upstreams = of_route(&snapshot.config, route);
    let mut view = View {
        generation: snapshot.generation,
        route: Arc::clone(route),
        hashes: Hashes::default(),
        upstreams: Vec::new(),
        offer: Offer::default(),
        announced: Announced::default(),
        instructions: None,
        missing: None,
        ttl_ms: 0,
        public: false,
        held: HashMap::with_capacity(verdicts.decisions.len()),
        may_grow: false,
        order: HashMap::new(),
        sequences: HashMap::new(),
        pages: Pages::default(),
    };
    let mut decisions = verdicts.decisions.into_iter().zip(&ground.standings);
    for kind in ListKind::ALL {
        for item in snapshot.catalog.list(kind) {
            if let Some((Some(decision), Some(standing))) = decisions.next() {
                admit(&mut view, decision, (item, standing));
            }
        }
        let items = view.order.get(&kind).map_or(&[][..], Vec::as_slice);
        view.pages.add(kind, items, snapshot.config.listen.page);
        let sequence = items.iter().fold(0_u64, |hash, shown| hash.rotate_left(7) ^ shown.item.hash);
        view.sequences.insert(kind, sequence);
    }
    view.hashes = hashes(&view);
    let visible = visible(snapshot, &view, &upstreams);
    view.upstreams = visible.iter().map(|(upstream, _)| upstream.name.clone()).collect();
    view.offer = merged_offer(&visible, snapshot, &upstreams);
    view.announced = Announced {
        to_sessions: announced(&view.offer, &visible, false),
        to_stateless: announced(&view.offer, &visible, true),
    };
    view.instructions = instructions(route, &visible);
    view.missing = verdicts.missing;
    // Whoever gets the scopes that are missing wants the list that goes with them at once.
    let may_grow = view.missing.is_some() || view.may_grow;
    view.ttl_ms = if may_grow { 0 } else { ttl_ms(&visible) };
    view.public = public(&snapshot.config, &visible);
    view
}

fn of_route<'c>(config: &'c Config, route: &Route) -> Vec<&'c Arc<Upstream>> {
    config.upstreams.iter().filter(|upstream| route.upstreams.contains(&upstream.name)).collect()
}

/// Puts an item where the decision wants it.
fn admit(view: &mut View, decision: Decision, (item, standing): (&Arc<Item>, &Arc<Standing>)) {
    let fate = match decision {
        Decision::Allow => {
            let shown = Shown { item: Arc::clone(item), class: standing.class };
            view.order.entry(item.kind).or_default().push(shown.clone());
            Fate::Shown(shown)
        }
        Decision::StepUp(scopes) => {
            view.may_grow = true;
            Fate::StepUp(scopes)
        }
        Decision::Hide => Fate::Hidden,
    };
    let held = Held { item: Arc::clone(item), standing: Arc::clone(standing), fate };
    view.held.insert((item.kind, item.name.clone()), held);
}

fn hashes(view: &View) -> Hashes {
    let sum =
        |kind: ListKind| view.list(kind).iter().fold(0_u64, |sum, shown| sum.wrapping_add(shown.item.hash));
    Hashes {
        tools: sum(ListKind::Tools),
        prompts: sum(ListKind::Prompts),
        resources: sum(ListKind::Resources).wrapping_add(sum(ListKind::Templates).rotate_left(1)),
    }
}

/// The upstreams of which the caller sees something, with what they offer. Where access is open that is all of them.
fn visible<'s>(
    snapshot: &'s Snapshot,
    view: &View,
    upstreams: &[&'s Arc<Upstream>],
) -> Vec<(&'s Arc<Upstream>, &'s Arc<Inventory>)> {
    let seen: HashSet<&UpstreamName> =
        view.order.values().flatten().map(|shown| &shown.item.upstream).collect();
    let open = snapshot.config.access.is_open();
    upstreams
        .iter()
        .filter(|upstream| open || seen.contains(&upstream.name))
        .filter_map(|upstream| {
            let inventory = snapshot.inventories.get(&upstream.name)?.inventory()?;
            Some((*upstream, inventory))
        })
        .collect()
}

fn merged_offer(
    visible: &[(&Arc<Upstream>, &Arc<Inventory>)],
    snapshot: &Snapshot,
    upstreams: &[&Arc<Upstream>],
) -> Offer {
    let any = |has: fn(&Offer) -> bool| visible.iter().any(|(_, inventory)| has(&inventory.offer));
    let unknown = upstreams.iter().any(|upstream| {
        snapshot.inventories.get(&upstream.name).is_none_or(|presence| presence.inventory().is_none())
    });
    Offer {
        tools: unknown || any(|offer| offer.tools),
        prompts: unknown || any(|offer| offer.prompts),
        resources: unknown || any(|offer| offer.resources),
        list_changed: true,
        subscribe: unknown || any(|offer| offer.subscribe),
        completions: any(|offer| offer.completions),
        logging: any(|offer| offer.logging),
        ..Offer::default()
    }
}

/// The capabilities for clients that are stateless or not. The settings of an extension are those of the first
/// upstream of the client's kind that has it; tasks pass among one kind only.
fn announced(merged: &Offer, visible: &[(&Arc<Upstream>, &Arc<Inventory>)], stateless: bool) -> String {
    let mut offer = merged.clone();
    for (_, inventory) in visible {
        let own = &inventory.offer;
        if own.stateless == stateless {
            offer.tasking = offer.tasking.or(own.tasking);
            offer.tasks_list |= own.tasks_list;
            offer.tasks_cancel |= own.tasks_cancel;
            for (name, settings) in &own.extensions {
                offer.extensions.entry(name.clone()).or_insert_with(|| settings.clone());
            }
        }
    }
    let others = visible.iter().filter(|(_, inventory)| inventory.offer.stateless != stateless);
    for name in
        others.flat_map(|(_, inventory)| inventory.offer.extensions.keys()).filter(|name| *name != TASKS)
    {
        offer.extensions.entry(name.clone()).or_insert_with(|| "{}".to_owned());
    }
    offer.to_json()
}

fn instructions(route: &Route, visible: &[(&Arc<Upstream>, &Arc<Inventory>)]) -> Option<String> {
    let mut text = plain(&route.instructions, ALL_INSTRUCTIONS);
    for (upstream, inventory) in visible {
        let own = inventory.instructions.as_deref().map(|own| plain(own, UPSTREAM_INSTRUCTIONS));
        if let Some(own) = own.filter(|own| !own.is_empty()) {
            if !text.is_empty() {
                text.push('\n');
            }
            let label = if upstream.namespace.is_empty() {
                upstream.name.as_str()
            } else {
                upstream.namespace.as_str()
            };
            text.push_str(&format!("[{label}] {own}"));
        }
    }
    (!text.is_empty()).then(|| plain(&text, ALL_INSTRUCTIONS))
}

/// Text for a model: at most this many bytes; no control, bidi or tag characters except line feeds and tabs.
fn plain(text: &str, most: usize) -> String {
    let mut out = String::new();
    for c in text.chars() {
        let hidden = (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
            || matches!(c, '\u{e0000}'..='\u{e007f}');
        if hidden {
            continue;
        }
        if out.len() + c.len_utf8() > most {
            break;
        }
        out.push(c);
    }
    out
}

/// Whether these rights reach anything of an upstream whose items are not known: something of class read, whatever it
/// is called.
pub(super) fn reaches_into(route: &Route, rights: &Rights, upstream: &UpstreamName) -> bool {
    ListKind::ALL.into_iter().any(|kind| {
        let asked = Asked { route: &route.name, upstream, kind, local: "", class: Class::Read };
        policy::decide(&route.policy, rights, &asked).0 == Decision::Allow
    })
}

/// `_meta["dev.weir/missing"]`: the upstreams of the route that are not up, as far as these rights reach into them.
fn missing(
    snapshot: &Snapshot,
    (route, upstreams): (&Route, &[&Arc<Upstream>]),
    rights: &Rights,
) -> Option<String> {
    let rows: Vec<serde_json::Value> = upstreams
        .iter()
        .filter(|upstream| reaches_into(route, rights, &upstream.name))
        .filter_map(|upstream| {
            let (reason, since) = match snapshot.inventories.get(&upstream.name)? {
                Presence::Up { inventory } if inventory.is_whole => return None,
                Presence::Up { .. } => ("limit", None),
                Presence::Connecting { since } => ("connecting", Some(*since)),
                Presence::Down { trouble, .. } => ("down", Some(trouble.since)),
            };
            let mut row = serde_json::json!({ "upstream": upstream.name.as_str(), "reason": reason });
            if let (Some(row), Some(since)) = (row.as_object_mut(), since) {
                let since = since.round(jiff::Unit::Second).unwrap_or(since).to_string();
                row.insert("since".to_owned(), since.into());
            }
            Some(row)
        })
        .collect();
    (!rows.is_empty()).then(|| serde_json::Value::from(rows).to_string())
}

fn ttl_ms(visible: &[(&Arc<Upstream>, &Arc<Inventory>)]) -> u64 {
    visible
        .iter()
        .map(|(upstream, inventory)| {
            let fresh = inventory.ttl.map_or(upstream.refresh, |ttl| ttl.fresh);
            u64::try_from(fresh.as_millis()).unwrap_or(u64::MAX)
        })
        .fold(LONGEST_TTL_MS, u64::min)
}

fn public(config: &Config, visible: &[(&Arc<Upstream>, &Arc<Inventory>)]) -> bool {
    config.access.is_open() && visible.iter().all(|(_, inventory)| inventory.ttl.is_none_or(|ttl| ttl.public))
}
