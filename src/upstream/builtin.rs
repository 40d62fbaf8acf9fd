//! stand-in
use tokio::sync::watch;

use crate::catalog::Inventory;
use crate::config::Builtin;
use crate::exchange::{Call, Failure, Reply, failed};
use crate::protocol::{Offer, Revision};

/// stand-in
#[derive(Debug)]
pub struct Demonstration {
    changes: watch::Sender<u64>,
}

impl Demonstration {
    /// stand-in
    #[must_use]
    pub fn new(_kind: Builtin) -> Self {
        Self { changes: watch::channel(0).0 }
    }
    /// stand-in
    #[must_use]
    pub fn inventory(&self) -> Inventory {
        Inventory {
            revision: Revision::NEWEST,
            offer: Offer::default(),
            instructions: None,
            tools: Vec::new(),
            prompts: Vec::new(),
            resources: Vec::new(),
            templates: Vec::new(),
            left_out: Vec::new(),
            warnings: Vec::new(),
            ttl: None,
        }
    }
    /// stand-in
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
    /// stand-in
    pub fn call(&self, _call: Call) -> Reply {
        failed(Failure::Internal)
    }
}
