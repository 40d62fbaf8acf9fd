//! Waiting for a remote effect: a condition that is asked again until it holds or a deadline has passed.

use std::thread;
use std::time::Duration;

use tokio::time::Instant;

/// How long [`eventually!`] waits unless told otherwise.
pub(crate) const PATIENCE: Duration = Duration::from_secs(8);

/// Asks until the condition holds; whether it ever did.
pub(crate) fn holds(patience: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + patience;
    while !condition() {
        if Instant::now() >= deadline {
            return false;
        }
        thread::park_timeout(Duration::from_millis(10));
    }
    true
}

/// Fails the test unless the condition becomes true before the deadline. Further arguments are printed then.
macro_rules! eventually {
    ($condition:expr) => {
        eventually!($condition, "{}", stringify!($condition))
    };
    ($condition:expr, $($message:tt)+) => {
        assert!(
            $crate::support::eventually::holds($crate::support::eventually::PATIENCE, || $condition),
            $($message)+
        )
    };
}

pub(crate) use eventually;
