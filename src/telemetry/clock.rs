//! Says when the clock of the machine was set. Nothing in Weir waits by it, but the life of tokens is judged by it.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{Instant, sleep};

const LOOK: Duration = Duration::from_secs(5);
/// What is no slow correction any more, in seconds.
const LEAST: i64 = 10;

/// Looks at the clock now and then, and logs where it was set. Runs until it is dropped.
pub async fn watch_clock() {
    let mut known = (Timestamp::now(), Instant::now());
    loop {
        sleep(LOOK).await;
        let seen = (Timestamp::now(), Instant::now());
        let seconds = set_by(known, seen);
        if seconds.abs() >= LEAST {
            tracing::warn!(
                event = "clock.jump",
                seconds,
                "the clock was set; tokens are judged by the new time"
            );
        }
        known = seen;
    }
}

/// By how many seconds the clock moved beside the time that passed.
fn set_by(known: (Timestamp, Instant), seen: (Timestamp, Instant)) -> i64 {
    let passed = i64::try_from(seen.1.duration_since(known.1).as_secs()).unwrap_or(i64::MAX);
    seen.0.as_second().saturating_sub(known.0.as_second()).saturating_sub(passed)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;
    use tokio::time::Instant;

    use super::set_by;

    #[tokio::test]
    async fn t099_the_clock_is_held_against_the_time_that_passed() {
        let (wall, begun) = (Timestamp::UNIX_EPOCH, Instant::now());
        let later = |clock: i64, passed: u64| {
            let clock = Timestamp::from_second(clock).expect("a time");
            set_by((wall, begun), (clock, begun + Duration::from_secs(passed)))
        };
        assert_eq!(later(5, 5), 0);
        assert_eq!(later(3605, 5), 3600);
        assert_eq!(later(-3595, 5), -3600);
        assert_eq!(later(600, 600), 0, "a sleep that was long");
    }
}
