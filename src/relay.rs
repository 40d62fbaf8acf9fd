//! From a call to its reply.
//!
//! Lists are answered from the view, without touching an upstream. Everything else is planned (pure: which upstream,
//! under which name, with which params; the access decision is inside, so no path skips it), sent, and its events
//! are rewritten on the way back. The relay knows neither HTTP bodies nor an era.

mod audit;
mod execute;
mod inquiry;
mod links;
mod list;
mod locate;
mod metrics;
mod mirror;
mod plan;
mod probe;
mod record;
mod spelling;
mod tasks;
mod template;

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;

use futures_util::{Stream, StreamExt as _, stream};

pub use list::{ListCall, Listing};
pub use metrics::Metrics;

use audit::Auditor;
use locate::{Finder, Target};
use plan::{Memory, Plan};
use record::Record;
use tasks::Known;

use crate::catalog::{Presence, Snapshot};
use crate::config::Route;
use crate::exchange::{Call, Caller, Failure, Reason, Reply, SessionKey, failed};
use crate::names::UpstreamName;
use crate::principal::{Principal, Scope, Subject};
use crate::protocol::Method;
use crate::seal::{Keyring, Owner};
use crate::telemetry::{AuditLog, Unwritable};
use crate::upstream::{Link, Set};
use crate::view::{View, Views};

/// One item for each update of a resource. It never ends; dropping it gives the subscription up.
pub type Updates = Pin<Box<dyn Stream<Item = ()> + Send>>;

/// The raw states of tasks, as they come. It never ends; dropping it ends the interest.
pub type States = Pin<Box<dyn Stream<Item = String> + Send>>;

/// From where a request looks at the catalog: loaded once, at its head.
#[derive(Debug, Clone)]
pub struct Seat {
    /// Configuration and catalog.
    pub snapshot: Arc<Snapshot>,
    /// The endpoint.
    pub route: Arc<Route>,
    /// What the caller sees.
    pub view: Arc<View>,
}

/// What carries calls to upstreams.
#[derive(Debug)]
pub struct Relay {
    views: Arc<Views>,
    upstreams: Set,
    memory: Memory,
    auditor: Option<Auditor>,
    metrics: Metrics,
}

impl Relay {
    /// Puts the relay together.
    #[must_use]
    pub fn new(
        views: Arc<Views>,
        upstreams: Set,
        keyring: Arc<Keyring>,
        (audit, metrics): (Option<Arc<AuditLog>>, Metrics),
    ) -> Self {
        let auditor = audit.map(Auditor::new);
        Self { views, upstreams, memory: Memory::new(keyring), auditor, metrics }
    }

    /// Where this principal stands on a route, at this snapshot.
    #[must_use]
    pub fn seat(&self, snapshot: Arc<Snapshot>, route: Arc<Route>, principal: &Principal) -> Seat {
        let view = self.views.of(&snapshot, &route, &principal.rights);
        Seat { snapshot, route, view }
    }

    /// One page of a list, from memory.
    ///
    /// # Errors
    /// [`Failure::InvalidParams`] for a cursor that Weir never gave, or gave for another list.
    pub fn list(&self, seat: &Seat, call: &ListCall<'_>) -> Result<Listing, Failure> {
        let record = self.record(seat, Method::List(call.kind));
        let page = list::page(&self.memory.keyring, seat, call);
        record.ended(page.as_ref().map_or_else(Failure::label, |_| "result"));
        page
    }

    /// Sends a call to the upstream that owns what it names. Failures are events of the reply.
    #[must_use]
    pub fn call(&self, seat: &Seat, call: Call) -> Reply {
        let (mut record, begun) = self.begin(seat, &call);
        if let Err(failure) = begun {
            return record.watch(failed(failure));
        }
        if call.method == Method::TasksList {
            return record.watch(self.tasks(seat, call.caller));
        }
        let read = (call.method == Method::ResourcesRead).then(|| call.clone());
        let subject = call.caller.principal.subject.clone();
        let plan = match (plan::plan(seat, &self.memory, call), read) {
            (Ok(plan), _) => plan,
            (Err(failure @ Failure::Unknown { .. }), Some(read)) => {
                let candidates = self.candidates(seat, &read);
                if candidates.is_empty() {
                    noted(seat, &subject, &failure);
                    return record.watch(failed(failure));
                }
                let reply = probe::first_found(candidates, read.name, record.probed());
                return record.watch(reply);
            }
            (Err(failure), _) => {
                noted(seat, &subject, &failure);
                return record.watch(failed(failure));
            }
        };
        record.goes_to(&plan.upstream);
        match self.upstreams.link(&plan.upstream) {
            Some(link) => {
                // Who has a session is asked while the call runs, whatever the upstream does.
                let reply = if plan.call.caller.session.is_some() && link.may_ask_between_calls() {
                    inquiry::answered(link, plan.call)
                } else {
                    link.call(plan.call)
                };
                record.watch(execute::rewritten(reply, plan.progress_token, plan.marks))
            }
            None => record.watch(failed(Failure::upstream(&plan.upstream, Reason::Removed, false))),
        }
    }

    /// The upstreams that are asked for a URI that no list, template or earlier result leads to.
    fn candidates(&self, seat: &Seat, call: &Call) -> Vec<(Link, Plan)> {
        let candidates = probe::candidates(seat, &call.caller.principal.rights, &call.name);
        let plans = candidates.into_iter().filter_map(|name| {
            let link = self.upstreams.link(&name)?;
            let plan =
                plan::toward(seat, &self.memory, call.clone(), Target::unlisted(name, &call.name)).ok()?;
            Some((link, plan))
        });
        plans.collect()
    }

    /// The tasks that a client session made and that its upstreams still have.
    fn tasks(&self, seat: &Seat, caller: Caller) -> Reply {
        let known = caller.session.map(|session| self.memory.made.of(session)).unwrap_or_default();
        let known = tasks::permitted_of(seat, known);
        let names: BTreeSet<UpstreamName> = known.iter().map(|task| task.upstream.clone()).collect();
        let lists = |name: &UpstreamName| {
            let presence = seat.snapshot.inventories.get(name);
            presence.and_then(Presence::inventory).is_none_or(|inventory| inventory.offer.tasks_list)
        };
        let asked = names.into_iter().filter(lists);
        let asked = asked.filter_map(|name| self.upstreams.link(&name).map(|link| (name, link)));
        tasks::listed(asked.collect(), known, caller)
    }

    /// Which of these tasks a caller is told of, and the raw states that come for them, each with the caller's id.
    ///
    /// `here` says where the caller stands at a moment: it hears of a task as long as it may use its tool.
    #[must_use]
    pub fn follow(
        &self,
        seat: &Seat,
        principal: &Principal,
        (ids, here): (&[String], impl Fn() -> Seat + Send + Sync + Clone + 'static),
    ) -> Vec<(Vec<String>, States)> {
        let owner = Owner::new(&seat.route.name, &principal.subject);
        let mut followed: BTreeMap<UpstreamName, Vec<Known>> = BTreeMap::new();
        for known in tasks::followed(seat, &self.memory.keyring, owner, ids) {
            followed.entry(known.upstream.clone()).or_default().push(known);
        }
        let opened = followed.into_iter().filter_map(|(upstream, tasks)| {
            let here = here.clone();
            let local: Vec<String> = tasks.iter().map(|task| task.ids.local.clone()).collect();
            let news = self.upstreams.follow(&upstream, &local)?;
            let published = tasks.iter().map(|task| task.ids.published.clone()).collect();
            let states = news.filter_map(move |params| {
                let told = tasks.iter().find_map(|task| Some((task, task.ids.news(&params)?)));
                std::future::ready(
                    told.filter(|(task, _)| task.may_be_heard_of(&here())).map(|(_, told)| told),
                )
            });
            Some((published, Box::pin(states) as States))
        });
        opened.collect()
    }

    /// Whether a caller may go on with a call that waits, as [`Relay::call`] would decide it. It is a call of its own:
    /// the answer is logged and audited.
    ///
    /// # Errors
    /// What the client is told instead.
    pub fn permits(&self, seat: &Seat, call: &Call) -> Result<(), Failure> {
        let (record, _target) = self.located(seat, call)?;
        record.ended("resumed");
        Ok(())
    }

    /// What a call means, and its record.
    fn located(&self, seat: &Seat, call: &Call) -> Result<(Record, Target), Failure> {
        let (mut record, begun) = self.begin(seat, call);
        let found =
            begun.and_then(|()| Finder::new(seat, &self.memory.given, &call.caller.principal).locate(call));
        match found {
            Ok(target) => {
                record.goes_to(&target.upstream);
                Ok((record, target))
            }
            Err(failure) => {
                noted(seat, &call.caller.principal.subject, &failure);
                record.failed(&failure);
                Err(failure)
            }
        }
    }

    fn record(&self, seat: &Seat, method: Method) -> Record {
        Record::begin(&self.metrics, method, &seat.route.name, seat.snapshot.config.telemetry.access)
    }

    /// The record of a call, with its line of the audit log, and whether it may go on.
    fn begin(&self, seat: &Seat, call: &Call) -> (Record, Result<(), Failure>) {
        let mut record = self.record(seat, call.method);
        match self.auditor.as_ref().map(|auditor| auditor.begin(seat, call)) {
            Some(Ok(draft)) => record.audited(draft),
            Some(Err(Unwritable)) => return (record, Err(Failure::Unrecorded)),
            None => {}
        }
        (record, Ok(()))
    }

    /// Updates of a resource, as this caller would read it.
    ///
    /// # Errors
    /// [`Failure::Unknown`] for a URI that this caller cannot read by a list, a template or an earlier result,
    /// [`Failure::NeedsScopes`], [`Failure::NotOffered`] where its upstream takes no subscriptions.
    pub fn watch(&self, seat: &Seat, uri: &str, caller: &Caller) -> Result<Updates, Failure> {
        let call = Call::plain(Method::ResourcesSubscribe, uri, "{}".to_owned(), caller.clone());
        let (record, target) = self.located(seat, &call)?;
        let Some(watching) = self.upstreams.watch(&target.upstream, &target.local, caller) else {
            let failure = Failure::NotOffered("a subscription to this resource");
            record.failed(&failure);
            return Err(failure);
        };
        record.ended("result");
        Ok(Box::pin(stream::unfold(watching, |mut watching| async move {
            watching.updated().await;
            Some(((), watching))
        })))
    }

    /// Whether this principal may read a resource, and so hear of it.
    #[must_use]
    pub fn may_hear_of(&self, seat: &Seat, uri: &str, principal: &Principal) -> bool {
        Finder::new(seat, &self.memory.given, principal).resource(uri).is_ok()
    }

    /// What upstreams have to say to a client session by themselves: inquiries and log messages. It never ends.
    ///
    /// `seat` says where the caller stands at that moment: of tasks it hears as long as it may use their tools.
    #[must_use]
    pub fn stand(&self, caller: &Caller, seat: impl Fn() -> Seat + Send + 'static) -> Reply {
        let made = Arc::clone(&self.memory.made);
        let session = caller.session;
        let events = stream::unfold(self.upstreams.stand(caller), |mut standing| async move {
            let said = standing.next().await;
            Some((said, standing))
        });
        Box::pin(events.filter_map(move |(upstream, event)| {
            std::future::ready(
                session.and_then(|session| tasks::announced((&made, &seat), (session, &upstream), event)),
            )
        }))
    }

    /// A client session has other roots now.
    pub fn roots_changed(&self, key: SessionKey) {
        self.upstreams.roots_changed(key);
    }

    /// Ends what a client session holds at upstreams, in the background.
    pub fn end_session(&self, key: SessionKey) {
        self.memory.made.forget(key);
        self.upstreams.end_session(key);
    }
}

/// Notes a denial in the log; names are escaped there.
fn noted(seat: &Seat, who: &Subject, failure: &Failure) {
    let subject = &*who.subject;
    match failure {
        Failure::NeedsScopes(scopes) => {
            let scopes: Vec<&str> = scopes.iter().map(Scope::as_str).collect();
            tracing::info!(
                event = "authz.deny",
                decision = "step_up",
                subject,
                ?scopes,
                "a scope is missing"
            );
        }
        Failure::Unknown { kind, name } => {
            let name: String = name.chars().take(128).collect();
            match seat.view.item(*kind, &name) {
                Some(item) => {
                    let (upstream, item) = (&item.upstream, item.local());
                    tracing::info!(event = "authz.deny", decision = "hidden", subject, %upstream, ?item, "asked for what it may not know of");
                }
                None => tracing::info!(event = "tool.unknown", subject, ?name, "asked for what there is not"),
            }
        }
        Failure::Upstream(_)
        | Failure::InvalidParams(_)
        | Failure::HeaderMismatch(_)
        | Failure::Refused(_)
        | Failure::NeedsAbilities(_)
        | Failure::NotOffered(_)
        | Failure::Unrecorded
        | Failure::Internal => {}
    }
}

#[cfg(test)]
mod tests;
