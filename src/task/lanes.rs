//! Threads of which each runs its own tasks and waits for its own sockets.
//!
//! A connection of a client, the calls that come on it and the connections to upstreams that they use stay on one
//! thread, so that nothing of a call is handed from core to core, wakes another thread, or finds its data in another
//! cache. What a call starts (a session with an upstream, a call that goes on without its client) begins and stays on its
//! lane, too, and is not counted there; whoever waits for it may be on any thread. What no call starts runs on the runtime
//! of the process: listeners, keepers of upstreams, the catalog, administration.

use std::cell::Cell;
use std::io;
use std::sync::Arc;

use tokio::runtime::{Builder, Handle};
use tokio_util::sync::CancellationToken;

/// Says how many lanes there are, where it is set; as tokio itself reads it.
const THREADS: &str = "TOKIO_WORKER_THREADS";

thread_local! {
    static NUMBER: Cell<usize> = const { Cell::new(0) };
}

/// The number of the lane that this thread is, from 1 on; 0 for threads that are none.
#[must_use]
pub fn lane() -> usize {
    NUMBER.get()
}

/// All lanes. They end when this is dropped, and what still runs on them is dropped then.
#[derive(Debug)]
pub struct Lanes {
    lanes: Vec<Lane>,
    stop: CancellationToken,
}

/// One lane.
#[derive(Debug)]
pub struct Lane {
    pub(super) runtime: Handle,
    /// Each task that was put here holds it.
    load: Arc<()>,
}

impl Lanes {
    /// Starts one for each core that the process may use.
    ///
    /// # Errors
    /// What the operating system says where it has no thread or no descriptors for them.
    pub fn start() -> io::Result<Self> {
        let set = std::env::var(THREADS).ok().and_then(|text| text.parse().ok()).filter(|count| *count > 0);
        let count = set.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
        let stop = CancellationToken::new();
        // Dropped on the way out, it ends those that have started.
        let mut lanes = Self { lanes: Vec::with_capacity(count), stop };
        for number in 1..=count {
            lanes.lanes.push(Lane::start(number, lanes.stop.clone())?);
        }
        Ok(lanes)
    }

    /// The one with the fewest tasks that were put there.
    #[must_use]
    pub fn idlest(&self) -> Option<&Lane> {
        self.lanes.iter().min_by_key(|lane| Arc::strong_count(&lane.load))
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Lane {
    fn start(number: usize, stop: CancellationToken) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        std::thread::Builder::new().name(format!("weir-lane-{number}")).spawn(move || {
            NUMBER.set(number);
            runtime.block_on(stop.cancelled());
            // Work that blocks may be in the middle of something; nobody waits for it.
            runtime.shutdown_background();
        })?;
        Ok(Self { runtime: handle, load: Arc::new(()) })
    }

    /// Counts a task as long as this is held.
    pub(super) fn place(&self) -> Arc<()> {
        Arc::clone(&self.load)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::oneshot;

    use super::{Lanes, lane};
    use crate::task::TaskGroup;

    #[tokio::test]
    async fn a_task_stays_on_its_lane_and_counts_there() {
        let lanes = Lanes::start().expect("threads");
        let group = TaskGroup::new("test");
        assert_eq!(lane(), 0, "this thread is none");
        let first = lanes.idlest().expect("a lane");
        let (told, number) = oneshot::channel();
        let (end, ended) = oneshot::channel::<()>();
        group.spawn_on(first, "test", async move {
            let before = lane();
            tokio::time::sleep(Duration::from_millis(1)).await;
            told.send((before, lane())).ok();
            ended.await.ok();
        });
        let (before, after) = number.await.expect("it runs");
        assert!(before > 0 && before == after, "{before} {after}");
        let other = lanes.idlest().expect("a lane");
        let is_alone = lanes.lanes.len() == 1;
        assert!(is_alone || other.runtime.id() != first.runtime.id(), "one with a task is not the idlest");
        end.send(()).ok();
        group.cancel();
        group.drained().await;
    }

    #[tokio::test]
    async fn what_runs_on_lanes_ends_with_them() {
        let lanes = Lanes::start().expect("threads");
        let group = TaskGroup::new("test");
        let (held, dropped) = oneshot::channel::<()>();
        let (begins, begun) = oneshot::channel();
        group.spawn_on(lanes.idlest().expect("a lane"), "test", async move {
            begins.send(()).ok();
            std::future::pending::<()>().await;
            drop(held);
        });
        begun.await.expect("it runs");
        drop(lanes);
        assert!(dropped.await.is_err(), "it is dropped where it stands");
    }
}
