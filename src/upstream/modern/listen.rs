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
use crate::jsonrpc::{Object, RpcError, Text};
use crate::protocol::{ListKind, Method, Offer, code, notification};
use crate::upstream::announce::{Announcer, Hearing};
use crate::upstream::backoff;
use crate::upstream::capabilities::LISTING_CAPABILITIES;
use crate::upstream::conversation::{Conversation, Told};
use crate::upstream::fault::Fault;
use crate::upstream::messages::Messages;
use crate::upstream::reading::{Incoming, read};

/// A stream that lived so long was a good one: the next one is not held back for older failures.
const GOOD: Duration = Duration::from_secs(30);
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

enum Ended {
    Refused,
    Failed,
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
    let talk = Conversation { id: peer.leg.way.ids.next(), audience: None };
    let outgoing = Outgoing {
        revision: peer.leg.revision,
        method: Method::Listen,
        params,
        capabilities: LISTING_CAPABILITIES,
        mirrored: &[],
    };
    let Ok(answered) = peer.leg.send(&talk, &outgoing).await else { return Ended::Failed };
    if !answered.is_success() {
        return match refused(&talk, answered).await {
            Ok(Told::Error(error)) => declined(&error),
            Err(Fault { reason: Reason::Status(404), .. }) => Ended::Refused,
            Ok(Told::Result(_) | Told::Asks(_)) | Err(_) => Ended::Failed,
        };
    }
    let Ok(mut messages) = Messages::of(answered) else { return Ended::Failed };
    match tokio::time::timeout(ACKNOWLEDGED, acknowledged(&mut messages)).await {
        Ok(Some(Ok(agreed))) => announcer.set(Hearing::Open { all: covers(&peer.offer, &agreed) }),
        Ok(Some(Err(ended))) => return ended,
        Ok(None) | Err(_) => return Ended::Failed,
    }
    while let Ok(Some(message)) = messages.next().await {
        match read(&message) {
            Ok(Incoming::Notice { method, .. }) => {
                if ListKind::is_changed(&method) {
                    announcer.changed();
                }
            }
            // The completion result: a stream that ended in good order.
            Ok(Incoming::Result { id, .. }) if id == talk.id => break,
            Ok(Incoming::Result { .. } | Incoming::Error { .. } | Incoming::Question { .. }) | Err(_) => {}
        }
    }
    Ended::Closed
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
