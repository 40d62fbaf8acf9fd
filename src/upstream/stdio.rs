//! Child processes as upstreams (2025-11-25 and 2026-07-28, transports, "stdio").
//!
//! An `initialize` without a session gets a process of its own, whose number is the session; with `sessions: shared`
//! there is one such session. Messages without a session go to the child that `server/discover` started: all of them
//! where it turns out to be stateless; where it does not, the first `initialize` takes it over. Only these two start a
//! child. One that died of the question is not asked it again; one that dies early is not started again at once, and none
//! is started above `processes`.

mod child;
mod desk;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use http::{HeaderMap, HeaderValue};
use tokio::time::Instant;

use super::backoff;
use super::fault::Fault;
use super::http::Answered;
use crate::config::{ChildCommand, Sharing, Upstream};
use crate::exchange::Reason;
use crate::jsonrpc::{Id, Object};
use crate::protocol::{Method, headers, meta};
use crate::task::TaskGroup;

use child::{Lived, Process};
use desk::GivenUp;
pub(super) use desk::Lines;

/// A child that lived so long starts its back-off anew.
const STEADY: Duration = Duration::from_secs(30);

/// The children of one upstream.
#[derive(Debug)]
pub(super) struct Stdio(Arc<Nursery>);

#[derive(Debug)]
struct Nursery {
    upstream: Arc<Upstream>,
    command: ChildCommand,
    tasks: TaskGroup,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The child that messages without a session go to; none while all that run have sessions.
    first: Option<Arc<Process>>,
    /// Those of sessions, by number.
    sessions: HashMap<u64, Arc<Process>>,
    /// All that run, those that are ending among them.
    running: HashMap<u64, Arc<Process>>,
    started: u64,
    /// A child ended when it was asked `server/discover`, which it does not know.
    dies_of_discover: bool,
    failures: u32,
    not_before: Option<Instant>,
    is_closed: bool,
}

/// What decides where a message goes.
struct Addressed {
    method: Option<String>,
    id: Option<Id>,
    is_stateless: bool,
}

impl Addressed {
    fn read(body: &str) -> Self {
        let message = Object::open(body).unwrap_or_default();
        let method = message.text("method");
        let id = message.get("id").and_then(|raw| Id::read(raw).ok()).filter(|_| method.is_some());
        let inner = message.object("params").and_then(|params| params.object("_meta"));
        let is_stateless = inner.is_some_and(|inner| inner.get(meta::PROTOCOL_VERSION).is_some());
        Self { method, id, is_stateless }
    }

    fn is(&self, method: Method) -> bool {
        self.method.as_deref() == Some(method.as_str())
    }
}

impl Stdio {
    /// Prepares the children of an upstream. Starts none.
    pub(super) fn new(command: ChildCommand, upstream: &Arc<Upstream>, tasks: &TaskGroup) -> Self {
        // What Weir opens itself is closed in children anyway; what it was given by its own parent is not.
        close_fds::set_fds_cloexec(3, &[]);
        let (upstream, tasks) = (Arc::clone(upstream), tasks.child("children"));
        Self(Arc::new(Nursery { upstream, command, tasks, state: Mutex::default() }))
    }

    /// Whether one child serves everybody.
    pub(super) fn is_shared(&self) -> bool {
        self.0.upstream.sessions == Sharing::Shared
    }

    /// When the next child may be started, where none may be now.
    pub(super) fn not_before(&self) -> Option<Instant> {
        self.0.state().not_before.filter(|at| Instant::now() < *at)
    }

    /// Writes a message to the child that it is for; 404 where that is gone.
    pub(super) async fn post(&self, head: &HeaderMap, body: String) -> Result<Answered, Fault> {
        let to = Addressed::read(&body);
        let Some(process) = self.0.process(head, &to)? else { return Ok(Answered::of_child(404, None)) };
        let opens = to.is(Method::Initialize);
        let given_up = match (opens, to.is_stateless) {
            (true, _) => GivenUp::End,
            (false, true) => GivenUp::Cancel,
            (false, false) => GivenUp::Nothing,
        };
        let lines = to.id.as_ref().map(|id| process.wait(id, given_up));
        process.write(body).await?;
        let mut answered = Answered::of_child(if lines.is_some() { 200 } else { 202 }, lines);
        answered.session = opens.then(|| HeaderValue::from(process.number));
        Ok(answered)
    }

    /// What the child of a session says beside the calls; 404 where it is gone.
    pub(super) fn get(&self, head: &HeaderMap) -> Answered {
        let process = session(head).and_then(|number| self.0.state().sessions.get(&number).cloned());
        match process.and_then(|process| process.beside()) {
            Some(lines) => Answered::of_child(200, Some(lines)),
            None => Answered::of_child(404, None),
        }
    }

    /// Ends the child of a session.
    pub(super) fn delete(&self, head: &HeaderMap) -> Answered {
        let process = session(head).and_then(|number| self.0.state().sessions.remove(&number));
        if let Some(process) = process {
            process.stop();
        }
        Answered::of_child(204, None)
    }

    /// Ends all children and waits for it.
    pub(super) async fn close(&self) {
        let all: Vec<Arc<Process>> = {
            let mut state = self.0.state();
            state.is_closed = true;
            state.running.values().cloned().collect()
        };
        all.iter().for_each(|process| process.stop());
        join_all(all.iter().map(|process| process.gone())).await;
    }
}

impl Nursery {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The child that a message is for; started where the message is one of those that start one.
    fn process(self: &Arc<Self>, head: &HeaderMap, to: &Addressed) -> Result<Option<Arc<Process>>, Fault> {
        let mut state = self.state();
        if head.contains_key(headers::SESSION_ID) {
            let known = session(head).and_then(|number| state.sessions.get(&number));
            return Ok(known.filter(|process| !process.is_over()).cloned());
        }
        let first = state.first.clone().filter(|process| !process.is_over());
        if to.is(Method::Initialize) {
            // One that was found to be stateless goes on being that.
            let process = match first.filter(|process| !process.is_stateless()) {
                Some(process) => {
                    state.first = None;
                    process
                }
                None => self.start(&mut state)?,
            };
            if self.upstream.sessions != Sharing::Shared {
                process.make_private();
            }
            state.sessions.insert(process.number, Arc::clone(&process));
            return Ok(Some(process));
        }
        match first {
            Some(process) => Ok(Some(process)),
            None if to.is(Method::Discover) && state.dies_of_discover => Ok(None),
            None if to.is(Method::Discover) => {
                let process = self.start(&mut state)?;
                state.first = Some(Arc::clone(&process));
                Ok(Some(process))
            }
            None => Err(Fault::unsent(Reason::Unreachable)),
        }
    }

    fn start(self: &Arc<Self>, state: &mut State) -> Result<Arc<Process>, Fault> {
        let upstream = &self.upstream.name;
        if state.is_closed {
            return Err(Fault::unsent(Reason::Removed));
        }
        let running = state.running.values().filter(|process| !process.is_over()).count();
        if running >= self.command.processes {
            tracing::warn!(event = "stdio.limit", %upstream, running, "as many children as there may be");
            return Err(Fault::unsent(Reason::Busy));
        }
        if state.not_before.is_some_and(|at| Instant::now() < at) {
            return Err(Fault::unsent(Reason::Unreachable));
        }
        state.started += 1;
        let nursery: Weak<Self> = Arc::downgrade(self);
        let ended = move |process: &Process, lived: Lived| {
            if let Some(nursery) = nursery.upgrade() {
                nursery.ended(process, lived);
            }
        };
        let process = Process::start(state.started, (&self.command, &self.upstream), &self.tasks, ended);
        let process = process.map_err(|why| {
            tracing::error!(event = "stdio.start", %upstream, reason = %why, "the child cannot be started");
            state.failed();
            Fault::unsent(Reason::Unreachable)
        })?;
        state.running.insert(process.number, Arc::clone(&process));
        Ok(process)
    }

    /// A child has ended. What counts towards the back-off is one that never answered, and a shared one that ended early.
    fn ended(&self, process: &Process, lived: Lived) {
        let mut state = self.state();
        state.sessions.remove(&process.number);
        state.running.remove(&process.number);
        let was_first = state.first.as_ref().is_some_and(|first| first.number == process.number);
        if was_first {
            state.first = None;
        }
        let is_silent = !process.has_answered();
        let counts = is_silent || self.upstream.sessions == Sharing::Shared;
        if lived.time >= STEADY {
            (state.failures, state.not_before) = (0, None);
        } else if lived.by_itself && is_silent && was_first && !state.dies_of_discover {
            state.dies_of_discover = true;
        } else if lived.by_itself && counts {
            state.failed();
        }
    }
}

impl State {
    /// The next one is started at once, those after it later and later: a child may die of the first question, which
    /// it does not know.
    fn failed(&mut self) {
        self.failures = self.failures.saturating_add(1);
        let pause = (self.failures > 1).then(|| backoff::pause(self.failures, backoff::jitter()));
        self.not_before = pause.map(|pause| Instant::now() + pause);
    }
}

fn session(head: &HeaderMap) -> Option<u64> {
    head.get(headers::SESSION_ID)?.to_str().ok()?.parse().ok()
}
