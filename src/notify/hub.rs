//! The one task that compares what subscribers see with what they were told.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use dashmap::DashMap;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::debounce::quiet;
use super::{Metrics, Subscriber};
use crate::catalog::Snapshot;
use crate::view::Views;

/// All standing streams.
#[derive(Debug)]
pub struct Hub {
    snapshots: watch::Receiver<Arc<Snapshot>>,
    views: Arc<Views>,
    subscribers: DashMap<u64, Weak<Subscriber>>,
    next: AtomicU64,
    metrics: Metrics,
}

impl Hub {
    /// Takes the watch that requests read and the views that they share.
    #[must_use]
    pub fn new(snapshots: watch::Receiver<Arc<Snapshot>>, views: Arc<Views>, metrics: Metrics) -> Self {
        Self { snapshots, views, subscribers: DashMap::new(), next: AtomicU64::new(0), metrics }
    }

    /// Adds a subscriber. It is forgotten when the last handle to it is dropped. What changed since it last looked
    /// is told at once.
    #[must_use]
    pub fn subscribe(&self, subscriber: Subscriber) -> Arc<Subscriber> {
        let subscriber = Arc::new(subscriber);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.subscribers.insert(number, Arc::downgrade(&subscriber));
        self.metrics.streams.inc();
        self.show(&subscriber);
        subscriber
    }

    fn show(&self, subscriber: &Subscriber) -> bool {
        let snapshot = Arc::clone(&self.snapshots.borrow());
        let view = self.views.of(&snapshot, &subscriber.route, &subscriber.rights);
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

    /// Compares every subscriber's view with what it was told, and forgets those that are gone.
    fn sweep(&self) {
        let mut gone = Vec::new();
        let mut living = Vec::new();
        for entry in &self.subscribers {
            match entry.value().upgrade() {
                Some(subscriber) => living.push(subscriber),
                None => gone.push(*entry.key()),
            }
        }
        for number in gone {
            self.subscribers.remove(&number);
        }
        for subscriber in &living {
            if self.show(subscriber) {
                self.metrics.told.inc();
            }
        }
        self.metrics.streams.set(i64::try_from(living.len()).unwrap_or(i64::MAX));
    }
}
