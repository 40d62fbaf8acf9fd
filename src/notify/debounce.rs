//! Holding announcements back until things are quiet.

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::config::Notify;

/// Waits until nothing has been published for `debounce`, or until `max_wait` after the call, or until nobody can
/// publish any more. Marks what it saw as seen.
///
/// # Cancel safety
/// Holds no state beyond the call.
pub(super) async fn quiet<T>(times: Notify, published: &mut watch::Receiver<T>) {
    let latest = Instant::now() + times.max_wait;
    let mut until = Instant::now() + times.debounce;
    loop {
        tokio::select! {
            () = sleep_until(until.min(latest)) => return,
            changed = published.changed() => match changed {
                Ok(()) => until = Instant::now() + times.debounce,
                Err(_) => return,
            },
        }
    }
}
