//! Wishes as those hold them who have them.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::{Stream, StreamExt as _};
use tokio::sync::{mpsc, watch};

use super::{Party, Wishes};
use crate::exchange::Event;
use crate::names::UpstreamName;

/// So much may wait for a client that stands by. What comes on top of it is lost; questions are refused.
const WAITING: usize = 64;

/// One wish; dropping it gives it up.
pub(in crate::upstream) struct Want {
    wishes: Arc<Wishes>,
    party: Arc<Party>,
    what: What,
}

enum What {
    Resource(String),
    Stand(u64),
    Call,
}

impl fmt::Debug for Want {
    /// Not the URI, which may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Want").finish_non_exhaustive()
    }
}

impl Want {
    pub(super) fn resource(wishes: &Arc<Wishes>, party: Arc<Party>, uri: &str) -> Self {
        Self { wishes: Arc::clone(wishes), party, what: What::Resource(uri.to_owned()) }
    }

    pub(super) fn stand(wishes: &Arc<Wishes>, party: Arc<Party>, number: u64) -> Self {
        Self { wishes: Arc::clone(wishes), party, what: What::Stand(number) }
    }

    pub(super) fn call(wishes: &Arc<Wishes>, party: Arc<Party>) -> Self {
        Self { wishes: Arc::clone(wishes), party, what: What::Call }
    }
}

impl Drop for Want {
    fn drop(&mut self) {
        match &self.what {
            What::Resource(uri) => {
                let mut is_last = false;
                self.wishes.leave(&self.party, |party| is_last = party.unwatch(uri));
                if is_last {
                    self.wishes.turn();
                }
            }
            What::Stand(number) => self.wishes.leave(&self.party, |party| party.unstand(*number)),
            What::Call => self.wishes.leave(&self.party, Party::uncall),
        }
    }
}

/// The updates of one resource. Dropping it ends the subscription, if it is the last one.
#[derive(Debug)]
pub struct Watching {
    updates: watch::Receiver<u64>,
    _want: Want,
}

impl Watching {
    pub(super) fn new(want: Want, updates: watch::Receiver<u64>) -> Self {
        Self { updates, _want: want }
    }

    /// Waits for an update. Several that came since it was last asked are one.
    ///
    /// # Cancel safety
    /// Safe: an update that was not returned is returned next time.
    pub async fn updated(&mut self) {
        if self.updates.changed().await.is_err() {
            // The want keeps the sender alive, so this does not happen.
            std::future::pending().await
        }
    }
}

/// What an upstream says outside of calls.
pub(in crate::upstream) type Said = Box<(UpstreamName, Event)>;

/// A client that stands by at one upstream.
#[derive(Debug, Clone)]
pub(in crate::upstream) struct Stander {
    upstream: UpstreamName,
    to: mpsc::Sender<Said>,
}

impl Stander {
    pub(in crate::upstream) fn new(upstream: UpstreamName, to: mpsc::Sender<Said>) -> Self {
        Self { upstream, to }
    }

    /// Says something to it. False where too much waits for it already: what was to be said is lost then.
    pub(in crate::upstream) fn say(&self, event: Event) -> bool {
        self.to.try_send(Box::new((self.upstream.clone(), event))).is_ok()
    }
}

type Turns = Pin<Box<dyn Stream<Item = ()> + Send>>;
type Stand = Box<dyn Fn(&mpsc::Sender<Said>) -> Vec<Want> + Send>;

/// What upstreams say to a client that stands by, outside of its calls.
pub struct Standing {
    events: mpsc::Receiver<Said>,
    to: mpsc::Sender<Said>,
    /// An item for each time that there are other upstreams.
    turns: Turns,
    stand: Stand,
    wants: Vec<Want>,
}

impl fmt::Debug for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Standing").field("wants", &self.wants).finish_non_exhaustive()
    }
}

impl Standing {
    /// Stands by at the upstreams that `stand` finds, and again at each of the turns.
    pub(in crate::upstream) fn new(turns: Turns, stand: Stand) -> Self {
        let (to, events) = mpsc::channel(WAITING);
        let wants = stand(&to);
        Self { events, to, turns, stand, wants }
    }

    /// The next question ([`Event::Inquiry`]), log message ([`Event::Log`]) or news of a task ([`Event::Task`]), and who
    /// says it. Never ends.
    ///
    /// # Cancel safety
    /// Safe: what was not returned is returned next time.
    pub async fn next(&mut self) -> (UpstreamName, Event) {
        loop {
            tokio::select! {
                Some(said) = self.events.recv() => return *said,
                Some(()) = self.turns.next() => {
                    // The new ones first: a party without a wish is dissolved.
                    self.wants = (self.stand)(&self.to);
                }
                else => std::future::pending::<()>().await,
            }
        }
    }
}
