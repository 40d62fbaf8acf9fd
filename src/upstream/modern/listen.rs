//! The standing stream of a modern upstream: `subscriptions/listen` for the lists that it has.
//!
//! An upstream without that method (404, -32601) is listed from time to time instead. A stream that ends, in good
//! order or not, and one that cannot be opened for any other reason, is opened again with back-off.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::encode::Outgoing;
use super::{Peer, refused};
use crate::exchange::Reason;
use crate::jsonrpc::{Id, Object, RpcError, Text};
use crate::protocol::{ListKind, Method, Offer, code, notification};
use crate::upstream::announce::{Announcer, Hearing};
use crate::upstream::backoff;
use crate::upstream::conversation::{Conversation, Told};
use crate::upstream::fault::Fault;
use crate::upstream::messages::Messages;
use crate::upstream::reading::{Incoming, read};

/// A stream that lived so long was a good one: the next one is not held back for older failures.
pub(super) const GOOD: Duration = Duration::from_secs(30);
/// How long the acknowledgement may take.
const ACKNOWLEDGED: Duration = Duration::from_secs(10);

/// The members of the filter, by list. Templates share that of resources.
const FILTERS: [(ListKind, &str); 3] = [
    (ListKind::Tools, "toolsListChanged"),
    (ListKind::Prompts, "promptsListChanged"),
    (ListKind::Resources, "resourcesListChanged"),
];

/// Listens until the upstream says that it has no such stream.
pub(in crate::upstream) async fn listen(peer: Arc<Peer>, announcer: Announcer) {
    let Some(params) = params(&peer.offer) else { return announcer.set(Hearing::Refused) };
    let mut failures = 0;
    loop {
        let since = Instant::now();
        match once(&peer, &params, &announcer).await {
            Ended::Refused => return announcer.set(Hearing::Refused),
            Ended::Failed => {
                announcer.set(Hearing::Broken);
                failures += 1;
            }
            Ended::Closed => {
                announcer.set(Hearing::Opening);
                failures = if since.elapsed() >= GOOD { 1 } else { failures + 1 };
            }
        }
        tokio::time::sleep(backoff::pause(failures, backoff::jitter())).await;
    }
}

/// Why there is no stream.
#[derive(Debug)]
pub(super) enum Ended {
    /// The upstream has none.
    Refused,
    /// It could not be opened this time.
    Failed,
    /// It was there.
    Closed,
}

fn params(offer: &Offer) -> Option<String> {
    let mut filter = Text::object();
    let mut wanted = FILTERS.iter().filter(|(kind, _)| offer.lists(*kind)).peekable();
    wanted.peek()?;
    wanted.for_each(|(_, member)| filter.member(member, "true"));
    let mut params = Text::object();
    params.member("notifications", &filter.close());
    Some(params.close())
}

async fn once(peer: &Peer, params: &str, announcer: &Announcer) -> Ended {
    let mut stream = match open(peer, params).await {
        Ok(stream) => stream,
        Err(ended) => return ended,
    };
    announcer.set(Hearing::Open { all: covers(&peer.offer, &stream.agreed) });
    while let Some((method, _)) = stream.next().await {
        if ListKind::is_changed(&method) {
            announcer.changed();
        }
    }
    Ended::Closed
}

/// A stream that has been acknowledged.
#[derive(Debug)]
pub(super) struct Stream {
    id: Id,
    messages: Messages,
    /// The raw filter that the upstream agreed to.
    agreed: String,
}

impl Stream {
    /// The method and raw params of the next notification; `None` at the end, in good order or not.
    pub(super) async fn next(&mut self) -> Option<(String, String)> {
        while let Ok(Some(message)) = self.messages.next().await {
            match read(&message) {
                Ok(Incoming::Notice { method, params }) => return Some((method, params)),
                // The completion result: a stream that ended in good order.
                Ok(Incoming::Result { id, .. }) if id == self.id => return None,
                Ok(Incoming::Result { .. } | Incoming::Error { .. } | Incoming::Question { .. }) | Err(_) => {
                }
            }
        }
        None
    }
}

/// Opens a stream.
pub(super) async fn open(peer: &Peer, params: &str) -> Result<Stream, Ended> {
    let talk = Conversation { id: peer.leg.way.ids.next(), audience: None };
    let outgoing = Outgoing {
        revision: peer.leg.revision,
        method: Method::Listen,
        params,
        capabilities: &peer.listing,
        mirrored: &[],
    };
    let answered = peer.leg.send(&talk, &outgoing).await.map_err(|_fault| Ended::Failed)?;
    if !answered.is_success() {
        return Err(match refused(&talk, answered).await {
            Ok(Told::Error(error)) => declined(&error),
            Err(Fault { reason: Reason::Status(404), .. }) => Ended::Refused,
            Ok(Told::Result(_) | Told::Asks(_)) | Err(_) => Ended::Failed,
        });
    }
    let mut messages = Messages::of(answered).map_err(|_fault| Ended::Failed)?;
    match tokio::time::timeout(ACKNOWLEDGED, acknowledged(&mut messages)).await {
        Ok(Some(Ok(agreed))) => Ok(Stream { id: talk.id, messages, agreed }),
        Ok(Some(Err(ended))) => Err(ended),
        Ok(None) | Err(_) => Err(Ended::Failed),
    }
}

/// The raw filter that the upstream agreed to; `None` where the stream ends before it says so.
async fn acknowledged(messages: &mut Messages) -> Option<Result<String, Ended>> {
    while let Ok(Some(message)) = messages.next().await {
        match read(&message) {
            Ok(Incoming::Notice { method, params }) if method == notification::ACKNOWLEDGED => {
                let params = Object::open(&params)?;
                return Some(Ok(params.get("notifications").unwrap_or("{}").to_owned()));
            }
            Ok(Incoming::Error { error, .. }) => return Some(Err(declined(&error))),
            Ok(Incoming::Result { .. }) => return Some(Err(Ended::Closed)),
            Ok(Incoming::Notice { .. } | Incoming::Question { .. }) | Err(_) => {}
        }
    }
    None
}

/// What an error says: the upstream has no such stream, or has trouble with it now.
fn declined(error: &RpcError) -> Ended {
    if error.code == code::METHOD_NOT_FOUND { Ended::Refused } else { Ended::Failed }
}

fn covers(offer: &Offer, agreed: &str) -> bool {
    let agreed = Object::open(agreed).unwrap_or_default();
    FILTERS
        .iter()
        .filter(|(kind, _)| offer.lists(*kind))
        .all(|(_, member)| agreed.get(member) == Some("true"))
}
