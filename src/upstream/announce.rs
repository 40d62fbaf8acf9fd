//! What an upstream's standing stream tells the link's keeper.
//!
//! Two facts, neither a queue: how the stream is doing, and whether something changed since the keeper last looked.
//! An upstream that announces ten thousand changes a second costs one flag.

use std::sync::Arc;

use futures_util::FutureExt as _;
use tokio::sync::{Notify, watch};

/// How the stream is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hearing {
    /// It is being opened, for the first time or after a break.
    Opening,
    /// It has been opened.
    Open {
        /// Whether changes of every list are announced on it.
        all: bool,
    },
    /// It cannot be reached any more: look whether the upstream is there at all.
    Broken,
    /// The upstream has none: list it from time to time.
    Refused,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    /// A list changed.
    Changed,
    /// The stream does differently now.
    Turned(Hearing),
}

/// The stream's end.
#[derive(Debug, Clone)]
pub(super) struct Announcer {
    hearing: Arc<watch::Sender<Hearing>>,
    changed: Arc<Notify>,
}

/// The keeper's end.
#[derive(Debug)]
pub(super) struct Announcements {
    hearing: watch::Receiver<Hearing>,
    changed: Arc<Notify>,
}

/// The two ends.
pub(super) fn channel() -> (Announcer, Announcements) {
    let (sender, hearing) = watch::channel(Hearing::Opening);
    let changed = Arc::new(Notify::new());
    let announcer = Announcer { hearing: Arc::new(sender), changed: Arc::clone(&changed) };
    (announcer, Announcements { hearing, changed })
}

impl Announcer {
    pub(super) fn set(&self, hearing: Hearing) {
        self.hearing.send_replace(hearing);
    }

    pub(super) fn changed(&self) {
        self.changed.notify_one();
    }
}

impl Announcements {
    /// How the stream is doing now.
    pub(super) fn hearing(&self) -> Hearing {
        *self.hearing.borrow()
    }

    /// Waits until the stream has been opened or refused, for the first time.
    pub(super) async fn settled(&mut self) {
        // An error means that the stream's task has ended, which settles it as well.
        drop(self.hearing.wait_for(|hearing| *hearing != Hearing::Opening).await);
        self.hearing.mark_unchanged();
    }

    /// Lowers the flag that something changed.
    pub(super) fn forget(&self) {
        // A flag that is up makes this ready at once, which lowers it.
        let _raised = self.changed.notified().now_or_never();
    }

    /// Waits for news.
    ///
    /// # Cancel safety
    /// Safe: what was not returned is returned next time.
    pub(super) async fn news(&mut self) -> News {
        tokio::select! {
            () = self.changed.notified() => News::Changed,
            turned = self.hearing.changed() => match turned {
                Ok(()) => News::Turned(*self.hearing.borrow_and_update()),
                // The stream's task has ended and says nothing any more.
                Err(_ended) => std::future::pending().await,
            },
        }
    }
}
