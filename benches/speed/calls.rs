//! Calls of tools: small and large, alone and many at a time, with events, on one core and on two.

use super::client::{Connection, LEGACY, MODERN, call, open_session};
use super::gateway::Weir;
use super::{Bench, Best, Contender, Size, memory, ratio_row, row};

pub(crate) const ERAS: [(&str, &str); 2] = [("modern", MODERN), ("legacy", LEGACY)];
const SMALL: usize = 64;
const LARGE: usize = 64 * 1024;
const HUGE: usize = 8 * 1024 * 1024;

/// Whether an answer is that of a call.
pub(crate) fn is_good(body: &str) -> bool {
    body.contains("\"id\":7") && body.contains("\"text\":\"x")
}

/// What clients of an era ask through a gateway before so many upstreams, one request for each connection.
fn requests(weir: &Weir, era: &str, (upstreams, clients, bytes): (usize, usize, usize)) -> Vec<String> {
    (0..clients)
        .map(|number| {
            let session = session_of(weir, era);
            call(era, "/mcp", &session, (&format!("up{}__big", number % upstreams), bytes))
        })
        .collect()
}

fn session_of(weir: &Weir, era: &str) -> String {
    if era == LEGACY { open_session(&mut Connection::open(&weir.address), "/mcp") } else { String::new() }
}

impl Bench {
    /// nginx, which is asked as the upstream itself would be.
    fn plain<'b>(&'b self, path: &str, bytes: usize, cpu: &'b dyn Fn() -> f64) -> Contender<'b> {
        let requests = vec![call(MODERN, path, "", ("big", bytes))];
        Contender { label: "nginx".to_owned(), address: &self.nginx.address, requests, cpu }
    }

    /// nginx and each pair of eras; the figures of nginx, and those of each pair with its name.
    fn pairs(&self, path: &str, upstreams: usize, size: Size) -> (Best, Vec<(String, bool, Best)>) {
        let gateways = ERAS.map(|(_, era)| self.gateway(era, upstreams, path));
        let cpus = gateways.each_ref().map(|weir| || weir.cpu());
        let of_nginx = || self.nginx.cpu();
        let mut contenders = vec![self.plain(&format!("{path}/0"), size.bytes, &of_nginx)];
        let mut bridged = Vec::new();
        for (client, era) in ERAS {
            for ((weir, cpu), (upstream, _)) in gateways.iter().zip(&cpus).zip(ERAS) {
                let requests = requests(weir, era, (upstreams, size.clients, size.bytes));
                let label = format!("{client} client, {upstream} upstream");
                contenders.push(Contender { label, address: &weir.address, requests, cpu });
                bridged.push(client != upstream);
            }
        }
        let best = self.compete(&contenders, size, is_good);
        let labels = contenders.iter().map(|contender| contender.label.clone());
        let mut all = labels.zip(best);
        let plain = all.next().expect("nginx").1;
        (plain, all.zip(bridged).map(|((label, best), bridged)| (label, bridged, best)).collect())
    }
}

/// Small results, 16 clients, each pair of eras, before one and before ten upstreams.
pub(crate) fn small(bench: &Bench) {
    for upstreams in [1, 10] {
        let size = Size { calls: bench.calls, clients: 16, bytes: SMALL };
        let (plain, pairs) = bench.pairs("/mcp", upstreams, size);
        for (label, bridged, best) in pairs {
            let what = format!("processor time per call, {upstreams} upstreams, {label}");
            ratio_row(&what, if bridged { 2.4 } else { 2.0 }, (best.cpu, plain.cpu));
        }
    }
}

/// Results of 64 KiB and of 8 MiB.
pub(crate) fn large(bench: &Bench) {
    let size = Size { calls: bench.calls / 4, clients: 16, bytes: LARGE };
    let (plain, pairs) = bench.pairs("/mcp", 1, size);
    for (label, _, best) in pairs {
        ratio_row(&format!("64 KiB result, {label}"), 1.5, (best.cpu, plain.cpu));
    }
    let size = Size { calls: 16, clients: 4, bytes: HUGE };
    let (plain, pairs) = bench.pairs("/mcp", 1, size);
    for (label, _, best) in pairs {
        ratio_row(&format!("8 MiB result, {label}"), 1.5, (best.cpu, plain.cpu));
    }
    for (label, era) in ERAS {
        let weir = bench.gateway(era, 1, "/mcp");
        let requests = requests(&weir, MODERN, (1, 4, HUGE));
        let cpu = || weir.cpu();
        let contender = Contender { label: label.to_owned(), address: &weir.address, requests, cpu: &cpu };
        let before = memory::resident(weir.id(), "VmRSS");
        memory::forget_highest(weir.id());
        bench.compete(&[contender], size, is_good);
        let above = super::count(memory::resident(weir.id(), "VmHWM") - before) / 1024.0;
        let payload = super::count(size.clients * HUGE / 1024) / 1024.0;
        row(
            &format!("memory with {} results of 8 MiB in flight, {label} upstream", size.clients),
            "≤ 2.00 × payload",
            &format!("{:.2} × ({above:.1} MiB)", above / payload),
        );
    }
}

/// The time a call takes for one client, and for 64 at a time.
pub(crate) fn latency(bench: &Bench) {
    let size = Size { calls: bench.calls / 4, clients: 1, bytes: SMALL };
    let (plain, pairs) = bench.pairs("/mcp", 1, size);
    for (label, _, best) in pairs {
        ratio_row(&format!("p50, one client, {label}"), 1.7, (best.p50, plain.p50));
    }
    let size = Size { calls: bench.calls * 2, clients: 64, bytes: SMALL };
    let (plain, pairs) = bench.pairs("/mcp", 1, size);
    for (label, _, best) in pairs {
        ratio_row(&format!("p99, 64 clients, {label}"), 1.5, (best.p99, plain.p99));
    }
}

/// Answers as events, with a notification before the answer.
pub(crate) fn events(bench: &Bench) {
    let size = Size { calls: bench.calls, clients: 16, bytes: SMALL };
    let (plain, pairs) = bench.pairs("/events", 1, size);
    for (label, _, best) in pairs {
        ratio_row(&format!("answers with events, {label}"), 2.0, (best.cpu, plain.cpu));
    }
}

/// How much more two cores do than one.
pub(crate) fn cores(bench: &Bench) {
    let gateways = [&["taskset", "-c", "0"][..], &["taskset", "-c", "0,1"][..]]
        .map(|cores| bench.gateway_with(MODERN, (1, "/mcp"), "", cores));
    let cpus = gateways.each_ref().map(|weir| || weir.cpu());
    let contenders: Vec<Contender<'_>> = gateways
        .iter()
        .zip(&cpus)
        .map(|(weir, cpu)| Contender {
            label: String::new(),
            address: &weir.address,
            requests: requests(weir, MODERN, (1, 64, SMALL)),
            cpu,
        })
        .collect();
    let size = Size { calls: bench.calls * 2, clients: 64, bytes: SMALL };
    let best = bench.compete(&contenders, size, is_good);
    let [one, two] = best.as_slice() else { return };
    row(
        "throughput with two cores against one (the load runs on the same two)",
        "≥ 1.70 ×",
        &format!("{:.2} ×", one.each / two.each),
    );
}
