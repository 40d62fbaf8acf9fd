//! All sessions, and the seals that name them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dashmap::DashMap;
use jiff::Timestamp;

use super::decode::Hello;
use super::session::{Given, Session};
use crate::config::{Route, Sessions};
use crate::downstream::{Inbound, Shared};
use crate::exchange::SessionKey;
use crate::principal::Holder;
use crate::seal::{Owner, Refused, SessionSeal, random_bytes};

/// The sessions of this process.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) shared: Arc<Shared>,
    sessions: DashMap<SessionKey, Arc<Session>>,
    /// The ids that living sessions were given, so that they need not be opened with every request.
    given: DashMap<Arc<str>, SessionKey>,
    counts: DashMap<Holder, usize>,
    total: AtomicUsize,
}

/// Whether a session could be opened.
#[derive(Debug)]
pub(super) enum Verdict {
    /// Its sealed id.
    Opened(String),
    /// The principal has as many as it may have.
    TooMany,
    /// There are as many as there may be.
    Full,
}

impl Table {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let (sessions, given, counts) = (DashMap::new(), DashMap::new(), DashMap::new());
        Self { shared, sessions, given, counts, total: AtomicUsize::new(0) }
    }

    /// What is in force now.
    pub(super) fn limits(&self) -> Sessions {
        self.shared.hub.snapshot().config.listen.sessions
    }

    pub(super) fn len(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }

    /// Opens a session and seals its id.
    pub(super) fn open(&self, request: &Inbound, hello: &Hello) -> Verdict {
        let limits = request.snapshot.config.listen.sessions;
        if self.len() >= limits.total {
            return Verdict::Full;
        }
        let holder = request.holder();
        {
            let mut count = self.counts.entry(holder.clone()).or_default();
            if *count >= limits.per_principal {
                return Verdict::TooMany;
            }
            *count += 1;
        }
        let issued = Timestamp::now().as_second();
        let life = i64::try_from(limits.max_age.as_secs()).unwrap_or(i64::MAX);
        let seal = SessionSeal {
            key: random_bytes(),
            revision: hello.revision,
            issued,
            expires: issued.saturating_add(life),
            owner: Owner::new(&request.route.name, &request.principal.subject),
        };
        let key = SessionKey(seal.key);
        let opener = (request.principal.clone(), holder, Arc::clone(&request.route));
        let sealed = seal.seal(&self.shared.keyring);
        let given = Given { id: sealed.as_str().into(), expires: seal.expires };
        self.given.insert(Arc::clone(&given.id), key);
        let session = Session::new((key, given), hello, opener, request.by_session);
        let session = Arc::new(session);
        self.sessions.insert(key, Arc::clone(&session));
        self.total.fetch_add(1, Ordering::Relaxed);
        self.gauge();
        // The request may be older than the configuration in force, by which it would not have come in.
        if !session.goes_on(&self.shared) {
            self.end(key);
        }
        Verdict::Opened(sealed)
    }

    /// The living session of a sealed id, if it belongs to this route and this principal.
    pub(super) fn find(&self, sealed: &str, request: &Inbound) -> Option<Arc<Session>> {
        let now = Timestamp::now().as_second();
        if let Some(session) = self.known(sealed, request, now) {
            return Some(session);
        }
        let owner = Owner::new(&request.route.name, &request.principal.subject);
        let seal = match SessionSeal::open(&self.shared.keyring, sealed, owner, now) {
            Ok(seal) => seal,
            Err(Refused::Foreign) => {
                let subject = &*request.principal.subject.subject;
                tracing::warn!(event = "session.principal_mismatch", subject, "a session of somebody else");
                return None;
            }
            Err(Refused::Unreadable | Refused::Expired) => return None,
        };
        self.sessions.get(&SessionKey(seal.key)).map(|session| Arc::clone(&session))
    }

    /// The session that was given this id, if it belongs to this route and this principal and goes on at this time, in
    /// seconds since 1970 UTC.
    fn known(&self, sealed: &str, request: &Inbound, now: i64) -> Option<Arc<Session>> {
        let key = *self.given.get(sealed)?;
        let session = self.sessions.get(&key).map(|session| Arc::clone(&session))?;
        let is_of = session.route.name == request.route.name
            && session.principal.subject == request.principal.subject;
        (is_of && now < session.given.expires).then_some(session)
    }

    /// The living session of a sealed id, where it is one of this route and stands for its token.
    pub(super) fn of_token(&self, sealed: &str, route: &Route) -> Option<Arc<Session>> {
        let key = SessionSeal::key_of(&self.shared.keyring, sealed)?;
        let session = self.sessions.get(&SessionKey(key)).map(|session| Arc::clone(&session))?;
        let owner = Owner::new(&route.name, &session.principal.subject);
        let seal = SessionSeal::open(&self.shared.keyring, sealed, owner, Timestamp::now().as_second());
        (session.by_token && seal.is_ok()).then_some(session)
    }

    /// Ends a session: its calls, its streams, and what it holds at upstreams.
    pub(super) fn end(&self, key: SessionKey) {
        let Some((_, session)) = self.sessions.remove(&key) else { return };
        self.given.remove(&session.given.id);
        session.ended.cancel();
        session.lines.all().iter().for_each(|line| line.engine.release());
        self.total.fetch_sub(1, Ordering::Relaxed);
        self.shared.relay.end_session(key);
        if let Some(mut count) = self.counts.get_mut(&session.holder) {
            *count = count.saturating_sub(1);
        }
        self.counts.remove_if(&session.holder, |_, count| *count == 0);
        self.gauge();
    }

    pub(super) fn end_all(&self) {
        let keys: Vec<SessionKey> = self.sessions.iter().map(|entry| *entry.key()).collect();
        for key in keys {
            self.end(key);
        }
    }

    /// A copy of the handles, for the keeper.
    pub(super) fn all(&self) -> Vec<Arc<Session>> {
        self.sessions.iter().map(|entry| Arc::clone(entry.value())).collect()
    }

    fn gauge(&self) {
        self.shared.metrics.sessions.set(i64::try_from(self.len()).unwrap_or(i64::MAX));
    }
}
