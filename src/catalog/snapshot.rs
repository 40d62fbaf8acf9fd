//! Configuration and catalog at one moment.

use std::sync::Arc;

use super::{Catalog, Inventories};
use crate::config::Config;

/// What a snapshot is made of. Configuration and upstreams change together, in one step.
#[derive(Debug, Clone)]
pub struct Material {
    /// The configuration in force.
    pub config: Arc<Config>,
    /// Where each of its upstreams stands.
    pub inventories: Arc<Inventories>,
}

/// What a request reads once, at its head, and passes down: configuration and catalog therefore always match.
#[derive(Debug)]
pub struct Snapshot {
    /// Grows with every change of configuration or catalog; 0 until the first catalog is published.
    pub generation: u64,
    /// The configuration in force.
    pub config: Arc<Config>,
    /// What is published.
    pub catalog: Arc<Catalog>,
    /// Where the upstreams stand.
    pub inventories: Arc<Inventories>,
}
