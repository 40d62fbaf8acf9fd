//! Debounce and the pending set.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::debounce::quiet;
use super::{Changes, Hub, Metrics, Subscriber};
use crate::catalog::Snapshot;
use crate::catalog::tests::config;
use crate::config::{Notify, Route};
use crate::principal::Rights;
use crate::view::Hashes;

const TIMES: Notify = Notify { debounce: Duration::from_millis(200), max_wait: Duration::from_secs(1) };

#[tokio::test(start_paused = true)]
async fn t081_a_storm_is_announced_after_the_longest_wait() {
    let start = Instant::now();
    let (publish, mut published) = watch::channel(0);
    let storm = async {
        loop {
            sleep(Duration::from_millis(10)).await;
            publish.send_modify(|n| *n += 1);
        }
    };
    tokio::select! {
        () = quiet(TIMES, &mut published) => {}
        () = storm => {}
    }
    assert_eq!(start.elapsed(), TIMES.max_wait);
}

#[tokio::test(start_paused = true)]
async fn one_change_is_announced_after_the_quiet_time() {
    let start = Instant::now();
    let (_publish, mut published) = watch::channel(0);
    quiet(TIMES, &mut published).await;
    assert_eq!(start.elapsed(), TIMES.debounce);
}

#[test]
fn changes_are_what_differs() {
    let before = Hashes { tools: 1, prompts: 2, resources: 3 };
    let now = Hashes { tools: 1, prompts: 9, resources: 4 };
    let changes = Changes::between(before, now);
    assert_eq!(changes, Changes { tools: false, prompts: true, resources: true });
    assert!(changes.and(Changes { tools: true, ..Changes::default() }).is_empty());
    assert_eq!(changes.kinds().count(), 2);
}

#[tokio::test]
async fn a_subscription_that_ends_leaves_nothing_behind() {
    let (_keep, hub, route, metrics) = hub();
    let subscribe = || {
        let seen = Hashes::default();
        hub.subscribe(Subscriber::new(Arc::clone(&route), Rights::All, Changes::ALL, seen))
    };
    let one = subscribe();
    let other = subscribe();
    assert_eq!(metrics.streams.get(), 2);
    drop((one, other));
    assert_eq!(metrics.streams.get(), 0);
}

#[tokio::test]
async fn what_changed_since_the_client_looked_is_told_at_once() {
    let (_keep, hub, route, _) = hub();
    let seen = Hashes { tools: 7, ..Hashes::default() };
    let late = hub.subscribe(Subscriber::new(route, Rights::All, Changes::ALL, seen));
    let (changes, now) = late.changed().now_or_never().expect("a change waits");
    assert_eq!(changes, Changes { tools: true, ..Changes::default() });
    assert_eq!(now, Hashes::default());
}

type Kept = watch::Sender<Arc<Snapshot>>;

/// A hub on an empty catalog.
fn hub() -> (Kept, Arc<Hub>, Arc<Route>, Metrics) {
    let config = Arc::new(config("upstreams: { clock: { builtin: clock } }\n"));
    let route = Arc::clone(&config.routes[0]);
    let (catalog, inventories) = (Arc::default(), Arc::default());
    let snapshot = Snapshot { generation: 1, config, catalog, inventories };
    let (keep, snapshots) = watch::channel(Arc::new(snapshot));
    let metrics = Metrics::default();
    (keep, Arc::new(Hub::new(snapshots, Arc::default(), metrics.clone())), route, metrics)
}
