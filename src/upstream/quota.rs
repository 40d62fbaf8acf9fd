//! How much somebody untrusted may write into the log.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// So many lines in a stretch of time.
const LINES: u32 = 20;
const STRETCH: Duration = Duration::from_secs(1);

/// Counts the lines of one source.
#[derive(Debug, Default)]
pub(super) struct Quota {
    /// When the stretch began, and how many lines were written in it.
    used: Mutex<Option<(Instant, u32)>>,
}

impl Quota {
    /// Whether one more line may be written.
    pub(super) fn allows(&self) -> bool {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, lines) =
            used.filter(|(since, _)| since.elapsed() < STRETCH).unwrap_or((Instant::now(), 0));
        *used = Some((since, lines.saturating_add(1)));
        lines < LINES
    }
}

#[cfg(test)]
mod tests {
    use super::{LINES, Quota, STRETCH};

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_cut_and_goes_on_later() {
        let quota = Quota::default();
        let lines = || (0..1000).filter(|_| quota.allows()).count();
        assert_eq!(lines(), LINES as usize);
        tokio::time::advance(STRETCH).await;
        assert_eq!(lines(), LINES as usize);
    }
}
