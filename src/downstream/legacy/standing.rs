//! The standing stream of a session (2025-11-25, transports, "Listening for Messages from the Server").
//!
//! Event ids are `STREAM.SEQ.HASH`; HASH is a short hash of the three visible lists. A client that comes back with
//! one is told which lists changed in between, and nothing else: no log of announcements is needed.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::Response;

use super::session::{Session, Standing};
use super::shows_breaks;
use crate::downstream::modern::with_comments;
use crate::downstream::{Body, Inbound, Shared, render};
use crate::jsonrpc::request;
use crate::notify::{Changes, Subscriber};
use crate::protocol::{encode_event, encode_priming};
use crate::view::Hashes;

use super::calls::RETRY;

/// Opens the stream. `last` is what the client sent as `Last-Event-ID`.
pub(super) fn open(
    shared: &Arc<Shared>,
    session: &Arc<Session>,
    inbound: &Inbound,
    last: Option<&str>,
) -> Response<Body> {
    let seat = shared.seat(&inbound.route, &inbound.principal);
    let now = seat.view.hashes;
    let seen = last.and_then(|last| told_before(last, now)).unwrap_or_else(|| session.seen(now));
    let make = || {
        let rights = inbound.principal.rights.clone();
        shared.hub.subscribe(Subscriber::new(Arc::clone(&seat.route), rights, Changes::ALL, seen))
    };
    let (subscriber, standing) = session.stand(make);
    let open = Open {
        shared: Arc::clone(shared),
        session: Arc::clone(session),
        subscriber,
        number: session.number(),
        sequence: 0,
        _standing: standing,
    };
    let priming = shows_breaks(session.revision).then(|| encode_priming(&open.event_id(), RETRY));
    let rest = stream::unfold(open, Open::next);
    render::events(with_comments(stream::iter(priming).chain(rest)))
}

/// The hashes that an event id carries, completed from those of now where they agree.
fn told_before(last: &str, now: Hashes) -> Option<Hashes> {
    let hash = last.split('.').nth(2).filter(|hash| hash.len() == 24)?;
    let part = |from: usize, now: u64| {
        let text = hash.get(from..from + 8)?;
        let short = u32::from_str_radix(text, 16).ok()?;
        Some(if short == shortened(now) { now } else { 0 })
    };
    Some(Hashes {
        tools: part(0, now.tools)?,
        prompts: part(8, now.prompts)?,
        resources: part(16, now.resources)?,
    })
}

fn shortened(hash: u64) -> u32 {
    u32::try_from(hash >> 32).unwrap_or_default()
}

struct Open {
    shared: Arc<Shared>,
    session: Arc<Session>,
    subscriber: Arc<Subscriber>,
    number: u64,
    sequence: u64,
    _standing: Standing,
}

impl Open {
    fn event_id(&self) -> String {
        let told = self.subscriber.told();
        format!(
            "{}.{}.{:08x}{:08x}{:08x}",
            self.number,
            self.sequence,
            shortened(told.tools),
            shortened(told.prompts),
            shortened(told.resources)
        )
    }

    /// Waits for changes; ends with the session or when Weir ends its streams.
    async fn next(mut self) -> Option<(Bytes, Self)> {
        // Cancel-safe: no branch takes anything until it is ready.
        let changes = tokio::select! {
            () = self.shared.ending.cancelled() => return None,
            () = self.session.ended.cancelled() => return None,
            changes = self.subscriber.changed() => changes,
        };
        let mut events = Vec::new();
        for kind in changes.kinds() {
            self.sequence += 1;
            events.push(encode_event(Some(&self.event_id()), &request(None, kind.changed(), "")));
        }
        Some((Bytes::from(events.concat()), self))
    }
}
