//! Stateless requests (2026-07-28): everything a request needs stands in the request itself.
//!
//! Dropping the response body drops the reply, and that cancels the call (2026-07-28, transports/streamable-http,
//! "Cancellation"). No session is made, borrowed or looked at.

mod decode;
mod encode;
mod listen;

pub(super) use encode::with_comments;

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use http::{Response, StatusCode};
use tokio::time::timeout;

use super::accept::{self, Accepts};
use super::{Body, Inbound, Shared, render, unreadable};
use crate::exchange::{Call, Event, Failure, Reply};
use crate::jsonrpc::{Error, Id, Message};
use crate::protocol::{ListKind, Method};
use crate::relay::{ListCall, Seat};
use crate::view::Form;
use decode::Ask;

/// How long the head of an answer waits for the first message.
const HEAD_WAIT: Duration = Duration::from_secs(10);

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
    let seat = shared.seat(&request.route, &request.principal);
    match ask.method {
        Method::Discover => encode::own(encode::discover(&id, &seat), accepts),
        Method::List(kind) => {
            encode::own(list(shared, request, &seat, (&id, kind, params.get("cursor"))), accepts)
        }
        Method::Listen => listen::open(shared, request, &seat, &id, &params),
        Method::ToolsCall | Method::PromptsGet | Method::ResourcesRead | Method::Complete => {
            let method = ask.method;
            let call = call(shared, request, &seat, ask, &params);
            let reply = shared.relay.call(&seat, call);
            answer(shared, request, (id, method), reply, accepts).await
        }
        Method::Initialize
        | Method::Ping
        | Method::ResourcesSubscribe
        | Method::ResourcesUnsubscribe
        | Method::SetLevel => encode::unknown_method(&id, &method),
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
) -> Response<Body> {
    let call = ListCall { kind, cursor, form: Form::Whole, principal: &request.principal };
    match shared.relay.list(seat, &call) {
        Ok(listing) => encode::listing(id, seat, listing),
        Err(failure) => encode::failure(shared, request, (id, Method::List(kind)), &failure),
    }
}

fn call(
    shared: &Shared,
    request: &Inbound,
    seat: &Seat,
    ask: Ask,
    params: &crate::jsonrpc::Object<'_>,
) -> Call {
    Call {
        method: ask.method,
        name: ask.name,
        params: crate::jsonrpc::Edit::new().apply(params),
        progress_token: ask.progress_token,
        log_level: ask.log_level,
        mirrored: ask.mirrored,
        mirrors: true,
        forwarded: shared.forwardable(seat, &request.headers),
        repeatable: false,
        timeout: None,
        caller: shared.caller(&request.principal),
    }
}

/// Waits for the first event: the result is answered as JSON, anything else or silence as an event stream.
async fn answer(
    shared: &Arc<Shared>,
    request: &Inbound,
    (id, method): (Id, Method),
    mut reply: Reply,
    accepts: Accepts,
) -> Response<Body> {
    let first = match accepts {
        Accepts::Json => Some(last_of(&mut reply).await),
        Accepts::Events => None,
        Accepts::Both | Accepts::Nothing => timeout(HEAD_WAIT, reply.next()).await.ok().map(or_internal),
    };
    match first {
        Some(event) if event.is_last() => encode::response(shared, request, (&id, method), event),
        first => encode::stream(id, method, first, reply),
    }
}

/// The last event of a reply; what comes before it is dropped.
async fn last_of(reply: &mut Reply) -> Event {
    loop {
        let event = or_internal(reply.next().await);
        if event.is_last() {
            return event;
        }
    }
}

fn or_internal(event: Option<Event>) -> Event {
    event.unwrap_or(Event::Failed(Failure::Internal))
}
