//! The addresses of one upstream.
//!
//! A request goes where the fewest are in flight; one of a session goes where the session was opened. An address that
//! cannot be reached, or fails several times in a row, is left out for a while that grows; when all are, the one that
//! has waited longest is tried. An upstream with one address never loses it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dashmap::DashMap;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue};
use reqwest::Url;
use tokio::time::Instant;
use url::Position;

use crate::names::UpstreamName;
use crate::protocol::headers;
use crate::upstream::backoff;

/// So many failures in a row leave an address out.
const MOST_FAILURES: u32 = 3;
/// Most sessions whose address is known. Beyond it all are forgotten: the upstream says 404, and they are opened again.
const MOST_SESSIONS: usize = 65_536;

/// A session with a longer id, in bytes, is asked for where the fewest are in flight.
const LONGEST_SESSION: usize = 512;

/// The addresses of one upstream.
#[derive(Debug)]
pub(super) struct Addresses {
    upstream: UpstreamName,
    all: Vec<Arc<Address>>,
    /// Where sessions were opened.
    sessions: DashMap<HeaderValue, usize>,
    /// The one after that which was chosen last.
    turn: AtomicUsize,
}

/// One address.
pub(super) struct Address {
    pub(super) url: Url,
    /// What stands in the first line of a request to it; `None` for what cannot stand there.
    pub(super) target: Option<PathAndQuery>,
    in_flight: AtomicUsize,
    breaker: Mutex<Breaker>,
}

impl std::fmt::Debug for Address {
    /// Without the address: it may hold a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Address").field("in_flight", &self.in_flight).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Breaker {
    failures: u32,
    /// How often it was left out in a row.
    ejections: u32,
    not_before: Option<Instant>,
}

/// How a request went, as far as it says something of the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was answered.
    Answered,
    /// It was answered with a status of the server's trouble, or not to its end.
    Failed,
    /// There was no connection.
    Unreachable,
}

/// A request that counts as long as this is held: until its answer has been read.
#[derive(Debug)]
pub(super) struct InFlight(Arc<Address>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A request that has no answer yet. One that is given up after all its time counts as failed: nobody answers there.
#[derive(Debug)]
pub(super) struct Waiting<'a> {
    addresses: &'a Addresses,
    number: usize,
    until: Instant,
    is_over: bool,
}

impl Waiting<'_> {
    /// It was answered, or failed.
    pub(super) fn over(mut self, outcome: Outcome) {
        self.is_over = true;
        self.addresses.note(self.number, outcome);
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.is_over && Instant::now() >= self.until {
            self.addresses.note(self.number, Outcome::Failed);
        }
    }
}

impl Address {
    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request.
    pub(super) fn enter(self: &Arc<Self>) -> InFlight {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(Arc::clone(self))
    }
}

/// Path and query of a URL.
pub(super) fn target(url: &Url) -> Option<PathAndQuery> {
    url[Position::BeforePath..Position::AfterQuery].parse().ok()
}

impl Addresses {
    pub(super) fn new(upstream: UpstreamName, urls: Vec<Url>) -> Self {
        let address = |url: Url| Address {
            target: target(&url),
            url,
            in_flight: AtomicUsize::new(0),
            breaker: Mutex::default(),
        };
        let all = urls.into_iter().map(|url| Arc::new(address(url))).collect();
        Self { upstream, all, sessions: DashMap::new(), turn: AtomicUsize::new(0) }
    }

    /// Whether there is a choice.
    pub(super) fn are_several(&self) -> bool {
        self.all.len() > 1
    }

    pub(super) fn get(&self, number: usize) -> Option<&Arc<Address>> {
        self.all.get(number)
    }

    /// Where a request with this head goes.
    pub(super) fn choose(&self, head: &HeaderMap) -> usize {
        if !self.are_several() {
            return 0;
        }
        let known = head.get(headers::SESSION_ID).and_then(|id| self.sessions.get(id).map(|at| *at));
        known.unwrap_or_else(|| self.least())
    }

    /// The address with the fewest requests; of equal ones the next in turn.
    fn least(&self) -> usize {
        let now = Instant::now();
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        let in_turn = (0..self.all.len()).map(|step| (first.wrapping_add(step)) % self.all.len());
        let rank = |number: &usize| {
            let address = self.all.get(*number)?;
            let out = address.breaker().not_before.filter(|at| now < *at);
            Some((out, address.in_flight.load(Ordering::Relaxed)))
        };
        in_turn.min_by_key(rank).unwrap_or_default()
    }

    /// A request to an address waits for its answer, for so long at most.
    pub(super) fn wait(&self, number: usize, patience: Duration) -> Waiting<'_> {
        Waiting { addresses: self, number, until: Instant::now() + patience, is_over: false }
    }

    /// A request to an address went so.
    fn note(&self, number: usize, outcome: Outcome) {
        let Some(address) = self.all.get(number).filter(|_| self.are_several()) else { return };
        let mut breaker = address.breaker();
        match outcome {
            Outcome::Answered if breaker.failures == 0 && breaker.not_before.is_none() => return,
            Outcome::Answered => {
                if breaker.not_before.is_some() {
                    tracing::info!(event = "upstream.restored", upstream = %self.upstream, address = number + 1, "an address answers again");
                }
                *breaker = Breaker::default();
            }
            Outcome::Failed => breaker.failures += 1,
            Outcome::Unreachable => breaker.failures = MOST_FAILURES,
        }
        let is_in = breaker.not_before.is_none_or(|at| at <= Instant::now());
        if breaker.failures >= MOST_FAILURES && is_in {
            breaker.ejections = breaker.ejections.saturating_add(1);
            let pause = backoff::pause(breaker.ejections, backoff::jitter());
            // Once its time is over one more failure is enough.
            breaker.failures = MOST_FAILURES - 1;
            breaker.not_before = Some(Instant::now() + pause);
            drop(breaker);
            tracing::warn!(
                event = "upstream.ejected",
                upstream = %self.upstream,
                address = number + 1,
                ?pause,
                "an address is left out"
            );
        }
    }

    /// A session was opened at an address.
    pub(super) fn opened(&self, session: &HeaderValue, number: usize) {
        if !self.are_several() || session.len() > LONGEST_SESSION {
            return;
        }
        if self.sessions.len() >= MOST_SESSIONS {
            self.sessions.clear();
        }
        self.sessions.insert(session.clone(), number);
    }

    /// The session of this head is over; whether its address was known.
    pub(super) fn over(&self, head: &HeaderMap) -> bool {
        head.get(headers::SESSION_ID).is_some_and(|id| self.sessions.remove(id).is_some())
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};

    use super::{Addresses, Outcome};
    use crate::protocol::headers;

    fn three() -> Addresses {
        let urls = ["http://a/", "http://b/", "http://c/"].map(|url| url.parse().unwrap());
        Addresses::new("alpha".parse().unwrap(), urls.to_vec())
    }

    fn chosen(addresses: &Addresses) -> usize {
        addresses.choose(&HeaderMap::new())
    }

    #[test]
    fn the_fewest_in_flight_win_and_equal_ones_take_turns() {
        let addresses = three();
        let turns: Vec<usize> = (0..6).map(|_| chosen(&addresses)).collect();
        assert_eq!(turns, [0, 1, 2, 0, 1, 2]);
        let held = [0, 0, 1].map(|number: usize| addresses.get(number).unwrap().enter());
        assert!((0..6).all(|_| chosen(&addresses) == 2));
        drop(held);
        assert_eq!(chosen(&addresses), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn what_fails_is_left_out_for_a_while_that_grows() {
        let addresses = three();
        addresses.note(1, Outcome::Unreachable);
        assert!((0..6).all(|_| chosen(&addresses) != 1));
        tokio::time::advance(std::time::Duration::from_secs(1)).await;
        assert!((0..6).any(|_| chosen(&addresses) == 1), "tried again");
        addresses.note(1, Outcome::Failed);
        tokio::time::advance(std::time::Duration::from_secs(1)).await;
        assert!((0..6).all(|_| chosen(&addresses) != 1), "longer than the first time");
        tokio::time::advance(std::time::Duration::from_secs(1)).await;
        addresses.note(1, Outcome::Answered);
        addresses.note(1, Outcome::Failed);
        addresses.note(1, Outcome::Failed);
        assert!((0..6).any(|_| chosen(&addresses) == 1), "two failures are not enough");
        for number in 0..3 {
            addresses.note(number, Outcome::Unreachable);
        }
        assert!(chosen(&addresses) < 3, "somebody is asked all the same");
    }

    #[test]
    fn a_session_stays_with_its_address_and_the_only_one_is_never_left_out() {
        let addresses = three();
        let mut head = HeaderMap::new();
        head.insert(headers::SESSION_ID, HeaderValue::from_static("s"));
        addresses.opened(&HeaderValue::from_static("s"), 2);
        assert!((0..6).all(|_| addresses.choose(&head) == 2));
        assert!(addresses.over(&head) && !addresses.over(&head));
        let one = Addresses::new("alpha".parse().unwrap(), vec!["http://a/".parse().unwrap()]);
        one.note(0, Outcome::Unreachable);
        assert_eq!(chosen(&one), 0);
    }
}
