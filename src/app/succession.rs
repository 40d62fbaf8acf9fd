//! How another configuration takes the place of the one in force.

use std::sync::Arc;

use tokio::sync::watch;

use super::{AppError, chain};
use crate::auth::{self, Authenticators};
use crate::catalog::Snapshot;
use crate::config::Config;
use crate::telemetry::LogLevel;
use crate::upstream::{self, Set};

/// The parts that depend on the configuration and are not made anew for each request.
#[derive(Debug)]
pub(super) struct Succession {
    pub(super) authenticators: Arc<Authenticators>,
    pub(super) upstreams: Set,
    pub(super) snapshots: watch::Receiver<Arc<Snapshot>>,
    pub(super) log_level: Option<LogLevel>,
}

impl Succession {
    /// Puts a configuration in force: as a whole, or not at all. Requests that have begun go on with the one that they
    /// see; what outlives a request looks whether it may go on.
    ///
    /// # Errors
    /// Why it cannot be, in words.
    pub(super) async fn apply(&self, config: Arc<Config>) -> Result<(), String> {
        let (upstreams, authenticator) = self.prepare(&config).map_err(|error| chain(&error))?;
        self.authenticators.put(authenticator);
        self.upstreams.put(upstreams);
        if let Some(level) = &self.log_level
            && !level.follow(&config.telemetry)
        {
            tracing::debug!("nobody logs any more");
        }
        let mut snapshots = self.snapshots.clone();
        if snapshots.wait_for(|snapshot| Arc::ptr_eq(&snapshot.config, &config)).await.is_ok() {
            self.authenticators.settle();
        }
        Ok(())
    }

    fn prepare(&self, config: &Arc<Config>) -> Result<(upstream::Next, auth::Prepared), AppError> {
        Ok((self.upstreams.prepare(config)?, self.authenticators.prepare(config)?))
    }
}
