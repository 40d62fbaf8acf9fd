//! The end of the process: what runs is answered, what stands is ended, nothing new begins.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::support::exchange::Response;
use crate::support::proxy::is_open;
use crate::support::{Ask, Client, Fake, Pair, Proxy, Side, eras, eventually, json, pairs};

pairs! { c098_a_call_in_flight_is_answered }

eras! {
    c098_standing_streams_end_properly, c098_a_call_beyond_the_deadline_is_cut,
    a_restart_behind_a_balancer_fails_no_call,
}

fn c098_a_call_in_flight_is_answered(pair: Pair) {
    let alpha = pair.fake().start();
    let mut weir = Proxy::before(&alpha).listen("drain: { delay: 0s, deadline: 5s }").run();
    let client = pair.client(&weir);
    let begun = Instant::now();
    let (said, ended) = std::thread::scope(|scope| {
        let call = scope.spawn(|| client.call("alpha__slow", "{\"ms\":900}").said());
        eventually!(alpha.calls("slow").len() == 1);
        weir.signal("TERM");
        let said = call.join().unwrap();
        (said, weir.ends(Duration::from_secs(3)))
    });
    assert_eq!(said, "slow");
    assert_eq!(ended.and_then(|status| status.code()), Some(0), "exit 0 soon after the last call");
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    assert!(!is_open(weir.address));
    if pair.upstream == Side::Legacy {
        assert!(!alpha.verbs("DELETE").is_empty(), "upstream sessions are ended");
    }
}

#[test]
fn c098_work_is_taken_during_the_delay() {
    let alpha = Fake::modern().start();
    let mut weir = Proxy::before(&alpha).listen("drain: { delay: 1s, deadline: 3s }").run();
    weir.signal("TERM");
    eventually!(weir.admin_get("/readyz").0 == 503);
    assert_eq!(json::value(&weir.admin_get("/readyz").1)["draining"], true);
    assert!(!weir.modern().call("alpha__echo", "{}").is_failure(), "served during the delay");
    assert_eq!(weir.admin_get("/livez").0, 200);
    let status = weir.ends(Duration::from_secs(4)).expect("it ends");
    assert_eq!(status.code(), Some(0));
}

fn c098_standing_streams_end_properly(side: Side) {
    let alpha = Fake::of(side).start();
    let mut weir = Proxy::before(&alpha).run();
    let mut stream = weir.client(side).listen();
    weir.signal("TERM");
    let last = stream.next(Duration::from_secs(2));
    if side == Side::Modern {
        let last = last.expect("the completion result");
        assert_eq!(last.raw(&["result", "resultType"]), Some("\"complete\""));
        assert!(last.text.contains("io.modelcontextprotocol/subscriptionId"));
    }
    assert_eq!(stream.ended(Duration::from_secs(2)), Some(true), "ended in order");
    assert_eq!(weir.ends(Duration::from_secs(3)).and_then(|status| status.code()), Some(0));
}

fn c098_a_call_beyond_the_deadline_is_cut(side: Side) {
    let alpha = Fake::of(side).start();
    let mut weir = Proxy::before(&alpha).listen("drain: { delay: 0s, deadline: 500ms }").run();
    let client = weir.client(side);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let call =
            scope.spawn(|| client.request(&Ask::call("alpha__slow", "{}")).try_send().map(|r| r.status()));
        eventually!(alpha.calls("slow").len() == 1);
        weir.signal("TERM");
        call.join().unwrap();
    });
    assert_eq!(weir.ends(Duration::from_secs(3)).and_then(|status| status.code()), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    eventually!(alpha.gone(&alpha.calls("slow")[0]).is_some(), "cancelled upstream");
}

#[test]
fn new_work_is_refused_while_draining() {
    let alpha = Fake::modern().start();
    let mut weir = Proxy::before(&alpha).listen("drain: { delay: 0s, deadline: 5s }").run();
    let client = weir.modern();
    std::thread::scope(|scope| {
        let call = scope.spawn(|| client.call("alpha__slow", "{\"ms\":900}").said());
        eventually!(alpha.calls("slow").len() == 1);
        weir.signal("TERM");
        let late = client.request(&Ask::call("alpha__echo", "{}"));
        let refused = |late: Response| late.status() == 503 && late.header("retry-after").is_some();
        eventually!(late.try_send().is_none_or(refused), "refused or not connected");
        assert_eq!(call.join().unwrap(), "slow");
    });
    assert!(weir.ends(Duration::from_secs(3)).is_some());
}

#[test]
fn t125_a_second_signal_ends_at_once() {
    let alpha = Fake::modern().start();
    let mut weir = Proxy::before(&alpha).listen("drain: { delay: 20s, deadline: 30s }").run();
    weir.signal("TERM");
    eventually!(weir.admin_get("/readyz").0 == 503);
    weir.signal("TERM");
    assert_eq!(weir.ends(Duration::from_secs(2)).and_then(|status| status.code()), Some(1));
}

#[test]
fn sigint_ends_without_a_delay() {
    let alpha = Fake::modern().start();
    let mut weir = Proxy::before(&alpha).listen("drain: { delay: 20s, deadline: 30s }").run();
    weir.signal("INT");
    assert_eq!(weir.ends(Duration::from_secs(2)).and_then(|status| status.code()), Some(0));
}

/// What fails of two calls. A session lives and dies with its process, so the client has a short one.
fn failures(address: SocketAddr, side: Side) -> Vec<String> {
    let client = Client::ready(address, side);
    let calls = ["alpha__echo", "alpha__steps"].map(|name| client.call(name, "{\"ms\":20}"));
    calls.iter().filter(|answer| answer.is_failure()).map(|answer| format!("{answer:?}")).collect()
}

/// What fails until it is done, wherever calls go at the moment.
fn failures_until(done: &AtomicBool, to: &Mutex<SocketAddr>, side: Side) -> Vec<String> {
    let mut failed = Vec::new();
    while !done.load(Ordering::Relaxed) {
        let now = *to.lock().unwrap();
        failed.extend(failures(now, side));
    }
    failed
}

/// One after the other takes the place of the one before it, as a rolling update has it: the new one is ready before
/// the old one is told to end, and who balances sends nothing to one that is not ready.
fn a_restart_behind_a_balancer_fails_no_call(side: Side) {
    let alpha = Fake::of(side).start();
    let start = || Proxy::before(&alpha).listen("drain: { delay: 400ms, deadline: 3s }").run();
    let first = start();
    let (to, done) = (Mutex::new(first.address), AtomicBool::new(false));
    let failed: Vec<String> = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..6)
            .map(|_| {
                let (to, done) = (&to, &done);
                scope.spawn(move || failures_until(done, to, side))
            })
            .collect();
        let mut old = first;
        for _ in 0..3 {
            let new = start();
            old.signal("TERM");
            eventually!(old.admin_get("/readyz").0 == 503);
            *to.lock().unwrap() = new.address;
            let status = old.ends(Duration::from_secs(6)).expect("it ends");
            assert_eq!(status.code(), Some(0));
            old = new;
        }
        done.store(true, Ordering::Relaxed);
        callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect()
    });
    assert_eq!(failed, Vec::<String>::new());
    assert!(alpha.calls("echo").len() > 20, "{}", alpha.calls("echo").len());
}
