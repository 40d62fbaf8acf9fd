//! How much is announced.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The families of the hub.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    /// Standing streams that are open now.
    pub streams: Gauge,
    /// Subscribers that were told of a change.
    pub told: Counter,
}

impl Metrics {
    /// Makes the families known to the registry.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register("weir_streams", "Standing streams of clients, open now", metrics.streams.clone());
        registry.register(
            "weir_list_changed",
            "Announcements of changed lists made to subscribers",
            metrics.told.clone(),
        );
        metrics
    }
}
