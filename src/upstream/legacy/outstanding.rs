//! A request that the upstream may be working on.

use super::pool::Lease;
use crate::jsonrpc::{Id, Text, request};
use crate::protocol::notification;
use crate::upstream::chores::{Chore, Chores};
use crate::upstream::http::Destination;

/// Cancels its request when it is dropped before it was settled.
#[derive(Debug)]
pub(super) struct Outstanding<'a> {
    chores: &'a Chores,
    to: Destination,
    id: &'a Id,
    is_settled: bool,
}

impl<'a> Outstanding<'a> {
    pub(super) fn new(chores: &'a Chores, lease: &Lease, id: &'a Id) -> Self {
        Self { chores, to: lease.session().destination(), id, is_settled: false }
    }

    /// The upstream has answered, or cannot be told anything.
    pub(super) fn settle(&mut self) {
        self.is_settled = true;
    }
}

impl Drop for Outstanding<'_> {
    fn drop(&mut self) {
        if self.is_settled {
            return;
        }
        let mut params = Text::object();
        params.member("requestId", self.id.as_json());
        params.text("reason", "the client does not wait any longer");
        let message = request(None, notification::CANCELLED, &params.close());
        self.chores.add(Chore::Post(std::mem::take(&mut self.to), message));
    }
}
