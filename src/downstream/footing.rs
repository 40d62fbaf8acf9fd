//! What a stream that outlives its request rests on.

use std::sync::Arc;

use tokio::sync::watch;

use super::{Shared, until};
use crate::config::Route;
use crate::principal::{Principal, Rights};
use crate::relay::Seat;

/// The principal of a standing stream and its route, as configurations come and go.
pub(super) struct Footing {
    shared: Arc<Shared>,
    principal: watch::Sender<Principal>,
    route: Arc<Route>,
    /// Other configurations.
    changes: watch::Receiver<u64>,
}

impl Footing {
    /// That of a stream which this principal opens on a route. It looks at once whether it may: the request may be older
    /// than the configuration in force.
    pub(super) fn new(shared: &Arc<Shared>, principal: &Principal, route: &Arc<Route>) -> Self {
        let mut changes = shared.authenticators.changes();
        changes.mark_changed();
        let principal = watch::Sender::new(principal.clone());
        Self { shared: Arc::clone(shared), principal, route: Arc::clone(route), changes }
    }

    /// Where the stream stands at a moment, and with which principal.
    pub(super) fn seat(&self) -> (Seat, Principal) {
        let principal = self.principal.borrow().clone();
        (self.shared.seat_now(&self.route, &principal), principal)
    }

    /// As [`Footing::seat`], for who looks from elsewhere.
    pub(super) fn seats(&self) -> impl Fn() -> Seat + Send + Sync + Clone + 'static + use<> {
        let (shared, route, principal) =
            (Arc::clone(&self.shared), Arc::clone(&self.route), self.principal.subscribe());
        move || shared.seat_now(&route, &principal.borrow())
    }

    /// Waits until another configuration gives its principal other rights, perhaps. `None`: the stream must end, with
    /// its token, with its route, or because Weir ends its streams.
    ///
    /// # Cancel safety
    /// A change that was not reported is reported the next time.
    pub(super) async fn turned(&mut self) -> Option<Rights> {
        let ends = self.principal.borrow().until;
        tokio::select! {
            () = self.shared.ending.cancelled() => None,
            () = until(ends) => None,
            changed = self.changes.changed() => {
                changed.ok()?;
                let principal = self.shared.again(&self.principal.borrow(), &self.route)?;
                let rights = principal.rights.clone();
                self.principal.send_replace(principal);
                Some(rights)
            }
        }
    }

    /// Waits until the stream must end.
    pub(super) async fn over(&mut self) {
        while self.turned().await.is_some() {}
    }
}
