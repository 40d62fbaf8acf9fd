//! `weir list`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use super::client::{connect, settle};
use super::print::{err, out, plain};
use super::{Exit, ListArguments};
use crate::app::Core;
use crate::catalog::{Item, Presence, Snapshot};
use crate::config;
use crate::jsonrpc::Object;
use crate::principal::Principal;
use crate::protocol::ListKind;
use crate::view::{Shown, View};

/// Prints what clients will see.
pub(super) async fn run(arguments: &ListArguments) -> Exit {
    let connected = match &arguments.url {
        Some(url) => match arguments.token.read() {
            Ok(token) => connect(url, token).await,
            Err(exit) => Err(exit),
        },
        None => of_config(arguments.config.clone()).await,
    };
    let (core, snapshot) = match connected {
        Ok(connected) => connected,
        Err(exit) => return exit,
    };
    let exit = print(&core, &snapshot, arguments);
    core.close().await;
    exit
}

async fn of_config(path: Option<PathBuf>) -> Result<(Core, Arc<Snapshot>), Exit> {
    let path = path.unwrap_or_else(|| Path::new("routes.yaml").to_owned());
    let loaded = config::load(&path).map_err(|problems| {
        err(problems.to_string().trim_end());
        Exit::Unusable
    })?;
    if !loaded.warnings.is_empty() {
        err(loaded.warnings.to_string().trim_end());
    }
    settle(loaded.config).await
}

fn print(core: &Core, snapshot: &Arc<Snapshot>, arguments: &ListArguments) -> Exit {
    let Some(route) = snapshot.config.routes.first().cloned() else { return Exit::Failure };
    let seat = core.relay.seat(Arc::clone(snapshot), Arc::clone(&route), &Principal::open());
    let remote = arguments.url.is_some();
    let missing: Vec<Value> =
        seat.view.missing.as_deref().and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default();
    for row in &missing {
        let word = |key: &str| row.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        err(&format!("missing: {} ({})", word("upstream"), word("reason")));
    }
    if arguments.json {
        out(&whole(snapshot, &seat.view, &missing, route.name.as_str(), remote).to_string());
    } else {
        table(&seat.view, remote);
        if seat.view.list(ListKind::Tools).is_empty() {
            err("no tools");
        }
    }
    let any_up = snapshot.inventories.values().any(|presence| presence.inventory().is_some());
    if any_up || snapshot.inventories.is_empty() { Exit::Success } else { Exit::Failure }
}

fn table(view: &View, remote: bool) {
    let tools = view.list(ListKind::Tools);
    let width = tools.iter().map(|shown| shown.item.name.chars().count()).max().unwrap_or_default();
    for shown in tools {
        let first = definition(&shown.item).text("description").unwrap_or_default();
        let first = plain(first.lines().next().unwrap_or_default());
        let name = plain(&shown.item.name);
        if remote {
            out(format!("{name:width$}  {first}").trim_end());
        } else {
            let class = shown.class.as_str();
            out(format!("{name:width$}  {}  {class:11}  {first}", shown.item.upstream).trim_end());
        }
    }
    for kind in [ListKind::Prompts, ListKind::Resources, ListKind::Templates] {
        for shown in view.list(kind) {
            out(&format!("{}: {}", kind.member(), plain(&shown.item.name)));
        }
    }
}

fn definition(item: &Item) -> Object<'_> {
    Object::open(&item.raw).unwrap_or_default()
}

fn whole(snapshot: &Snapshot, view: &View, missing: &[Value], route: &str, remote: bool) -> Value {
    let named = |kind: ListKind| -> Vec<Value> {
        view.list(kind).iter().map(|shown| named_row(shown, remote)).collect()
    };
    let located = |kind: ListKind| -> Vec<Value> {
        view.list(kind).iter().map(|shown| located_row(shown, remote)).collect()
    };
    let mut all = json!({
        "route": route,
        "tools": named(ListKind::Tools),
        "prompts": named(ListKind::Prompts),
        "resources": located(ListKind::Resources),
        "templates": located(ListKind::Templates),
        "missing": missing,
    });
    if !remote {
        let rows: Vec<Value> = snapshot
            .config
            .upstreams
            .iter()
            .map(|upstream| upstream_row(snapshot, upstream.name.as_str()))
            .collect();
        if let Some(object) = all.as_object_mut() {
            object.insert("upstreams".to_owned(), rows.into());
        }
    }
    all
}

fn named_row(shown: &Shown, remote: bool) -> Value {
    let item = &shown.item;
    let text = definition(item);
    json!({
        "name": item.name,
        "upstream": (!remote).then(|| item.upstream.as_str()),
        "local_name": (!remote).then(|| item.local()),
        "class": (!remote).then(|| shown.class.as_str()),
        "title": text.text("title"),
        "description": text.text("description"),
        "bytes": item.raw.len(),
    })
}

fn located_row(shown: &Shown, remote: bool) -> Value {
    let item = &shown.item;
    json!({
        "uri": item.name,
        "upstream": (!remote).then(|| item.upstream.as_str()),
        "local_uri": (!remote).then(|| item.local()),
        "name": definition(item).text("name"),
    })
}

fn upstream_row(snapshot: &Snapshot, name: &str) -> Value {
    let presence =
        snapshot.inventories.iter().find(|(known, _)| known.as_str() == name).map(|(_, state)| state);
    let inventory = presence.and_then(Presence::inventory);
    let of = |kind: ListKind| {
        snapshot.catalog.list(kind).iter().filter(|item| item.upstream.as_str() == name).collect::<Vec<_>>()
    };
    let (state, error) = match presence {
        Some(Presence::Up { .. }) => ("up", None),
        Some(Presence::Down { trouble, .. }) => ("down", Some(trouble.text.clone())),
        Some(Presence::Connecting { .. }) | None => ("connecting", None),
    };
    let left_out: Vec<Value> = snapshot
        .catalog
        .left_out
        .iter()
        .filter(|(upstream, _)| upstream.as_str() == name)
        .map(|(_, left)| json!({ "name": left.name, "reason": left.reason }))
        .collect();
    json!({
        "name": name,
        "state": state,
        "era": inventory.map(|inventory| inventory.revision.era().to_string()),
        "revision": inventory.map(|inventory| inventory.revision.to_string()),
        "tools": of(ListKind::Tools).len(),
        "prompts": of(ListKind::Prompts).len(),
        "resources": of(ListKind::Resources).len(),
        "bytes": ListKind::ALL.iter().flat_map(|kind| of(*kind)).map(|item| item.raw.len()).sum::<usize>(),
        "left_out": left_out,
        "error": error,
    })
}
