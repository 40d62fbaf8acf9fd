//! Which revision is spoken to an upstream.
//!
//! One modern request, `server/discover`, is tried first. Its answer decides (2026-07-28, basic/versioning and
//! basic/transports/streamable-http, "Backward Compatibility"):
//!
//! | Answer | Decision |
//! |---|---|
//! | 401, 403, 429, 5xx, no connection or a broken one, a code by which it refuses credentials | none: it is down |
//! | a result or -32022 that lists a modern revision; -32020; -32021 | modern |
//! | the same with older revisions only; any other answer; silence | `initialize`, without a version header |
//!
//! A child (`stdio.rs`) that dies of the question is greeted with `initialize` and not asked it again.
//!
//! Where all of that is answered with 400, 404 or 405, a GET looks for HTTP+SSE of 2024-11-05. `transport` leaves out
//! what the operator knows better. Where `initialize` is refused with 400 or an error, older revisions follow, four attempts in all. Whatever older
//! revision the upstream settles on is spoken. This is the only file of the upstream side that names an era.

use std::collections::BTreeMap;
use std::time::Duration;

use super::conversation::Told;
use super::fault::Fault;
use super::legacy::{self, Carriage, Opened, Refused};
use super::modern::Leg;
use super::way::Way;
use crate::config::Transport;
use crate::exchange::Reason;
use crate::jsonrpc::{Object, RpcError};
use crate::protocol::{Era, Method, Offer, Revision, code};

/// A server of the old era may leave a request that it does not know unanswered; so long is it waited for.
const SILENCE: Duration = Duration::from_secs(5);
/// So often is `initialize` tried.
const MOST_ATTEMPTS: usize = 4;

/// What is known of an upstream once its revision is settled.
#[derive(Debug)]
pub(super) enum Settled {
    /// It is stateless.
    Modern(Leg, Offer, Option<String>),
    /// It has sessions, and this is the first of them.
    Legacy(Box<Opened>),
}

/// What a modern server says of itself: what it offers, and its instructions.
type Said = (Offer, Option<String>);

/// What the answer to the first request says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Nothing about the era: the upstream is down.
    Down(Fault),
    /// A modern server, with what it offers where it said so.
    Modern(Option<Said>),
    /// Not a modern server.
    Legacy,
}

/// Finds out which revision an upstream speaks, and greets it.
pub(super) async fn settle(way: &Way) -> Result<Settled, Fault> {
    match way.upstream.revision.map(|revision| (revision, revision.era())) {
        Some((revision, Era::Legacy)) => greet(way, Some(revision)).await,
        Some((revision, Era::Modern)) => match discover(way, revision).await {
            (_, Decision::Down(fault)) => Err(fault),
            (_, Decision::Legacy) => Err(Fault::unsent(Reason::NotMcp)),
            (leg, Decision::Modern(said)) => Ok(modern(leg, said)),
        },
        None if way.upstream.transport == Transport::Sse => greet(way, None).await,
        None => match discover(way, Revision::NEWEST).await {
            // A child that dies of a question that it does not know is asked what it does.
            (_, Decision::Down(fault)) if way.wire.is_stdio() && fault.reason == Reason::Ended => {
                greet(way, None).await
            }
            (_, Decision::Down(fault)) => Err(fault),
            (_, Decision::Legacy) => greet(way, None).await,
            (leg, Decision::Modern(said)) => Ok(modern(leg, said)),
        },
    }
}

async fn discover(way: &Way, revision: Revision) -> (Leg, Decision) {
    // A connection that cannot be made is not silence: its own limit comes first.
    let silence = SILENCE.max(way.upstream.timeout.connect + Duration::from_millis(500));
    let leg = Leg { way: way.clone(), revision };
    let mut decision = Decision::Legacy;
    // An error that only a modern server gives says nothing of its offer, so it is asked once more.
    for _ in 0..2 {
        let told =
            tokio::time::timeout(silence, leg.ask(Method::Discover, "{}", &way.listing(&BTreeMap::new())))
                .await;
        let told = told.unwrap_or_else(|_elapsed| Err(Fault::sent(Reason::TimedOut)));
        decision = match (decide(told, |error| leg.refuses_credential(error)), decision) {
            (Decision::Legacy, Decision::Modern(said)) => Decision::Modern(said),
            (now, _) => now,
        };
        if !matches!(decision, Decision::Modern(None)) {
            break;
        }
    }
    (leg, decision)
}

/// What the answer to `server/discover` says about the upstream.
pub(super) fn decide(told: Result<Told, Fault>, refuses: impl Fn(&RpcError) -> bool) -> Decision {
    match told {
        Ok(Told::Result(result)) => {
            discovered(&result).map_or(Decision::Legacy, |said| Decision::Modern(Some(said)))
        }
        Ok(Told::Asks(_)) => Decision::Legacy,
        Ok(Told::Error(error)) if refuses(&error) => Decision::Down(Fault::unsent(Reason::Credential)),
        Ok(Told::Error(error)) => match error.code {
            code::HEADER_MISMATCH | code::MISSING_CAPABILITY => Decision::Modern(None),
            code::UNSUPPORTED_REVISION if supports_modern(&error) => Decision::Modern(None),
            _ => Decision::Legacy,
        },
        Err(fault) => match fault.reason {
            Reason::Credential
            | Reason::Unreachable
            | Reason::Ended
            | Reason::Status(429 | 500..)
            | Reason::Connecting
            | Reason::Busy
            | Reason::Removed => Decision::Down(fault),
            Reason::Status(_)
            | Reason::TimedOut
            | Reason::NotMcp
            | Reason::TooLarge
            | Reason::NeedsClient => Decision::Legacy,
        },
    }
}

fn discovered(result: &[u8]) -> Option<Said> {
    let result = Object::open(std::str::from_utf8(result).ok()?)?;
    if !names_modern(result.get("supportedVersions")?) {
        return None;
    }
    let offer = Offer::of_stateless(result.get("capabilities").unwrap_or("{}"));
    Some((offer, result.text("instructions").filter(|text| !text.is_empty())))
}

fn supports_modern(error: &RpcError) -> bool {
    Object::open(error.raw.get())
        .and_then(|error| error.object("data"))
        .and_then(|data| data.get("supported"))
        .is_some_and(names_modern)
}

fn names_modern(versions: &str) -> bool {
    let versions: Vec<String> = serde_json::from_str(versions).unwrap_or_default();
    versions.iter().filter_map(|text| Revision::parse(text)).any(|revision| revision.era() == Era::Modern)
}

/// A modern upstream; one that never said what it offers is asked for everything.
fn modern(leg: Leg, said: Option<Said>) -> Settled {
    let everything =
        Offer { tools: true, prompts: true, resources: true, stateless: true, ..Offer::default() };
    let (offer, instructions) = said.unwrap_or((everything, None));
    Settled::Modern(leg, offer, instructions)
}

/// Opens the first session of an upstream of the old era, in the ways that it may be spoken to.
async fn greet(way: &Way, pinned: Option<Revision>) -> Result<Settled, Fault> {
    if way.wire.is_stdio() {
        return greet_by(way, pinned, Carriage::Posts).await;
    }
    let fault = match way.upstream.transport {
        Transport::Sse => return greet_by(way, pinned, Carriage::Line).await,
        Transport::StreamableHttp => return greet_by(way, pinned, Carriage::Posts).await,
        Transport::Auto => match greet_by(way, pinned, Carriage::Posts).await {
            Err(fault) if matches!(fault.reason, Reason::Status(400 | 404 | 405)) => fault,
            settled => return settled,
        },
    };
    greet_by(way, pinned, Carriage::Line).await.map_err(|_other| fault)
}

async fn greet_by(way: &Way, pinned: Option<Revision>, carriage: Carriage) -> Result<Settled, Fault> {
    let capabilities = way.listing(&BTreeMap::new());
    let mut tried = Vec::with_capacity(MOST_ATTEMPTS);
    let mut next = Some(pinned.unwrap_or(Revision::NEWEST_LEGACY));
    let mut last = Fault::unsent(Reason::NotMcp);
    while let Some(revision) = next.filter(|_| tried.len() < MOST_ATTEMPTS) {
        tried.push(revision);
        let opening = Box::pin(legacy::open(way, revision, &capabilities, carriage));
        let opened = tokio::time::timeout(way.upstream.timeout.call, opening).await;
        match opened.unwrap_or(Err(Refused::Fault(Fault::unsent(Reason::TimedOut)))) {
            Ok(opened) => return Ok(Settled::Legacy(Box::new(with_extensions(way, opened, carriage).await))),
            Err(Refused::Fault(fault)) => return Err(fault),
            Err(Refused::Version(words, fault)) => {
                next = if pinned.is_some() { None } else { older(&tried, &words) };
                last = fault;
            }
        }
    }
    Err(last)
}

/// The first session again with the extensions of the upstream declared, which may list other things then; as it was
/// where there are none, or where the upstream does not open another one.
async fn with_extensions(way: &Way, first: Opened, carriage: Carriage) -> Opened {
    if first.offer.extensions.is_empty() || way.wire.is_shared_child() {
        return first;
    }
    let capabilities = way.listing(&first.offer.extensions);
    let opening = Box::pin(legacy::open(way, first.revision, &capabilities, carriage));
    match tokio::time::timeout(way.upstream.timeout.call, opening).await {
        Ok(Ok(second)) if second.revision == first.revision => {
            first.session.give_back(&way.wire).await;
            second
        }
        Ok(Ok(second)) => {
            second.session.give_back(&way.wire).await;
            first
        }
        Ok(Err(_)) | Err(_) => first,
    }
}

/// The next revision to try: the newest that the refusal names, else the newest that was not tried.
pub(super) fn older(tried: &[Revision], words: &str) -> Option<Revision> {
    let untried = || {
        Revision::ALL
            .into_iter()
            .rev()
            .filter(|revision| revision.era() == Era::Legacy && !tried.contains(revision))
    };
    untried().find(|revision| words.contains(revision.as_str())).or_else(|| untried().next())
}
