//! From the start of the process to the first complete list.

use std::time::Instant;

use super::calls::ERAS;
use super::client::{Connection, MODERN, legacy, modern, open_session};
use super::{Bench, row};

const UPSTREAMS: usize = 3;

/// What a start adds to the time that the slowest upstream takes for its handshake and its list.
pub(crate) fn start(bench: &Bench) {
    for (label, era) in ERAS {
        let mut best = (f64::MAX, 0.0);
        for _ in 0..bench.rounds {
            let begun = Instant::now();
            let weir = bench.gateway(era, UPSTREAMS, "/slow");
            let (_, list) =
                Connection::open(&weir.address).exchange(&modern("/mcp", "", ("tools/list", "", "")));
            let taken = begun.elapsed().as_secs_f64() * 1e3;
            assert!((0..UPSTREAMS).all(|number| list.contains(&format!("up{number}__big"))), "{list}");
            let slowest = handshake(&bench.upstream, era);
            if taken - slowest < best.0 {
                best = (taken - slowest, slowest);
            }
        }
        let (added, slowest) = best;
        row(
            &format!("start to first complete list, {UPSTREAMS} upstreams, {label}"),
            "≤ 30 ms beyond the slowest upstream",
            &format!("{added:.1} ms beyond {slowest:.1} ms"),
        );
    }
}

/// How long an upstream takes for what it is asked at a start, in milliseconds: what it is, its list, and in the modern era
/// a subscription before that.
fn handshake(upstream: &str, era: &str) -> f64 {
    let mut connection = Connection::open(upstream);
    let begun = Instant::now();
    let list = if era == MODERN {
        connection.exchange(&modern("/slow/0", "", ("server/discover", "", "")));
        connection.exchange(&modern("/slow/0", "", ("subscriptions/listen", "", "")));
        modern("/slow/0", "", ("tools/list", "", ""))
    } else {
        let session = open_session(&mut connection, "/slow/0");
        legacy("/slow/0", &session, ("tools/list", ""))
    };
    connection.exchange(&list);
    begun.elapsed().as_secs_f64() * 1e3
}
