//! How long the latest calls took.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

/// So many calls are remembered.
const KEPT: usize = 256;

/// The times of the latest calls that were answered. Written by every call, so nothing is locked; read by people.
#[derive(Debug)]
pub(super) struct Latency {
    /// In microseconds; 0 is no call.
    times: [AtomicU32; KEPT],
    next: AtomicUsize,
}

impl Default for Latency {
    fn default() -> Self {
        Self { times: std::array::from_fn(|_| AtomicU32::new(0)), next: AtomicUsize::new(0) }
    }
}

impl Latency {
    /// Remembers a call, in place of the oldest.
    pub(super) fn note(&self, took: Duration) {
        let micros = u32::try_from(took.as_micros()).unwrap_or(u32::MAX).max(1);
        let at = self.next.fetch_add(1, Ordering::Relaxed) % KEPT;
        if let Some(place) = self.times.get(at) {
            place.store(micros, Ordering::Relaxed);
        }
    }

    /// The median and the 99th percentile; `None` before the first call.
    pub(super) fn percentiles(&self) -> Option<(Duration, Duration)> {
        let mut times: Vec<u32> = self.times.iter().map(|time| time.load(Ordering::Relaxed)).collect();
        times.retain(|time| *time > 0);
        times.sort_unstable();
        let at = |percent: usize| {
            let rank = (times.len() * percent).div_ceil(100).max(1) - 1;
            times.get(rank).map(|micros| Duration::from_micros(u64::from(*micros)))
        };
        Some((at(50)?, at(99)?))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Latency;

    #[test]
    fn the_latest_calls_count() {
        let latency = Latency::default();
        assert_eq!(latency.percentiles(), None);
        latency.note(Duration::from_millis(7));
        assert_eq!(latency.percentiles(), Some((Duration::from_millis(7), Duration::from_millis(7))));
        (0..1000).for_each(|_| latency.note(Duration::from_millis(1)));
        (0..10).for_each(|_| latency.note(Duration::from_millis(50)));
        assert_eq!(latency.percentiles(), Some((Duration::from_millis(1), Duration::from_millis(50))));
    }
}
