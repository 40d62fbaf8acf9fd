//! State as JSON: fields are added, never renamed.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Admin;
use crate::catalog::{Presence, Snapshot};
use crate::config::{Config, Kind, Upstream};
use crate::policy;
use crate::protocol::ListKind;

/// `/api/status` (design contract, section 10).
pub(super) fn status(admin: &Admin) -> Value {
    let snapshot = Arc::clone(&admin.snapshots.borrow());
    let config = &snapshot.config;
    let upstreams: Vec<Value> =
        config.upstreams.iter().map(|upstream| row(admin, &snapshot, upstream)).collect();
    json!({
        "v": 1,
        "version": env!("CARGO_PKG_VERSION"),
        "uptime_s": admin.started.elapsed().as_secs(),
        "generation": snapshot.generation,
        "catalog_hash": format!("{:016x}", snapshot.catalog.hash()),
        "config": { "path": config.path.as_ref().map(|path| path.display().to_string()), "problems": [] },
        "upstreams": upstreams,
        "sessions": admin.endpoint.sessions(),
    })
}

fn row(admin: &Admin, snapshot: &Snapshot, upstream: &Upstream) -> Value {
    let status = admin.upstreams.status().into_iter().find(|status| status.name == upstream.name);
    let presence = snapshot.inventories.get(&upstream.name);
    let inventory = presence.and_then(Presence::inventory);
    let count = |kind: ListKind| {
        snapshot.catalog.list(kind).iter().filter(|item| item.upstream == upstream.name).count()
    };
    let trouble = match presence {
        Some(Presence::Down { trouble, .. }) => Some(json!({
            "reason": trouble.text,
            "at": trouble.since.to_string(),
        })),
        Some(Presence::Up { .. } | Presence::Connecting { .. }) | None => None,
    };
    let left_out: Vec<Value> = snapshot
        .catalog
        .left_out
        .iter()
        .filter(|(name, _)| *name == upstream.name)
        .map(|(_, left)| json!({ "name": left.name, "reason": left.reason }))
        .collect();
    json!({
        "name": upstream.name.as_str(),
        "namespace": upstream.namespace.as_str(),
        "kind": kind(&upstream.kind),
        "state": state(presence),
        "since": status.as_ref().map(|status| status.since.to_string()),
        "era": inventory.map(|inventory| inventory.revision.era().to_string()),
        "revision": inventory.map(|inventory| inventory.revision.to_string()),
        "tools": count(ListKind::Tools),
        "prompts": count(ListKind::Prompts),
        "resources": count(ListKind::Resources),
        "last_error": trouble,
        "next_try_at": status.and_then(|status| status.next_try_at).map(|at| at.to_string()),
        "left_out": left_out,
        "warnings": inventory.map(|inventory| inventory.warnings.clone()).unwrap_or_default(),
    })
}

fn kind(kind: &Kind) -> &'static str {
    match kind {
        Kind::Http { .. } => "http",
        Kind::Builtin(_) => "builtin",
    }
}

fn state(presence: Option<&Presence>) -> &'static str {
    match presence {
        Some(Presence::Up { .. }) => "up",
        Some(Presence::Down { .. }) => "down",
        Some(Presence::Connecting { .. }) | None => "connecting",
    }
}

/// `/api/tools`: every published tool, unfiltered.
pub(super) fn tools(admin: &Admin) -> Value {
    let snapshot = Arc::clone(&admin.snapshots.borrow());
    Value::from(rows(&snapshot))
}

/// The published tools as `weir list --json` prints them.
fn rows(snapshot: &Snapshot) -> Vec<Value> {
    let owner = |config: &Config, item: &crate::catalog::Item| {
        config.upstreams.iter().find(|upstream| upstream.name == item.upstream).cloned()
    };
    snapshot
        .catalog
        .list(ListKind::Tools)
        .iter()
        .map(|item| {
            let class = owner(&snapshot.config, item).map(|upstream| {
                let entry = &item.entry;
                policy::classify(&upstream, item.local(), entry.read_only_hint, entry.destructive_hint)
                    .as_str()
            });
            let tool = crate::jsonrpc::Object::open(&item.raw).unwrap_or_default();
            json!({
                "name": item.name,
                "upstream": item.upstream.as_str(),
                "local_name": item.local(),
                "class": class,
                "title": tool.text("title"),
                "description": tool.text("description"),
                "bytes": item.raw.len(),
            })
        })
        .collect()
}
