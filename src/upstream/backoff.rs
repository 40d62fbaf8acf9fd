//! How long to leave a failing upstream alone.

use std::time::Duration;

const FIRST: f64 = 0.5;
const CEILING: f64 = 30.0;

/// The pause after so many failures in a row (at least one), with `jitter` from 0 up to 1: half a second that
/// doubles up to half a minute. The jitter only lengthens the short ones, and hardly shortens the longest, so that
/// never more than 15 attempts fall into 5 minutes, and instances that started together drift apart.
pub(super) fn pause(failures: u32, jitter: f64) -> Duration {
    let doubled = FIRST * 2_f64.powi(failures.saturating_sub(1).min(16).cast_signed());
    let stretched = doubled * (1.2 + jitter / 2.0);
    Duration::from_secs_f64(if stretched < CEILING { stretched } else { CEILING - jitter * 0.6 })
}

/// A number from 0 up to 1; in the middle where the system has no randomness.
pub(super) fn jitter() -> f64 {
    getrandom::u32().map_or(0.5, |number| f64::from(number) / (f64::from(u32::MAX) + 1.0))
}
