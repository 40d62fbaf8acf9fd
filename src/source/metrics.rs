//! What is counted about configurations.

use std::sync::atomic::AtomicI64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Attempt {
    outcome: &'static str,
}

/// The families of this module. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Metrics {
    reloads: Family<Attempt, Counter>,
    problems: Gauge<i64, AtomicI64>,
}

impl Metrics {
    /// Registers the families.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self { reloads: Family::default(), problems: Gauge::default() };
        registry.register(
            "weir_config_reloads",
            "Configurations that were read while Weir ran, by what became of them",
            metrics.reloads.clone(),
        );
        registry.register(
            "weir_config_problems",
            "Errors in the configuration as it was last read; more than 0: an older one is in force",
            metrics.problems.clone(),
        );
        metrics
    }

    /// A configuration was put in force.
    pub(super) fn applied(&self) {
        self.reloads.get_or_create(&Attempt { outcome: "applied" }).inc();
        self.problems.set(0);
    }

    /// A configuration was refused for so many errors.
    pub(super) fn refused(&self, errors: usize) {
        self.reloads.get_or_create(&Attempt { outcome: "refused" }).inc();
        self.problems.set(i64::try_from(errors).unwrap_or(i64::MAX));
    }
}
