//! The standing GET stream of a session; over HTTP+SSE, what comes on its one stream beside its calls.
//!
//! On that of Weir's own listing session come the news that a list changed, and pings; on that of a client's session
//! what the upstream says to the client outside of calls, too. Losing it does not end the session. A server that has
//! none (405, or another 4xx) is not asked again in this session. When the session itself is forgotten, the listing
//! that follows opens another one, and then a new stream.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use tokio::time::Instant;

use super::Peer;
use super::handshake::reply_to_question;
use super::pool::{Key, Lease};
use crate::exchange::Event;
use crate::jsonrpc::Object;
use crate::protocol::{ListKind, LogLevel, headers, notification};
use crate::upstream::announce::{Announcer, Hearing};
use crate::upstream::backoff;
use crate::upstream::chores::Chore;
use crate::upstream::http::{Answered, Form};
use crate::upstream::messages::{Messages, Resume};
use crate::upstream::reading::{Asked, Incoming, read};
use crate::upstream::wishes::Party;

/// So much of a log message goes to the log, in characters.
const LOGGED: usize = 1024;
/// A stream that lived so long was a good one: the next one is not held back for older failures.
const GOOD: Duration = Duration::from_secs(30);

/// Who hears what comes on a stream.
#[derive(Debug)]
pub(super) enum Hearer<'a> {
    /// Weir itself.
    Weir(&'a Announcer),
    /// Those who share a session.
    Party(&'a Party),
}

/// Listens in Weir's own session until it offers no stream or is lost.
pub(in crate::upstream) async fn listen(peer: Arc<Peer>, announcer: Announcer) {
    match peer.pool.lease(Key::Listing, None).await {
        Ok(lease) => keep(&peer, &lease, &Hearer::Weir(&announcer)).await,
        Err(_) => announcer.set(Hearing::Broken),
    }
}

/// Keeps a stream of a session open until the session offers none.
pub(super) async fn keep(peer: &Peer, lease: &Lease, hearer: &Hearer<'_>) {
    let mut failures = 0;
    let mut point: Option<Resume> = None;
    let mut was_open = false;
    loop {
        let is_gap = was_open && point.is_none();
        match open(peer, lease, point.take()).await {
            Open::Stream(messages) => {
                let since = Instant::now();
                lease.session().settle_stream();
                hearer.opened(peer, is_gap);
                was_open = true;
                point = hear(peer, lease, *messages, hearer).await;
                hearer.closed(Hearing::Opening);
                failures = if since.elapsed() >= GOOD { 1 } else { failures + 1 };
            }
            Open::Refused => {
                lease.session().refuse_streams();
                lease.session().settle_stream();
                return hearer.closed(Hearing::Refused);
            }
            Open::Lost => {
                peer.pool.lose(lease);
                return hearer.closed(Hearing::Broken);
            }
            Open::Failed => {
                hearer.closed(Hearing::Broken);
                failures += 1;
            }
        }
        let retry = point.as_ref().and_then(|point: &Resume| point.retry).unwrap_or_default();
        tokio::time::sleep(retry.max(backoff::pause(failures, backoff::jitter()))).await;
    }
}

impl Hearer<'_> {
    fn opened(&self, peer: &Peer, is_gap: bool) {
        match self {
            Self::Weir(announcer) => {
                announcer.set(Hearing::Open { all: peer.offer.list_changed });
                if let Some(party) = peer.way.wishes.party(&Key::Listing).filter(|_| is_gap) {
                    party.all_updated();
                }
            }
            Self::Party(party) if is_gap => party.all_updated(),
            Self::Party(_) => {}
        }
    }

    fn closed(&self, hearing: Hearing) {
        match self {
            Self::Weir(announcer) => announcer.set(hearing),
            Self::Party(_) => {}
        }
    }

    fn notice(&self, peer: &Peer, method: &str, params: String) {
        match (self, method) {
            (Self::Weir(announcer), _) if ListKind::is_changed(method) => announcer.changed(),
            (Self::Party(_), _) if ListKind::is_changed(method) => peer.way.wishes.changed.notify_one(),
            (Self::Weir(_), notification::UPDATED) => peer.updated(&Key::Listing, &params),
            (Self::Party(party), notification::UPDATED) => peer.updated(party.key(), &params),
            (Self::Party(party), notification::MESSAGE) => logged(peer, party, params),
            (Self::Weir(_), notification::MESSAGE) => noted(peer, &params),
            (Self::Party(party), notification::TASK_STATUS) => turned(party, params),
            (Self::Weir(_) | Self::Party(_), _) => {}
        }
    }

    fn question(&self, peer: &Peer, lease: &Lease, asked: &Asked) {
        let stander = match self {
            Self::Weir(_) => None,
            Self::Party(party) => party.stander().map(|to| (to, party.abilities())),
        };
        let Some((to, abilities)) = stander else {
            let reply = reply_to_question(&asked.id, &asked.method);
            return peer.pool.chores().add(Chore::Post(lease.session().destination(), reply));
        };
        if let Some(inquiry) = peer.pool.desk(lease.session()).take(asked, Some(abilities))
            && !to.say(Event::Inquiry(inquiry))
        {
            // The question is refused by being dropped.
            tracing::debug!("a client that stands by takes no more questions");
        }
    }
}

/// A log message in a session that is everybody's, or Weir's own, and belongs to no call: it goes to Weir's log.
fn noted(peer: &Peer, params: &str) {
    if peer.way.quota.allows() {
        let text: String = params.chars().take(LOGGED).collect();
        tracing::info!(event = "upstream.log", upstream = %peer.way.upstream.name, ?text, "an upstream says");
    }
}

/// A log message that belongs to no call.
fn logged(peer: &Peer, party: &Party, params: String) {
    if *party.key() == Key::Shared {
        return noted(peer, &params);
    }
    let level = Object::open(&params).and_then(|params| LogLevel::parse(&params.text("level")?));
    if let (Some(to), Some(level)) = (party.stander(), level)
        && !to.say(Event::Log(level, params))
    {
        tracing::debug!("a client that stands by takes no more log messages");
    }
}

/// A task of the session stands differently.
fn turned(party: &Party, params: String) {
    if let Some(to) = party.stander()
        && !to.say(Event::Task(params))
    {
        tracing::debug!("a client that stands by takes no more news of tasks");
    }
}

enum Open {
    Stream(Box<Messages>),
    Refused,
    /// The session is forgotten.
    Lost,
    Failed,
}

async fn open(peer: &Peer, lease: &Lease, point: Option<Resume>) -> Open {
    if let Some(line) = lease.session().line() {
        return line.beside().map_or(Open::Lost, |messages| Open::Stream(Box::new(messages)));
    }
    let mut head = lease.session().head();
    let last = point.and_then(|point| HeaderValue::from_bytes(point.last_event_id.as_bytes()).ok());
    if let Some(last) = last {
        head.insert(headers::LAST_EVENT_ID, last);
    }
    match peer.way.wire.get(head).await {
        Ok(answered) if is_stream(&answered) => match Messages::of(answered) {
            Ok(messages) => Open::Stream(Box::new(messages)),
            Err(_) => Open::Failed,
        },
        // 409: the server has not noticed yet that the last one is gone.
        Ok(answered) if matches!(answered.status, 409 | 429 | 500..) => Open::Failed,
        // The child is gone.
        Ok(answered) if answered.status == 404 && peer.way.wire.is_stdio() => Open::Lost,
        // Of Weir's own session nobody knows whether it is forgotten or has no stream: the next listing tells.
        Ok(answered) if answered.status == 404 && lease.is_of_client() && lease.session().can_be_lost() => {
            Open::Lost
        }
        Ok(_) => Open::Refused,
        Err(_) => Open::Failed,
    }
}

fn is_stream(answered: &Answered) -> bool {
    answered.is_success() && matches!(answered.form, Form::Events | Form::Lines)
}

/// Reads until the stream ends; says where it could be taken up again.
async fn hear(peer: &Peer, lease: &Lease, mut messages: Messages, hearer: &Hearer<'_>) -> Option<Resume> {
    while let Ok(Some(message)) = messages.next().await {
        match read(&message) {
            Ok(Incoming::Notice { method, params }) => hearer.notice(peer, &method, params),
            Ok(Incoming::Question(asked)) => hearer.question(peer, lease, &asked),
            Ok(Incoming::Result { .. } | Incoming::Error { .. }) | Err(_) => {}
        }
    }
    messages.resume()
}
