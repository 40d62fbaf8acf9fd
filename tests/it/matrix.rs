//! Any client reaches any upstream: every feature, run through the gateway for each pair of revisions.
//!
//! What is expected stands in `matrix/expected.rs`, what is found is written to `docs/compatibility.md` with
//! `WEIR_UPDATE=1`. A cell that does not do what is expected of it fails the test, also one that works and should not.

mod expected;
mod feature;
mod page;

use std::thread;
use std::time::Duration;

use expected::expected;
use feature::{Bench, Feature};

use crate::support::{Ask, Client, Fake, Side, eventually, resource};

/// Every revision, on either side. 2024-11-05 is spoken over HTTP+SSE.
const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/// Who talks to whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pair {
    client: &'static str,
    upstream: &'static str,
}

impl Pair {
    /// The older one of the two revisions.
    fn older(self) -> &'static str {
        self.client.min(self.upstream)
    }

    /// Whether one of the two is stateless and the other is not.
    fn crosses_eras(self) -> bool {
        side(self.client) != side(self.upstream)
    }
}

fn side(revision: &str) -> Side {
    if revision >= "2026-07-28" { Side::Modern } else { Side::Legacy }
}

/// What was found in one cell: nothing, or why it does not work.
struct Found {
    pair: Pair,
    feature: Feature,
    fault: Option<String>,
}

fn cells(pair: Pair) -> Vec<Found> {
    let bench = Bench::new(pair);
    let found = Feature::ALL.map(|feature| Found { pair, feature, fault: bench.fault(feature) });
    assert_eq!(bench.violations(), Vec::<String>::new(), "{pair:?}");
    found.into()
}

#[test]
fn any_client_reaches_any_upstream() {
    let column = |upstream| REVISIONS.map(|client| cells(Pair { client, upstream }));
    let found: Vec<Found> = thread::scope(|scope| {
        let columns = REVISIONS.map(|upstream| scope.spawn(move || column(upstream)));
        let ended = columns.into_iter().flat_map(|one| one.join().expect("a column ends"));
        ended.flatten().collect()
    });
    let surprises: Vec<String> = found
        .iter()
        .filter(|cell| cell.fault.is_none() != expected(cell.feature, cell.pair).works())
        .map(|cell| {
            let Pair { client, upstream } = cell.pair;
            let fault = cell.fault.as_deref().unwrap_or("it works");
            format!("{}, client {client}, upstream {upstream}: {fault}", cell.feature.name())
        })
        .collect();
    assert!(surprises.is_empty(), "{} cells are not as expected:\n{}", surprises.len(), surprises.join("\n"));
    page::compare();
}

/// What fails to work for want of HTTP+SSE shall not fail for want of a fixture.
#[test]
fn client_and_upstream_of_the_oldest_transport_understand_each_other() {
    let alpha =
        Fake::legacy().over_sse().asking().subscribable().with("resources", [resource("x:1")]).start();
    let client = Client::new(alpha.address(), Side::Legacy).at("").capable("{\"roots\":{},\"sampling\":{}}");
    let client = client.over_sse().expect("the fixture speaks HTTP+SSE").opened();
    assert_eq!(client.call("echo", "{\"a\":1}").raw(&["result", "structuredContent"]), Some("{\"a\":1}"));
    assert_eq!(client.ask(Ask::call("steps", "{}").progress("5")).before.len(), 3);
    let talk = client.converse(Ask::call("ask", "{\"ask\":\"roots,sampling\",\"marker\":\"m\"}"));
    assert_eq!((talk.asked.len(), talk.answer.raw(&["error"])), (2, None));
    client.ask(Ask::new("resources/subscribe").params("{\"uri\":\"x:1\"}")).result();
    alpha.update("x:1");
    let mut stream = client.listen();
    let told = stream.next(Duration::from_secs(2)).expect("an update");
    assert_eq!(told.method(), "notifications/resources/updated");
    let sent = client.request(&Ask::call("slow", "{}").id("\"s\"")).send_only();
    eventually!(alpha.calls("slow").len() == 1);
    client.cancel("\"s\"");
    eventually!(alpha.gone(&alpha.calls("slow")[0]).is_some());
    drop(sent);
    assert_eq!(alpha.violations(), Vec::<String>::new());
}
