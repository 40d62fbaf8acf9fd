//! Ready: a latch that several conditions hold and release.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use serde::Serialize;

use super::Admin;
use crate::catalog::Presence;
use crate::names::UpstreamName;

/// The required upstreams that have been up once.
#[derive(Debug, Default)]
pub(super) struct EverUp {
    names: Mutex<BTreeSet<UpstreamName>>,
}

/// The answer of `/readyz`.
#[derive(Debug, Serialize)]
pub(super) struct Ready {
    v: u8,
    pub(super) ready: bool,
    draining: bool,
    generation: u64,
    checks: Vec<Check>,
}

#[derive(Debug, Serialize)]
struct Check {
    name: String,
    ok: bool,
    detail: String,
}

/// Whether traffic may come: bound (or nobody could ask), a first snapshot, every required upstream up once, not
/// draining.
pub(super) fn ready(admin: &Admin) -> Ready {
    let snapshot = std::sync::Arc::clone(&admin.shown.snapshots.borrow());
    let draining = admin.draining.load(Ordering::Relaxed);
    let mut checks = vec![
        Check { name: "listener".to_owned(), ok: true, detail: "bound".to_owned() },
        Check {
            name: "snapshot".to_owned(),
            ok: snapshot.generation > 0,
            detail: format!("generation {}", snapshot.generation),
        },
    ];
    for upstream in snapshot.config.upstreams.iter().filter(|upstream| upstream.required) {
        let (up, detail) = match snapshot.inventories.get(&upstream.name) {
            Some(Presence::Up { .. }) => (true, "up".to_owned()),
            Some(Presence::Down { trouble, .. }) => (false, trouble.text.clone()),
            Some(Presence::Connecting { .. }) | None => (false, "connecting".to_owned()),
        };
        let ok = admin.ever_up.note(&upstream.name, up);
        checks.push(Check { name: format!("upstream:{}", upstream.name), ok, detail });
    }
    for (issuer, ok) in admin.shown.authenticators.newest().issuers() {
        let detail = if ok { "keys are known" } else { "no keys yet" };
        checks.push(Check { name: format!("keys:{issuer}"), ok, detail: detail.to_owned() });
    }
    let ready = !draining && checks.iter().all(|check| check.ok);
    Ready { v: 1, ready, draining, generation: snapshot.generation, checks }
}

impl EverUp {
    /// Remembers that an upstream was up; says whether it ever was.
    fn note(&self, name: &UpstreamName, up: bool) -> bool {
        let mut names = self.names.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if up {
            names.insert(name.clone());
        }
        names.contains(name)
    }
}
