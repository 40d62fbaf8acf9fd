//! The living relation to one upstream.
//!
//! A [`Link`] takes calls; one task per link, its `keeper`, connects, lists, listens and publishes. The two share
//! what is in [`Shared`]: the peer that is spoken to now, and a few flags by which a call tells the keeper what it
//! saw. A call never waits for the keeper, except one that the upstream refused because of stale definitions.

mod calling;
mod clock;
mod keeper;
mod publisher;
mod shared;

use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::mpsc;

use super::builtin::Demonstration;
use super::metrics::Metrics;
use super::peer::TaskNews;
use super::status::Status;
use super::wire::Wire;
use super::wishes::{Said, Want, Watching};
use crate::exchange::{Call, Caller, Failure, Reason, Reply, SessionKey};

pub(super) use keeper::{Keeper, Posts};
pub(super) use publisher::Publisher;
pub(super) use shared::Shared;

/// The relation to one upstream, as callers hold it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Link {
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Remote(Arc<Shared>, Arc<Wire>, Metrics),
    Builtin(Arc<Demonstration>, Timestamp),
}

impl Link {
    pub(super) fn remote(shared: Arc<Shared>, wire: Arc<Wire>, metrics: Metrics) -> Self {
        Self { kind: Kind::Remote(shared, wire, metrics) }
    }

    pub(super) fn builtin(demonstration: Arc<Demonstration>) -> Self {
        Self { kind: Kind::Builtin(demonstration, Timestamp::now()) }
    }

    /// Sends a call to the upstream. Dropping the reply cancels it.
    #[must_use]
    pub fn call(&self, call: Call) -> Reply {
        match &self.kind {
            Kind::Builtin(demonstration, _) => demonstration.call(call),
            Kind::Remote(shared, _, metrics) => calling::start(shared, metrics, call),
        }
    }

    /// A failure of this upstream that shows only in the sequence of its answers.
    #[must_use]
    pub fn failed(&self, reason: Reason) -> Failure {
        match &self.kind {
            Kind::Remote(shared, ..) => Failure::upstream(&shared.upstream.name, reason, true),
            Kind::Builtin(..) => Failure::Internal,
        }
    }

    pub(super) fn watch(&self, uri: &str, caller: &Caller) -> Option<Watching> {
        match &self.kind {
            Kind::Remote(shared, ..) => shared.watch(uri, caller),
            // A note never changes: it comes and goes, which is a change of the list.
            Kind::Builtin(..) => None,
        }
    }

    pub(super) fn stand(&self, caller: &Caller, to: &mpsc::Sender<Said>) -> Option<Want> {
        match &self.kind {
            Kind::Remote(shared, ..) => shared.stand(caller, to),
            Kind::Builtin(..) => None,
        }
    }

    pub(super) fn follow(&self, ids: &[String]) -> Option<TaskNews> {
        match &self.kind {
            Kind::Remote(shared, ..) => shared.follow(ids),
            Kind::Builtin(..) => None,
        }
    }

    pub(super) fn roots_changed(&self, session: SessionKey) {
        if let Kind::Remote(shared, ..) = &self.kind {
            shared.roots_changed(session);
        }
    }

    pub(super) fn end_session(&self, session: SessionKey) {
        if let Kind::Remote(shared, ..) = &self.kind {
            shared.end_session(session);
        }
    }

    pub(super) async fn close(&self) {
        if let Kind::Remote(shared, wire, _) = &self.kind {
            shared.close().await;
            wire.close().await;
        }
    }

    pub(super) fn tell(&self, status: &mut Status) {
        match &self.kind {
            Kind::Remote(shared, ..) => shared.tell(status),
            Kind::Builtin(_, since) => status.since = *since,
        }
    }
}
