//! The way to one upstream.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::capabilities::{self, NO_CAPABILITIES};
use super::ids::Ids;
use super::quota::Quota;
use super::wire::Wire;
use super::wishes::Wishes;
use crate::config::Upstream;
use crate::task::TaskGroup;

/// What every request to an upstream needs: the connection, unused ids, and how it is configured.
#[derive(Clone)]
pub(super) struct Way {
    pub(super) wire: Arc<Wire>,
    pub(super) ids: Arc<Ids>,
    pub(super) upstream: Arc<Upstream>,
    /// Where the end of an answer is read that nobody waits for.
    pub(super) tasks: TaskGroup,
    /// What clients want to hear of it outside of their calls.
    pub(super) wishes: Arc<Wishes>,
    /// What it may write into Weir's own log.
    pub(super) quota: Arc<Quota>,
}

impl Way {
    /// What is declared where Weir itself asks an upstream with these extensions.
    pub(super) fn listing(&self, extensions: &BTreeMap<String, String>) -> String {
        if self.wire.is_shared_child() {
            NO_CAPABILITIES.to_owned()
        } else {
            capabilities::listing(extensions)
        }
    }
}

impl fmt::Debug for Way {
    /// The name alone: the address may hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Way").field(&self.upstream.name).finish()
    }
}
