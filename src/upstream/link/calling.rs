//! One call, from the gate to its last event.
//!
//! Here stands what is the same for every upstream: the limits on calls at once and on time, and the one repetition
//! that a call may have. Giving up is dropping the attempt; its guards tell the upstream.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::shared::Shared;
use crate::exchange::{Answer, Call, Emitter, Event, Reason, Reply, running};
use crate::protocol::Method;
use crate::upstream::conversation::{Audience, Told};
use crate::upstream::fault::{Cure, Fault};
use crate::upstream::gate::Full;
use crate::upstream::metrics::Metrics;
use crate::upstream::modern::mirror;
use crate::upstream::pace::Pace;

/// Between the two attempts at a connection.
const BREATH: Duration = Duration::from_millis(100);
/// How long a call waits for a new listing.
const RELISTED: Duration = Duration::from_secs(5);

/// The reply of a call. Its time runs from now on, whether or not its events are taken.
pub(super) fn start(shared: &Arc<Shared>, metrics: &Metrics, call: Call) -> Reply {
    let pace = Arc::new(Pace::start(step(shared, &call), shared.upstream.timeout.call_max));
    let (of_link, metrics, of_call) = (Arc::clone(shared), metrics.clone(), Arc::clone(&pace));
    let in_flight = shared.calls.token();
    let (reply, call) = running(move |emitter| async move {
        let last = run(of_link, metrics, call, (emitter, of_call)).await;
        drop(in_flight);
        last
    });
    shared.clock.watch(pace, &call);
    reply
}

async fn run(
    shared: Arc<Shared>,
    metrics: Metrics,
    call: Call,
    (emitter, pace): (Emitter, Arc<Pace>),
) -> Event {
    let timer = metrics.started(&shared.upstream.name, call.method);
    let began = Instant::now();
    let reporting = Reporting { emitter: &emitter, pace: &pace };
    let last = match within_time(&shared, &metrics, call, reporting).await {
        Ok((Told::Result(result), stateless)) => {
            shared.latency.note(began.elapsed());
            Event::Result(Answer { result, stateless, shareable: false, free_output: false })
        }
        Ok((Told::Asks(result), _)) => Event::Asks(result),
        Ok((Told::Error(error), _)) => Event::Error(error),
        Err(fault) => {
            shared.has_failed(&fault);
            Event::Failed(shared.failure(fault))
        }
    };
    timer.ended(&last);
    last
}

/// Where a call's events go, and what they do to its time.
#[derive(Clone, Copy)]
struct Reporting<'a> {
    emitter: &'a Emitter,
    pace: &'a Pace,
}

async fn within_time(
    shared: &Shared,
    metrics: &Metrics,
    call: Call,
    reporting: Reporting<'_>,
) -> Result<(Told, bool), Fault> {
    tokio::select! {
        biased;
        told = attempts(shared, metrics, call, reporting) => told,
        () = shared.cut.cancelled() => {
            Err(Fault { reason: Reason::Removed, may_have_run: reporting.pace.is_written() })
        }
        () = reporting.pace.over() => {
            Err(Fault { reason: Reason::TimedOut, may_have_run: reporting.pace.is_written() })
        }
    }
}

/// The time limit of a call without progress.
fn step(shared: &Shared, call: &Call) -> Duration {
    let timeout = &shared.upstream.timeout;
    let of_tool = || {
        let is_tool = call.method == Method::ToolsCall;
        timeout.tools.iter().find(|of| is_tool && of.tools.is_match(&call.name)).map(|of| of.limit)
    };
    call.timeout.or_else(of_tool).unwrap_or(timeout.call)
}

async fn attempts(
    shared: &Shared,
    metrics: &Metrics,
    mut call: Call,
    reporting: Reporting<'_>,
) -> Result<(Told, bool), Fault> {
    let Reporting { emitter, pace } = reporting;
    let pass = shared.gate.enter(&call).await.map_err(|Full| Fault::unsent(Reason::Busy))?;
    let mut repeated = false;
    loop {
        let peer = shared.peer_in_time().await?;
        call.caller.abilities = peer.reduced(&call.caller);
        let listings = shared.facts.borrow().listings;
        let miss = match peer
            .attempt(Audience { call: &call, emitter, pace, changed: &shared.wishes.changed })
            .await
        {
            Ok(told) => {
                shared.was_answered();
                drop(pass);
                return Ok((told, peer.is_stateless()));
            }
            Err(miss) => miss,
        };
        if repeated || !miss.allows_repeat(call.repeatable) {
            return Err(miss.fault);
        }
        tracing::debug!(upstream = %shared.upstream.name, fault = %miss.fault, "sending a call once more");
        metrics.repeated(&shared.upstream.name);
        repeated = true;
        match miss.cure {
            Cure::Relist => relisted(shared, &mut call, listings).await,
            Cure::Resend if miss.fault.reason == Reason::Unreachable => tokio::time::sleep(BREATH).await,
            Cure::Resend | Cure::Nothing => {}
        }
    }
}

/// Has the upstream listed again, and writes the mirrored headers of the call by what it says now.
async fn relisted(shared: &Shared, call: &mut Call, listings: u64) {
    let old = annotated(shared, call);
    let mut facts = shared.facts.subscribe();
    shared.doubt.notify_one();
    let listed = facts.wait_for(|facts| facts.listings > listings);
    if tokio::time::timeout(RELISTED, listed).await.is_err() {
        return;
    }
    // What no annotation named before came from the client, and passes.
    call.mirrored.retain(|(name, _)| !old.iter().any(|(header, _)| header == name));
    let new = annotated(shared, call);
    call.mirrored.retain(|(name, _)| !new.iter().any(|(header, _)| header == name));
    call.mirrored.extend(new);
}

fn annotated(shared: &Shared, call: &Call) -> Vec<(String, String)> {
    let facts = shared.facts.borrow();
    let tool = facts
        .inventory
        .as_ref()
        .filter(|_| call.method == Method::ToolsCall)
        .and_then(|inventory| inventory.tools.iter().find(|tool| tool.local.as_str() == call.name));
    tool.map(|tool| mirror(&tool.mirrored, &call.params)).unwrap_or_default()
}
