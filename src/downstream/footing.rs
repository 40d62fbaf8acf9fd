//! What a stream that outlives its request rests on.

use std::sync::Arc;

use tokio::sync::watch;

use super::{Shared, until};
use crate::config::Route;
use crate::principal::{Principal, Rights};

/// The principal of a standing stream and its route, as configurations come and go.
pub(super) struct Footing {
    shared: Arc<Shared>,
    principal: Principal,
    route: Arc<Route>,
    /// Other configurations.
    changes: watch::Receiver<u64>,
}

impl Footing {
    /// That of a stream which this principal opens on a route.
    pub(super) fn new(shared: &Arc<Shared>, principal: &Principal, route: &Arc<Route>) -> Self {
        Self {
            shared: Arc::clone(shared),
            principal: principal.clone(),
            route: Arc::clone(route),
            changes: shared.authenticators.changes(),
        }
    }

    /// Waits until another configuration gives its principal other rights, perhaps. `None`: the stream must end, with
    /// its token, with its route, or because Weir ends its streams.
    ///
    /// # Cancel safety
    /// A change that was not reported is reported the next time.
    pub(super) async fn turned(&mut self) -> Option<Rights> {
        tokio::select! {
            () = self.shared.ending.cancelled() => None,
            () = until(self.principal.until) => None,
            changed = self.changes.changed() => {
                changed.ok()?;
                self.principal = self.shared.again(&self.principal, &self.route)?;
                Some(self.principal.rights.clone())
            }
        }
    }

    /// Waits until the stream must end.
    pub(super) async fn over(&mut self) {
        while self.turned().await.is_some() {}
    }
}
