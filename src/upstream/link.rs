//! The living relation to one upstream.
//!
//! A [`Link`] takes calls; one task per link, its `keeper`, connects, lists, listens and publishes. The two share
//! what is in [`Shared`]: the peer that is spoken to now, and a few flags by which a call tells the keeper what it
//! saw. A call waits for the keeper in two cases: the link is new and nothing has been spoken to yet, or the upstream
//! refused the call because of stale definitions.

mod calling;
mod clock;
mod keeper;
mod latency;
mod publisher;
mod shared;

use std::sync::Arc;

use futures_util::{FutureExt as _, StreamExt as _};
use http::HeaderMap;
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio_stream::wrappers::WatchStream;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::builtin::Demonstration;
use super::gate::Gate;
use super::ids::Ids;
use super::metrics::Metrics;
use super::peer::{Peer, TaskNews};
use super::status::Status;
use super::way::Way;
use super::wire::Wire;
use super::wishes::{Said, Want, Watching};
use crate::catalog::Presence;
use crate::exchange::{Call, Caller, Failure, Reason, Reply, SessionKey};
use crate::task::TaskGroup;

use keeper::{Keeper, Posts};
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

    /// Has it looked after: `keeping` owns what may end at once, `tasks` what the last calls still need.
    pub(super) fn begin(&self, publisher: Publisher, tasks: &TaskGroup, keeping: &TaskGroup) {
        match &self.kind {
            Kind::Remote(shared, wire, metrics) => {
                let way = Way {
                    wire: Arc::clone(wire),
                    ids: Arc::new(Ids::new()),
                    upstream: Arc::clone(&shared.upstream),
                    tasks: tasks.clone(),
                    wishes: Arc::clone(&shared.wishes),
                    quota: Arc::default(),
                };
                let posts = Posts { shared: Arc::clone(shared), publisher, metrics: metrics.clone() };
                let keeper = Keeper::new(way, posts, tasks.clone());
                keeping.spawn_until_cancelled("keep a link", Box::pin(keeper.run()));
                keeping.spawn_until_cancelled("wishes", Arc::clone(shared).attend());
                tasks.spawn_until_cancelled("time limits", Arc::clone(shared).watch_time());
            }
            // It is up from the first moment.
            Kind::Builtin(demonstration, _) => {
                let shown = Arc::clone(demonstration);
                let changes = shown.changes();
                publisher.publish(Presence::Up { inventory: Arc::new(shown.inventory()) });
                let publish = move |_| {
                    publisher.publish(Presence::Up { inventory: Arc::new(shown.inventory()) });
                    std::future::ready(())
                };
                let keep = WatchStream::from_changes(changes).for_each(publish);
                keeping.spawn_until_cancelled("keep a demonstration", keep);
            }
        }
    }

    /// What calls and keeper share; a demonstration needs neither.
    fn shared(&self) -> Option<&Arc<Shared>> {
        match &self.kind {
            Kind::Remote(shared, ..) => Some(shared),
            Kind::Builtin(..) => None,
        }
    }

    /// Sends a call to the upstream. Dropping the reply cancels it.
    #[must_use]
    pub fn call(&self, call: Call) -> Reply {
        match &self.kind {
            Kind::Builtin(demonstration, _) => demonstration.call(call),
            Kind::Remote(shared, _, metrics) => calling::start(shared, metrics, call),
        }
    }

    /// Whether it may end a call with questions, as far as is known (2026-07-28, patterns/mrtr).
    #[must_use]
    pub fn may_ask_between_calls(&self) -> bool {
        match &self.kind {
            Kind::Remote(shared, ..) => shared.peer_or_earlier().is_none_or(|peer| peer.is_stateless()),
            Kind::Builtin(..) => false,
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
        // A note of the demonstration never changes: it comes and goes, which is a change of the list.
        self.shared()?.watch(uri, caller)
    }

    pub(super) fn stand(&self, caller: &Caller, to: &mpsc::Sender<Said>) -> Option<Want> {
        self.shared()?.stand(caller, to)
    }

    pub(super) fn follow(&self, ids: &[String]) -> Option<TaskNews> {
        self.shared()?.follow(ids)
    }

    pub(super) fn roots_changed(&self, session: SessionKey) {
        if let Some(shared) = self.shared() {
            shared.roots_changed(session);
        }
    }

    pub(super) fn end_session(&self, session: SessionKey) {
        if let Some(shared) = self.shared() {
            shared.end_session(session);
        }
    }

    /// Who runs and who waits, for the link that takes its place.
    pub(super) fn gate(&self) -> Option<Arc<Gate>> {
        self.shared().map(|shared| Arc::clone(&shared.gate))
    }

    /// Who is spoken to, for the link that takes its place.
    pub(super) fn peer(&self) -> Option<Peer> {
        self.shared()?.peer_or_earlier()
    }

    /// It counts as one that runs a call, as long as this is held: between the attempts of one, for example.
    #[must_use]
    pub fn held(&self) -> Option<TaskTrackerToken> {
        self.shared().map(|shared| shared.calls.token())
    }

    /// Ends the calls that run.
    pub(super) fn cut(&self) {
        if let Some(shared) = self.shared() {
            shared.cut.cancel();
        }
    }

    /// Whether the upstream was reached once, or could not be.
    pub(super) fn is_tried(&self) -> bool {
        self.has_been_tried().now_or_never().is_some()
    }

    /// Another credential from the next request on. The upstream is looked at again: it may offer something else now.
    pub(super) fn present(&self, credential: HeaderMap) {
        if let Kind::Remote(shared, wire, _) = &self.kind {
            wire.present(credential);
            shared.look_again();
        }
    }

    /// Waits until nobody waits for it to be reached: it was, or could not be, or there is no call.
    pub(super) async fn has_been_tried(&self) {
        if let Some(shared) = self.shared() {
            shared.has_been_tried().await;
        }
    }

    /// Waits until its calls have ended. To be asked once nobody begins one any more.
    pub(super) async fn finished(&self) {
        if let Some(shared) = self.shared() {
            shared.calls.close();
            shared.calls.wait().await;
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
