//! `weir check --connect`: whether each upstream can be listed.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::client::settle;
use super::print::err;
use super::{CheckArguments, Exit, check};
use crate::catalog::{Item, Presence, Snapshot};
use crate::config::{self, Class, Problem, Route, Severity};
use crate::policy::{Asked, is_about};
use crate::principal::Rights;
use crate::protocol::ListKind;
use crate::view::explain;

/// Checks a configuration, and with `--connect` its upstreams too.
pub(super) async fn run(arguments: &CheckArguments) -> Exit {
    let mut stdout = std::io::stdout();
    let path = arguments.path.as_deref().unwrap_or(Path::new("routes.yaml"));
    let loaded = if arguments.connect { config::load(path).ok() } else { None };
    let Some(loaded) = loaded else {
        return match check::run(arguments.path.as_deref(), arguments.json, &mut stdout) {
            0 => Exit::Success,
            2 => Exit::Unusable,
            _ => Exit::Failure,
        };
    };
    let (core, snapshot) = match settle(loaded.config).await {
        Ok(connected) => connected,
        Err(exit) => return exit,
    };
    let mut problems = loaded.warnings;
    let lost = unreachable(&snapshot, path);
    let exit = if lost.is_empty() { Exit::Success } else { Exit::Failure };
    problems.extend(lost);
    problems.extend(idle_patterns(&snapshot, path));
    core.close().await;
    match check::print(&problems, arguments.json, &mut stdout) {
        Ok(()) => exit,
        Err(_closed) => Exit::Failure,
    }
}

fn problem(path: &Path, severity: Severity, key: String, text: &str) -> Problem {
    let message = format!("{key}: {text}");
    Problem { path: path.display().to_string(), line: None, column: None, severity, key, message }
}

/// Reports each upstream on standard error; those that could not be listed are problems.
fn unreachable(snapshot: &Snapshot, path: &Path) -> Vec<Problem> {
    let mut problems = Vec::new();
    for upstream in &snapshot.config.upstreams {
        let key = format!("upstreams.{}", upstream.name);
        match snapshot.inventories.get(&upstream.name) {
            Some(Presence::Up { inventory }) => {
                err(&format!(
                    "{}: up, {}, {} tools",
                    upstream.name,
                    inventory.revision,
                    inventory.tools.len()
                ));
                for left in &inventory.left_out {
                    let text = format!("{:?} is left out: {}", left.name, left.reason);
                    problems.push(problem(path, Severity::Warning, key.clone(), &text));
                }
            }
            Some(Presence::Down { trouble, .. }) => {
                problems.push(problem(path, Severity::Error, key, &trouble.text));
            }
            Some(Presence::Connecting { .. }) | None => {
                problems.push(problem(path, Severity::Error, key, "it did not answer in time"));
            }
        }
    }
    problems
}

/// Entries of lists and rules that nothing fits that the upstreams offer.
fn idle_patterns(snapshot: &Snapshot, path: &Path) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut warn = |key: String, text: &str| problems.push(problem(path, Severity::Warning, key, text));
    for upstream in &snapshot.config.upstreams {
        let Some(inventory) = snapshot.inventories.get(&upstream.name).and_then(Presence::inventory) else {
            continue;
        };
        let tools = inventory.list(ListKind::Tools);
        for renamed in
            upstream.tools.rename.keys().filter(|name| tools.iter().all(|tool| tool.local != **name))
        {
            let key = format!("upstreams.{}.tools.rename", upstream.name);
            warn(key, &format!("no tool is called {renamed}"));
        }
        for (list, globs) in [
            ("tools.allow", &upstream.tools.allow),
            ("tools.deny", &upstream.tools.deny),
            ("classes.read", &upstream.classes.read),
            ("classes.write", &upstream.classes.write),
            ("classes.destructive", &upstream.classes.destructive),
        ] {
            let fitted: BTreeSet<usize> =
                tools.iter().flat_map(|tool| globs.matches(tool.local.as_str())).collect();
            // What fits everything is no slip where there is nothing.
            let everything = globs.matches("");
            for index in (0..globs.len()).filter(|at| !fitted.contains(at) && !everything.contains(at)) {
                warn(format!("upstreams.{}.{list}[{index}]", upstream.name), "fits no tool");
            }
        }
    }
    for rule in idle_rules(snapshot) {
        warn(format!("access.rules ({rule})"), "is about nothing that the upstreams offer");
    }
    problems
}

/// The names of rules that are about nothing, on whatever route.
fn idle_rules(snapshot: &Snapshot) -> BTreeSet<String> {
    let mut idle: BTreeSet<String> = BTreeSet::new();
    let mut busy: BTreeSet<String> = BTreeSet::new();
    for route in &snapshot.config.routes {
        for rule in &route.policy.rules {
            let is_busy = items_of(snapshot, route).any(|(item, class)| {
                let asked = Asked {
                    route: &route.name,
                    upstream: &item.upstream,
                    kind: item.kind,
                    local: item.local(),
                    class,
                };
                is_about(&rule.matches, &asked)
            });
            if is_busy {
                busy.insert(rule.name.clone())
            } else {
                idle.insert(rule.name.clone())
            };
        }
    }
    idle.difference(&busy).cloned().collect()
}

/// What a route's upstreams offer, with its class, whoever asks.
fn items_of<'s>(snapshot: &'s Snapshot, route: &Route) -> impl Iterator<Item = (Arc<Item>, Class)> + use<'s> {
    explain(snapshot, route, &Rights::All).into_iter().map(|one| (one.item, one.class))
}
