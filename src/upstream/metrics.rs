//! What is counted about upstreams.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

use crate::exchange::Event;
use crate::names::UpstreamName;
use crate::protocol::Method;

/// Upper bounds in seconds (OpenTelemetry's for MCP operations).
const BUCKETS: [f64; 12] = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 60.0];

/// How an upstream may stand.
pub(super) const STATES: [&str; 4] = ["connecting", "up", "degraded", "down"];

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Operation {
    method: &'static str,
    upstream: String,
    outcome: &'static str,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Of {
    upstream: String,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Standing {
    upstream: String,
    state: &'static str,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Attempt {
    upstream: String,
    outcome: &'static str,
}

/// The families of the upstream side. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Metrics(Arc<Families>);

#[derive(Debug)]
struct Families {
    operations: Family<Operation, Histogram>,
    up: Family<Of, Gauge<i64, AtomicI64>>,
    states: Family<Standing, Gauge<i64, AtomicI64>>,
    in_flight: Family<Of, Gauge<i64, AtomicI64>>,
    listings: Family<Attempt, Counter>,
    repeats: Family<Of, Counter>,
}

impl Metrics {
    /// Registers the families.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Families {
            operations: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            up: Family::default(),
            states: Family::default(),
            in_flight: Family::default(),
            listings: Family::default(),
            repeats: Family::default(),
        };
        registry.register(
            "mcp_client_operation_duration_seconds",
            "Time from sending a call to an upstream to its last event",
            metrics.operations.clone(),
        );
        registry.register(
            "weir_upstream_up",
            "Whether an upstream is listed and reachable",
            metrics.up.clone(),
        );
        registry.register(
            "weir_upstream_state",
            "1 for the state in which an upstream is, 0 for the others",
            metrics.states.clone(),
        );
        registry.register(
            "weir_upstream_calls_in_flight",
            "Calls that an upstream has not answered yet",
            metrics.in_flight.clone(),
        );
        registry.register("weir_upstream_listings", "Listings of an upstream", metrics.listings.clone());
        registry.register(
            "weir_upstream_repeats",
            "Calls that were sent a second time",
            metrics.repeats.clone(),
        );
        Self(Arc::new(metrics))
    }

    /// An upstream stands so, one of [`STATES`].
    pub(super) fn set_state(&self, upstream: &UpstreamName, state: &'static str) {
        self.0.up.get_or_create(&of(upstream)).set(i64::from(matches!(state, "up" | "degraded")));
        for known in STATES {
            let standing = Standing { upstream: upstream.to_string(), state: known };
            self.0.states.get_or_create(&standing).set(i64::from(known == state));
        }
    }

    /// An upstream is not configured any more: nobody asks whether it is up.
    pub(super) fn forget(&self, upstream: &UpstreamName) {
        self.0.up.remove(&of(upstream));
        for state in STATES {
            self.0.states.remove(&Standing { upstream: upstream.to_string(), state });
        }
    }

    /// Counts one listing by its outcome, `ok` or the label of a reason.
    pub(super) fn listed(&self, upstream: &UpstreamName, outcome: &'static str) {
        let attempt = Attempt { upstream: upstream.to_string(), outcome };
        self.0.listings.get_or_create(&attempt).inc();
    }

    pub(super) fn repeated(&self, upstream: &UpstreamName) {
        self.0.repeats.get_or_create(&of(upstream)).inc();
    }

    /// Starts the clock of a call.
    pub(super) fn started(&self, upstream: &UpstreamName, method: Method) -> Timer {
        let of = of(upstream);
        let in_flight = self.0.in_flight.get_or_create(&of).clone();
        in_flight.inc();
        let labels = Operation { method: method.as_str(), upstream: of.upstream, outcome: "cancelled" };
        Timer { metrics: self.clone(), in_flight, labels, since: Instant::now() }
    }
}

fn of(upstream: &UpstreamName) -> Of {
    Of { upstream: upstream.to_string() }
}

/// The clock of one call. Dropped before the call ended, it counts as cancelled.
#[derive(Debug)]
pub(super) struct Timer {
    metrics: Metrics,
    in_flight: Gauge<i64, AtomicI64>,
    labels: Operation,
    since: Instant,
}

impl Timer {
    /// The call ended in this event.
    pub(super) fn ended(mut self, last: &Event) {
        self.labels.outcome = match last {
            Event::Result(_) => "result",
            Event::Error(_) => "error",
            Event::Failed(failure) => failure.label(),
            Event::Asks(_) => "input_required",
            Event::Progress(_) | Event::Log(..) | Event::Paused(_) | Event::Task(_) | Event::Inquiry(_) => {
                "open"
            }
        };
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        let took = self.since.elapsed().as_secs_f64();
        self.metrics.0.operations.get_or_create(&self.labels).observe(took);
        self.in_flight.dec();
    }
}
