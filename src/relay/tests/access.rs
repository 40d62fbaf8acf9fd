//! Whatever the rules are: what is listed can be called, and what is not cannot, by any road, and what is hidden answers
//! as what does not exist.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::{Strategy, prop, prop_assert, prop_assert_eq, proptest};

use super::{Memory, Seat, plan};
use crate::catalog::tests::{config, inventories, tool};
use crate::catalog::{Entry, Inventory, Presence, Snapshot, build};
use crate::config::Policy;
use crate::exchange::{Call, Caller, Failure};
use crate::names::LocalName;
use crate::policy::Decision;
use crate::principal::{Grant, Principal, Rights, Scope};
use crate::protocol::{ListKind, Method, Offer, Revision};
use crate::relay::locate::decided;
use crate::seal::Keyring;
use crate::view::Views;

const UPSTREAMS: [&str; 2] = ["a", "b"];

fn entry(key: &str, local: &str) -> Arc<Entry> {
    let raw = format!("{{\"{key}\":\"{local}\"}}");
    Arc::new(Entry {
        local: LocalName::new(local),
        raw: raw.as_str().into(),
        ..(*tool("{\"name\":\"x\"}")).clone()
    })
}

fn inventory(upstream: &str) -> Presence {
    let offer = Offer { tools: true, prompts: true, resources: true, completions: true, ..Offer::default() };
    let named = |kind: &str, count: usize| -> Vec<String> {
        (0..count).map(|number| format!("{kind}{number}")).collect()
    };
    let inventory = Inventory {
        tools: named("t", 3).iter().map(|name| entry("name", name)).collect(),
        prompts: named("p", 2).iter().map(|name| entry("name", name)).collect(),
        resources: named("r", 2).iter().map(|name| entry("uri", &format!("{upstream}:{name}"))).collect(),
        templates: vec![entry("uriTemplate", &format!("{upstream}t:{{id}}"))],
        ..Inventory::empty(Revision::NEWEST, offer)
    };
    Presence::Up { inventory: Arc::new(inventory) }
}

fn rule() -> impl Strategy<Value = String> {
    let matches = prop::sample::select(vec![
        "",
        "match: { upstream: a }, ",
        "match: { tool: \"t[01]\" }, ",
        "match: { class: destructive }, ",
        "match: { kind: [prompt, resource] }, ",
        "match: { resource: \"*r0\" }, ",
        "match: { resource: \"at:*\" }, ",
        "match: { prompt: p0, upstream: b }, ",
        "match: { route: other }, ",
    ]);
    let effect = prop::sample::select(vec![
        "deny: true",
        "require: {}",
        "require: { scopes_all: [s1, s2] }",
        "require: { scopes_any: [s1, s2] }",
        "require: { groups_any: [g1] }",
        "require: { subjects: [kim] }",
        "require: { scopes_all: [s1] }, on_denied: hide",
    ]);
    (matches, effect).prop_map(|(matches, effect)| format!("{{ {matches}{effect} }}"))
}

/// The principal as a route sees it whose rules ask for names.
fn with_holder(principal: &Principal, policy: &Policy) -> Principal {
    let Rights::Granted(grant) = &principal.rights else { return principal.clone() };
    let holder = policy.names(&principal.subject).then(|| principal.subject.clone());
    let grant = Grant { holder, ..Grant::clone(grant) };
    Principal { rights: Rights::Granted(Arc::new(grant)), ..principal.clone() }
}

fn seat(rules: &[String], default: &str, principal: &Principal) -> (Seat, Principal) {
    let text = format!(
        "upstreams: {{ a: {{ url: http://127.0.0.1:1/mcp, classes: {{ read: [t0], write: [t1] }} }}, \
         b: {{ url: http://127.0.0.1:2/mcp, mode: read-only, classes: {{ read: [t0] }} }} }}\n\
         routes: [ {{ name: default, path: /mcp }}, {{ name: other }} ]\n\
         access:\n  anonymous: {{ scopes: [] }}\n  default: {default}\n  rules: [ {} ]\n",
        rules.join(", ")
    );
    let config = Arc::new(config(&text));
    let rows = UPSTREAMS.map(|name| (name, inventory(name)));
    let inventories = Arc::new(inventories(&rows));
    let catalog = Arc::new(build(&config, &inventories));
    let route = Arc::clone(&config.routes[0]);
    let principal = with_holder(principal, &route.policy);
    let snapshot = Arc::new(Snapshot { generation: 1, config, catalog, inventories });
    let view = Views::default().of(&snapshot, &route, &principal.rights);
    (Seat { snapshot, route, view }, principal)
}

/// What comes of asking for an item, in a word.
fn outcome(seat: &Seat, principal: &Principal, (method, name): (Method, &str)) -> String {
    let params = match method {
        Method::Complete => format!("{{\"ref\":{{\"type\":\"ref/prompt\",\"name\":\"{name}\"}}}}"),
        Method::ResourcesRead => format!("{{\"uri\":\"{name}\"}}"),
        _ => format!("{{\"name\":\"{name}\"}}"),
    };
    let call = Call::plain(method, name, params, Caller::local(principal.clone()));
    match plan(seat, &Memory::new(Arc::new(Keyring::random())), call) {
        Ok(_) => "allowed".to_owned(),
        Err(failure @ Failure::NeedsScopes(_)) => failure.label().to_owned(),
        Err(failure) => format!("{} {}", failure.label(), failure.text().replace(name, "NAME")),
    }
}

proptest! {
    #[test]
    fn an_item_is_listed_if_and_only_if_it_can_be_called(
        rules in prop::collection::vec(rule(), 0..5),
        default in prop::sample::select(vec!["by_class", "deny"]),
        scopes in prop::collection::btree_set(prop::sample::select(vec!["s1", "s2", "mcp:read", "mcp:write", "mcp:admin", "a:write", "b:tool:t0"]), 0..4),
        groups in prop::collection::btree_set(prop::sample::select(vec!["g1"]), 0..2),
        subject in prop::sample::select(vec!["kim", "lee"]),
    ) {
        let scopes: BTreeSet<Scope> = scopes.into_iter().map(Scope::new).collect();
        let principal = Principal::fixed(subject, scopes, groups.into_iter().map(Into::into).collect());
        let (seat, principal) = seat(&rules, default, &principal);
        for upstream in UPSTREAMS {
            let tools = (0..3).map(|n| (ListKind::Tools, Method::ToolsCall, format!("{upstream}__t{n}")));
            let prompts = (0..2).flat_map(|n| [Method::PromptsGet, Method::Complete]
                .map(|method| (ListKind::Prompts, method, format!("{upstream}__p{n}"))));
            let resources = (0..2).map(|n| (ListKind::Resources, Method::ResourcesRead, format!("{upstream}:r{n}")));
            for (kind, method, name) in tools.chain(prompts).chain(resources) {
                let listed = seat.view.list(kind).iter().any(|shown| shown.item.name == name);
                let found = outcome(&seat, &principal, (method, &name));
                prop_assert_eq!(listed, found == "allowed", "{} {}: {}", name, rules.join(" "), found);
                if !listed && found != "denied" {
                    let missing = format!("{upstream}__x9");
                    let missing = if kind == ListKind::Resources { format!("{upstream}:x9") } else { missing };
                    let unknown = outcome(&seat, &principal, (method, &missing));
                    prop_assert_eq!(found, unknown, "{}", name);
                }
            }
            for n in 0..2 {
                let (plain, encoded) = (format!("{upstream}:r{n}"), format!("{upstream}:%72{n}"));
                let allows = |uri: &str| decided(&seat.route, &principal.rights, &upstream.parse().unwrap(), uri) == Decision::Allow;
                prop_assert!(allows(&plain) || !allows(&encoded), "{} evades a rule: {}", encoded, rules.join(" "));
            }
            let of_template = outcome(&seat, &principal, (Method::ResourcesRead, &format!("{upstream}t:7")));
            let listed = seat.view.list(ListKind::Templates).iter().any(|shown| shown.item.upstream.as_str() == upstream);
            prop_assert!(listed || of_template != "allowed", "{}", of_template);
        }
    }
}
