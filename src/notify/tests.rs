//! Debounce and the pending set.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::Changes;
use super::debounce::quiet;
use crate::config::Notify;
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
