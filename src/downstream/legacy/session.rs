//! One session of one client.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::decode::Hello;
use super::line::Line;
use crate::config::Sessions;
use crate::exchange::{Answerer, Reaction, SessionKey};
use crate::jsonrpc::Id;
use crate::notify::Subscriber;
use crate::principal::Principal;
use crate::protocol::{Abilities, ListKind, LogLevel, Revision};
use crate::view::Hashes;

/// Everything that Weir keeps for a session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) key: SessionKey,
    pub(super) revision: Revision,
    pub(super) principal: Principal,
    /// What the client can be asked.
    pub(super) abilities: Abilities,
    opened: Instant,
    is_initialized: AtomicBool,
    last_used: Mutex<Instant>,
    level: Mutex<LogLevel>,
    listed: Mutex<Hashes>,
    /// The calls that have no answer yet, by the client's id.
    calls: DashMap<Id, CancellationToken>,
    /// The streams of calls, by number.
    pub(super) lines: DashMap<u64, Arc<Line>>,
    /// The questions that the client has not answered, by number.
    questions: DashMap<u64, Answerer>,
    numbers: AtomicU64,
    standing: AtomicUsize,
    subscriber: Mutex<Option<Arc<Subscriber>>>,
    /// Cancelled when the session ends.
    pub(super) ended: CancellationToken,
}

impl Session {
    pub(super) fn new(key: SessionKey, hello: &Hello, principal: Principal) -> Self {
        Self {
            key,
            revision: hello.revision,
            principal,
            abilities: hello.abilities.clone(),
            opened: Instant::now(),
            is_initialized: AtomicBool::new(false),
            last_used: Mutex::new(Instant::now()),
            level: Mutex::new(LogLevel::Debug),
            listed: Mutex::new(Hashes::default()),
            calls: DashMap::new(),
            lines: DashMap::new(),
            questions: DashMap::new(),
            numbers: AtomicU64::new(1),
            standing: AtomicUsize::new(0),
            subscriber: Mutex::new(None),
            ended: CancellationToken::new(),
        }
    }

    /// Remembers that the client is there.
    pub(super) fn used(&self) {
        if let Ok(mut last) = self.last_used.lock() {
            *last = Instant::now();
        }
    }

    /// The client has finished the handshake.
    pub(super) fn initialized(&self) {
        self.is_initialized.store(true, Ordering::Relaxed);
    }

    /// Whether the session is over by itself: too old, never initialized, or idle.
    pub(super) fn has_expired(&self, limits: &Sessions) -> bool {
        let idle = self.last_used.lock().map(|last| last.elapsed()).unwrap_or(Duration::MAX);
        let busy = self.standing.load(Ordering::Relaxed) > 0 || !self.calls.is_empty();
        let unfinished = !self.is_initialized.load(Ordering::Relaxed) && idle > limits.initialize;
        self.opened.elapsed() > limits.max_age || (!busy && (idle > limits.idle || unfinished))
    }

    /// The least severe log message that the client wants.
    pub(super) fn level(&self) -> LogLevel {
        self.level.lock().map_or(LogLevel::Debug, |level| *level)
    }

    pub(super) fn set_level(&self, level: LogLevel) {
        if let Ok(mut own) = self.level.lock() {
            *own = level;
        }
    }

    /// Remembers which list the client was given, so that a standing stream opened later tells what changed since.
    pub(super) fn listed(&self, kind: ListKind, hashes: Hashes) {
        let Ok(mut listed) = self.listed.lock() else { return };
        match kind {
            ListKind::Tools => listed.tools = hashes.tools,
            ListKind::Prompts => listed.prompts = hashes.prompts,
            ListKind::Resources | ListKind::Templates => listed.resources = hashes.resources,
        }
    }

    /// The lists as the client knows them: as they were given to it, else as they are now.
    pub(super) fn seen(&self, now: Hashes) -> Hashes {
        let listed = self.listed.lock().map(|listed| *listed).unwrap_or_default();
        let or_now = |seen: u64, now: u64| if seen == 0 { now } else { seen };
        Hashes {
            tools: or_now(listed.tools, now.tools),
            prompts: or_now(listed.prompts, now.prompts),
            resources: or_now(listed.resources, now.resources),
        }
    }

    /// Begins a call. `None` when a call with this id is in flight.
    pub(super) fn begin(&self, id: &Id) -> Option<CancellationToken> {
        match self.calls.entry(id.clone()) {
            Entry::Occupied(_) => None,
            Entry::Vacant(place) => {
                let token = self.ended.child_token();
                place.insert(token.clone());
                Some(token)
            }
        }
    }

    /// The call has ended.
    pub(super) fn finish(&self, id: &Id) {
        self.calls.remove(id);
    }

    /// The client cancels a call of its own.
    pub(super) fn cancel(&self, id: &Id) {
        if let Some((_, token)) = self.calls.remove(id) {
            token.cancel();
        }
    }

    /// A number for a new stream, unique within the session.
    pub(super) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Keeps the way back of a question; gives its number.
    pub(super) fn ask(&self, answerer: Answerer) -> u64 {
        let number = self.number();
        self.questions.insert(number, answerer);
        number
    }

    /// The client answers a question. What was not asked, or was answered before, is ignored.
    pub(super) fn answer(&self, number: u64, reaction: Reaction) {
        if let Some((_, answerer)) = self.questions.remove(&number) {
            answerer.answer(reaction);
        }
    }

    /// Nobody waits for the answer any more.
    pub(super) fn forget(&self, number: u64) {
        self.questions.remove(&number);
    }

    /// How many bytes of messages are kept for streams that are broken.
    pub(super) fn kept(&self) -> usize {
        self.lines.iter().map(|line| line.kept()).sum()
    }

    /// A standing stream begins; all of a session share one subscriber, so that each change goes to one of them.
    pub(super) fn stand(
        self: &Arc<Self>,
        make: impl FnOnce() -> Arc<Subscriber>,
    ) -> (Arc<Subscriber>, Standing) {
        let count = self.standing.fetch_add(1, Ordering::Relaxed);
        let mut held = self.subscriber.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let subscriber = match held.take() {
            Some(shared) if count > 0 => shared,
            Some(_) | None => make(),
        };
        *held = Some(Arc::clone(&subscriber));
        (subscriber, Standing { session: Arc::clone(self) })
    }
}

/// A standing stream that counts as long as it is held.
#[derive(Debug)]
pub(super) struct Standing {
    session: Arc<Session>,
}

impl Drop for Standing {
    fn drop(&mut self) {
        self.session.standing.fetch_sub(1, Ordering::Relaxed);
        self.session.used();
    }
}
