//! One client that waits for changes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::Changes;
use crate::config::Route;
use crate::principal::Rights;
use crate::view::Hashes;

/// What a subscriber has been shown, and what of it waits to be told.
#[derive(Debug)]
struct State {
    rights: Rights,
    shown: Hashes,
    pending: Changes,
}

/// One standing stream, of either era.
#[derive(Debug)]
pub struct Subscriber {
    /// The route it listens on.
    pub route: Arc<Route>,
    wanted: Changes,
    state: Mutex<State>,
    wake: Notify,
}

impl Subscriber {
    /// A subscriber that wants these changes and has seen lists with these hashes.
    #[must_use]
    pub fn new(route: Arc<Route>, rights: Rights, wanted: Changes, seen: Hashes) -> Self {
        let state = Mutex::new(State { rights, shown: seen, pending: Changes::default() });
        Self { route, wanted, state, wake: Notify::new() }
    }

    /// With whose rights it looks.
    pub(super) fn rights(&self) -> Rights {
        self.state().rights.clone()
    }

    /// It looks with other rights from now on.
    pub(super) fn set_rights(&self, rights: Rights) {
        self.state().rights = rights;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says what is visible now; wakes the subscriber if that differs from what it was shown.
    pub(super) fn show(&self, now: Hashes) -> bool {
        let mut state = self.state();
        let changes = Changes::between(state.shown, now).and(self.wanted);
        state.shown = now;
        state.pending = state.pending.or(changes);
        let woken = !state.pending.is_empty();
        drop(state);
        if woken {
            self.wake.notify_one();
        }
        woken
    }

    fn take(&self) -> (Changes, Hashes) {
        let mut state = self.state();
        (std::mem::take(&mut state.pending), state.shown)
    }

    /// Waits for changes and takes them, with the hashes of the lists after them.
    ///
    /// # Cancel safety
    /// Changes are taken at the last step only; dropping the future loses none.
    pub async fn changed(&self) -> (Changes, Hashes) {
        loop {
            let taken = self.take();
            if !taken.0.is_empty() {
                return taken;
            }
            self.wake.notified().await;
        }
    }
}
