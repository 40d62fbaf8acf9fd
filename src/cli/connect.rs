//! `weir check --connect`: whether each upstream can be listed.

use std::path::Path;

use super::client::settle;
use super::print::err;
use super::{CheckArguments, Exit, check};
use crate::catalog::{Presence, Snapshot};
use crate::config::{self, Problem, Severity};
use crate::protocol::ListKind;

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

/// Names in `rename` that no tool has.
fn idle_patterns(snapshot: &Snapshot, path: &Path) -> Vec<Problem> {
    let mut problems = Vec::new();
    for upstream in &snapshot.config.upstreams {
        let Some(inventory) = snapshot.inventories.get(&upstream.name).and_then(Presence::inventory) else {
            continue;
        };
        let tools = inventory.list(ListKind::Tools);
        for renamed in
            upstream.tools.rename.keys().filter(|name| tools.iter().all(|tool| tool.local != **name))
        {
            let key = format!("upstreams.{}.tools.rename", upstream.name);
            let text = format!("no tool is called {renamed}");
            problems.push(problem(path, Severity::Warning, key, &text));
        }
    }
    problems
}
