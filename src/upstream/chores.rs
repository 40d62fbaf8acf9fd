//! Small requests to an upstream that nobody waits for.
//!
//! Cancellations, answers to an upstream's questions and ends of sessions: things that must be said once, whose
//! answers change nothing (a DELETE may be answered 405). They come from places that cannot wait, such as the end
//! of a dropped reply, so they are put into a bounded queue that one task of the link empties.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use tokio::sync::{Semaphore, mpsc};

use super::fault::Fault;
use super::http::Destination;
use super::wire::Wire;
use crate::task::TaskGroup;

/// So many may wait.
const QUEUE: usize = 1024;
/// So many are on their way at once.
const AT_ONCE: usize = 32;
/// So long may each take.
const LONGEST: Duration = Duration::from_secs(5);

/// One thing to say.
#[derive(Debug)]
pub(super) enum Chore {
    /// Posts a message.
    Post(Destination, String),
    /// Ends a session.
    Delete(HeaderMap),
}

/// The queue.
#[derive(Debug, Clone)]
pub(super) struct Chores(mpsc::Sender<Chore>);

impl Chores {
    /// Starts the task that empties the queue.
    pub(super) fn start(wire: Arc<Wire>, tasks: &TaskGroup) -> Self {
        let (sender, queue) = mpsc::channel(QUEUE);
        tasks.spawn_until_cancelled("chores", empty(queue, wire, tasks.clone()));
        Self(sender)
    }

    /// Puts one into the queue. Where that is full the upstream is not listening anyway, and the chore is lost.
    pub(super) fn add(&self, chore: Chore) {
        if self.0.try_send(chore).is_err() {
            tracing::debug!(
                "a message to an upstream was dropped: too many are waiting, or it is being closed"
            );
        }
    }
}

async fn empty(mut queue: mpsc::Receiver<Chore>, wire: Arc<Wire>, tasks: TaskGroup) {
    let slots = Arc::new(Semaphore::new(AT_ONCE));
    while let Some(chore) = queue.recv().await {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        let wire = Arc::clone(&wire);
        tasks.spawn_until_cancelled("chore", async move {
            done(&wire, chore).await;
            drop(slot);
        });
    }
}

/// Does one thing, within its time; what the upstream makes of it is its business.
pub(super) async fn done(wire: &Wire, chore: Chore) {
    let sent = async {
        let mut answered = match chore {
            Chore::Post(to, body) => wire.post(to, body).await?,
            Chore::Delete(head) => wire.delete(head).await?,
        };
        answered.body.finish().await;
        Ok::<u16, Fault>(answered.status)
    };
    if let Ok(Ok(status)) = tokio::time::timeout(LONGEST, sent).await {
        tracing::trace!(status, "told an upstream");
    }
}
