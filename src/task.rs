//! The one place that spawns.
//!
//! A `TaskGroup` owns tasks: it names them, counts them, cancels them and waits for them. Groups nest (process →
//! server → connection; process → upstreams → link): cancelling a group cancels its children. A task nobody owns
//! cannot be stopped, awaited, counted or blamed for a panic, so nothing else in Weir spawns. `lanes` are threads to put
//! them on.

mod lanes;

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

pub use lanes::{Lane, Lanes, lane};

/// Does something that may block, such as reading files, where it holds up nobody. `None` where it panicked, which is
/// logged with its name.
pub async fn blocking<T, F>(what: &'static str, work: F) -> Option<T>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    let done = tokio::task::spawn_blocking(work).await;
    // Work that never began, since the process ends, is no fault.
    done.inspect_err(|why| {
        if why.is_panic() {
            tracing::error!(event = "panic", task = what, "work panicked");
        }
    })
    .ok()
}

/// A named set of tasks with one cancellation signal.
#[derive(Debug, Clone)]
pub struct TaskGroup {
    name: Arc<str>,
    token: CancellationToken,
    tracker: TaskTracker,
}

impl TaskGroup {
    /// A group without a parent.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { name: name.into(), token: CancellationToken::new(), tracker: TaskTracker::new() }
    }

    /// A group that is cancelled with this one and whose tasks this one waits for.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        Self { name: name.into(), token: self.token.child_token(), tracker: self.tracker.clone() }
    }

    /// Starts a task that the group owns. It should end soon after [`TaskGroup::cancelled`]; a panic in it is
    /// logged with the task's name and ends that task only.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that spawns")]
    pub fn spawn<F>(&self, task: &'static str, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        tokio::spawn(self.owned(task, future));
    }

    /// As [`TaskGroup::spawn`], on a lane.
    pub fn spawn_on<F>(&self, lane: &Lane, task: &'static str, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let place = lane.place();
        lane.runtime.spawn(self.owned(task, future).map(move |()| drop(place)));
    }

    fn owned<F>(&self, task: &'static str, future: F) -> impl Future<Output = ()> + Send + use<F>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let group = Arc::clone(&self.name);
        let running = self.tracker.track_future(future.instrument(tracing::Span::current()));
        // An async block would hold what it awaits twice: once as it was given, once as it runs.
        AssertUnwindSafe(running).catch_unwind().map(move |outcome| {
            if outcome.is_err() {
                tracing::error!(event = "panic", task, group = %group, "a task panicked");
            }
        })
    }

    /// Starts a task that ends at once, wherever it is, when the group is cancelled.
    pub fn spawn_until_cancelled<F>(&self, task: &'static str, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let token = self.token.clone();
        // Dropping the future is the cancellation: every task given to this method is cancel-safe by contract.
        self.spawn(task, token.run_until_cancelled_owned(future).map(drop));
    }

    /// Tells the tasks to end. Does not wait.
    pub fn cancel(&self) {
        self.token.cancel();
    }

    /// Ends when the group has been cancelled.
    pub async fn cancelled(&self) {
        self.token.cancelled().await;
    }

    /// Whether the group has been cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.token.is_cancelled()
    }

    /// The cancellation signal, for a loop that selects on it.
    #[must_use]
    pub fn token(&self) -> CancellationToken {
        self.token.clone()
    }

    /// How many tasks of this group and of the groups around it are running.
    #[must_use]
    pub fn active(&self) -> usize {
        self.tracker.len()
    }

    /// Waits until every task has ended. Cancel first, or this waits for as long as they like.
    pub async fn drained(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }
}
