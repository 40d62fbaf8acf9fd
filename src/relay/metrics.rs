//! How many exchanges, how long, how they ended.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// The labels of an operation. All closed: methods are a table, routes and upstreams are configured (empty where none
/// is asked), outcomes are an enum.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Labels {
    pub(super) method: &'static str,
    pub(super) route: String,
    pub(super) upstream: String,
    pub(super) outcome: &'static str,
}

/// The families of the relay.
#[derive(Debug, Clone)]
pub struct Metrics {
    duration: Family<Labels, Histogram, fn() -> Histogram>,
    in_flight: Gauge,
}

fn buckets() -> Histogram {
    Histogram::new(exponential_buckets(0.0005, 2.5, 14))
}

impl Metrics {
    /// Makes the families known to the registry.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let duration = Family::new_with_constructor(buckets as fn() -> Histogram);
        let metrics = Self { duration, in_flight: Gauge::default() };
        registry.register(
            "mcp_server_operation_duration_seconds",
            "Time from a call's arrival at the relay to its last event",
            metrics.duration.clone(),
        );
        registry.register("weir_calls_in_flight", "Calls that have no answer yet", metrics.in_flight.clone());
        metrics
    }

    pub(super) fn began(&self) {
        self.in_flight.inc();
    }

    pub(super) fn ended(&self, labels: &Labels, took: Duration) {
        self.in_flight.dec();
        self.duration.get_or_create(labels).observe(took.as_secs_f64());
    }
}
