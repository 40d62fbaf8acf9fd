//! One session of one client.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::decode::Hello;
use super::line::{Account, Line};
use super::locked::Locked;
use crate::config::{Route, Sessions};
use crate::downstream::Shared;
use crate::exchange::{Answerer, Caller, Reaction, SessionKey};
use crate::jsonrpc::Id;
use crate::principal::{Holder, Principal, Rights, Voucher};
use crate::protocol::{Abilities, ListKind, LogLevel, Revision, Tasking};
use crate::relay::Seat;
use crate::view::Hashes;

/// So long a session that stands for a token may go without use.
const TOKEN_IDLE: Duration = Duration::from_secs(3600);

/// The id that a client was given.
#[derive(Debug)]
pub(super) struct Given {
    /// The sealed id.
    pub(super) id: Arc<str>,
    /// When it ends at the latest, in seconds since 1970 UTC.
    pub(super) expires: i64,
}

/// Everything that Weir keeps for a session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) key: SessionKey,
    pub(super) given: Given,
    pub(super) revision: Revision,
    pub(super) principal: Principal,
    /// Whom it counts for.
    pub(super) holder: Holder,
    /// What the latest verified credential of the client may do.
    rights: watch::Sender<Rights>,
    /// What the latest verified credential is.
    voucher: Mutex<Voucher>,
    /// Where it was opened.
    pub(super) route: Arc<Route>,
    /// What the client can be asked.
    pub(super) abilities: Abilities,
    /// Name and version of the client.
    client: Option<Arc<str>>,
    /// Whether it stands for the token that it was opened with.
    pub(super) by_token: bool,
    piped: bool,
    opened: Instant,
    is_initialized: AtomicBool,
    last_used: Mutex<Instant>,
    level: Mutex<Option<LogLevel>>,
    listed: Mutex<Hashes>,
    /// The calls that have no answer yet, by the client's id.
    calls: Locked<Id, Running>,
    /// The streams of calls, by number.
    pub(super) lines: Locked<u64, Arc<Line>>,
    /// What those keep that are broken.
    pub(super) account: Account,
    /// The questions that the client has not answered, by number, each with the number of its call.
    questions: Locked<u64, (Option<u64>, Answerer)>,
    numbers: AtomicU64,
    /// The standing streams that are open, by number.
    standing: Mutex<BTreeSet<u64>>,
    /// The resources that the client subscribed to; cancelling one ends it.
    watched: Locked<String, CancellationToken>,
    /// The resources that were updated since the client was last told.
    updated: Mutex<BTreeSet<String>>,
    update: Notify,
    /// Cancelled when the session ends.
    pub(super) ended: CancellationToken,
}

impl Session {
    pub(super) fn new(
        (key, given): (SessionKey, Given),
        hello: &Hello,
        (principal, holder, route): (Principal, Holder, Arc<Route>),
        by_token: bool,
    ) -> Self {
        Self {
            key,
            given,
            revision: hello.revision,
            rights: watch::Sender::new(principal.rights.clone()),
            voucher: Mutex::new(principal.voucher.clone()),
            route,
            principal,
            holder,
            abilities: hello.abilities.clone(),
            client: hello.client.clone(),
            by_token,
            piped: hello.piped,
            opened: Instant::now(),
            is_initialized: AtomicBool::new(false),
            last_used: Mutex::new(Instant::now()),
            level: Mutex::new(None),
            listed: Mutex::new(Hashes::default()),
            calls: Locked::default(),
            lines: Locked::default(),
            account: Account::default(),
            questions: Locked::default(),
            numbers: AtomicU64::new(1),
            standing: Mutex::new(BTreeSet::new()),
            watched: Locked::default(),
            updated: Mutex::new(BTreeSet::new()),
            update: Notify::new(),
            ended: CancellationToken::new(),
        }
    }

    /// Who calls in it.
    pub(super) fn caller(&self, shared: &Shared, principal: &Principal) -> Caller {
        Caller {
            session: Some(self.key),
            client: self.client.clone(),
            tasking: self.knows_tasks().then_some(Tasking::Requested),
            ..shared.caller(principal, self.abilities.clone())
        }
    }

    /// Whether its revision has tasks (2025-11-25, Key Changes).
    pub(super) fn knows_tasks(&self) -> bool {
        self.revision >= Revision::V2025_11_25
    }

    /// Whether its streams begin with a priming event and may be closed for a while (2025-11-25, transports).
    pub(super) fn shows_breaks(&self) -> bool {
        self.revision == Revision::V2025_11_25 && !self.piped
    }

    /// Remembers that the client is there.
    pub(super) fn used(&self) {
        if let Ok(mut last) = self.last_used.lock() {
            *last = Instant::now();
        }
    }

    /// A request came from this principal.
    pub(super) fn seen_as(&self, principal: &Principal) {
        let rights = &principal.rights;
        self.voucher.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&principal.voucher);
        self.rights.send_if_modified(|known| {
            let is_new = known != rights;
            if is_new {
                known.clone_from(rights);
            }
            is_new
        });
    }

    /// Whether it may go on under another configuration.
    pub(super) fn goes_on(&self, shared: &Shared) -> bool {
        let voucher = self.voucher.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let principal = Principal { voucher, ..self.principal.clone() };
        let again = shared.again(&principal, &self.route);
        if let Some(principal) = &again {
            self.seen_as(principal);
        }
        again.is_some()
    }

    /// The rights of the latest credential, as they change.
    pub(super) fn rights(&self) -> watch::Receiver<Rights> {
        self.rights.subscribe()
    }

    /// Where its client stands now: with the catalog of this moment, and the rights of its latest credential.
    pub(super) fn seat(&self, shared: &Shared, route: &Arc<Route>) -> (Seat, Principal) {
        let principal = Principal { rights: self.rights.borrow().clone(), ..self.principal.clone() };
        (shared.seat_now(route, &principal), principal)
    }

    /// The client has finished the handshake.
    pub(super) fn initialized(&self) {
        self.is_initialized.store(true, Ordering::Relaxed);
    }

    /// Whether the session is over by itself: too old, never initialized, or idle.
    pub(super) fn has_expired(&self, limits: &Sessions) -> bool {
        let idle = self.last_used.lock().map(|last| last.elapsed()).unwrap_or(Duration::MAX);
        let busy = !self.standing().is_empty() || !self.calls.is_empty();
        let unfinished = !self.is_initialized.load(Ordering::Relaxed) && idle > limits.initialize;
        let most = if self.by_token { TOKEN_IDLE } else { limits.idle };
        self.opened.elapsed() > limits.max_age || (!busy && (idle > most || unfinished))
    }

    /// The least severe log message that the client asked for, if it asked.
    pub(super) fn level(&self) -> Option<LogLevel> {
        self.level.lock().map_or(None, |level| *level)
    }

    pub(super) fn set_level(&self, level: LogLevel) {
        if let Ok(mut own) = self.level.lock() {
            *own = Some(level);
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

    /// Begins a call under a number of its own. `None` when a call with this id is in flight.
    pub(super) fn begin(&self, id: &Id, number: u64) -> Option<CancellationToken> {
        self.calls.begin(id.clone(), || {
            let token = self.ended.child_token();
            (Running { number, token: token.clone() }, token)
        })
    }

    /// The call of this number has ended, and its id is free. Another call that has the id by now is left alone.
    pub(super) fn finish(&self, id: &Id, number: u64) {
        self.calls.remove_if(id, |running| running.number == number);
        self.forget(number);
    }

    /// The client cancels a call of its own.
    pub(super) fn cancel(&self, id: &Id) {
        if let Some(running) = self.calls.remove(id) {
            running.token.cancel();
            // Its reader may be one that takes nothing, and so drives nothing.
            if let Some(line) = self.lines.get(&running.number) {
                line.engine.release();
            }
            self.forget(running.number);
        }
    }

    /// A number for a new stream, unique within the session.
    pub(super) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Keeps the way back of a question; gives its number. `call` is the number of the call that it belongs to, if it
    /// belongs to one.
    pub(super) fn ask(&self, call: Option<u64>, answerer: Answerer) -> u64 {
        let number = self.number();
        self.questions.insert(number, (call, answerer));
        number
    }

    /// The client answers a question. What was not asked, or was answered before, is ignored.
    pub(super) fn answer(&self, number: u64, reaction: Reaction) {
        if let Some((_, answerer)) = self.questions.remove(&number) {
            answerer.answer(reaction);
        }
    }

    /// Nobody waits for the answers to the questions of this call any more.
    fn forget(&self, call: u64) {
        self.questions.retain(|_, (of, _)| *of != Some(call));
    }

    /// How many resources the client has subscribed to.
    pub(super) fn watches(&self) -> usize {
        self.watched.len()
    }

    /// The client subscribes to a resource, in place of an earlier subscription to it.
    pub(super) fn watch(&self, uri: &str) -> CancellationToken {
        let token = self.ended.child_token();
        if let Some(before) = self.watched.insert(uri.to_owned(), token.clone()) {
            before.cancel();
        }
        token
    }

    /// The client is not interested any more.
    pub(super) fn unwatch(&self, uri: &str) {
        if let Some(token) = self.watched.remove(uri) {
            token.cancel();
        }
    }

    /// A resource was updated.
    pub(super) fn note_update(&self, uri: &str) {
        self.updated.lock().unwrap_or_else(PoisonError::into_inner).insert(uri.to_owned());
        self.update.notify_one();
    }

    fn take_updates(&self) -> BTreeSet<String> {
        std::mem::take(&mut *self.updated.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits for updates and takes them. Cancel-safe: they are taken at the last step only.
    pub(super) async fn updates(&self) -> BTreeSet<String> {
        loop {
            let taken = self.take_updates();
            if !taken.is_empty() {
                return taken;
            }
            self.update.notified().await;
        }
    }

    /// How many more bytes may be kept for streams that are broken.
    pub(super) fn room(&self) -> usize {
        self.account.room()
    }

    fn standing(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A standing stream begins.
    pub(super) fn stand(self: &Arc<Self>) -> Standing {
        let number = self.number();
        self.standing().insert(number);
        Standing { session: Arc::clone(self), number }
    }
}

/// A call that has no answer yet.
#[derive(Debug)]
struct Running {
    number: u64,
    token: CancellationToken,
}

/// A standing stream that counts as long as it is held.
#[derive(Debug)]
pub(super) struct Standing {
    pub(super) session: Arc<Session>,
    pub(super) number: u64,
}

impl Standing {
    /// Whether messages go to this one: of several, only the newest speaks, so that none is said twice and a dead
    /// connection swallows none once its client has come back.
    pub(super) fn speaks(&self) -> bool {
        self.session.standing().last() == Some(&self.number)
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        self.session.standing().remove(&self.number);
        self.session.used();
    }
}
