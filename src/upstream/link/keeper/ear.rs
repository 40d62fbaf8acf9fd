//! The keeper's hold on the standing stream.

use std::time::Duration;

use crate::task::TaskGroup;
use crate::upstream::announce::{Announcements, Hearing, News};
use crate::upstream::peer::{Anchor, Peer};

/// How long a listing waits for a new standing stream, so that no change falls between the two.
const STREAM_FIRST: Duration = Duration::from_millis(500);

/// The standing stream, if there is one.
#[derive(Debug, Default)]
pub(super) struct Ear {
    stream: Option<Stream>,
}

#[derive(Debug)]
struct Stream {
    anchor: Anchor,
    announcements: Announcements,
    tasks: TaskGroup,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

impl Ear {
    /// Has the stream that fits the peer as it is now. True where that is another one than before.
    pub(super) async fn follow(&mut self, peer: &Peer, tasks: &TaskGroup) -> bool {
        let anchor = peer.anchor();
        if self.stream.as_ref().is_some_and(|stream| stream.anchor.is(&anchor)) {
            return false;
        }
        self.stream = None;
        if matches!(anchor, Anchor::Nothing) {
            return false;
        }
        let tasks = tasks.child("standing stream");
        let mut announcements = peer.listen(&tasks);
        if tokio::time::timeout(STREAM_FIRST, announcements.settled()).await.is_err() {
            tracing::debug!("listing before the standing stream is open");
        }
        self.stream = Some(Stream { anchor, announcements, tasks });
        true
    }

    /// Lets go of the stream; the next peer gets a new one.
    pub(super) fn close(&mut self) {
        self.stream = None;
    }

    /// Whether the changes of every list are announced.
    pub(super) fn hears_all(&self) -> bool {
        self.stream
            .as_ref()
            .is_some_and(|stream| stream.announcements.hearing() == Hearing::Open { all: true })
    }

    /// A listing begins, and sees every change that was announced before it.
    pub(super) fn forget(&self) {
        if let Some(stream) = &self.stream {
            stream.announcements.forget();
        }
    }

    /// Waits for news.
    ///
    /// # Cancel safety
    /// Safe, as [`Announcements::news`].
    pub(super) async fn news(&mut self) -> News {
        match &mut self.stream {
            Some(stream) => stream.announcements.news().await,
            None => std::future::pending().await,
        }
    }
}
