//! Calls that wait between two attempts of a stateless client.
//!
//! A legacy upstream asks in the middle of a call and keeps it open. The client gets the questions as the result of
//! its attempt; the call is parked here, with a task that goes on reading it, until the retry takes it or the wait
//! ends. A parked call is taken by exactly one retry.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dashmap::DashMap;
use futures_util::StreamExt as _;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use crate::config::ParkLimits;
use crate::exchange::{Answerer, Event, Inquiry, Reaction, Reply};
use crate::notify::Hub;
use crate::principal::Holder;
use crate::protocol::InputRequest;
use crate::task::TaskGroup;

/// A question that is open.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) request: InputRequest,
    answerer: Answerer,
}

/// A call between two attempts.
pub(super) struct Parked {
    reply: Reply,
    /// What arrived while nobody listened: the last progress, and the end.
    early: VecDeque<Event>,
    open: Vec<Open>,
    next_key: u32,
}

impl Parked {
    /// A call whose upstream has asked something.
    pub(super) fn new(reply: Reply) -> Self {
        Self { reply, early: VecDeque::new(), open: Vec::new(), next_key: 1 }
    }

    /// Adds a question, under a key of Weir's own.
    pub(super) fn add(&mut self, inquiry: Inquiry) {
        let key = format!("q{}", self.next_key);
        self.next_key += 1;
        let Inquiry { question, params, answerer } = inquiry;
        self.open.push(Open { request: InputRequest { key, question, params }, answerer });
    }

    /// Hands answers to the questions they belong to; what is not asked is ignored.
    pub(super) fn answer(&mut self, answers: Vec<(String, String)>) {
        for (key, result) in answers {
            if let Some(position) = self.open.iter().position(|open| open.request.key == key) {
                self.open.swap_remove(position).answerer.answer(Reaction::Result(result));
            }
        }
    }

    /// Whether a question is open.
    pub(super) fn is_asking(&self) -> bool {
        !self.open.is_empty()
    }

    /// The questions that are still open.
    pub(super) fn questions(&self) -> Vec<InputRequest> {
        self.open.iter().map(|open| open.request.clone()).collect()
    }

    /// The next event of the call.
    pub(super) async fn next(&mut self) -> Option<Event> {
        match self.early.pop_front() {
            Some(event) => Some(event),
            None => self.reply.next().await,
        }
    }

    /// Waits a little for further questions.
    pub(super) async fn gather(&mut self, longest: Duration) {
        while let Ok(Some(event)) = timeout(longest, self.reply.next()).await {
            match event {
                Event::Inquiry(inquiry) => self.add(inquiry),
                last if last.is_last() => return self.early.push_back(last),
                event => self.early.push_back(event),
            }
        }
    }

    /// Reads on while nobody listens: new questions are kept, and the last progress, and the end.
    async fn keep(&mut self) {
        while let Some(event) = self.reply.next().await {
            match event {
                Event::Inquiry(inquiry) => self.add(inquiry),
                Event::Log(..) | Event::Paused(_) | Event::Task(_) => {}
                Event::Progress(_) => {
                    self.early.clear();
                    self.early.push_back(event);
                }
                Event::Asks(_) | Event::Result(_) | Event::Error(_) | Event::Failed(_) => {
                    self.early.push_back(event);
                    break;
                }
            }
        }
        std::future::pending::<()>().await;
    }
}

type Taker = oneshot::Sender<Parked>;

struct Place {
    holder: Holder,
    take: oneshot::Sender<Taker>,
}

/// All parked calls of this process.
pub(in crate::downstream) struct Parking {
    places: Arc<DashMap<u64, Place>>,
    numbers: AtomicU64,
    hub: Arc<Hub>,
    tasks: TaskGroup,
    gauge: Gauge,
}

impl std::fmt::Debug for Parking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parking").field("calls", &self.places.len()).finish_non_exhaustive()
    }
}

impl Parking {
    pub(in crate::downstream) fn new(hub: Arc<Hub>, tasks: &TaskGroup, gauge: Gauge) -> Self {
        let places = Arc::new(DashMap::new());
        Self { places, numbers: AtomicU64::new(0), hub, tasks: tasks.child("parked calls"), gauge }
    }

    fn limits(&self) -> ParkLimits {
        self.hub.snapshot().config.listen.limits.parked
    }

    /// How many calls are parked.
    pub(in crate::downstream) fn count(&self) -> usize {
        self.places.len()
    }

    /// Whether there is room for one more call of this principal.
    pub(super) fn has_room(&self, holder: &Holder) -> bool {
        let own = self.places.iter().filter(|place| place.holder == *holder).count();
        let limits = self.limits();
        self.places.len() < limits.total && own < limits.per_principal
    }

    /// Parks a call and gives the number to take it by.
    pub(super) fn park(&self, mut call: Parked, holder: &Holder) -> u64 {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let (take, taken) = oneshot::channel::<Taker>();
        self.places.insert(number, Place { holder: holder.clone(), take });
        self.gauge.set(i64::try_from(self.places.len()).unwrap_or(i64::MAX));
        let (places, gauge, wait) = (Arc::clone(&self.places), self.gauge.clone(), self.limits().wait);
        self.tasks.spawn_until_cancelled("parked call", async move {
            // Dropping the call at the end of the wait cancels it upstream. Cancel-safe: what `keep` has read is in
            // the call already when it waits.
            let taker = tokio::select! {
                taker = taken => taker.ok(),
                () = call.keep() => None,
                () = sleep(wait) => None,
            };
            places.remove(&number);
            gauge.set(i64::try_from(places.len()).unwrap_or(i64::MAX));
            if let Some(taker) = taker
                && taker.send(call).is_err()
            {
                tracing::debug!("a retry went away before it had its call");
            }
        });
        number
    }

    /// Takes a call back. `None` when it was taken before, or its wait has ended.
    pub(super) async fn take(&self, number: u64) -> Option<Parked> {
        let (_, place) = self.places.remove(&number)?;
        let (taker, call) = oneshot::channel();
        place.take.send(taker).ok()?;
        call.await.ok()
    }
}
