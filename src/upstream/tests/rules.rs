//! The pure rules: back-off, repetition, the gate.

use std::time::Duration;

use super::support::call;
use crate::config::Concurrency;
use crate::exchange::Reason;
use crate::upstream::backoff::pause;
use crate::upstream::fault::{Cure, Fault, Miss};
use crate::upstream::gate::{Full, Gate};

#[test]
fn c063_never_more_than_15_attempts_in_5_minutes() {
    for jitter in [0.0, 0.3, 0.999_999] {
        let pauses: Vec<Duration> = (1..40).map(|failures| pause(failures, jitter)).collect();
        let mut time = Duration::ZERO;
        let within = pauses.iter().take_while(|pause| {
            time += **pause;
            time <= Duration::from_secs(300)
        });
        assert!(within.count() < 15, "with jitter {jitter}");
        assert!(pauses.windows(2).all(|pair| pair[0] <= pair[1]), "growing");
        assert!(pauses.iter().all(|pause| *pause <= Duration::from_secs(30)), "a ceiling");
    }
    assert!(pause(1, 0.0) < Duration::from_secs(1), "the first one is short");
    assert_ne!(pause(4, 0.1), pause(4, 0.9), "jitter");
    assert_ne!(pause(20, 0.1), pause(20, 0.9), "jitter at the ceiling");
    assert_eq!(pause(u32::MAX, 0.0), Duration::from_secs(30));
}

#[test]
fn c118_repetition_rules() {
    let check = |miss: Miss, plain: bool, repeatable: bool| {
        assert_eq!(miss.allows_repeat(false), plain, "{miss:?}");
        assert_eq!(miss.allows_repeat(true), repeatable, "{miss:?}, repeatable");
    };
    check(Fault::unsent(Reason::Unreachable).into(), true, true);
    check(Fault::sent(Reason::Ended).into(), false, true);
    check(Fault::sent(Reason::TimedOut).into(), false, false);
    check(Fault::unsent(Reason::TimedOut).into(), false, false);
    check(Fault::status(503).into(), false, false);
    check(Fault::status(404).into(), false, false);
    check(Fault::status(401).into(), false, false);
    check(Fault::sent(Reason::TooLarge).into(), false, false);
    check(Miss { fault: Fault::status(404), cure: Cure::Resend }, true, true);
    check(Miss { fault: Fault::unsent(Reason::NotMcp), cure: Cure::Relist }, true, true);
}

#[test]
fn a_refusal_proves_that_nothing_ran() {
    for (status, reason, may_have_run) in [
        (301, Reason::Status(301), false),
        (401, Reason::Credential, false),
        (403, Reason::Credential, false),
        (404, Reason::Status(404), false),
        (429, Reason::Status(429), false),
        (502, Reason::Status(502), true),
    ] {
        assert_eq!(Fault::status(status), Fault { reason, may_have_run });
    }
}

#[tokio::test]
async fn over_the_queue_is_busy() {
    let gate = Gate::new(Concurrency { calls: Some(1), writes: None, queue: 1 });
    let call = call("echo", "{}");
    let first = gate.enter(&call).await.unwrap();
    let mut second = Box::pin(gate.enter(&call));
    assert!(futures_util::poll!(&mut second).is_pending());
    assert_eq!(gate.enter(&call).await.unwrap_err(), Full);
    drop(first);
    drop(second.await.unwrap());
    let third = gate.enter(&call).await;
    assert!(third.is_ok(), "the queue is empty again");
}

#[tokio::test]
async fn writes_are_serialised_and_reads_are_not() {
    let gate = Gate::new(Concurrency { calls: None, writes: Some(1), queue: 8 });
    let write = call("echo", "{}");
    let mut read = write.clone();
    read.repeatable = true;
    let _first = gate.enter(&write).await.unwrap();
    let _read = gate.enter(&read).await.unwrap();
    assert!(futures_util::poll!(Box::pin(gate.enter(&write))).is_pending());
}
