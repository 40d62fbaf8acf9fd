//! The time limits of one call.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long a call may still take: `call` from the start or the last progress, `call_max` in all.
#[derive(Debug)]
pub(super) struct Pace {
    step: Duration,
    end: Instant,
    next: Mutex<Instant>,
    written: AtomicBool,
}

impl Pace {
    /// Starts the clock.
    pub(super) fn start(step: Duration, longest: Duration) -> Self {
        let now = Instant::now();
        // A time-out that was given for this call alone may be longer than `call_max`.
        let longest = longest.max(step);
        Self { step, end: now + longest, next: Mutex::new(now + step), written: AtomicBool::new(false) }
    }

    /// The upstream reported progress: the call may go on for another step, up to its end.
    pub(super) fn extend(&self) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) =
            (Instant::now() + self.step).min(self.end);
    }

    /// The client is asked something: until the end of the call, only that limit counts.
    pub(super) fn hold(&self) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = self.end;
    }

    /// A request leaves: from now on the call may have run.
    pub(super) fn written(&self) {
        self.written.store(true, Ordering::Relaxed);
    }

    /// Whether a request has left.
    pub(super) fn is_written(&self) -> bool {
        self.written.load(Ordering::Relaxed)
    }

    /// Whether the time is over.
    pub(super) fn is_over(&self) -> bool {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) <= Instant::now()
    }

    /// Ends when the time is over.
    pub(super) async fn over(&self) {
        loop {
            let next = *self.next.lock().unwrap_or_else(PoisonError::into_inner);
            tokio::time::sleep_until(next).await;
            if *self.next.lock().unwrap_or_else(PoisonError::into_inner) <= next {
                return;
            }
        }
    }
}
