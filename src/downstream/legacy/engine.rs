//! Who drives a call.
//!
//! As long as somebody reads its answer, the call is polled by that reader: no other task has to be woken for it. The
//! moment that nobody reads any more, or that it is somebody else, it gets a task of its own, as it belongs to the session
//! and not to a connection.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use crate::task::TaskGroup;

type Run = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What drives one call. Its owners share it; the call, which may hold one of them, is dropped when it has ended.
#[derive(Clone)]
pub(super) struct Engine {
    run: Arc<Mutex<Option<Run>>>,
    calls: TaskGroup,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

impl Engine {
    /// One for a call; `calls` own its task where it needs one.
    pub(super) fn new(run: impl Future<Output = ()> + Send + 'static, calls: &TaskGroup) -> Self {
        Self { run: Arc::new(Mutex::new(Some(Box::pin(run)))), calls: calls.clone() }
    }

    fn run(&self) -> MutexGuard<'_, Option<Run>> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the call go on while something is waited for.
    pub(super) async fn while_waiting<T>(&self, waiting: impl Future<Output = T>) -> T {
        let mut waiting = pin!(waiting);
        std::future::poll_fn(|context| {
            self.poll(context);
            waiting.as_mut().poll(context)
        })
        .await
    }

    fn poll(&self, context: &mut Context<'_>) {
        let mut run = self.run();
        if let Some(Poll::Ready(())) = run.as_mut().map(|run| run.as_mut().poll(context)) {
            *run = None;
        }
    }

    /// Gives the call a task of its own, if it still runs.
    pub(super) fn release(&self) {
        let run = self.run().take();
        if let Some(run) = run {
            self.calls.spawn("call", run);
        }
    }
}
