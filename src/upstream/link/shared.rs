//! What a link's calls and its keeper share.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt as _;
use jiff::Timestamp;
use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::clock::Clock;
use super::latency::Latency;
use crate::catalog::Inventory;
use crate::config::Upstream;
use crate::exchange::{Caller, Failure, Lost, Reason, SessionKey};
use crate::upstream::fault::Fault;
use crate::upstream::gate::Gate;
use crate::upstream::legacy::Key;
use crate::upstream::peer::{Peer, TaskNews};
use crate::upstream::status::{LastError, Status};
use crate::upstream::wishes::{Said, Stander, Want, Watching, Wishes};

/// What the keeper knows of the upstream. Written by it alone.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    /// Who is spoken to; `None` before the revision is settled.
    pub(super) peer: Option<Peer>,
    /// Why it is not up; `None` while it is.
    pub(super) down: Option<Reason>,
    /// Since when it is up or not.
    pub(super) since: Timestamp,
    /// Whether something of the last listing was refused or cut, or one failed since.
    pub(super) is_degraded: bool,
    /// What it offered when it was last listed.
    pub(super) inventory: Option<Arc<Inventory>>,
    /// Counts the listings, whatever came of them.
    pub(super) listings: u64,
    /// What went wrong last.
    pub(super) last_error: Option<LastError>,
    /// When the next attempt is due, while it is down.
    pub(super) next_try_at: Option<Timestamp>,
}

impl Facts {
    /// One of [`STATES`](crate::upstream::metrics::STATES).
    pub(super) fn state(&self) -> &'static str {
        match &self.down {
            None if self.is_degraded => "degraded",
            None => "up",
            Some(Reason::Connecting) => "connecting",
            Some(_) => "down",
        }
    }
}

/// What calls and keeper share.
pub(in crate::upstream) struct Shared {
    pub(super) upstream: Arc<Upstream>,
    pub(super) gate: Arc<Gate>,
    /// Cancelled when calls that still run are ended.
    pub(super) cut: CancellationToken,
    pub(super) clock: Clock,
    pub(super) facts: watch::Sender<Facts>,
    /// Who was spoken to before this link: what is shown is still what that one offers, until it is known better.
    earlier: Mutex<Option<Peer>>,
    /// The calls that run.
    pub(super) calls: TaskTracker,
    pub(super) latency: Latency,
    /// A call has a reason to think that the upstream is gone, or other than it was.
    pub(super) doubt: Notify,
    /// The doubt is about the revision too.
    doubts_revision: AtomicBool,
    /// What clients want to hear outside of their calls; where the upstream says so that a list changed, too.
    pub(in crate::upstream) wishes: Arc<Wishes>,
    /// A call was answered by an upstream that counts as down.
    pub(super) answered: Notify,
}

impl fmt::Debug for Shared {
    /// The name alone: the address may hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Shared").field(&self.upstream.name).finish()
    }
}

impl Shared {
    /// What a link and its keeper share. `wishes` are those that clients have of the upstream already; `gate` is that of the
    /// link before it, where its calls count for this one.
    pub(in crate::upstream) fn new(
        upstream: Arc<Upstream>,
        wishes: Arc<Wishes>,
        (gate, earlier): (Option<Arc<Gate>>, Option<Peer>),
    ) -> Arc<Self> {
        let facts = Facts {
            peer: None,
            down: Some(Reason::Connecting),
            since: Timestamp::now(),
            is_degraded: false,
            inventory: None,
            listings: 0,
            last_error: None,
            next_try_at: None,
        };
        let gate = gate.unwrap_or_else(|| Arc::new(Gate::new(upstream.concurrency)));
        let (cut, earlier) = (CancellationToken::new(), Mutex::new(earlier));
        let facts = watch::channel(facts).0;
        let doubts_revision = AtomicBool::new(false);
        let (doubt, answered) = (Notify::new(), Notify::new());
        let (clock, calls) = (Clock::default(), TaskTracker::new());
        let latency = Latency::default();
        Arc::new(Self {
            upstream,
            gate,
            cut,
            earlier,
            clock,
            facts,
            calls,
            latency,
            doubt,
            doubts_revision,
            answered,
            wishes,
        })
    }

    /// Ends calls at their time whose clients take no events, until its task is cancelled.
    pub(in crate::upstream) async fn watch_time(self: Arc<Self>) {
        self.clock.run().await;
    }

    /// Who is spoken to, or why nobody is.
    pub(super) fn peer(&self) -> Result<Peer, Fault> {
        let facts = self.facts.borrow();
        let reason = || facts.down.clone().unwrap_or(Reason::Connecting);
        facts.peer.clone().ok_or_else(|| Fault::unsent(reason()))
    }

    /// Who is spoken to, or, before anybody was, who was spoken to by the link before this one.
    pub(super) fn peer_or_earlier(&self) -> Option<Peer> {
        let known = self.facts.borrow().peer.clone();
        known.or_else(|| self.earlier().clone())
    }

    /// Somebody is spoken to.
    pub(super) fn settled(&self, peer: Peer) {
        self.facts.send_modify(|facts| facts.peer = Some(peer));
        *self.earlier() = None;
    }

    fn earlier(&self) -> MutexGuard<'_, Option<Peer>> {
        self.earlier.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who is spoken to. A link that is new waits for that, no longer than a connection may take: what is shown of an
    /// upstream whose configuration has just changed may be called all the while.
    pub(super) async fn peer_in_time(&self) -> Result<Peer, Fault> {
        if let Ok(peer) = self.peer() {
            return Ok(peer);
        }
        if tokio::time::timeout(self.upstream.timeout.connect, self.has_been_tried()).await.is_err() {
            tracing::debug!(upstream = %self.upstream.name, "a call came before its upstream was reached");
        }
        self.peer()
    }

    /// Waits until the upstream was reached for the first time, or could not be.
    pub(super) async fn has_been_tried(&self) {
        let mut facts = self.facts.subscribe();
        let tried = facts.wait_for(|facts| facts.peer.is_some() || facts.down != Some(Reason::Connecting));
        if tried.await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Looks at the upstream at once, whatever was known of it.
    pub(super) fn look_again(&self) {
        self.answered.notify_one();
        self.doubt.notify_one();
    }

    /// A call was answered.
    pub(super) fn was_answered(&self) {
        if self.facts.borrow().down.is_some() {
            self.answered.notify_one();
        }
    }

    /// A call failed: where that says something about the upstream as a whole, the keeper looks.
    pub(super) fn has_failed(&self, fault: &Fault) {
        match fault.reason {
            Reason::Status(400..=428 | 430..=499) => {
                self.doubts_revision.store(true, Ordering::Relaxed);
                self.doubt.notify_one();
            }
            Reason::Unreachable | Reason::Ended | Reason::Credential | Reason::Status(500..) => {
                self.doubt.notify_one();
            }
            Reason::Connecting
            | Reason::TimedOut
            | Reason::Status(_)
            | Reason::NotMcp
            | Reason::TooLarge
            | Reason::Busy
            | Reason::NeedsClient
            | Reason::Removed => {}
        }
    }

    /// A listing begins, and sees whatever calls reported before it.
    pub(super) fn forget(&self) {
        let _doubted = self.doubt.notified().now_or_never();
        let _changed = self.wishes.changed.notified().now_or_never();
    }

    /// Whether a call doubted the revision since this was last asked.
    pub(super) fn takes_revision_doubt(&self) -> bool {
        self.doubts_revision.swap(false, Ordering::Relaxed)
    }

    /// The failure for the client.
    pub(super) fn failure(&self, fault: Fault) -> Failure {
        let facts = self.facts.borrow();
        let since = facts.down.as_ref().map(|_| facts.since.duration_until(Timestamp::now()).unsigned_abs());
        Failure::Upstream(Lost {
            upstream: self.upstream.name.clone(),
            reason: fault.reason,
            since,
            may_have_run: fault.may_have_run,
        })
    }

    /// Makes true what clients want to hear outside of their calls, whoever the upstream is by now.
    pub(in crate::upstream) async fn attend(self: Arc<Self>) {
        let mut facts = self.facts.subscribe();
        loop {
            let peer = match facts.wait_for(|facts| facts.peer.is_some()).await {
                Ok(facts) => facts.peer.clone(),
                Err(_) => return,
            };
            let Some(peer) = peer else { continue };
            let is_another =
                |facts: &Facts| facts.peer.as_ref().is_some_and(|now| !now.shares_sessions(&peer));
            tokio::select! {
                () = peer.attend() => {}
                replaced = facts.wait_for(is_another) => if replaced.is_err() { return },
            }
        }
    }

    /// The updates of a resource, where the upstream announces them.
    pub(super) fn watch(&self, uri: &str, caller: &Caller) -> Option<Watching> {
        let peer = self.peer_or_earlier()?;
        let key = peer.offer().subscribe.then(|| peer.watching(caller))?;
        Some(self.wishes.watch(key, &peer.reduced(caller), uri))
    }

    /// Stands by for a client that has a session of its own with the upstream.
    pub(super) fn stand(&self, caller: &Caller, to: &mpsc::Sender<Said>) -> Option<Want> {
        let key = Key::of(caller, self.upstream.sessions).filter(|key| matches!(key, Key::Client(_)))?;
        let peer = self.peer_or_earlier();
        let abilities = peer.map_or_else(|| caller.abilities.clone(), |peer| peer.reduced(caller));
        let stander = Stander::new(self.upstream.name.clone(), to.clone());
        Some(self.wishes.stand(key, &abilities, stander))
    }

    /// The raw states of these tasks, as they come.
    pub(super) fn follow(&self, ids: &[String]) -> Option<TaskNews> {
        self.facts.borrow().peer.as_ref()?.follow(ids)
    }

    pub(super) fn roots_changed(&self, session: SessionKey) {
        let peer = self.facts.borrow().peer.clone();
        if let Some(peer) = peer {
            peer.roots_changed(session);
        }
    }

    pub(super) fn end_session(&self, session: SessionKey) {
        let peer = self.facts.borrow().peer.clone();
        if let Some(peer) = peer {
            peer.end_client(session);
        }
    }

    pub(super) async fn close(&self) {
        let peer = self.facts.borrow().peer.clone();
        if let Some(peer) = peer {
            peer.close().await;
        }
    }

    pub(super) fn tell(&self, status: &mut Status) {
        let facts = self.facts.borrow();
        status.state = facts.state();
        status.since = facts.since;
        status.revision = facts.peer.as_ref().map(Peer::revision);
        status.last_error.clone_from(&facts.last_error);
        status.next_try_at = facts.next_try_at;
        status.latency = self.latency.percentiles();
        status.calls_in_flight = self.calls.len();
    }
}
