//! The sessions of one legacy upstream, by who may use them.
//!
//! A session is opened at its first use, by one task however many wait for it, and that task goes on when they go
//! away. Whoever finds that the upstream has forgotten a session says so once ([`Pool::lose`]); the next use opens
//! a new one. A session that nobody wants any more when its opening ends is ended at once. An upstream that gives no
//! session id has nothing to share: everybody uses the session of Weir's own listing.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use tokio::sync::watch;
use tokio::time::Instant;

use super::handshake::{self, Carriage};
use super::question::Desk;
use super::session::Session;
use crate::config::Sharing;
use crate::exchange::{Caller, Reason, SessionKey};
use crate::jsonrpc::request;
use crate::principal::Subject;
use crate::protocol::{Abilities, Revision, notification};
use crate::task::TaskGroup;
use crate::upstream::capabilities::{LISTING_CAPABILITIES, NO_CAPABILITIES};
use crate::upstream::chores::{self, Chore, Chores};
use crate::upstream::fault::Fault;
use crate::upstream::way::Way;

/// So many sessions one principal may have, one for each set of things that its clients can be asked.
const MOST_SETS: usize = 8;

/// Who may use a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::upstream) enum Key {
    /// Weir itself, to list and to listen.
    Listing,
    /// One client session.
    Client(SessionKey),
    /// Clients of one principal that can be asked the same.
    Principal(Subject, Abilities),
    /// Everybody.
    Shared,
    /// One call.
    Call(u64),
}

#[derive(Debug, Clone)]
enum Opening {
    Pending,
    Ready(Arc<Session>),
    Failed(Fault),
}

#[derive(Debug)]
struct Slot {
    number: u64,
    state: watch::Receiver<Opening>,
}

/// The sessions.
#[derive(Debug)]
pub(in crate::upstream) struct Pool {
    way: Way,
    revision: Revision,
    carriage: Carriage,
    chores: Chores,
    tasks: TaskGroup,
    slots: DashMap<Key, Slot>,
    /// What is declared in the session of Weir's own listing.
    listing: Mutex<String>,
    numbers: AtomicU64,
    has_ids: AtomicBool,
    is_reopened: AtomicBool,
    /// Counts the sessions that were opened.
    opened: watch::Sender<u64>,
}

/// A session in use.
#[derive(Debug)]
pub(in crate::upstream) struct Lease {
    key: Key,
    session: Arc<Session>,
    _ends: Option<Ends>,
}

/// Ends a session that was opened for one call.
#[derive(Debug)]
struct Ends {
    pool: Arc<Pool>,
    key: Key,
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.pool.end(&self.key);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.session.finish();
    }
}

impl Lease {
    pub(super) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Whether it is not that of Weir's own listing.
    pub(super) fn is_of_client(&self) -> bool {
        self.key != Key::Listing
    }

    /// Whose session it is.
    pub(super) fn key(&self) -> &Key {
        &self.key
    }
}

impl Key {
    /// Whose session a caller uses where sessions are shared so; `None` for one session per call.
    pub(in crate::upstream) fn of(caller: &Caller, sharing: Sharing) -> Option<Self> {
        let is_named = caller.principal.is_named();
        match (sharing, caller.session) {
            (Sharing::Shared, _) => Some(Self::Shared),
            (Sharing::Principal, _) if is_named => Some(Self::principal(caller)),
            (Sharing::Client | Sharing::Principal, Some(session)) => Some(Self::Client(session)),
            (Sharing::Client | Sharing::Principal, None) if is_named || caller.on_loopback => {
                Some(Self::principal(caller))
            }
            (Sharing::Client | Sharing::Principal, None) => None,
        }
    }

    /// Whether those who use it may hear what belongs to no call of theirs.
    fn is_of_one(&self) -> bool {
        match self {
            Self::Client(_) | Self::Principal(..) | Self::Call(_) => true,
            Self::Listing | Self::Shared => false,
        }
    }

    /// Whose session hears of resources for a caller: who has one per call shares one for that.
    pub(in crate::upstream) fn watching(caller: &Caller, sharing: Sharing) -> Self {
        Self::of(caller, sharing).unwrap_or_else(|| Self::principal(caller))
    }

    fn principal(caller: &Caller) -> Self {
        Self::Principal(caller.principal.subject.clone(), caller.abilities.clone())
    }
}

impl Pool {
    /// A pool that speaks one revision, carried in one way.
    pub(in crate::upstream) fn new(
        way: Way,
        revision: Revision,
        carriage: Carriage,
        tasks: &TaskGroup,
    ) -> Arc<Self> {
        let tasks = tasks.child("sessions");
        let chores = Chores::start(Arc::clone(&way.wire), &tasks);
        let pool = Arc::new(Self {
            way,
            revision,
            carriage,
            chores,
            tasks,
            slots: DashMap::new(),
            listing: Mutex::new(LISTING_CAPABILITIES.to_owned()),
            numbers: AtomicU64::new(0),
            has_ids: AtomicBool::new(true),
            is_reopened: AtomicBool::new(false),
            opened: watch::Sender::new(0),
        });
        pool.tasks
            .spawn_until_cancelled("idle sessions", sweep(Arc::downgrade(&pool), pool.way.upstream.idle));
        pool
    }

    /// How messages travel.
    pub(in crate::upstream) fn carriage(&self) -> Carriage {
        self.carriage
    }

    /// Where cancellations and answers to questions go.
    pub(super) fn chores(&self) -> &Chores {
        &self.chores
    }

    /// Where questions that come in a session are taken.
    pub(super) fn desk<'a>(&'a self, session: &'a Session) -> Desk<'a> {
        Desk { chores: &self.chores, tasks: &self.tasks, session }
    }

    /// Takes a session that was opened elsewhere as that of Weir's own listing; an older one is ended.
    pub(in crate::upstream) fn adopt(&self, session: Session, listing: String) {
        *self.listing.lock().unwrap_or_else(PoisonError::into_inner) = listing;
        self.has_ids.store(session.is_distinct(), Ordering::Relaxed);
        let (_, state) = watch::channel(Opening::Ready(Arc::new(session)));
        let slot = Slot { number: self.numbers.fetch_add(1, Ordering::Relaxed), state };
        if let Some(old) = self.slots.insert(Key::Listing, slot) {
            self.ended(&old);
        }
    }

    /// Whose session a caller uses.
    pub(super) fn key(&self, caller: &Caller) -> Key {
        if self.is_one_for_all() {
            return Key::Listing;
        }
        Key::of(caller, self.way.upstream.sessions)
            .unwrap_or_else(|| Key::Call(self.numbers.fetch_add(1, Ordering::Relaxed)))
    }

    /// Whether everybody uses the session of Weir's own listing: the upstream tells none apart, or it is one child.
    fn is_one_for_all(&self) -> bool {
        !self.has_ids.load(Ordering::Relaxed) || self.way.wire.is_shared_child()
    }

    /// Whose session hears of resources for a caller.
    pub(in crate::upstream) fn watching(&self, caller: &Caller) -> Key {
        if self.is_one_for_all() { Key::Listing } else { Key::watching(caller, self.way.upstream.sessions) }
    }

    /// Whether sessions have standing streams, as far as Weir's own tells.
    pub(super) fn has_streams(&self) -> bool {
        self.current(&Key::Listing).is_none_or(|session| !session.refuses_streams())
    }

    /// Changes when a session is opened.
    pub(super) fn opened(&self) -> watch::Receiver<u64> {
        self.opened.subscribe()
    }

    /// The session of a key, where there is one.
    pub(super) fn lease_open(&self, key: &Key) -> Option<Lease> {
        let session = self.current(key)?;
        session.begin();
        Some(Lease { key: key.clone(), session, _ends: None })
    }

    /// The roots of a client session changed, which its own sessions are told.
    pub(in crate::upstream) fn roots_changed(&self, session: SessionKey) {
        if let Some(session) = self.current(&Key::Client(session)) {
            let message = request(None, notification::ROOTS_CHANGED, "");
            self.chores.add(Chore::Post(session.destination(), message));
        }
    }

    /// The session of a key, opened where there is none.
    pub(in crate::upstream) async fn lease(
        self: &Arc<Self>,
        key: Key,
        abilities: Option<&Abilities>,
    ) -> Result<Lease, Fault> {
        let ends = matches!(key, Key::Call(_)).then(|| Ends { pool: Arc::clone(self), key: key.clone() });
        let session = match self.ready(&key, abilities).await? {
            session if !session.has_ended() => session,
            over => {
                self.forget(&key, &over);
                self.ready(&key, abilities).await?
            }
        };
        session.begin();
        Ok(Lease { key, session, _ends: ends })
    }

    async fn ready(
        self: &Arc<Self>,
        key: &Key,
        abilities: Option<&Abilities>,
    ) -> Result<Arc<Session>, Fault> {
        let mut state = self.state(key, abilities);
        let opening = state.wait_for(|opening| !matches!(opening, Opening::Pending)).await;
        match opening.as_deref() {
            Ok(Opening::Ready(session)) => Ok(Arc::clone(session)),
            Ok(Opening::Failed(fault)) => Err(fault.clone()),
            // The pool is being closed: where the upstream has another by now, the call goes there.
            Ok(Opening::Pending) | Err(_) => Err(Fault::unsent(Reason::Unreachable)),
        }
    }

    /// The upstream has forgotten a session: the next use of its key opens a new one. Says it for this session only,
    /// so of many calls that find out together one opening comes.
    pub(super) fn lose(&self, lease: &Lease) {
        lease.session.end();
        self.forget(&lease.key, &lease.session);
    }

    fn forget(&self, key: &Key, lost: &Arc<Session>) {
        self.slots.remove_if(key, |_, slot| match &*slot.state.borrow() {
            Opening::Ready(session) => Arc::ptr_eq(session, lost),
            Opening::Pending | Opening::Failed(_) => false,
        });
    }

    /// Whether the listing session was opened here since this was last asked.
    pub(super) fn was_reopened(&self) -> bool {
        self.is_reopened.swap(false, Ordering::Relaxed)
    }

    /// Whether Weir's own session is open.
    pub(in crate::upstream) fn has_listing(&self) -> bool {
        self.current(&Key::Listing).is_some()
    }

    /// Ends Weir's own session: the next listing opens another one.
    pub(in crate::upstream) fn end_listing(&self) {
        self.end(&Key::Listing);
    }

    /// The session of a key, where one is open.
    pub(in crate::upstream) fn current(&self, key: &Key) -> Option<Arc<Session>> {
        self.slots.get(key).and_then(|slot| ready(&slot)).filter(|session| !session.has_ended())
    }

    /// Ends the session of a client session.
    pub(in crate::upstream) fn end_client(&self, session: SessionKey) {
        self.end(&Key::Client(session));
    }

    fn end(&self, key: &Key) {
        if let Some((_, slot)) = self.slots.remove(key) {
            self.ended(&slot);
        }
    }

    /// Ends all sessions and waits for it, as long as the caller wants.
    pub(in crate::upstream) async fn close(&self) {
        let sessions: Vec<Arc<Session>> = self.slots.iter().filter_map(|slot| ready(&slot)).collect();
        self.slots.clear();
        sessions.iter().for_each(|session| session.end());
        let ends = sessions
            .iter()
            .filter(|session| session.has_id())
            .map(|session| chores::done(&self.way.wire, Chore::Delete(session.head())));
        futures_util::future::join_all(ends).await;
        self.tasks.cancel();
    }

    fn ended(&self, slot: &Slot) {
        if let Some(session) = ready(slot) {
            self.end_now(&session);
        }
    }

    fn end_now(&self, session: &Session) {
        session.end();
        if session.has_id() && !self.way.wire.ends(&session.head()) {
            self.chores.add(Chore::Delete(session.head()));
        }
    }

    /// The state of the session of a key. Whoever comes first has it opened, with what its client can be asked; a
    /// session that everybody shares is told of nothing, so it can ask nobody.
    fn state(self: &Arc<Self>, key: &Key, abilities: Option<&Abilities>) -> watch::Receiver<Opening> {
        match self.slots.entry(key.clone()) {
            Entry::Occupied(slot) => slot.get().state.clone(),
            Entry::Vacant(place) => {
                let number = self.numbers.fetch_add(1, Ordering::Relaxed);
                let (sender, state) = watch::channel(Opening::Pending);
                place.insert(Slot { number, state: state.clone() });
                let pool = Arc::clone(self);
                let capabilities = match (key, abilities) {
                    (Key::Listing, _) | (_, None) => {
                        self.listing.lock().unwrap_or_else(PoisonError::into_inner).clone()
                    }
                    (Key::Shared, _) => NO_CAPABILITIES.to_owned(),
                    (Key::Client(_) | Key::Principal(..) | Key::Call(_), Some(abilities)) => {
                        abilities.to_json()
                    }
                };
                let key = key.clone();
                self.tasks.spawn_until_cancelled("open a session", async move {
                    pool.make_room(&key);
                    pool.open(key, number, capabilities, sender).await;
                });
                state
            }
        }
    }

    /// Keeps the sessions of one principal, which differ by what its clients can be asked, to so many: the one that
    /// was used last the longest ago is ended, one that is in use only where all are.
    fn make_room(&self, key: &Key) {
        let Key::Principal(subject, _) = key else { return };
        let is_other = |of: &Key| of != key && matches!(of, Key::Principal(of, _) if of == subject);
        let others: Vec<(Key, Option<Arc<Session>>)> = self
            .slots
            .iter()
            .filter(|slot| is_other(slot.key()))
            .map(|slot| (slot.key().clone(), ready(&slot)))
            .collect();
        let surplus = (others.len() + 1).saturating_sub(MOST_SETS);
        let mut open: Vec<((bool, Instant), Key)> =
            others.into_iter().filter_map(|(key, session)| Some((session?.used(), key))).collect();
        open.sort_unstable_by_key(|(used, _)| *used);
        open.iter().take(surplus).for_each(|(_, key)| self.end(key));
    }

    async fn open(&self, key: Key, number: u64, capabilities: String, state: watch::Sender<Opening>) {
        let opening = match self.initialize(&capabilities).await {
            Ok(session) => {
                if let Some(line) = session.line().filter(|_| key.is_of_one()) {
                    line.make_private();
                }
                Opening::Ready(Arc::new(session))
            }
            Err(fault) => {
                self.slots.remove_if(&key, |_, slot| slot.number == number);
                Opening::Failed(fault)
            }
        };
        state.send_replace(opening.clone());
        let Opening::Ready(session) = opening else { return };
        if key == Key::Listing {
            self.has_ids.store(session.is_distinct(), Ordering::Relaxed);
            self.is_reopened.store(true, Ordering::Relaxed);
        }
        // Asked after the session can be seen: who takes the slot away before this sees it and ends it, who does so
        // later leaves it to us.
        if self.slots.get(&key).is_none_or(|slot| slot.number != number) {
            self.end_now(&session);
        }
        self.opened.send_modify(|count| *count += 1);
    }

    async fn initialize(&self, capabilities: &str) -> Result<Session, Fault> {
        let opening = handshake::open(&self.way, self.revision, capabilities, self.carriage);
        match Box::pin(tokio::time::timeout(self.way.upstream.timeout.call, opening)).await {
            Ok(Ok(opened)) => Ok(opened.session),
            // Nothing of the caller's was sent yet, whatever became of the handshake.
            Ok(Err(refused)) => Err(Fault::unsent(refused.into_fault().reason)),
            Err(_elapsed) => Err(Fault::unsent(Reason::TimedOut)),
        }
    }

    fn end_idle(&self, idle: Duration) {
        let is_idle = |slot: &Slot| ready(slot).is_some_and(|session| session.is_idle(idle));
        let found: Vec<Key> =
            self.slots.iter().filter(|slot| is_idle(slot)).map(|slot| slot.key().clone()).collect();
        for key in found.into_iter().filter(|key| *key != Key::Listing) {
            if let Some((_, slot)) = self.slots.remove_if(&key, |_, slot| is_idle(slot)) {
                self.ended(&slot);
            }
        }
    }
}

fn ready(slot: &Slot) -> Option<Arc<Session>> {
    match &*slot.state.borrow() {
        Opening::Ready(session) => Some(Arc::clone(session)),
        Opening::Pending | Opening::Failed(_) => None,
    }
}

/// Ends what nobody uses, until the pool is gone.
async fn sweep(pool: std::sync::Weak<Pool>, idle: Duration) {
    let pause = (idle / 4).clamp(Duration::from_secs(1), Duration::from_secs(30));
    loop {
        tokio::time::sleep(pause).await;
        let Some(pool) = pool.upgrade() else { return };
        pool.end_idle(idle);
    }
}
