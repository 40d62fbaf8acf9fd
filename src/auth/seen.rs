//! What principals may do on routes, remembered: scopes imply others there, and that is worked out once for each grant.

use std::sync::Arc;

use dashmap::DashMap;

use super::on_route;
use crate::config::Route;
use crate::names::RouteName;
use crate::principal::{Grant, Principal, Rights, Subject};

/// Most grants that are remembered; beyond it all are worked out again.
const MOST: usize = 4096;

/// By route and by the place of a grant in memory, which is its own as long as the grant is kept with it.
#[derive(Debug, Default)]
pub(super) struct Seen(DashMap<(RouteName, usize), Known>);

#[derive(Debug)]
struct Known {
    subject: Subject,
    grant: Arc<Grant>,
    rights: Rights,
}

impl Seen {
    /// As [`on_route`].
    pub(super) fn on_route(&self, principal: Principal, route: &Route) -> Principal {
        let Rights::Granted(grant) = &principal.rights else { return principal };
        let key = (route.name.clone(), Arc::as_ptr(grant).addr());
        if let Some(known) = self.0.get(&key)
            && Arc::ptr_eq(&known.grant, grant)
            && known.subject == principal.subject
        {
            return Principal { rights: known.rights.clone(), ..principal };
        }
        let seen = on_route(&principal, &route.policy);
        if self.0.len() >= MOST {
            self.0.clear();
        }
        let (subject, grant) = (principal.subject, Arc::clone(grant));
        self.0.insert(key, Known { subject, grant, rights: seen.rights.clone() });
        seen
    }
}
