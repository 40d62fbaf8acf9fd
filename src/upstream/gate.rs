//! How many calls of one upstream run at once, and how many may wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, TryAcquireError};

use crate::config::Concurrency;
use crate::exchange::Call;
use crate::protocol::Method;

/// The gate of one upstream.
#[derive(Debug)]
pub(super) struct Gate {
    calls: Option<Arc<Semaphore>>,
    writes: Option<Arc<Semaphore>>,
    waiting: AtomicUsize,
    queue: usize,
}

/// The right to run, given back when dropped.
#[derive(Debug)]
pub(super) struct Pass {
    _write: Option<OwnedSemaphorePermit>,
    _call: Option<OwnedSemaphorePermit>,
}

/// As many run and wait as may.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Gate {
    pub(super) fn new(limits: Concurrency) -> Self {
        let semaphore =
            |most: Option<usize>| most.map(|most| Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS))));
        let (calls, writes) = (semaphore(limits.calls), semaphore(limits.writes));
        Self { calls, writes, waiting: AtomicUsize::new(0), queue: limits.queue }
    }

    /// Waits for the right to run. The write permit comes first, so that who waits for it holds no other.
    pub(super) async fn enter(&self, call: &Call) -> Result<Pass, Full> {
        let is_write = call.method == Method::ToolsCall && !call.repeatable;
        let write = self.permit(self.writes.as_ref().filter(|_| is_write)).await?;
        let call = self.permit(self.calls.as_ref()).await?;
        Ok(Pass { _write: write, _call: call })
    }

    async fn permit(&self, of: Option<&Arc<Semaphore>>) -> Result<Option<OwnedSemaphorePermit>, Full> {
        let Some(semaphore) = of else { return Ok(None) };
        match Arc::clone(semaphore).try_acquire_owned() {
            Ok(permit) => return Ok(Some(permit)),
            Err(TryAcquireError::NoPermits) => {}
            Err(TryAcquireError::Closed) => return Err(Full),
        }
        let waiting = Waiting(&self.waiting);
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= self.queue {
            return Err(Full);
        }
        let permit = Arc::clone(semaphore).acquire_owned().await.map_err(|_closed: AcquireError| Full)?;
        drop(waiting);
        Ok(Some(permit))
    }
}
