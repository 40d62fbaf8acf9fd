//! State as JSON: fields are added, never renamed.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::Admin;
use crate::catalog::{Presence, Snapshot};
use crate::config::{Config, Kind, Upstream};
use crate::names::UpstreamName;
use crate::policy;
use crate::protocol::ListKind;
use crate::upstream::Status;

/// `/api/status` (design contract, section 10).
pub(super) fn status(admin: &Admin) -> Value {
    let snapshot = Arc::clone(&admin.shown.snapshots.borrow());
    let config = &snapshot.config;
    let loading = Arc::clone(&admin.shown.loading.borrow());
    let known = admin.shown.upstreams.status();
    let upstreams = config
        .upstreams
        .iter()
        .map(|upstream| row(&snapshot, upstream, known.iter().find(|status| status.name == upstream.name)));
    let disabled = config.disabled.iter().map(disabled);
    json!({
        "v": 1,
        "version": env!("CARGO_PKG_VERSION"),
        "uptime_s": admin.started.elapsed().as_secs(),
        "generation": snapshot.generation,
        "catalog_hash": format!("{:016x}", snapshot.catalog.hash()),
        "config": {
            "path": loading.path.as_ref().map(|path| path.display().to_string()),
            "loaded_at": loading.loaded_at.to_string(),
            "problems": loading.problems.iter().collect::<Vec<_>>(),
        },
        "upstreams": upstreams.chain(disabled).collect::<Vec<Value>>(),
        "sessions": admin.shown.endpoint.sessions(),
        "streams": admin.shown.endpoint.streams(),
        "calls_in_flight": known.iter().map(|status| status.calls_in_flight).sum::<usize>(),
        "parked": admin.shown.endpoint.parked(),
        "changes": admin.shown.changes.latest(),
    })
}

/// An upstream that is written down and not enabled.
fn disabled(name: &UpstreamName) -> Value {
    json!({
        "name": name.as_str(),
        "namespace": null,
        "kind": null,
        "state": "disabled",
        "since": null,
        "era": null,
        "revision": null,
        "tools": 0,
        "prompts": 0,
        "resources": 0,
        "latency_ms": null,
        "last_error": null,
        "next_try_at": null,
        "left_out": [],
        "warnings": [],
    })
}

fn row(snapshot: &Snapshot, upstream: &Upstream, status: Option<&Status>) -> Value {
    let inventory = snapshot.inventories.get(&upstream.name).and_then(Presence::inventory);
    let count = |kind: ListKind| {
        snapshot.catalog.list(kind).iter().filter(|item| item.upstream == upstream.name).count()
    };
    let last_error = status.and_then(|status| status.last_error.as_ref());
    let last_error = last_error.map(|error| json!({ "reason": error.reason, "at": error.at.to_string() }));
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
        "state": status.map_or("connecting", |status| status.state),
        "since": status.map(|status| status.since.to_string()),
        "era": status.and_then(Status::era),
        "revision": status.and_then(|status| status.revision).map(|revision| revision.to_string()),
        "tools": count(ListKind::Tools),
        "prompts": count(ListKind::Prompts),
        "resources": count(ListKind::Resources),
        "latency_ms": status.and_then(|status| status.latency).map(|(p50, p99)| json!({ "p50": ms(p50), "p99": ms(p99) })),
        "last_error": last_error,
        "next_try_at": status.and_then(|status| status.next_try_at).map(|at| at.to_string()),
        "left_out": left_out,
        "warnings": inventory.map(|inventory| inventory.warnings.clone()).unwrap_or_default(),
    })
}

/// Milliseconds with one digit behind the point.
fn ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 10_000.0).round() / 10.0
}

fn kind(kind: &Kind) -> &'static str {
    match kind {
        Kind::Http { .. } => "http",
        Kind::Child(_) => "stdio",
        Kind::Builtin(_) => "builtin",
    }
}

/// `/api/tools`: every published tool, unfiltered.
pub(super) fn tools(admin: &Admin) -> Value {
    let snapshot = Arc::clone(&admin.shown.snapshots.borrow());
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
                policy::classify(&upstream, &entry.local, entry.read_only_hint, entry.destructive_hint)
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
