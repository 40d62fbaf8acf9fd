//! What will be done for a call. Pure.

use std::sync::Arc;

use super::execute::Marks;
use super::links::{Given, Links};
use super::locate::{Finder, Target};
use super::tasks::{self, Birth, Ids, Made, Pair};
use super::{Seat, mirror};
use crate::catalog::Item;
use crate::config::Upstream;
use crate::exchange::{Call, Failure};
use crate::jsonrpc::{Edit, Object, quoted};
use crate::names::UpstreamName;
use crate::policy::Class;
use crate::principal::Subject;
use crate::protocol::{ListKind, Method, Revision, Tasking, meta};
use crate::seal::Keyring;

/// One upstream, and the call as it goes there.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) upstream: UpstreamName,
    pub(super) call: Call,
    /// The token that the client's progress must carry.
    pub(super) progress_token: Option<String>,
    /// What is known of the result.
    pub(super) marks: Marks,
}

/// What the relay remembers between calls.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) keyring: Arc<Keyring>,
    pub(super) given: Arc<Given>,
    pub(super) made: Arc<Made>,
}

impl Memory {
    pub(super) fn new(keyring: Arc<Keyring>) -> Self {
        Self { keyring, given: Arc::default(), made: Arc::default() }
    }
}

/// Finds the owner of what a call names, and writes the call in that upstream's words.
///
/// # Errors
/// What the client is told instead: unknown or hidden names, missing scopes, headers that differ from the body.
pub(super) fn plan(seat: &Seat, memory: &Memory, call: Call) -> Result<Plan, Failure> {
    let target = if call.method.is_of_task() {
        tasks::target(seat, &memory.keyring, &call)?
    } else {
        Finder::new(seat, &memory.given, &call.caller.principal).locate(&call)?
    };
    toward(seat, memory, call, target)
}

/// Writes a call in the words of the upstream that it goes to.
///
/// # Errors
/// As [`plan`], for a target that is known.
pub(super) fn toward(seat: &Seat, memory: &Memory, mut call: Call, target: Target) -> Result<Plan, Failure> {
    let subject = call.caller.principal.subject.clone();
    let upstream = seat.snapshot.config.upstreams.iter().find(|up| up.name == target.upstream);
    let upstream = upstream.ok_or(Failure::Internal)?;
    if call.method == Method::Complete && !completes(seat, &target.upstream) {
        return Err(Failure::NotOffered("completion"));
    }
    let takes_tasks = takes_tasks(seat, &target.upstream, &call);
    if call.method.is_of_task() && !takes_tasks {
        return Err(Failure::NotOffered("tasks"));
    }
    let params = Object::reopen(&call.params).ok_or(Failure::Internal)?;
    let item = target.item.as_ref();
    let tasks = takes_tasks.then(|| ids(seat, memory, (&call, &params), &target)).flatten();
    let annotations = item.map_or(&[][..], |item| item.entry.mirrored.as_slice());
    call.mirrored = mirror::outgoing(annotations, params.get("arguments"), &call)?;
    call.params = rewritten(&params, call.method, &target.local, takes_tasks);
    let mut links = links(seat, &memory.given, &target.upstream, subject);
    if let Some(links) =
        links.as_mut().filter(|_| call.method == Method::ResourcesRead && call.name != target.local)
    {
        links.resources.push((target.local.clone(), call.name.clone()));
    }
    let asked = std::mem::replace(&mut call.name, target.local);
    if call.method == Method::TasksResult {
        // It waits until the task has ended.
        call.timeout = Some(upstream.timeout.call_max);
    }
    call.repeatable = repeatable(target.class, item.map(AsRef::as_ref));
    call.forwarded = forwarded(upstream, &call);
    let progress_token = call.progress_token.clone();
    let open = seat.snapshot.config.access.is_open();
    let marks = Marks {
        free_output: item.is_some_and(|item| item.free_output),
        shareable: open && upstream.forward_headers.is_empty(),
        read: (call.method == Method::ResourcesRead).then_some(asked),
        links,
        tasks,
    };
    Ok(Plan { upstream: target.upstream, call, progress_token, marks })
}

/// How URIs in the results of an upstream are looked at; not at all where it has no resources.
fn links(seat: &Seat, given: &Arc<Given>, upstream: &UpstreamName, subject: Subject) -> Option<Links> {
    let inventory = seat.snapshot.inventories.get(upstream)?.inventory()?;
    if !inventory.offer.resources {
        return None;
    }
    let marked = |kind: ListKind| -> Vec<(String, String)> {
        let own = seat.snapshot.catalog.list(kind).iter().filter(|item| item.upstream == *upstream);
        own.filter(|item| item.name != item.local())
            .map(|item| (item.local().to_owned(), item.name.clone()))
            .collect()
    };
    Some(Links {
        given: Arc::clone(given),
        subject,
        upstream: upstream.clone(),
        resources: marked(ListKind::Resources),
        templates: marked(ListKind::Templates),
    })
}

/// Whether client and upstream take tasks in the same way.
fn takes_tasks(seat: &Seat, upstream: &UpstreamName, call: &Call) -> bool {
    let inventory = seat.snapshot.inventories.get(upstream).and_then(|presence| presence.inventory());
    let own = inventory.and_then(|inventory| inventory.offer.tasking);
    // Of one that is lost for the moment nobody knows it; its link says so.
    own == call.caller.tasking || (inventory.is_none() && call.method.is_of_task())
}

/// The ids of tasks that may come in the events of a call.
fn ids(seat: &Seat, memory: &Memory, (call, params): (&Call, &Object<'_>), target: &Target) -> Option<Ids> {
    if call.method.is_of_task() {
        return Some(Ids::Of(Pair { local: target.local.clone(), published: call.name.clone() }));
    }
    let is_asked_for = match call.caller.tasking? {
        Tasking::Requested => params.get("task").is_some(),
        Tasking::Directed => true,
    };
    let item = target.item.as_ref().filter(|item| is_asked_for && item.kind == ListKind::Tools)?;
    Some(Ids::New(Birth::new(seat, (&memory.keyring, &memory.made), call, item)))
}

fn completes(seat: &Seat, upstream: &UpstreamName) -> bool {
    let inventory = seat.snapshot.inventories.get(upstream).and_then(|presence| presence.inventory());
    // The oldest revision has completion without a capability for it.
    inventory
        .is_some_and(|inventory| inventory.offer.completions || inventory.revision == Revision::V2024_11_05)
}

/// The params with the local name, and without what belongs to the client's leg, or to tasks that its upstream cannot
/// make.
fn rewritten(params: &Object<'_>, method: Method, local: &str, takes_tasks: bool) -> String {
    let local = quoted(local);
    let mut edit = Edit::new();
    if let Some(member) = method.name_member() {
        edit = edit.set(member, local);
    } else if let Some(reference) = params.object("ref") {
        let member = if reference.get("uri").is_some() { "uri" } else { "name" };
        edit = edit.set("ref", Edit::new().set(member, local).apply(&reference));
    }
    if !takes_tasks && method == Method::ToolsCall {
        edit = edit.remove("task");
    }
    if let Some(inner) = params.object("_meta") {
        let mut own = Edit::new().remove(meta::PROGRESS_TOKEN);
        for key in meta::PER_LEG {
            own = own.remove(key);
        }
        let left = own.apply(&inner);
        edit = if left == "{}" { edit.remove("_meta") } else { edit.set("_meta", left) };
    }
    edit.apply(params)
}

/// Whether a call that may have run can be sent again (design contract, section 6, "Repeating").
fn repeatable(class: Class, item: Option<&Item>) -> bool {
    let Some(item) = item.filter(|item| item.kind == ListKind::Tools) else { return true };
    class == Class::Read || item.entry.idempotent_hint == Some(true)
}

/// The client's headers that the operator lets through to this upstream.
fn forwarded(upstream: &Upstream, call: &Call) -> http::HeaderMap {
    let mut passed = http::HeaderMap::new();
    for name in &upstream.forward_headers {
        for value in call.forwarded.get_all(name) {
            passed.append(name.clone(), value.clone());
        }
    }
    passed
}
