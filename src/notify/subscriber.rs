//! One client that waits for changes.

use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use crate::config::Route;
use crate::principal::Rights;
use crate::protocol::ListKind;
use crate::view::Hashes;

/// A set of changed lists. Templates count as resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Changes {
    /// The tools.
    pub tools: bool,
    /// The prompts.
    pub prompts: bool,
    /// The resources or the templates.
    pub resources: bool,
}

impl Changes {
    /// All of them.
    pub const ALL: Self = Self { tools: true, prompts: true, resources: true };

    /// What differs between two sets of visible lists.
    #[must_use]
    pub fn between(before: Hashes, now: Hashes) -> Self {
        Self {
            tools: before.tools != now.tools,
            prompts: before.prompts != now.prompts,
            resources: before.resources != now.resources,
        }
    }

    /// What stands in both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            tools: self.tools && other.tools,
            prompts: self.prompts && other.prompts,
            resources: self.resources && other.resources,
        }
    }

    fn or(self, other: Self) -> Self {
        Self {
            tools: self.tools || other.tools,
            prompts: self.prompts || other.prompts,
            resources: self.resources || other.resources,
        }
    }

    /// Whether nothing changed.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// The list kinds to announce, one for each notification.
    pub fn kinds(self) -> impl Iterator<Item = ListKind> {
        let all = [
            (self.tools, ListKind::Tools),
            (self.prompts, ListKind::Prompts),
            (self.resources, ListKind::Resources),
        ];
        all.into_iter().filter(|(changed, _)| *changed).map(|(_, kind)| kind)
    }
}

/// What a subscriber waits for and what it has been told.
#[derive(Debug)]
struct State {
    told: Hashes,
    pending: Changes,
}

/// One standing stream, of either era.
#[derive(Debug)]
pub struct Subscriber {
    /// The route it listens on.
    pub route: Arc<Route>,
    /// The rights of the token that opened it.
    pub rights: Rights,
    wanted: Changes,
    state: Mutex<State>,
    wake: Notify,
}

impl Subscriber {
    /// A subscriber that wants these changes and has seen lists with these hashes.
    #[must_use]
    pub fn new(route: Arc<Route>, rights: Rights, wanted: Changes, seen: Hashes) -> Self {
        let state = Mutex::new(State { told: seen, pending: Changes::default() });
        Self { route, rights, wanted, state, wake: Notify::new() }
    }

    /// Says what is visible now; wakes the subscriber if that differs from what it was told.
    pub(super) fn show(&self, now: Hashes) -> bool {
        let Ok(mut state) = self.state.lock() else { return false };
        let changes = Changes::between(state.told, now).and(self.wanted);
        state.told = now;
        state.pending = state.pending.or(changes);
        let woken = !state.pending.is_empty();
        drop(state);
        if woken {
            self.wake.notify_one();
        }
        woken
    }

    /// The hashes of the lists as the subscriber has been told of them.
    #[must_use]
    pub fn told(&self) -> Hashes {
        self.state.lock().map(|state| state.told).unwrap_or_default()
    }

    /// Waits for changes and takes them.
    ///
    /// # Cancel safety
    /// Changes are taken at the last step only; dropping the future loses none.
    pub async fn changed(&self) -> Changes {
        loop {
            let taken =
                self.state.lock().map(|mut state| std::mem::take(&mut state.pending)).unwrap_or_default();
            if !taken.is_empty() {
                return taken;
            }
            self.wake.notified().await;
        }
    }
}
