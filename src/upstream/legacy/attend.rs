//! What clients want to hear of a legacy upstream outside of calls, made true.
//!
//! Each [`Party`] has one future that keeps what it wants in its session: subscriptions to resources, and a standing
//! GET stream while there are any, or a call runs for a while, or the client stands by. A session is opened for
//! subscriptions only. Where it is lost the next one gets the same subscriptions, and each is reported as updated
//! once, since nobody knows what was missed.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

use super::Peer;
use super::pool::{Key, Lease};
use super::stream::{self, Hearer};
use crate::exchange::Reason;
use crate::jsonrpc::{Text, request};
use crate::protocol::Method;
use crate::upstream::backoff;
use crate::upstream::chores::Chore;
use crate::upstream::conversation::Told;
use crate::upstream::fault::Fault;
use crate::upstream::wishes::Party;

/// How long a standing stream outlives the last wish: calls in a row share one, and what their upstream says is not
/// said on a stream that is just being closed.
const LINGER: Duration = Duration::from_secs(1);

/// Attends to all parties, for as long as the caller wants.
pub(in crate::upstream) async fn attend(peer: Arc<Peer>) {
    let mut came = peer.way.wishes.came();
    let mut attended = HashSet::new();
    let mut attending = FuturesUnordered::new();
    loop {
        for party in peer.way.wishes.parties() {
            if attended.insert(party.key().clone()) {
                attending.push(Box::pin(party_of(&peer, party)));
            }
        }
        tokio::select! {
            came = came.changed() => if came.is_err() { return },
            Some(key) = attending.next(), if !attending.is_empty() => { attended.remove(&key); }
        }
    }
}

/// Attends to one party until it wants nothing any more.
async fn party_of(peer: &Arc<Peer>, party: Arc<Party>) -> Key {
    let mut known = BTreeSet::new();
    let mut failures = 0;
    tokio::select! {
        () = unwanted(&party) => {}
        () = async {
            loop {
                if let Ok(lease) = lease(peer, &party).await {
                    let presence = Presence { peer, party: &party, lease, asked: Mutex::default() };
                    failures = if presence.last(&mut known).await { 0 } else { failures + 1 };
                } else {
                    failures += 1;
                }
                tokio::time::sleep(backoff::pause(failures, backoff::jitter())).await;
            }
        } => {}
    }
    party.key().clone()
}

/// Ends when it has wanted nothing for a while.
async fn unwanted(party: &Party) {
    let mut turned = party.turned();
    loop {
        turned.borrow_and_update();
        let turned = if party.is_wanted() {
            turned.changed().await
        } else {
            let Ok(turned) = tokio::time::timeout(LINGER, turned.changed()).await else { return };
            turned
        };
        if turned.is_err() {
            return;
        }
    }
}

/// The party's session: opened where it watches something, waited for where it does not.
async fn lease(peer: &Peer, party: &Party) -> Result<Lease, Fault> {
    let (mut turned, mut opened) = (party.turned(), peer.pool.opened());
    loop {
        if party.watches() {
            return peer.pool.lease(party.key().clone(), Some(party.abilities())).await;
        }
        if let Some(lease) = peer.pool.lease_open(party.key()) {
            return Ok(lease);
        }
        tokio::select! {
            turned = turned.changed() => if turned.is_err() { pending::<()>().await },
            opened = opened.changed() => if opened.is_err() { pending::<()>().await },
        }
    }
}

/// A party in one session. Dropped, it takes its subscriptions back.
struct Presence<'a> {
    peer: &'a Peer,
    party: &'a Party,
    lease: Lease,
    /// What was asked for: whether it is subscribed to, or refused.
    asked: Mutex<BTreeMap<String, bool>>,
}

impl Drop for Presence<'_> {
    fn drop(&mut self) {
        if !self.lease.session().has_ended() {
            self.give_up(&BTreeSet::new());
            if self.lease.is_of_client() {
                self.lease.session().unsettle_stream();
            }
        }
    }
}

impl Presence<'_> {
    /// Lasts until the session is lost or something fails. True where it was good for something. `known` are the
    /// resources that were subscribed to before.
    async fn last(&self, known: &mut BTreeSet<String>) -> bool {
        let session = self.lease.session();
        tokio::select! {
            () = session.ended() => true,
            () = self.hear() => true,
            is_good = self.follow(known) => is_good,
        }
    }

    /// Weir's own session has a stream already, and so has everybody who uses it.
    async fn hear(&self) {
        if self.lease.is_of_client() && self.peer.pool.has_streams() {
            stream::keep(self.peer, &self.lease, &Hearer::Party(self.party)).await;
        }
        // There is no stream. What is subscribed to may be announced on the streams of calls.
        self.lease.session().settle_stream();
        pending().await
    }

    /// Has subscribed to what is watched; ends when that fails. True where it has subscribed to something.
    async fn follow(&self, known: &mut BTreeSet<String>) -> bool {
        let mut turned = self.party.turned();
        let mut is_good = false;
        loop {
            turned.borrow_and_update();
            let wanted: BTreeSet<String> = self.party.resources().into_iter().collect();
            known.retain(|uri| wanted.contains(uri));
            self.give_up(&wanted);
            if !wanted.is_empty() {
                self.lease.session().stream_settled().await;
            }
            match self.subscribe_all(wanted, known).await {
                Ok(is_taken) => is_good |= is_taken,
                Err(_) => return is_good,
            }
            if turned.changed().await.is_err() {
                return is_good;
            }
        }
    }

    /// Subscribes to what has not been asked for in this session. True where something was taken.
    async fn subscribe_all(
        &self,
        wanted: BTreeSet<String>,
        known: &mut BTreeSet<String>,
    ) -> Result<bool, Fault> {
        let mut is_good = false;
        for uri in wanted.into_iter().filter(|uri| !self.asked().contains_key(uri)) {
            // Known before it is answered: where the answer is lost, so may an update be.
            let was_known = !known.insert(uri.clone());
            is_good |= self.subscribe(&uri).await?;
            if was_known {
                self.party.updated(&uri);
            }
        }
        Ok(is_good)
    }

    /// Takes back what is not watched any more.
    fn give_up(&self, wanted: &BTreeSet<String>) {
        self.asked().retain(|uri, is_taken| {
            let is_wanted = wanted.contains(uri);
            if *is_taken && !is_wanted {
                self.unsubscribe(uri);
            }
            is_wanted
        });
    }

    /// False where the upstream refuses.
    async fn subscribe(&self, uri: &str) -> Result<bool, Fault> {
        // From now on it may be subscribed to, whatever becomes of the answer.
        self.asked().insert(uri.to_owned(), true);
        let params = params(uri);
        let asked = self.peer.ask_in(&self.lease, Method::ResourcesSubscribe, &params);
        let told = tokio::time::timeout(self.peer.way.upstream.timeout.call, Box::pin(asked)).await;
        let told = told.unwrap_or_else(|_elapsed| Err(Fault::sent(Reason::TimedOut)))?;
        let is_taken = matches!(told, Told::Result(_));
        if !is_taken {
            tracing::debug!(upstream = %self.peer.way.upstream.name, "a subscription was refused");
            self.asked().insert(uri.to_owned(), false);
        }
        Ok(is_taken)
    }

    fn asked(&self) -> MutexGuard<'_, BTreeMap<String, bool>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its answer does not matter.
    fn unsubscribe(&self, uri: &str) {
        let id = self.peer.way.ids.next();
        let message = request(Some(&id), Method::ResourcesUnsubscribe.as_str(), &params(uri));
        self.peer.pool.chores().add(Chore::Post(self.lease.session().destination(), message));
    }
}

fn params(uri: &str) -> String {
    let mut params = Text::object();
    params.text("uri", uri);
    params.close()
}
