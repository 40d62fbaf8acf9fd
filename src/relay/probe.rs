//! Reads of URIs that no list, template or earlier result leads to (design contract, section 4): the upstreams that
//! permit it are asked, one after the other.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::locate::{decided, unseen_templates};
use super::plan::Plan;
use super::{Seat, execute};
use crate::catalog::Presence;
use crate::exchange::{Answer, Event, Failure, Reply, reply};
use crate::jsonrpc::Object;
use crate::names::{UpstreamName, unmark_uri};
use crate::policy::Decision;
use crate::principal::Rights;
use crate::protocol::ListKind;
use crate::upstream::Link;

/// So many upstreams are asked at most.
const MOST: usize = 4;
/// The code by which servers on the Python SDK of 2025 say that they know no such resource, among other things. What
/// nothing but a probe brought to them they do not know.
const UNSAID: i64 = 0;
/// How long each may take.
const LONGEST: Duration = Duration::from_secs(5);

/// The upstreams of a route that are up, have resources, permit the question, and whose resources these rights reach.
pub(super) fn candidates(seat: &Seat, rights: &Rights, uri: &str) -> Vec<UpstreamName> {
    let config = &seat.snapshot.config;
    let unseen: Vec<&UpstreamName> =
        unseen_templates(&seat.view, uri).map(|(upstream, _)| upstream).collect();
    let of_route = config.upstreams.iter().filter(|upstream| seat.route.upstreams.contains(&upstream.name));
    of_route
        .filter(|upstream| upstream.probe)
        .filter(|upstream| match seat.snapshot.inventories.get(&upstream.name) {
            Some(Presence::Up { inventory }) => inventory.offer.resources,
            Some(Presence::Connecting { .. } | Presence::Down { .. }) | None => false,
        })
        .filter(|upstream| !unseen.contains(&&upstream.name) && may_read(seat, rights, &upstream.name, uri))
        .map(|upstream| upstream.name.clone())
        .take(MOST)
        .collect()
}

/// Whether a resource of this URI would be one that these rights may read.
fn may_read(seat: &Seat, rights: &Rights, upstream: &UpstreamName, uri: &str) -> bool {
    let local = unmark_uri(uri, upstream);
    decided(&seat.route, rights, upstream, local.as_deref().unwrap_or(uri)) == Decision::Allow
}

/// Tries the plans until one upstream knows the URI, and says which.
pub(super) fn first_found(
    plans: Vec<(Link, Plan)>,
    uri: String,
    found_at: Arc<OnceLock<UpstreamName>>,
) -> Reply {
    reply(move |_emitter| async move {
        for (link, mut plan) in plans {
            plan.call.timeout = Some(LONGEST);
            let upstream = plan.upstream.clone();
            let reply = execute::rewritten(link.call(plan.call), None, plan.marks);
            match execute::last(reply).await {
                Event::Failed(Failure::Unknown { .. }) => {}
                Event::Error(error) if error.code == UNSAID => {}
                Event::Result(answer) if is_empty(&answer) => {}
                found => {
                    // Nobody else writes it.
                    found_at.get_or_init(|| upstream);
                    return found;
                }
            }
        }
        Event::Failed(Failure::Unknown { kind: ListKind::Resources, name: uri })
    })
}

/// Whether a read found nothing.
fn is_empty(answer: &Answer) -> bool {
    let result = std::str::from_utf8(&answer.result).ok().and_then(Object::open);
    result.is_some_and(|result| {
        result.get("contents").is_some_and(|raw| raw.trim_matches(['[', ']', ' ', '\n']).is_empty())
    })
}
