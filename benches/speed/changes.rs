//! A change of one upstream's tools, and many clients that wait for it.

use super::calls::ERAS;
use super::propagation::{WINDOW, propagate};
use super::{Bench, row, setting};

/// What may be added to the window, in milliseconds.
const MORE: f64 = 100.0;

/// `list_changed` to clients of both eras.
pub(crate) fn changes(bench: &Bench) {
    let clients = setting("WEIR_BENCH_LISTENERS", 1000);
    for (label, revision) in ERAS {
        let told = propagate(revision, (bench.rounds, clients));
        let what = format!("list_changed to {clients} clients of both eras, {label} upstream");
        let measured = format!("{:.0} ms, {:.0} µs each", told.at(100), told.cpu);
        row(&what, &format!("all told in {:.0} ms, ≤ 30 µs each", WINDOW + MORE), &measured);
    }
}
