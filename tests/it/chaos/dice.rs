//! Chance that can be repeated.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A source of chance.
#[derive(Debug)]
pub(super) struct Dice {
    seed: u64,
    state: AtomicU64,
}

impl Dice {
    /// Of `WEIR_CHAOS_SEED`, or of this moment.
    pub(super) fn new() -> Self {
        let given = std::env::var("WEIR_CHAOS_SEED").ok().and_then(|text| text.parse().ok());
        let now =
            || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.subsec_nanos().into());
        Self::of(given.unwrap_or_else(now))
    }

    fn of(seed: u64) -> Self {
        Self { seed, state: AtomicU64::new(seed) }
    }

    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    /// Dice of their own for another thread.
    pub(super) fn fork(&self) -> Self {
        Self::of(self.next())
    }

    /// The next number (SplitMix64).
    fn next(&self) -> u64 {
        let step = self
            .state
            .fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed)
            .wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (step ^ (step >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub(super) fn below(&self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap_or_default()
    }

    /// A time in this range of milliseconds.
    pub(super) fn time(&self, from: usize, to: usize) -> Duration {
        Duration::from_millis((from + self.below(to - from)) as u64)
    }
}
