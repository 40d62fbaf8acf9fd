//! Ends sessions and streams whose time has come.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::table::Table;
use crate::config::Sessions;

/// Looks after the sessions for ever. Cancel-safe: every look stands for itself.
pub(super) async fn run(table: Arc<Table>) {
    let mut changes = table.shared.authenticators.changes();
    let mut looked = Instant::now();
    loop {
        tokio::select! {
            () = sleep_until(looked + period(&table.limits())) => {
                looked = Instant::now();
                expire(&table);
            }
            Ok(()) = changes.changed() => succeed(&table),
        }
    }
}

fn period(limits: &Sessions) -> Duration {
    let shortest = limits.idle.min(limits.initialize).min(limits.resume);
    (shortest / 4).clamp(Duration::from_millis(50), Duration::from_secs(5))
}

/// Ends what is too old or was given up.
fn expire(table: &Table) {
    let limits = table.limits();
    for session in table.all() {
        if session.has_expired(&limits) {
            table.end(session.key);
            continue;
        }
        for line in session.lines.all().iter().filter(|line| line.is_given_up(limits.resume)) {
            session.lines.remove(&line.number);
            line.give_up();
        }
    }
}

/// Another configuration is in force: the sessions end whose token or route is there no more.
fn succeed(table: &Table) {
    for session in table.all() {
        if !session.goes_on(&table.shared) {
            tracing::info!(
                event = "session.withdrawn",
                "a session ended: its token or route left the configuration"
            );
            table.end(session.key);
        }
    }
}
