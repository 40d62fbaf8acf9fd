//! Who drives a call.
//!
//! As long as somebody reads its answer, the call is polled by that reader: no other task has to be woken for it. The
//! moment that nobody reads any more, or that it is somebody else, it gets a task of its own, as it belongs to the session
//! and not to a connection.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use crate::task::TaskGroup;

type Run = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What drives one call. The call, which may hold it, is dropped when it has ended.
pub(super) struct Engine {
    state: Mutex<State>,
    calls: TaskGroup,
}

#[derive(Default)]
struct State {
    /// `None` before the call begins, and once it has ended or has a task.
    run: Option<Run>,
    /// Who drives it.
    driver: Option<Waker>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

impl Engine {
    /// One without a call yet; `calls` own the call's task where it needs one.
    pub(super) fn new(calls: &TaskGroup) -> Self {
        Self { state: Mutex::default(), calls: calls.clone() }
    }

    /// The call begins as soon as somebody waits for what comes of it.
    pub(super) fn start(&self, run: impl Future<Output = ()> + Send + 'static) {
        self.state().run = Some(Box::pin(run));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the call go on while something is waited for that comes of it.
    pub(super) async fn while_waiting<T>(&self, waiting: impl Future<Output = T>) -> T {
        let mut waiting = pin!(waiting);
        std::future::poll_fn(|context| {
            if self.drive(context) {
                // What the call does is seen right here: nobody has to be woken for it.
                waiting.as_mut().poll(&mut Context::from_waker(Waker::noop()))
            } else {
                waiting.as_mut().poll(context)
            }
        })
        .await
    }

    /// True as long as the call is driven here.
    fn drive(&self, context: &mut Context<'_>) -> bool {
        let mut state = self.state();
        let Some(run) = state.run.as_mut() else { return false };
        if run.as_mut().poll(context).is_ready() {
            state.run = None;
            return false;
        }
        state.driver.get_or_insert_with(|| context.waker().clone()).clone_from(context.waker());
        true
    }

    /// Gives the call a task of its own, if it still runs. Who drove it looks for itself from now on.
    pub(super) fn release(&self) {
        let mut state = self.state();
        let (run, driver) = (state.run.take(), state.driver.take());
        drop(state);
        if let Some(run) = run {
            self.calls.spawn("call", run);
        }
        if let Some(driver) = driver {
            driver.wake();
        }
    }
}
