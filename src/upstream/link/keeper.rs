//! The task that keeps one link: connects, lists, listens, publishes.
//!
//! It goes round: settle the revision where that is not known or in doubt, have a standing stream, list everything,
//! publish. After a round that succeeded it stays until there is a reason for another one; after one that failed it
//! pauses with back-off. It alone writes the link's facts and the upstream's [`Presence`].
//!
//! A lost upstream keeps its last inventory in its presence until `withdraw_after` has passed. One answer of "too
//! many requests" and one listing that took too long do not make an upstream lost.

mod ear;
mod health;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{Instant, sleep_until};

use super::publisher::Publisher;
use super::shared::Shared;
use crate::catalog::{Checker, Inventory, Presence, Trouble};
use crate::exchange::{Failure, Reason};
use crate::task::TaskGroup;
use crate::upstream::announce::{Hearing, News};
use crate::upstream::connect;
use crate::upstream::fault::Fault;
use crate::upstream::listing::{self, Listed};
use crate::upstream::metrics::Metrics;
use crate::upstream::peer::Peer;
use crate::upstream::status::LastError;
use crate::upstream::way::Way;

use ear::Ear;
use health::{Health, Turn};

/// Changes that come so close together are listed once.
const GATHER: Duration = Duration::from_millis(10);
/// Calls that fail may have the upstream listed this often, and its revision looked at that often.
const DOUBTED: Duration = Duration::from_secs(1);
const REVISION_DOUBTED: Duration = Duration::from_secs(10);
/// An upstream that announces its changes is listed again so many times more rarely than one that does not.
const ANNOUNCING: u32 = 10;
/// How often the revision of an upstream with sessions is looked at again.
const REVISION: Duration = Duration::from_secs(3600);

/// Where the keeper says what it knows.
#[derive(Debug)]
pub(in crate::upstream) struct Posts {
    /// To the link's calls.
    pub(in crate::upstream) shared: Arc<Shared>,
    /// To everybody.
    pub(in crate::upstream) publisher: Publisher,
    /// To the operator.
    pub(in crate::upstream) metrics: Metrics,
}

impl Posts {
    /// Says how the upstream stands, as long as this link speaks for it.
    fn tell_state(&self) {
        if !self.publisher.is_retired() {
            self.metrics.set_state(&self.shared.upstream.name, self.shared.facts.borrow().state());
        }
    }
}

/// The task's state.
#[derive(Debug)]
pub(in crate::upstream) struct Keeper {
    way: Way,
    posts: Posts,
    tasks: TaskGroup,
    ear: Ear,
    health: Health,
    checker: Checker,
    last: Option<Arc<Inventory>>,
    settled_at: Option<Instant>,
    listed_at: Instant,
}

impl Keeper {
    /// A keeper for the upstream at the end of `way`. What is shown of it already, by the link that this one takes the
    /// place of, stays until this one knows better, or until a lost upstream is given up.
    pub(in crate::upstream) fn new(way: Way, posts: Posts, tasks: TaskGroup) -> Self {
        let (last, is_shown) = (posts.publisher.claims(), posts.publisher.is_shown());
        let (ear, health) = (Ear::default(), Health::new(way.upstream.withdraw_after, is_shown));
        let (settled_at, listed_at) = (None, Instant::now());
        Self { way, posts, tasks, ear, health, checker: Checker::new(), last, settled_at, listed_at }
    }

    /// Keeps the link until its task group is cancelled.
    pub(in crate::upstream) async fn run(mut self) {
        self.posts.tell_state();
        loop {
            match Box::pin(self.round()).await {
                Ok(()) => self.stay().await,
                Err(fault) => {
                    self.failed(&fault);
                    self.pause().await;
                }
            }
        }
    }

    async fn round(&mut self) -> Result<(), Fault> {
        let mut peer = self.peer().await?;
        let mut is_fresh = self.settled_at.is_some_and(|at| at > self.listed_at);
        loop {
            self.ear.follow(&peer, &self.tasks).await;
            let listed = self.list(&peer).await?;
            // An upstream that refuses, or has forgotten Weir, may be another one by now.
            let may_differ = listed.is_refused || peer.was_forgotten();
            if may_differ && !is_fresh && self.way.wire.is_stdio() {
                // Another child of the same kind: it is heard, too.
                is_fresh = true;
                continue;
            }
            if is_fresh || !may_differ {
                self.listed(listed);
                return Ok(());
            }
            is_fresh = true;
            self.settled_at = None;
            peer = self.peer().await?;
        }
    }

    async fn list(&mut self, peer: &Peer) -> Result<Listed, Fault> {
        self.listed_at = Instant::now();
        // This listing sees whatever was reported before it.
        self.ear.forget();
        self.posts.shared.forget();
        listing::list(peer, &self.way.upstream, self.last.as_deref(), &mut self.checker).await
    }

    /// Who is spoken to; settled anew where nobody is, and where there is doubt.
    async fn peer(&mut self) -> Result<Peer, Fault> {
        let old = self.posts.shared.facts.borrow().peer.clone();
        let is_doubted = self.posts.shared.takes_revision_doubt()
            && self.settled_before(REVISION_DOUBTED)
            && !self.way.wire.is_stdio();
        let is_doubted = is_doubted || self.is_revision_due();
        if let (Some(peer), false) = (&old, is_doubted) {
            return Ok(peer.clone());
        }
        let settled = Box::pin(connect::settle(&self.way)).await?;
        let peer = Peer::new(settled, &self.way, old.as_ref(), &self.tasks);
        self.settled_at = Some(Instant::now());
        self.posts.shared.settled(peer.clone());
        if !old.as_ref().is_some_and(|old| old.hears_like(&peer)) {
            self.ear.close();
        }
        if let Some(old) = old.filter(|old| !old.shares_sessions(&peer)) {
            self.tasks.spawn_until_cancelled("close a peer", async move { old.close().await });
        }
        Ok(peer)
    }

    fn settled_before(&self, ago: Duration) -> bool {
        self.settled_at.is_none_or(|at| at.elapsed() >= ago)
    }

    fn is_revision_due(&self) -> bool {
        self.settled_at.is_none() || self.revision_due().is_some_and(|due| due <= Instant::now())
    }

    fn revision_due(&self) -> Option<Instant> {
        let has_sessions =
            self.posts.shared.facts.borrow().peer.as_ref().is_some_and(|peer| !peer.is_stateless());
        // A child is what it is until it ends.
        let may_change = has_sessions && self.way.upstream.revision.is_none() && !self.way.wire.is_stdio();
        self.settled_at.filter(|_| may_change).map(|at| at + REVISION)
    }

    fn listed(&mut self, listed: Listed) {
        let Listed { inventory, is_whole, is_refused: _ } = listed;
        let name = &self.way.upstream.name;
        let inventory = match self.last.take() {
            Some(last) if *last == inventory => {
                if self.posts.shared.facts.borrow().down.is_some() {
                    tracing::info!(upstream = %name, "upstream is back, with the same lists");
                }
                last
            }
            _ => {
                let (tools, left_out) = (inventory.tools.len(), inventory.left_out.len());
                tracing::info!(upstream = %name, revision = %inventory.revision, tools, left_out, "listed");
                for warning in &inventory.warnings {
                    tracing::warn!(upstream = %name, "{warning}");
                }
                for item in &inventory.left_out {
                    tracing::warn!(upstream = %name, item = item.name, reason = item.reason, "left out");
                }
                Arc::new(inventory)
            }
        };
        self.last = Some(Arc::clone(&inventory));
        let was_down = self.health.succeeded();
        self.posts.shared.facts.send_modify(|facts| {
            if was_down {
                facts.since = Timestamp::now();
            }
            facts.down = None;
            facts.next_try_at = None;
            facts.is_degraded = !is_whole;
            facts.inventory = Some(Arc::clone(&inventory));
            facts.listings += 1;
        });
        self.posts.metrics.listed(name, "ok");
        self.posts.tell_state();
        self.posts.publisher.publish(Presence::Up { inventory });
    }

    fn failed(&mut self, fault: &Fault) {
        let name = &self.way.upstream.name;
        let label = fault.reason.label();
        self.posts.metrics.listed(name, label);
        let turn = self.health.failed(&fault.reason);
        // Children have a back-off of their own: no attempt before its end can succeed, and none need come later.
        if let Some(at) = self.way.wire.not_before() {
            self.health.try_at(at);
        }
        let now = Timestamp::now();
        let next = self.health.next_try();
        self.posts.shared.facts.send_modify(|facts| {
            facts.last_error = Some(LastError { reason: label, at: now });
            facts.listings += 1;
            facts.next_try_at = now.checked_add(next.saturating_duration_since(Instant::now())).ok();
            match turn {
                Turn::Shaken => facts.is_degraded = true,
                Turn::Lost => facts.since = now,
                Turn::StillLost => {}
            }
            if turn != Turn::Shaken {
                facts.down = Some(fault.reason.clone());
            }
        });
        self.posts.tell_state();
        if turn == Turn::Shaken {
            tracing::info!(upstream = %name, reason = label, "could not be listed this time");
            return;
        }
        if !self.keeps_child(&fault.reason) {
            self.settled_at = None;
        }
        self.ear.close();
        match turn {
            Turn::Lost => {
                let text = Failure::upstream(name, fault.reason.clone(), false).text();
                let first = self.last.is_none();
                let word = if first { "no connection yet" } else { "upstream lost" };
                tracing::warn!(upstream = %name, reason = label, "{word}: {text}");
            }
            Turn::Shaken | Turn::StillLost => tracing::debug!(upstream = %name, reason = label, "still lost"),
        }
        self.publish_down(&fault.reason);
    }

    /// Whether the next round lists a child with sessions again, or the next child like it, without asking anew what it
    /// is. One that does not answer is ended first.
    fn keeps_child(&self, reason: &Reason) -> bool {
        let peer = self.posts.shared.facts.borrow().peer.clone();
        let Some(Peer::Legacy(peer)) = peer.filter(|_| self.way.wire.is_stdio()) else { return false };
        let keeps = peer.pool.has_listing() || *reason == Reason::Ended;
        if *reason == Reason::TimedOut {
            peer.pool.end_listing();
        }
        keeps
    }

    fn publish_down(&self, reason: &Reason) {
        let name = &self.way.upstream.name;
        let trouble = Trouble {
            label: reason.label(),
            text: Failure::upstream(name, reason.clone(), false).text(),
            since: self.posts.shared.facts.borrow().since,
        };
        let last = self.last.clone().filter(|_| self.health.keeps_place());
        let claims = self.last.clone();
        self.posts.publisher.publish(Presence::Down { trouble, last, claims });
    }

    /// Waits for a reason to list again.
    async fn stay(&mut self) {
        loop {
            let refresh = self.listed_at + self.refresh();
            let revision = self.revision_due();
            tokio::select! {
                news = self.ear.news() => match news {
                    News::Turned(Hearing::Opening) => continue,
                    News::Turned(Hearing::Open { .. }) => self.reopened(),
                    News::Turned(Hearing::Broken | Hearing::Refused) => {}
                    News::Changed => tokio::time::sleep(GATHER).await,
                },
                () = self.posts.shared.wishes.changed.notified() => tokio::time::sleep(GATHER).await,
                () = self.posts.shared.doubt.notified() => sleep_until(self.listed_at + DOUBTED).await,
                () = sleep_until(refresh) => {}
                () = due(revision) => {}
            }
            return sleep_until(self.listed_at + self.posts.publisher.gap()).await;
        }
    }

    /// How long a listing is good for. Some servers tell a change to the session that made it only, so even one that
    /// announces is listed again now and then.
    fn refresh(&self) -> Duration {
        let refresh = self.way.upstream.refresh;
        if self.ear.hears_all() { refresh.saturating_mul(ANNOUNCING) } else { refresh }
    }

    /// The standing stream was broken, perhaps by a restart. Of an upstream with sessions the next listing tells; of
    /// one without, only asking does.
    fn reopened(&mut self) {
        if self.posts.shared.facts.borrow().peer.as_ref().is_some_and(Peer::is_stateless) {
            self.settled_at = None;
        }
    }

    /// Waits until the next attempt is due; takes the last inventory back when its time is over.
    async fn pause(&mut self) {
        let next = self.health.next_try();
        loop {
            tokio::select! {
                () = sleep_until(next) => return,
                () = due(self.health.withdraw_at()) => {
                    self.health.withdraw();
                    let reason = self.posts.shared.facts.borrow().down.clone();
                    if let Some(reason) = reason {
                        self.publish_down(&reason);
                    }
                }
                () = self.posts.shared.answered.notified() => {
                    return sleep_until((self.listed_at + Duration::from_secs(1)).min(next)).await;
                }
            }
        }
    }
}

/// Ends at a moment, or never.
async fn due(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
