//! Stateless requests (2026-07-28): everything a request needs stands in the request itself.
//!
//! Dropping the response body drops the reply, and that cancels the call (2026-07-28, transports/streamable-http,
//! "Cancellation"). No session is made, borrowed or looked at.

mod decode;
mod encode;
mod listen;
mod parking;
mod rounds;
mod state;

pub(super) use parking::Parking;

use std::sync::Arc;

use http::{Response, StatusCode};
use tokio::time::timeout;

use super::accept::{self, Accepts};
use super::{Body, Inbound, Shared, render, unreadable};
use crate::exchange::{Call, Caller, Event, Failure};
use crate::jsonrpc::{Error, Id, Message};
use crate::protocol::{Abilities, ListKind, Method};
use crate::relay::{ListCall, Seat};
use crate::view::Form;
use decode::Ask;
use rounds::{Begun, Outcome, Round};

/// Answers one modern message.
pub(super) async fn serve(shared: &Arc<Shared>, request: &Inbound, message: Message<'_>) -> Response<Body> {
    let (id, method, params) = match message {
        Message::Request { id, method, params } => (id, method, params),
        Message::Notification { .. } => return render::empty(StatusCode::ACCEPTED),
        Message::Result { id, .. } => return stray_response(Some(id)),
        Message::Error { id, .. } => return stray_response(id),
    };
    let accepts = accept::read(&request.headers);
    if accepts == Accepts::Nothing {
        return encode::refused(
            &id,
            StatusCode::NOT_ACCEPTABLE,
            "Accept admits neither JSON nor an event stream",
        );
    }
    let ask = match decode::read(&request.headers, &id, &method, &params) {
        Ok(ask) => ask,
        Err(refusal) => {
            shared.metrics.refused.inc();
            return *refusal;
        }
    };
    let seat = shared.seat(request);
    match ask.method {
        Method::Discover => encode::discover(&id, &seat, accepts),
        Method::List(kind) => list(shared, request, &seat, (&id, kind, params.get("cursor")), accepts),
        Method::Listen => listen::open(shared, request, &seat, (&id, &params), &ask.abilities),
        known if known.is_of_task() && ask.abilities.tasking().is_none() => {
            let lacking = Failure::NeedsAbilities(Abilities::of_tasks());
            encode::failure(shared, request, (&id, known), &lacking)
        }
        Method::ToolsCall
        | Method::PromptsGet
        | Method::ResourcesRead
        | Method::Complete
        | Method::TasksGet
        | Method::TasksUpdate
        | Method::TasksCancel => {
            let call = call(shared, request, &seat, ask, (&params, accepts));
            let round = Round::new(shared, request, id, &call);
            match round.begin(&seat, call).await {
                Ok(begun) => answer(round, request, begun, accepts).await,
                Err(failure) => encode::failure(shared, request, (&round.id, round.method), &failure),
            }
        }
        Method::Initialize
        | Method::Ping
        | Method::ResourcesSubscribe
        | Method::ResourcesUnsubscribe
        | Method::SetLevel
        | Method::TasksResult
        | Method::TasksList => encode::unknown_method(&id, &method),
    }
}

fn stray_response(id: Option<Id>) -> Response<Body> {
    unreadable(&Error::Invalid { reason: "a client sends no responses in this revision", id })
}

fn list(
    shared: &Shared,
    request: &Inbound,
    seat: &Seat,
    (id, kind, cursor): (&Id, ListKind, Option<&str>),
    accepts: Accepts,
) -> Response<Body> {
    let call = ListCall { kind, cursor, form: Form::Whole, principal: &request.principal };
    match shared.relay.list(seat, &call) {
        Ok(listing) => encode::listing(id, seat, listing, accepts),
        Err(failure) => encode::failure(shared, request, (id, Method::List(kind)), &failure),
    }
}

fn call(
    shared: &Shared,
    request: &Inbound,
    seat: &Seat,
    ask: Ask,
    (params, accepts): (&crate::jsonrpc::Object<'_>, Accepts),
) -> Call {
    // Who takes no event stream gets no notifications and is asked nothing.
    let abilities = if accepts == Accepts::Json { Abilities::default() } else { ask.abilities };
    Call {
        method: ask.method,
        name: ask.name,
        params: params.as_json().to_owned(),
        progress_token: ask.progress_token,
        log_level: ask.log_level,
        log_asked: true,
        mirrored: ask.mirrored,
        mirrors: true,
        forwarded: shared.forwardable(seat, &request.headers),
        repeatable: false,
        timeout: None,
        caller: Caller {
            client: ask.client,
            tasking: abilities.tasking(),
            ..shared.caller(&request.principal, abilities)
        },
    }
}

/// Waits for the first thing to say: the answer is given as JSON, anything else or silence as an event stream.
async fn answer(round: Round, request: &Inbound, begun: Begun, accepts: Accepts) -> Response<Body> {
    let mut slot = match begun {
        Begun::Running(call) => Some(call),
        Begun::Asked(result) => return encode::result(&round.id, &result, accepts),
    };
    loop {
        let outcome = match accepts {
            Accepts::Json => Some(round.next(&mut slot).await),
            Accepts::Both | Accepts::Events | Accepts::Nothing => {
                timeout(render::HEAD_WAIT, round.next(&mut slot)).await.ok()
            }
        };
        match outcome {
            Some(Outcome::Last(event)) if accepts != Accepts::Events || has_status(&event) => {
                return encode::response(request, &round, event);
            }
            Some(Outcome::Asked(result)) if accepts != Accepts::Events => {
                return encode::result(&round.id, &result, accepts);
            }
            Some(Outcome::Message(_)) if accepts == Accepts::Json => {}
            first => return encode::stream(round, first, slot),
        }
    }
}

/// Whether an answer says something by its HTTP status that an event stream cannot.
fn has_status(event: &Event) -> bool {
    matches!(event, Event::Failed(Failure::NeedsScopes(_) | Failure::Unrecorded | Failure::Internal))
}
