//! Six upstreams of mixed kind and era fail at random under load: whatever happens, no answer is wrong.
//!
//! `WEIR_CHAOS` is how long that goes on, in seconds (8 without it); `WEIR_CHAOS_SEED` repeats a run's dice.

mod clients;
mod dice;
mod troubles;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::stdio::child;
use crate::support::eventually::holds;
use crate::support::{Proxy, Side, Weir, eventually};

use clients::{Tally, call_on, listen_on};
use dice::Dice;
use troubles::Server;

/// How often each marker was executed, whoever did it.
#[derive(Debug, Clone, Default)]
struct Executed(Arc<Mutex<HashMap<String, usize>>>);

impl Executed {
    fn note(&self, marker: &str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(marker.to_owned()).or_default() += 1;
    }

    /// The markers that were executed more than once, with those that children noted in a file.
    fn twice(&self, file: &std::path::Path) -> Vec<String> {
        for marker in std::fs::read_to_string(file).unwrap_or_default().lines() {
            self.note(marker);
        }
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter(|(_, count)| **count > 1).map(|(marker, _)| marker.clone()).collect()
    }
}

const CALLERS: usize = 38;
const LISTENERS: usize = 12;

fn seconds() -> u64 {
    std::env::var("WEIR_CHAOS").ok().and_then(|text| text.parse().ok()).unwrap_or(8)
}

/// A number from `/proc/PID/status`, such as `VmRSS`, in KiB.
fn memory(weir: &Weir) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", weir.pid())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

fn descriptors(weir: &Weir) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", weir.pid())).map_or(0, Iterator::count)
}

/// The gateway before all six, each of which answers within two seconds or not at all.
fn gateway(servers: &[Server], file: &std::path::Path) -> Weir {
    let quiet = "telemetry: { log: { level: \"warn,weir=info,weir::relay=warn\" } }";
    let times = "timeout: { connect: 1s, call: 2s }\nwithdraw_after: 500ms";
    let of_children =
        format!(", env: {{ EXECUTED: {file:?} }}, timeout: {{ call: 2s }}, withdraw_after: 500ms");
    let children = child("eve", "", &of_children) + &child("fay", "modern", &of_children);
    let proxy = Proxy::new().section(quiet).entries(&children);
    let add = |proxy: Proxy, server: &Server| proxy.upstream_with(server.name, &server.upstream, times);
    servers.iter().fold(proxy, add).run()
}

/// What the gateway uses, a line now and then; in the end its memory after a quarter of the time, in KiB.
#[expect(clippy::print_stdout, reason = "for who runs it for long")]
fn watch(weir: &Weir, ends: Instant) -> u64 {
    let (begun, step) = (Instant::now(), Duration::from_secs(seconds()) / 24);
    let mut samples = Vec::new();
    while Instant::now() + step < ends {
        holds(step, || false);
        let count = |name: &str| weir.metric(name, &[]).unwrap_or_default();
        println!(
            "chaos: {:4} s, {} KiB, {} descriptors, {} children, {} sessions, {} streams, {} calls in flight",
            begun.elapsed().as_secs(),
            memory(weir),
            descriptors(weir),
            weir.children().len(),
            count("weir_sessions"),
            count("weir_streams"),
            count("weir_calls_in_flight"),
        );
        samples.push(memory(weir));
    }
    samples.get(samples.len() / 4).copied().unwrap_or_else(|| memory(weir))
}

/// Clients call and listen while everything goes wrong, until the end and until all is well again. What came of the
/// calls, and the memory in use after a quarter of the time, in KiB.
fn storm(weir: &Weir, servers: &[Server], dice: &Dice) -> (Tally, u64) {
    let (ends, done) = (Instant::now() + Duration::from_secs(seconds()), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let done = &done;
        let callers: Vec<_> = (0..CALLERS)
            .map(|number| {
                let dice = dice.fork();
                scope.spawn(move || call_on(weir, side(number), (number, dice), done))
            })
            .collect();
        for number in 0..LISTENERS {
            scope.spawn(move || listen_on(weir, side(number), done));
        }
        let mut troubles: Vec<_> = servers
            .iter()
            .map(|server| {
                let dice = dice.fork();
                scope.spawn(move || server.trouble(&dice, ends))
            })
            .collect();
        let of_children = dice.fork();
        troubles.push(scope.spawn(move || troubles::kill_children(weir, &of_children, ends)));
        let early = watch(weir, ends);
        troubles.into_iter().for_each(|thread| thread.join().expect("trouble"));
        done.store(true, Ordering::Relaxed);
        let tallies = callers.into_iter().map(|thread| thread.join().expect("a client"));
        (tallies.fold(Tally::default(), Tally::and), early)
    })
}

#[test]
fn whatever_upstreams_do_no_answer_is_wrong() {
    let (executed, dice) = (Executed::default(), Dice::new());
    let folder = tempfile::TempDir::new().expect("a folder");
    let file = folder.path().join("executed");
    let servers = Server::four(&executed);
    let weir = gateway(&servers, &file);
    eventually!(weir.missing().is_empty());
    let base = descriptors(&weir);
    assert_eq!(weir.children().len(), 2, "one child each");
    let (all, early) = storm(&weir, &servers, &dice);
    println!("chaos: {} good, {} failures, seed {}", all.good, all.failed, dice.seed());
    assert_eq!(all.wrong, Vec::<String>::new(), "seed {}", dice.seed());
    assert_eq!(executed.twice(&file), Vec::<String>::new(), "executed twice; seed {}", dice.seed());
    assert!(all.good as u64 > 20 * seconds(), "{} good, {} failures", all.good, all.failed);
    eventually!(weir.children().len() == 2, "{:?}", weir.children());
    let now = || descriptors(&weir);
    assert!(holds(Duration::from_secs(15), || now() <= base + 4), "{} descriptors, {base} before", now());
    assert_eq!(weir.metric("weir_sessions", &[]), Some(0.0));
    assert_eq!(weir.metric("weir_calls_in_flight", &[]), Some(0.0));
    let late = memory(&weir);
    assert!(late < early + early / 2 + 32 * 1024, "{early} KiB after a quarter, {late} KiB at the end");
}

fn side(number: usize) -> Side {
    if number.is_multiple_of(2) { Side::Legacy } else { Side::Modern }
}
