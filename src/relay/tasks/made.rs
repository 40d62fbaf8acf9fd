//! Which tasks client sessions made.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use dashmap::DashMap;

use crate::exchange::SessionKey;
use crate::names::UpstreamName;

/// Most tasks of one session that are remembered; the oldest goes first. It is still reached by its id.
const MOST: usize = 1000;

/// The two ids of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::relay) struct Pair {
    /// As its upstream calls it.
    pub(in crate::relay) local: String,
    /// As its client calls it.
    pub(in crate::relay) published: String,
}

/// A task of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::relay) struct Known {
    /// Who has it.
    pub(in crate::relay) upstream: UpstreamName,
    /// The local name of the tool that made it.
    pub(in crate::relay) tool: String,
    /// What it is called.
    pub(in crate::relay) ids: Pair,
}

type Tasks = Arc<Mutex<VecDeque<Known>>>;

/// The tasks of all sessions.
#[derive(Debug, Default)]
pub(in crate::relay) struct Made {
    sessions: DashMap<SessionKey, Tasks>,
}

impl Made {
    /// A session made a task.
    pub(in crate::relay) fn remember(&self, session: SessionKey, task: Known) {
        let tasks = Arc::clone(&self.sessions.entry(session).or_default());
        let mut tasks = tasks.lock().unwrap_or_else(PoisonError::into_inner);
        if tasks.len() >= MOST {
            tasks.pop_front();
        }
        tasks.push_back(task);
    }

    /// The tasks of a session, oldest first.
    pub(in crate::relay) fn of(&self, session: SessionKey) -> Vec<Known> {
        let Some(tasks) = self.tasks(session) else { return Vec::new() };
        let tasks = tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.iter().cloned().collect()
    }

    /// The task that an upstream calls so, if the session made it.
    pub(in crate::relay) fn known(
        &self,
        session: SessionKey,
        upstream: &UpstreamName,
        local: &str,
    ) -> Option<Known> {
        let tasks = self.tasks(session)?;
        let tasks = tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.iter().rev().find(|task| task.ids.local == local && task.upstream == *upstream).cloned()
    }

    /// A session has ended.
    pub(in crate::relay) fn forget(&self, session: SessionKey) {
        self.sessions.remove(&session);
    }

    fn tasks(&self, session: SessionKey) -> Option<Tasks> {
        self.sessions.get(&session).map(|tasks| Arc::clone(&tasks))
    }
}
