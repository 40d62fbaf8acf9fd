//! The time limits of calls whose clients take no events.
//!
//! A call looks at its own clock whenever it is polled, and it is polled by who takes its events. Where nobody does,
//! one task per link looks every now and then whether a call is over its time, and urges it: the upstream is
//! cancelled and its place is given back, whenever the client comes for what is left.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;

use crate::exchange::Running;
use crate::upstream::pace::Pace;

/// So late may such a call end.
const TICK: Duration = Duration::from_millis(250);

/// The calls of one link that may run.
#[derive(Debug, Default)]
pub(super) struct Clock {
    calls: Mutex<Vec<Timed>>,
    began: Notify,
}

#[derive(Debug)]
struct Timed {
    pace: Arc<Pace>,
    call: Weak<Running>,
}

impl Clock {
    /// Looks after a call until it ends.
    pub(super) fn watch(&self, pace: Arc<Pace>, call: &Arc<Running>) {
        let timed = Timed { pace, call: Arc::downgrade(call) };
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(timed);
        self.began.notify_one();
    }

    /// Looks after calls until its task is cancelled.
    pub(super) async fn run(&self) {
        loop {
            self.began.notified().await;
            while self.look() {
                tokio::time::sleep(TICK).await;
            }
        }
    }

    /// Ends what is over its time. True while there is something to look after.
    fn look(&self) -> bool {
        // Urged outside of the lock: a call may be long in ending, and others begin meanwhile.
        let mut calls = std::mem::take(&mut *self.calls.lock().unwrap_or_else(PoisonError::into_inner));
        calls.retain(|timed| timed.call.upgrade().is_some_and(|call| !timed.pace.is_over() || call.urge()));
        let mut later = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        later.append(&mut calls);
        !later.is_empty()
    }
}
