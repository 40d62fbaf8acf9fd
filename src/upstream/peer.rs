//! An upstream whose revision is settled.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::Stream;

use super::announce::{self, Announcements};
use super::connect::Settled;
use super::conversation::{Audience, Told};
use super::fault::{Fault, Miss};
use super::legacy::{self, Key, Pool, Session};
use super::modern;
use super::way::Way;
use crate::exchange::{Caller, Reason, SessionKey};
use crate::protocol::{Abilities, Method, Offer, Revision};
use crate::task::TaskGroup;

/// The raw states of tasks. Dropping it ends the interest.
pub type TaskNews = Pin<Box<dyn Stream<Item = String> + Send>>;

/// An upstream of one of the two kinds.
#[derive(Debug, Clone)]
pub(super) enum Peer {
    /// With sessions.
    Legacy(Arc<legacy::Peer>),
    /// Without.
    Modern(Arc<modern::Peer>),
}

/// What a standing stream hangs on: where this is another one, another stream is needed.
#[derive(Debug, Clone)]
pub(super) enum Anchor {
    /// The upstream itself.
    Upstream,
    /// A session with it.
    Session(Arc<Session>),
    /// There is nothing to listen to.
    Nothing,
}

impl Anchor {
    pub(super) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Session(one), Self::Session(other)) => Arc::ptr_eq(one, other),
            (Self::Upstream, Self::Upstream) | (Self::Nothing, Self::Nothing) => true,
            (Self::Upstream | Self::Session(_) | Self::Nothing, _) => false,
        }
    }
}

impl Peer {
    /// The peer of a settled upstream. Where it speaks what `old` speaks, the old sessions stay.
    pub(super) fn new(settled: Settled, way: &Way, old: Option<&Self>, tasks: &TaskGroup) -> Self {
        match settled {
            Settled::Modern(leg, offer, instructions) => {
                let listing = way.listing(&offer.extensions);
                Self::Modern(Arc::new(modern::Peer { leg, offer, listing, instructions }))
            }
            Settled::Legacy(opened) => {
                let (revision, carriage) = (opened.revision, opened.session.carriage());
                let is_like =
                    |old: &legacy::Peer| old.revision == revision && old.pool.carriage() == carriage;
                let pool = match old {
                    Some(Self::Legacy(old)) if is_like(old) => Arc::clone(&old.pool),
                    Some(Self::Legacy(_) | Self::Modern(_)) | None => {
                        Pool::new(way.clone(), revision, carriage, tasks)
                    }
                };
                pool.adopt(opened.session, way.listing(&opened.offer.extensions));
                Self::Legacy(Arc::new(legacy::Peer {
                    way: way.clone(),
                    pool,
                    revision,
                    offer: opened.offer,
                    instructions: opened.instructions,
                }))
            }
        }
    }

    /// Whether the sessions of the other one are this one's.
    pub(super) fn shares_sessions(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Legacy(one), Self::Legacy(other)) => Arc::ptr_eq(&one.pool, &other.pool),
            (Self::Modern(_), Self::Modern(_)) => true,
            (Self::Legacy(_) | Self::Modern(_), _) => false,
        }
    }

    /// Whether a standing stream of this one serves for the other.
    pub(super) fn hears_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Modern(one), Self::Modern(other)) => one.offer == other.offer,
            (Self::Legacy(_) | Self::Modern(_), _) => false,
        }
    }

    pub(super) fn revision(&self) -> Revision {
        match self {
            Self::Legacy(peer) => peer.revision,
            Self::Modern(peer) => peer.leg.revision,
        }
    }

    pub(super) fn offer(&self) -> &Offer {
        match self {
            Self::Legacy(peer) => &peer.offer,
            Self::Modern(peer) => &peer.offer,
        }
    }

    pub(super) fn instructions(&self) -> Option<&String> {
        match self {
            Self::Legacy(peer) => peer.instructions.as_ref(),
            Self::Modern(peer) => peer.instructions.as_ref(),
        }
    }

    /// Whether its results carry `resultType` and cache hints.
    pub(super) fn is_stateless(&self) -> bool {
        matches!(self, Self::Modern(_))
    }

    /// What is left here of what a client can be asked.
    pub(super) fn reduced(&self, caller: &Caller) -> Abilities {
        caller.abilities.toward(self.offer(), caller.session.is_none() == self.is_stateless())
    }

    /// Whether the upstream has forgotten Weir since this was last asked, and so may offer other things now.
    pub(super) fn was_forgotten(&self) -> bool {
        match self {
            Self::Legacy(peer) => peer.was_reopened(),
            Self::Modern(_) => false,
        }
    }

    /// Makes one attempt at a call.
    pub(super) async fn attempt(&self, audience: Audience<'_>) -> Result<Told, Miss> {
        match self {
            Self::Legacy(peer) => Box::pin(peer.attempt(audience)).await,
            Self::Modern(peer) => Box::pin(peer.attempt(audience)).await,
        }
    }

    /// Asks something for Weir itself, within a time limit.
    pub(super) async fn ask(&self, method: Method, params: &str, limit: Duration) -> Result<Told, Fault> {
        let told = async {
            match self {
                Self::Legacy(peer) => Box::pin(peer.ask(method, params)).await,
                Self::Modern(peer) => Box::pin(peer.ask(method, params)).await,
            }
        };
        tokio::time::timeout(limit, told).await.unwrap_or(Err(Fault::unsent(Reason::TimedOut)))
    }

    /// What a standing stream would hang on now.
    pub(super) fn anchor(&self) -> Anchor {
        match self {
            Self::Legacy(peer) => match peer.pool.current(&Key::Listing) {
                Some(session) if !session.refuses_streams() => Anchor::Session(session),
                Some(_) | None => Anchor::Nothing,
            },
            Self::Modern(_) => Anchor::Upstream,
        }
    }

    /// Starts the standing stream.
    pub(super) fn listen(&self, tasks: &TaskGroup) -> Announcements {
        let (announcer, announcements) = announce::channel();
        match self.clone() {
            Self::Legacy(peer) => {
                tasks.spawn_until_cancelled("standing stream", Box::pin(legacy::listen(peer, announcer)));
            }
            Self::Modern(peer) => {
                tasks.spawn_until_cancelled("standing stream", Box::pin(modern::listen(peer, announcer)));
            }
        }
        announcements
    }

    /// Makes true what clients want to hear outside of their calls, for as long as the caller wants.
    pub(super) async fn attend(&self) {
        match self.clone() {
            Self::Legacy(peer) => Box::pin(legacy::attend(peer)).await,
            Self::Modern(peer) => Box::pin(modern::attend(peer)).await,
        }
        // There is nothing to attend to until the upstream is another one.
        std::future::pending().await
    }

    /// Who a caller shares its wishes with.
    pub(super) fn watching(&self, caller: &Caller) -> Key {
        match self {
            Self::Legacy(peer) => peer.pool.watching(caller),
            Self::Modern(_) => Key::Shared,
        }
    }

    /// The raw states of these tasks as they come; `None` where the upstream has no such news for those without a
    /// session.
    pub(super) fn follow(&self, ids: &[String]) -> Option<TaskNews> {
        match self {
            Self::Modern(peer) => Some(Box::pin(modern::follow(Arc::clone(peer), ids))),
            Self::Legacy(_) => None,
        }
    }

    /// The roots of a client changed.
    pub(super) fn roots_changed(&self, session: SessionKey) {
        match self {
            Self::Legacy(peer) => peer.pool.roots_changed(session),
            Self::Modern(_) => {}
        }
    }

    /// A client session ended.
    pub(super) fn end_client(&self, session: SessionKey) {
        match self {
            Self::Legacy(peer) => peer.pool.end_client(session),
            Self::Modern(_) => {}
        }
    }

    /// Ends what the upstream keeps for Weir.
    pub(super) async fn close(&self) {
        match self {
            Self::Legacy(peer) => peer.pool.close().await,
            Self::Modern(_) => {}
        }
    }
}
