//! Weir against nginx as a plain proxy before the same upstream, in one run: the table of `docs/performance.md`.
//!
//! Rounds are interleaved, and the best of each counts. Gateway and nginx are processes of their own; processor time is
//! the operating system's account of them. Upstream and load generator are threads of the benchmark; every answer is
//! checked. Quote the ratios and the processor time: wall clock on a shared machine says little.
//!
//! `cargo bench --profile dist --bench speed` (the build that is shipped) needs nginx (Debian: `nginx-light`). `WEIR_BENCH_ROUNDS` and
//! `WEIR_BENCH_CALLS` change the size, `WEIR_BENCH_ONLY` takes the measures whose name holds it.
#![expect(clippy::disallowed_types, reason = "a load generator on plain threads measures wall time")]
#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a benchmark prints, and stops at the first surprise"
)]

#[path = "speed/access.rs"]
mod access;
#[path = "speed/calls.rs"]
mod calls;
#[path = "speed/changes.rs"]
mod changes;
#[path = "speed/client.rs"]
mod client;
#[path = "support/gateway.rs"]
mod gateway;
#[path = "support/http.rs"]
mod http;
#[path = "speed/lists.rs"]
mod lists;
#[path = "speed/memory.rs"]
mod memory;
#[path = "speed/nginx.rs"]
mod nginx;
#[path = "support/number.rs"]
mod number;
#[path = "support/propagation.rs"]
mod propagation;
#[path = "speed/sessions.rs"]
mod sessions;
#[path = "speed/start.rs"]
mod start;
#[path = "speed/upstream.rs"]
mod upstream;
#[path = "support/usage.rs"]
mod usage;

use client::{Check, Load, drive};
use gateway::{Weir, entry};
use nginx::Nginx;
use number::{count, setting};

/// What all measures share.
struct Bench {
    upstream: String,
    nginx: Nginx,
    rounds: usize,
    calls: usize,
}

/// Who is measured.
struct Contender<'c> {
    label: String,
    address: &'c str,
    requests: Vec<String>,
    cpu: &'c dyn Fn() -> f64,
}

/// How much each of them is asked in a round.
#[derive(Clone, Copy)]
struct Size {
    calls: usize,
    clients: usize,
    /// Of a result, at least.
    bytes: usize,
}

/// The best of all rounds, in microseconds.
#[derive(Clone, Copy)]
struct Best {
    cpu: f64,
    each: f64,
    p50: f64,
    p99: f64,
}

/// A measure by its name.
type Measure = (&'static str, fn(&Bench));

const MEASURES: [Measure; 11] = [
    ("small", calls::small),
    ("large", calls::large),
    ("latency", calls::latency),
    ("events", calls::events),
    ("cores", calls::cores),
    ("lists", lists::lists),
    ("session", sessions::whole_session),
    ("idle", sessions::idle),
    ("changes", changes::changes),
    ("start", start::start),
    ("access", access::access),
];

fn main() {
    let upstream = upstream::start();
    let nginx = Nginx::start(&upstream);
    let (rounds, calls) = (setting("WEIR_BENCH_ROUNDS", 8), setting("WEIR_BENCH_CALLS", 4000));
    let bench = Bench { upstream, nginx, rounds, calls };
    let only = std::env::var("WEIR_BENCH_ONLY").unwrap_or_default();
    println!("| what | goal | measured |\n|---|---|---|");
    let size = std::fs::metadata(gateway::binary()).expect("the binary").len();
    row(
        "binary",
        "20 MiB",
        &format!("{:.1} MiB", count(usize::try_from(size / 1024).expect("a size")) / 1024.0),
    );
    for (name, measure) in MEASURES {
        if name.contains(&only) {
            measure(&bench);
        }
    }
}

/// A line of the table.
fn row(what: &str, goal: &str, measured: &str) {
    println!("| {what} | {goal} | {measured} |");
}

/// A line that holds processor time against that of nginx.
fn ratio_row(what: &str, goal: f64, (own, other): (f64, f64)) {
    let ratio = own / other;
    let verdict = if ratio <= goal { "" } else { " (missed)" };
    row(
        what,
        &format!("≤ {goal:.2} ×"),
        &format!("{ratio:.2} × ({own:.1} µs against {other:.1} µs){verdict}"),
    );
}

impl Bench {
    /// A gateway before so many upstreams `up0`, `up1`, … of an era, each at a path.
    fn gateway(&self, era: &str, upstreams: usize, path: &str) -> Weir {
        self.gateway_with(era, (upstreams, path), "", &[])
    }

    /// The same with further sections, run by way of a command.
    fn gateway_with(
        &self,
        era: &str,
        (upstreams, path): (usize, &str),
        more: &str,
        by_way_of: &[&str],
    ) -> Weir {
        let url = |number: usize| format!("http://{}{path}/{number}", self.upstream);
        let entries: String =
            (0..upstreams).map(|number| entry(&format!("up{number}"), &url(number), era)).collect();
        Weir::of(&format!("{more}upstreams:\n{entries}"), by_way_of)
    }

    /// Lets them take turns; the best of each.
    fn compete(&self, contenders: &[Contender<'_>], size: Size, check: Check) -> Vec<Best> {
        let most = f64::MAX;
        let mut best = vec![Best { cpu: most, each: most, p50: most, p99: most }; contenders.len()];
        for _ in 0..self.rounds {
            for (best, contender) in best.iter_mut().zip(contenders) {
                let load = Load {
                    requests: &contender.requests,
                    calls: size.calls,
                    clients: size.clients,
                    bytes: size.bytes,
                    check,
                };
                let before = (contender.cpu)();
                let times = drive(contender.address, &load);
                let cpu = ((contender.cpu)() - before) * 1e6 / count(size.calls);
                let least = |known: &mut f64, seen: f64| *known = known.min(seen);
                least(&mut best.cpu, cpu);
                least(&mut best.each, times.each);
                least(&mut best.p50, times.p50);
                least(&mut best.p99, times.p99);
            }
        }
        best
    }
}
