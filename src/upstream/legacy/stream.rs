//! The standing GET stream of Weir's own listing session.
//!
//! It brings nothing but the news that a list changed, and pings. Losing it does not end the session. A server that
//! has none (405, or another 4xx) is not asked again in this session. When the session itself is forgotten the
//! keeper is told; its next listing opens another one, and then a new stream.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use tokio::time::Instant;

use super::Peer;
use super::handshake::reply_to_question;
use super::pool::{Key, Lease};
use crate::protocol::{ListKind, headers};
use crate::upstream::announce::{Announcer, Hearing};
use crate::upstream::backoff;
use crate::upstream::chores::Chore;
use crate::upstream::http::{Answered, Form};
use crate::upstream::messages::{Messages, Resume};
use crate::upstream::reading::{Incoming, read};

/// A stream that lived so long was a good one: the next one is not held back for older failures.
const GOOD: Duration = Duration::from_secs(30);

/// Listens until the session offers no stream or is lost.
pub(in crate::upstream) async fn listen(peer: Arc<Peer>, announcer: Announcer) {
    let Ok(lease) = peer.pool.lease(Key::Listing, None).await else {
        return announcer.set(Hearing::Broken);
    };
    let mut failures = 0;
    let mut point = None;
    loop {
        match open(&peer, &lease, point.take()).await {
            Open::Stream(messages) => {
                let since = Instant::now();
                announcer.set(Hearing::Open { all: peer.offer.list_changed });
                point = hear(&peer, &lease, *messages, &announcer).await;
                announcer.set(Hearing::Opening);
                failures = if since.elapsed() >= GOOD { 1 } else { failures + 1 };
            }
            Open::Refused => {
                lease.session().refuse_streams();
                return announcer.set(Hearing::Refused);
            }
            Open::Failed => {
                announcer.set(Hearing::Broken);
                failures += 1;
            }
        }
        let retry = point.as_ref().and_then(|point: &Resume| point.retry).unwrap_or_default();
        tokio::time::sleep(retry.max(backoff::pause(failures, backoff::jitter()))).await;
    }
}

enum Open {
    Stream(Box<Messages>),
    Refused,
    Failed,
}

async fn open(peer: &Peer, lease: &Lease, point: Option<Resume>) -> Open {
    let mut head = lease.session().head();
    let last = point.and_then(|point| HeaderValue::from_bytes(point.last_event_id.as_bytes()).ok());
    if let Some(last) = last {
        head.insert(HeaderName::from_static(headers::LAST_EVENT_ID), last);
    }
    match peer.way.http.get(head).await {
        Ok(answered) if is_stream(&answered) => match Messages::of(answered) {
            Ok(messages) => Open::Stream(Box::new(messages)),
            Err(_) => Open::Failed,
        },
        Ok(answered) if matches!(answered.status, 429 | 500..) => Open::Failed,
        Ok(answered) if answered.status == 404 && lease.session().can_be_lost() => {
            // Perhaps the session is forgotten, perhaps there is no such stream: the keeper's next listing tells.
            Open::Refused
        }
        Ok(_) => Open::Refused,
        Err(_) => Open::Failed,
    }
}

fn is_stream(answered: &Answered) -> bool {
    answered.is_success() && answered.form == Form::Events
}

/// Reads until the stream ends; says where it could be taken up again.
async fn hear(peer: &Peer, lease: &Lease, mut messages: Messages, announcer: &Announcer) -> Option<Resume> {
    while let Ok(Some(message)) = messages.next().await {
        match read(&message) {
            Ok(Incoming::Notice { method, .. }) => {
                if ListKind::is_changed(&method) {
                    announcer.changed();
                }
            }
            Ok(Incoming::Question(asked)) => {
                let reply = reply_to_question(&asked.id, &asked.method);
                peer.pool.chores().add(Chore::Post(lease.session().head(), reply));
            }
            Ok(Incoming::Result { .. } | Incoming::Error { .. }) | Err(_) => {}
        }
    }
    messages.resume()
}
