//! Request ids towards one upstream.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::jsonrpc::Id;

/// Mints ids that are unique towards one upstream, whoever asks, so that clients that use the same ids cannot get
/// each other's answers. The first one is random: an upstream without sessions may see several Weirs.
#[derive(Debug)]
pub(super) struct Ids(AtomicU64);

impl Ids {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(getrandom::u64().unwrap_or_default() >> 16))
    }

    pub(super) fn next(&self) -> Id {
        Id::own(self.0.fetch_add(1, Ordering::Relaxed))
    }
}
