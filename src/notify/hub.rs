//! The one task that compares what subscribers see with what they were shown.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dashmap::DashMap;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::debounce::quiet;
use super::{Metrics, Subscriber};
use crate::catalog::Snapshot;
use crate::principal::Rights;
use crate::view::Views;

/// All standing streams.
#[derive(Debug)]
pub struct Hub {
    snapshots: watch::Receiver<Arc<Snapshot>>,
    views: Arc<Views>,
    subscribers: DashMap<u64, Arc<Subscriber>>,
    next: AtomicU64,
    metrics: Metrics,
}

/// A subscriber in its place at the hub. Dropping it gives the place up.
#[derive(Debug)]
pub struct Subscription {
    hub: Arc<Hub>,
    number: u64,
    subscriber: Arc<Subscriber>,
}

impl Deref for Subscription {
    type Target = Subscriber;

    fn deref(&self) -> &Subscriber {
        &self.subscriber
    }
}

impl Subscription {
    /// Looks with other rights from now on; what they see otherwise is told.
    pub fn look_as(&self, rights: &Rights) {
        self.subscriber.set_rights(rights.clone());
        self.hub.show(&self.subscriber);
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.hub.subscribers.remove(&self.number);
        self.hub.metrics.streams.dec();
    }
}

impl Hub {
    /// Takes the watch that requests read and the views that they share.
    #[must_use]
    pub fn new(snapshots: watch::Receiver<Arc<Snapshot>>, views: Arc<Views>, metrics: Metrics) -> Self {
        Self { snapshots, views, subscribers: DashMap::new(), next: AtomicU64::new(0), metrics }
    }

    /// Gives a subscriber its place. What changed since it last looked is told at once.
    #[must_use]
    pub fn subscribe(self: &Arc<Self>, subscriber: Subscriber) -> Subscription {
        let subscriber = Arc::new(subscriber);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.subscribers.insert(number, Arc::clone(&subscriber));
        self.metrics.streams.inc();
        self.show(&subscriber);
        Subscription { hub: Arc::clone(self), number, subscriber }
    }

    /// What requests read at this moment.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshots.borrow())
    }

    /// How many streams stand.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.subscribers.len()
    }

    fn show(&self, subscriber: &Subscriber) -> bool {
        let snapshot = self.snapshot();
        let route = snapshot.config.now(&subscriber.route);
        let view = self.views.of(&snapshot, route, &subscriber.rights());
        subscriber.show(view.hashes)
    }

    /// Tells subscribers of changes until cancelled.
    pub async fn run(self: Arc<Self>, cancelled: CancellationToken) {
        let mut snapshots = self.snapshots.clone();
        loop {
            // Cancel-safe: `changed` loses nothing when dropped.
            tokio::select! {
                () = cancelled.cancelled() => return,
                changed = snapshots.changed() => if changed.is_err() { return },
            }
            let times = snapshots.borrow_and_update().config.notify;
            tokio::select! {
                () = cancelled.cancelled() => return,
                () = quiet(times, &mut snapshots) => {}
            }
            self.sweep();
        }
    }

    /// Compares every subscriber's view with what it was shown.
    fn sweep(&self) {
        let all: Vec<Arc<Subscriber>> =
            self.subscribers.iter().map(|place| Arc::clone(place.value())).collect();
        for subscriber in &all {
            if self.show(subscriber) {
                self.metrics.told.inc();
            }
        }
        // Nobody reads the snapshots before any more, but for a request now and then.
        self.views.forget_before(&self.snapshot());
    }
}
