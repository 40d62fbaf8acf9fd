//! How long a change takes from an upstream's announcement to its clients.
//!
//! An upstream changes its tools and says so on its standing stream; clients of both eras wait on theirs. The time runs
//! from the byte that the upstream writes to the byte that a client has read. The promise: the 99th percentile stays
//! below the debounce window (200 ms by default) plus 50 ms.
//!
//! `cargo bench --bench propagation` (a release build). `WEIR_BENCH_ROUNDS` and `WEIR_BENCH_CLIENTS` change the size.
#![expect(clippy::disallowed_types, reason = "a load generator on plain threads measures wall time")]
#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a benchmark prints, and stops at the first surprise"
)]

#[path = "support/gateway.rs"]
mod gateway;
#[path = "support/http.rs"]
mod http;
#[path = "support/number.rs"]
mod number;
#[path = "support/propagation.rs"]
mod propagation;
#[path = "support/usage.rs"]
mod usage;

use number::setting;
use propagation::{LEGACY, MODERN, WINDOW, propagate};

/// What may be added to the window, in milliseconds.
const PROMISED: f64 = 50.0;

fn main() {
    let rounds = setting("WEIR_BENCH_ROUNDS", 60);
    let clients = setting("WEIR_BENCH_CLIENTS", 20);
    for (label, revision) in [("modern upstream", MODERN), ("legacy upstream", LEGACY)] {
        let told = propagate(revision, (rounds, clients));
        println!(
            "{label}, {clients} clients, {rounds} changes: p50 {:.1} ms, p99 {:.1} ms, most {:.1} ms; promised p99 < {:.0} ms; \
             gateway {:.0} us cpu per change and client",
            told.at(50),
            told.at(99),
            told.at(100),
            WINDOW + PROMISED,
            told.cpu,
        );
    }
}
