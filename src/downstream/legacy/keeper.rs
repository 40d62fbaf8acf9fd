//! Ends sessions and streams whose time has come.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use super::table::Table;

/// Looks after the sessions for ever. Cancel-safe: every tick stands for itself.
pub(super) async fn run(table: Arc<Table>) {
    let limits = table.limits;
    let shortest = limits.idle.min(limits.initialize).min(limits.resume);
    let period = (shortest / 4).clamp(Duration::from_millis(50), Duration::from_secs(5));
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        for session in table.all() {
            if session.has_expired(&limits) {
                table.end(session.key);
                continue;
            }
            let given_up: Vec<u64> = session
                .lines
                .iter()
                .filter(|line| line.is_given_up(limits.resume))
                .map(|line| *line.key())
                .collect();
            for (_, line) in given_up.iter().filter_map(|number| session.lines.remove(number)) {
                line.give_up();
            }
        }
    }
}
