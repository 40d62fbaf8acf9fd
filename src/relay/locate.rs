//! Which item a call means, and how its upstream calls it.

use std::sync::Arc;

use super::Seat;
use super::links::Given;
use super::spelling;
use super::template::fits;
use crate::catalog::Item;
use crate::config::Route;
use crate::exchange::{Call, Failure};
use crate::jsonrpc::Object;
use crate::names::{UpstreamName, unmark_uri};
use crate::policy::{self, Asked, Class, Decision, Ruling};
use crate::principal::{Principal, Rights, Scope};
use crate::protocol::{ListKind, Method};
use crate::view::{Found, Shown, View};

/// What a call means, and how its upstream calls it.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) upstream: UpstreamName,
    /// The item that is named or matched; none for a URI that the caller was given in a result.
    pub(super) item: Option<Arc<Item>>,
    pub(super) class: Class,
    pub(super) local: String,
}

impl Target {
    /// A URI at an upstream that may know it.
    pub(super) fn unlisted(upstream: UpstreamName, uri: &str) -> Self {
        let local = unmark_uri(uri, &upstream).unwrap_or_else(|| uri.to_owned());
        Self { upstream, item: None, class: Class::Read, local }
    }

    fn of(shown: &Shown) -> Self {
        Self {
            upstream: shown.item.upstream.clone(),
            item: Some(Arc::clone(&shown.item)),
            class: shown.class,
            local: shown.item.local().to_owned(),
        }
    }
}

/// Where a caller looks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Finder<'f> {
    view: &'f View,
    route: &'f Route,
    given: &'f Given,
    caller: &'f Principal,
}

impl<'f> Finder<'f> {
    pub(super) fn new(seat: &'f Seat, given: &'f Given, caller: &'f Principal) -> Self {
        Self { view: &seat.view, route: &seat.route, given, caller }
    }
}

/// What is decided about a resource that no list holds: what its text comes to, and every rule about another spelling.
pub(super) fn decided(route: &Route, rights: &Rights, upstream: &UpstreamName, local: &str) -> Decision {
    let decide = |local: &str| {
        let asked =
            Asked { route: &route.name, upstream, kind: ListKind::Resources, local, class: Class::Read };
        policy::decide(&route.policy, rights, &asked)
    };
    let Some(others) = spelling::others(local) else { return Decision::Hide };
    let by_rule = others.iter().map(|other| decide(other)).filter(|(_, by)| matches!(by, Ruling::Rule(_)));
    by_rule.fold(decide(local).0, |strictest, (decision, _)| strictest.or_stricter(decision))
}

/// The templates of an upstream that a caller does not see and that a URI fits, each with the scopes that would show it.
pub(super) fn unseen_templates<'v>(
    view: &'v View,
    uri: &str,
) -> impl Iterator<Item = (&'v UpstreamName, &'v [Scope])> {
    let mut spellings = spelling::others(uri).unwrap_or_default();
    spellings.insert(uri.to_owned());
    view.unseen(ListKind::Templates).filter_map(move |(item, scopes)| {
        let fits = |uri: &String| fits(&item.name, uri).or_else(|| fits(item.local(), uri)).is_some();
        spellings.iter().any(fits).then_some((&item.upstream, scopes))
    })
}

impl Finder<'_> {
    /// Finds what a call names.
    ///
    /// # Errors
    /// Unknown or hidden names, missing scopes, methods that name nothing.
    pub(super) fn locate(&self, call: &Call) -> Result<Target, Failure> {
        match call.method {
            Method::ToolsCall => self.named(ListKind::Tools, &call.name),
            Method::PromptsGet => self.named(ListKind::Prompts, &call.name),
            Method::ResourcesRead | Method::ResourcesSubscribe => self.resource(&call.name),
            Method::Complete => self.reference(call),
            Method::Initialize
            | Method::Ping
            | Method::Discover
            | Method::Listen
            | Method::List(_)
            | Method::ResourcesUnsubscribe
            | Method::SetLevel
            | Method::TasksGet
            | Method::TasksResult
            | Method::TasksList
            | Method::TasksUpdate
            | Method::TasksCancel => Err(Failure::NotOffered(call.method.as_str())),
        }
    }

    fn named(&self, kind: ListKind, name: &str) -> Result<Target, Failure> {
        match self.view.find(kind, name) {
            Found::Shown(shown) => Ok(Target::of(shown)),
            Found::StepUp(scopes) => Err(Failure::NeedsScopes(scopes.to_vec())),
            Found::Nothing => Err(Failure::Unknown { kind, name: name.to_owned() }),
        }
    }

    /// A resource by the lists, else by what this principal was given, else by the template that fits best (design
    /// contract, section 4).
    pub(super) fn resource(&self, uri: &str) -> Result<Target, Failure> {
        match self.named(ListKind::Resources, uri) {
            Err(unknown @ Failure::Unknown { .. }) => {
                let Some(target) = self.was_given(uri).or_else(|| self.matched(uri)) else {
                    let mut scopes = unseen_templates(self.view, uri).map(|(_, scopes)| scopes);
                    return Err(match scopes.find(|scopes| !scopes.is_empty()) {
                        Some(scopes) => Failure::NeedsScopes(scopes.to_vec()),
                        None => unknown,
                    });
                };
                match decided(self.route, &self.caller.rights, &target.upstream, &target.local) {
                    Decision::Allow => Ok(target),
                    Decision::StepUp(scopes) => Err(Failure::NeedsScopes(scopes)),
                    Decision::Hide => Err(unknown),
                }
            }
            found => found,
        }
    }

    fn was_given(&self, uri: &str) -> Option<Target> {
        let upstream =
            self.view.upstreams.iter().find(|name| self.given.knows(&self.caller.subject, name, uri))?;
        Some(Target::unlisted(upstream.clone(), uri))
    }

    fn matched(&self, uri: &str) -> Option<Target> {
        // Of equal ones the first in the list wins, and lists are in file order: `max_by_key` would take the last.
        let mut best: Option<(usize, &Shown)> = None;
        for shown in self.view.list(ListKind::Templates) {
            let Some(literal) = fits(&shown.item.name, uri) else { continue };
            if best.is_none_or(|(most, _)| literal > most) {
                best = Some((literal, shown));
            }
        }
        let (_, shown) = best?;
        let is_marked = shown.item.name != shown.item.local();
        let own = is_marked.then(|| unmark_uri(uri, &shown.item.upstream)).flatten();
        Some(Target { local: own.unwrap_or_else(|| uri.to_owned()), ..Target::of(shown) })
    }

    /// What `completion/complete` refers to.
    fn reference(&self, call: &Call) -> Result<Target, Failure> {
        let refuse =
            || Failure::InvalidParams("params.ref must name a prompt or a resource template".to_owned());
        let params = Object::open(&call.params).ok_or_else(refuse)?;
        let reference = params.object("ref").ok_or_else(refuse)?;
        match reference.text("type").as_deref() {
            Some("ref/prompt") => self.named(ListKind::Prompts, &reference.text("name").ok_or_else(refuse)?),
            Some("ref/resource") => {
                let uri = reference.text("uri").ok_or_else(refuse)?;
                match self.named(ListKind::Templates, &uri) {
                    Err(Failure::Unknown { .. }) => self.resource(&uri),
                    found => found,
                }
            }
            _ => Err(refuse()),
        }
    }
}
