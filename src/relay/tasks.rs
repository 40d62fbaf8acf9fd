//! Tasks: whose they are, and under which ids clients know them.
//!
//! An upstream's id of a task travels inside a sealed one, which leads back to the upstream, and to the tool whose
//! access decision counts for the task as well. Ids are written anew where the protocol has them: the state of a task,
//! the result that makes one, and the mark of messages that belong to one. Which tasks a session made is remembered
//! for as long as the session lasts, since lists and announcements name upstream ids only.

mod list;
mod made;

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;

pub(super) use list::listed;
pub(super) use made::{Known, Made, Pair};

use super::Seat;
use super::locate::Target;
use crate::catalog::{Item, Presence};
use crate::exchange::{Call, Event, Failure, Inquiry, Reaction, Reason, SessionKey};
use crate::jsonrpc::{Edit, Object, mentioning, quoted};
use crate::names::UpstreamName;
use crate::policy::Class;
use crate::protocol::{ListKind, meta};
use crate::seal::{Keyring, Owner, TaskSeal};
use crate::view::Found;

const ID: &str = "taskId";
/// The longest id of an upstream.
const LONGEST: usize = 4096;

/// Which upstream has the task that a call is about, and whether this caller may still use the tool that made it.
///
/// # Errors
/// [`Failure::InvalidParams`] for an id that is none of this caller's, or of a tool that it may not know of any more.
pub(super) fn target(seat: &Seat, keyring: &Keyring, call: &Call) -> Result<Target, Failure> {
    let owner = Owner::new(&seat.route.name, &call.caller.principal.subject);
    let seal = TaskSeal::open(keyring, &call.name, owner).map_err(|_refused| unknown())?;
    permitted(seat, &seal.upstream, &seal.tool)?;
    Ok(Target { upstream: seal.upstream, item: None, class: Class::Read, local: seal.id })
}

/// An id that leads to no task of this caller.
fn unknown() -> Failure {
    Failure::InvalidParams("Unknown task: it is not one of yours, or its tool is gone".to_owned())
}

/// Whether the tool that made a task may be called.
fn permitted(seat: &Seat, upstream: &UpstreamName, tool: &str) -> Result<(), Failure> {
    let is_it = |item: &&Arc<Item>| item.upstream == *upstream && item.entry.local.as_str() == tool;
    let Some(item) = seat.snapshot.catalog.list(ListKind::Tools).iter().find(is_it) else {
        return Err(match seat.snapshot.inventories.get(upstream) {
            Some(presence @ Presence::Down { .. }) if presence.inventory().is_none() => {
                Failure::upstream(upstream, Reason::Unreachable, false)
            }
            Some(_) | None => unknown(),
        });
    };
    match seat.view.find(ListKind::Tools, &item.name) {
        Found::Shown(_) => Ok(()),
        Found::StepUp(scopes) => Err(Failure::NeedsScopes(scopes.to_vec())),
        Found::Nothing => Err(unknown()),
    }
}

/// Of these tasks those whose tools may still be called.
pub(super) fn permitted_of(seat: &Seat, known: Vec<Known>) -> Vec<Known> {
    known.into_iter().filter(|task| task.may_be_heard_of(seat)).collect()
}

impl Known {
    /// Whether a caller who stands there may hear of it.
    pub(super) fn may_be_heard_of(&self, seat: &Seat) -> bool {
        permitted(seat, &self.upstream, &self.tool).is_ok()
    }
}

/// The tasks that a caller names, as far as it may hear of them.
pub(super) fn followed(seat: &Seat, keyring: &Keyring, owner: Owner, ids: &[String]) -> Vec<Known> {
    let open = |published: &String| {
        let seal = TaskSeal::open(keyring, published, owner).ok()?;
        permitted(seat, &seal.upstream, &seal.tool).ok()?;
        let ids = Pair { local: seal.id, published: published.clone() };
        Some(Known { upstream: seal.upstream, tool: seal.tool, ids })
    };
    ids.iter().filter_map(open).collect()
}

/// How ids of tasks in the events of one call are published.
#[derive(Debug, Clone)]
pub(super) enum Ids {
    /// The call may make a task.
    New(Birth),
    /// The call is about this one.
    Of(Pair),
}

/// What the id of a new task is made of.
#[derive(Debug, Clone)]
pub(super) struct Birth {
    keyring: Arc<Keyring>,
    made: Arc<Made>,
    owner: Owner,
    upstream: UpstreamName,
    tool: String,
    session: Option<SessionKey>,
}

impl Birth {
    pub(super) fn new(
        seat: &Seat,
        (keyring, made): (&Arc<Keyring>, &Arc<Made>),
        call: &Call,
        item: &Item,
    ) -> Self {
        Self {
            keyring: Arc::clone(keyring),
            made: Arc::clone(made),
            owner: Owner::new(&seat.route.name, &call.caller.principal.subject),
            upstream: item.upstream.clone(),
            tool: item.entry.local.to_string(),
            session: call.caller.session,
        }
    }

    fn published(&self, local: &str) -> Option<String> {
        if local.len() > LONGEST {
            return None;
        }
        let seal = TaskSeal {
            owner: self.owner,
            issued: Timestamp::now().as_second(),
            upstream: self.upstream.clone(),
            tool: self.tool.clone(),
            id: local.to_owned(),
        };
        let published = seal.seal(&self.keyring);
        if let Some(session) = self.session {
            let ids = Pair { local: seal.id, published: published.clone() };
            self.made.remember(session, Known { upstream: seal.upstream, tool: seal.tool, ids });
        }
        Some(published)
    }
}

impl Ids {
    /// A result: the state of a task, a new task, or the result of one.
    pub(super) fn result(&self, result: Bytes) -> Bytes {
        let Some(object) = mentioning(&result, ID).and_then(Object::open) else { return result };
        let changed = match self {
            Self::New(birth) => created(&object, birth),
            Self::Of(pair) => state(&object, pair),
        };
        changed.map_or(result, Bytes::from)
    }

    /// The params of a message that may belong to a task.
    pub(super) fn beside(&self, params: String) -> String {
        match self {
            Self::New(_) => params,
            Self::Of(pair) => pair.beside(params),
        }
    }

    /// News of a task: its state in the client's words, where it is about the task that the call is about.
    pub(super) fn news(&self, params: &str) -> Option<String> {
        match self {
            Self::New(_) => None,
            Self::Of(pair) => pair.news(params),
        }
    }

    /// A question that may belong to a task, and so may its answer.
    pub(super) fn inquiry(&self, inquiry: Inquiry) -> Inquiry {
        match self {
            Self::New(_) => inquiry,
            Self::Of(pair) => pair.inquiry(inquiry),
        }
    }
}

impl Pair {
    /// The params of a message that may belong to this task.
    pub(super) fn beside(&self, params: String) -> String {
        related(&params, &self.local, &self.published).unwrap_or(params)
    }

    /// The raw state of a task, where it is this one.
    pub(super) fn news(&self, params: &str) -> Option<String> {
        let object = Object::open(params)?;
        (object.text(ID)? == self.local).then(|| state(&object, self)).flatten()
    }

    /// A question that may belong to this task, with the way back for its answer.
    pub(super) fn inquiry(&self, inquiry: Inquiry) -> Inquiry {
        let Some(params) = related(&inquiry.params, &self.local, &self.published) else { return inquiry };
        let pair = self.clone();
        let answerer = inquiry.answerer.through(move |reaction| pair.answered(reaction));
        Inquiry { params, answerer, ..inquiry }
    }

    fn answered(&self, reaction: Reaction) -> Reaction {
        match reaction {
            Reaction::Result(result) => {
                Reaction::Result(related(&result, &self.published, &self.local).unwrap_or(result))
            }
            error @ Reaction::Error(_) => error,
        }
    }
}

/// The result of a call that became a task.
fn created(object: &Object<'_>, birth: &Birth) -> Option<String> {
    if object.text("resultType").as_deref() == Some("task") {
        let published = birth.published(&object.text(ID)?)?;
        return Some(Edit::new().set(ID, quoted(&published)).apply(object));
    }
    let task = object.object("task")?;
    let published = birth.published(&task.text(ID)?)?;
    let task = Edit::new().set(ID, quoted(&published)).apply(&task);
    Some(Edit::new().set("task", task).apply(object))
}

/// The state of a task, or its result: the ids at the places where the protocol has them.
fn state(object: &Object<'_>, pair: &Pair) -> Option<String> {
    let mut edit = Edit::new();
    let mut is_changed = false;
    if object.text(ID).is_some_and(|id| id == pair.local) {
        edit = edit.set(ID, quoted(&pair.published));
        is_changed = true;
    }
    for (member, changed) in [
        ("_meta", object.get("_meta").and_then(|raw| mark(raw, &pair.local, &pair.published))),
        ("result", object.get("result").and_then(|raw| related(raw, &pair.local, &pair.published))),
    ] {
        if let Some(changed) = changed {
            edit = edit.set(member, changed);
            is_changed = true;
        }
    }
    is_changed.then(|| edit.apply(object))
}

/// An object whose `_meta` says that it belongs to a task, under the task's other id; `None` where it does not.
fn related(raw: &str, from: &str, to: &str) -> Option<String> {
    if !raw.contains(meta::RELATED_TASK) {
        return None;
    }
    let object = Object::open(raw)?;
    let inner = mark(object.get("_meta")?, from, to)?;
    Some(Edit::new().set("_meta", inner).apply(&object))
}

fn mark(inner: &str, from: &str, to: &str) -> Option<String> {
    let inner = Object::open(inner)?;
    let task = inner.object(meta::RELATED_TASK)?;
    if task.text(ID)? != from {
        return None;
    }
    let task = Edit::new().set(ID, quoted(to)).apply(&task);
    Some(Edit::new().set(meta::RELATED_TASK, task).apply(&inner))
}

/// A message of an upstream outside of any call, with the ids of tasks that the session knows; `None` for news of a
/// task that it does not.
pub(super) fn announced(
    (made, seat): (&Made, &dyn Fn() -> Seat),
    (session, upstream): (SessionKey, &UpstreamName),
    event: Event,
) -> Option<Event> {
    let known = |id: Option<String>| made.known(session, upstream, &id?);
    match event {
        Event::Task(params) => {
            let id = Object::open(&params).and_then(|params| params.text(ID));
            let task = known(id)?;
            permitted(&seat(), &task.upstream, &task.tool).ok()?;
            task.ids.news(&params).map(Event::Task)
        }
        Event::Log(level, params) => match known(marked(&params)) {
            Some(known) => Some(Event::Log(level, known.ids.beside(params))),
            None => Some(Event::Log(level, params)),
        },
        Event::Inquiry(inquiry) => match known(marked(&inquiry.params)) {
            Some(known) => Some(Event::Inquiry(known.ids.inquiry(inquiry))),
            None => Some(Event::Inquiry(inquiry)),
        },
        event @ (Event::Progress(_)
        | Event::Paused(_)
        | Event::Asks(_)
        | Event::Result(_)
        | Event::Error(_)
        | Event::Failed(_)) => Some(event),
    }
}

/// The task that a message says it belongs to.
fn marked(params: &str) -> Option<String> {
    if !params.contains(meta::RELATED_TASK) {
        return None;
    }
    Object::open(params)?.object("_meta")?.object(meta::RELATED_TASK)?.text(ID)
}
