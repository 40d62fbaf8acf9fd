//! The standing stream of a session (2025-11-25, transports, "Listening for Messages from the Server").
//!
//! Event ids are `STREAM.SEQ.HASH`; HASH is a short hash of the three lists as this stream has announced them. A
//! client that comes back with one is told which lists changed in between, and nothing else: no log of
//! announcements is needed.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::Response;
use tokio::sync::watch;

use super::session::{Session, Standing};
use super::{RETRY, encode};
use crate::downstream::render::{self, with_comments};
use crate::downstream::{Body, Footing, Inbound, Shared};
use crate::exchange::{Event, Inquiry, Reply};
use crate::jsonrpc::{Text, request};
use crate::notify::{Changes, Subscriber, Subscription};
use crate::principal::Rights;
use crate::protocol::{ListKind, encode_event, encode_priming, notification};
use crate::relay::Seat;
use crate::seal::QuestionSeal;
use crate::view::Hashes;

/// Opens the stream. `last` is what the client sent as `Last-Event-ID`.
pub(super) fn open(
    shared: &Arc<Shared>,
    session: &Arc<Session>,
    inbound: &Inbound,
    (seat, last): (&Seat, Option<&str>),
) -> Response<Body> {
    let now = seat.view.hashes;
    let seen = last.and_then(|last| told_before(last, now)).unwrap_or_else(|| session.seen(now));
    let rights = inbound.principal.rights.clone();
    let subscriber = Subscriber::new(Arc::clone(&seat.route), rights, Changes::ALL, seen);
    let caller = session.caller(shared, &inbound.principal);
    let (of, with, on) = (Arc::clone(session), Arc::clone(shared), Arc::clone(&seat.route));
    let here = move || of.seat(&with, &on).0;
    let open = Open {
        shared: Arc::clone(shared),
        subscription: shared.hub.subscribe(subscriber),
        standing: session.stand(),
        upstreams: shared.relay.stand(&caller, here),
        told: seen,
        rights: session.rights(),
        sequence: 0,
        footing: Footing::new(shared, &inbound.principal, &seat.route),
    };
    let priming = session.shows_breaks().then(|| encode_priming(&open.event_id(), RETRY));
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
    subscription: Subscription,
    standing: Standing,
    /// What upstreams say by themselves.
    upstreams: Reply,
    /// The lists as this stream has announced them.
    told: Hashes,
    /// What the client may do now.
    rights: watch::Receiver<Rights>,
    sequence: u64,
    footing: Footing,
}

impl Open {
    fn event_id(&self) -> String {
        format!(
            "{}.{}.{:08x}{:08x}{:08x}",
            self.standing.number,
            self.sequence,
            shortened(self.told.tools),
            shortened(self.told.prompts),
            shortened(self.told.resources)
        )
    }

    /// Waits for something to say; ends with the session, with its token, with its route, or when Weir ends its streams.
    async fn next(mut self) -> Option<(Bytes, Self)> {
        loop {
            let speaks = self.standing.speaks();
            let session = Arc::clone(&self.standing.session);
            // Cancel-safe: no branch takes anything until it is ready.
            let said = tokio::select! {
                () = session.ended.cancelled() => return None,
                // The view is that of the latest token; the one that opened the stream says only how long it stands.
                turned = self.footing.turned() => {
                    turned?;
                    let rights = self.rights.borrow().clone();
                    self.subscription.look_as(&rights);
                    continue;
                }
                Ok(()) = self.rights.changed() => {
                    let rights = self.rights.borrow_and_update().clone();
                    self.subscription.look_as(&rights);
                    continue;
                }
                (changes, now) = self.subscription.changed() => Said::Changes(changes, now),
                uris = session.updates(), if speaks => Said::Updates(uris),
                Some(event) = self.upstreams.next(), if speaks => Said::Event(event),
            };
            // Looked at again: another stream may have become the newest in the meantime.
            let events = match said {
                Said::Changes(..) if !self.standing.speaks() => continue,
                Said::Changes(changes, now) => self.changed(changes, now),
                Said::Updates(uris) => self.updated(uris),
                Said::Event(event) => self.heard(event),
            };
            if !events.is_empty() {
                return Some((events, self));
            }
        }
    }

    fn event(&mut self, text: &str) -> Bytes {
        self.sequence += 1;
        encode_event(Some(&self.event_id()), text)
    }

    fn changed(&mut self, changes: Changes, now: Hashes) -> Bytes {
        let mut events = Vec::new();
        for kind in changes.kinds() {
            match kind {
                ListKind::Tools => self.told.tools = now.tools,
                ListKind::Prompts => self.told.prompts = now.prompts,
                ListKind::Resources | ListKind::Templates => self.told.resources = now.resources,
            }
            events.push(self.event(&request(None, kind.changed(), "")));
        }
        Bytes::from(events.concat())
    }

    fn updated(&mut self, uris: BTreeSet<String>) -> Bytes {
        let mut events = Vec::new();
        for uri in uris {
            let mut params = Text::object();
            params.text("uri", &uri);
            events.push(self.event(&request(None, notification::UPDATED, &params.close())));
        }
        Bytes::from(events.concat())
    }

    /// What an upstream says outside of any call.
    fn heard(&mut self, event: Event) -> Bytes {
        let session = Arc::clone(&self.standing.session);
        match event {
            Event::Inquiry(Inquiry { question, params, answerer }) => {
                let number = session.ask(None, answerer);
                let id = QuestionSeal { session: session.key.0, number }.seal(&self.shared.keyring);
                self.event(&encode::question(&id, session.revision, question, &params))
            }
            Event::Log(level, params) if session.level().is_none_or(|least| level >= least) => {
                self.event(&request(None, notification::MESSAGE, &params))
            }
            Event::Task(params) => self.event(&request(None, notification::TASK_STATUS, &params)),
            Event::Log(..)
            | Event::Progress(_)
            | Event::Paused(_)
            | Event::Asks(_)
            | Event::Result(_)
            | Event::Error(_)
            | Event::Failed(_) => Bytes::new(),
        }
    }
}

/// What a standing stream has to tell.
enum Said {
    Changes(Changes, Hashes),
    Updates(BTreeSet<String>),
    Event(Event),
}
