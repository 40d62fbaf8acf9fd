//! The way to one upstream.

use std::fmt;
use std::sync::Arc;

use super::http::Http;
use super::ids::Ids;
use super::wishes::Wishes;
use crate::config::Upstream;
use crate::task::TaskGroup;

/// What every request to an upstream needs: the connection, unused ids, and how it is configured.
#[derive(Clone)]
pub(super) struct Way {
    pub(super) http: Arc<Http>,
    pub(super) ids: Arc<Ids>,
    pub(super) upstream: Arc<Upstream>,
    /// Where the end of an answer is read that nobody waits for.
    pub(super) tasks: TaskGroup,
    /// What clients want to hear of it outside of their calls.
    pub(super) wishes: Arc<Wishes>,
}

impl fmt::Debug for Way {
    /// The name alone: the address may hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Way").field(&self.upstream.name).finish()
    }
}
