//! What principals may do on routes, remembered: scopes imply others there, and that is worked out once for each grant.

use std::sync::Arc;

use dashmap::DashMap;

use super::on_route;
use crate::config::Route;
use crate::principal::{Grant, Principal, Rights, Subject};

/// Most grants that are remembered; beyond it all are worked out again.
const MOST: usize = 4096;

/// By the places of a route and of a grant in memory, which are their own as long as both are kept with it: a route of another
/// configuration is another one, whatever its name.
#[derive(Debug, Default)]
pub(super) struct Seen(DashMap<(usize, usize), Known>);

#[derive(Debug)]
struct Known {
    subject: Subject,
    route: Arc<Route>,
    grant: Arc<Grant>,
    rights: Rights,
}

impl Seen {
    /// As [`on_route`].
    pub(super) fn on_route(&self, principal: Principal, route: &Arc<Route>) -> Principal {
        let Rights::Granted(grant) = &principal.rights else { return principal };
        let key = (Arc::as_ptr(route).addr(), Arc::as_ptr(grant).addr());
        if let Some(known) = self.0.get(&key)
            && Arc::ptr_eq(&known.grant, grant)
            && Arc::ptr_eq(&known.route, route)
            && known.subject == principal.subject
        {
            return Principal { rights: known.rights.clone(), ..principal };
        }
        let seen = on_route(&principal, &route.policy);
        if self.0.len() >= MOST {
            self.0.clear();
        }
        let (subject, route, grant) = (principal.subject, Arc::clone(route), Arc::clone(grant));
        self.0.insert(key, Known { subject, route, grant, rights: seen.rights.clone() });
        seen
    }
}
