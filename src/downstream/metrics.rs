//! Sessions and refusals.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The families of the client side.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    /// Legacy sessions that are open now.
    pub sessions: Gauge,
    /// Messages that were refused before they became a call.
    pub refused: Counter,
    /// Calls that wait for a stateless client's answers now.
    pub parked: Gauge,
    /// Legacy requests whose version header differs from the session's revision.
    pub revision_mismatch: Counter,
}

impl Metrics {
    /// Makes the families known to the registry.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register("weir_sessions", "Legacy sessions, open now", metrics.sessions.clone());
        registry.register(
            "weir_refused",
            "Messages refused before they became a call",
            metrics.refused.clone(),
        );
        registry.register(
            "weir_parked",
            "Calls that wait for answers between two attempts",
            metrics.parked.clone(),
        );
        registry.register(
            "weir_revision_mismatch",
            "Legacy requests whose version header differs from what their session negotiated",
            metrics.revision_mismatch.clone(),
        );
        metrics
    }
}
