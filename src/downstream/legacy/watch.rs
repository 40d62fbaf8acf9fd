//! Subscriptions to resources (2025-11-25, server/resources, "Subscriptions").

use std::sync::Arc;

use futures_util::StreamExt as _;
use http::{Response, StatusCode};

use super::session::Session;
use super::{Legacy, encode};
use crate::config::Route;
use crate::downstream::accept::Accepts;
use crate::downstream::{Body, Inbound, Shared};
use crate::jsonrpc::{Id, Object};
use crate::relay::Seat;

/// Most subscriptions of one session.
const MOST: usize = 1000;

/// Subscribes the session. Updates are told on its standing stream, under the URI as the client wrote it.
pub(super) fn subscribe(
    legacy: &Legacy,
    session: &Arc<Session>,
    (request, seat): (&Inbound, &Seat),
    (id, params): (&Id, &Object<'_>),
    accepts: Accepts,
) -> Response<Body> {
    let Some(uri) = params.text("uri") else {
        return encode::invalid_params(id, StatusCode::OK, "params.uri must be a string");
    };
    if session.watches() >= MOST {
        return encode::invalid_params(
            id,
            StatusCode::OK,
            "this session has as many subscriptions as it may have",
        );
    }
    let caller = session.caller(&legacy.shared, &request.principal);
    let mut watching = match legacy.shared.relay.watch(seat, &uri, &caller) {
        Ok(watching) => watching,
        Err(failure) => return encode::failure(&legacy.shared, request, (id, false), &failure),
    };
    let ended = session.watch(&uri);
    let told = Told {
        shared: Arc::clone(&legacy.shared),
        session: Arc::clone(session),
        route: Arc::clone(&request.route),
        uri,
    };
    legacy.tasks.spawn_until_cancelled("subscription", async move {
        // Cancel-safe: an update that was not taken is taken the next time.
        while ended.run_until_cancelled(watching.next()).await.is_some() {
            told.update();
        }
    });
    encode::result(id, "{}", accepts)
}

/// Whom an update is told.
struct Told {
    shared: Arc<Shared>,
    session: Arc<Session>,
    route: Arc<Route>,
    uri: String,
}

impl Told {
    /// The resource was updated: that is told as long as the session may read it.
    fn update(&self) {
        let (seat, principal) = self.session.seat(&self.shared, &self.route);
        if self.shared.relay.may_hear_of(&seat, &self.uri, &principal) {
            self.session.note_update(&self.uri);
        }
    }
}

/// Takes a subscription back; one that there is not is none.
pub(super) fn unsubscribe(
    session: &Session,
    (id, params): (&Id, &Object<'_>),
    accepts: Accepts,
) -> Response<Body> {
    match params.text("uri") {
        Some(uri) => {
            session.unwatch(&uri);
            encode::result(id, "{}", accepts)
        }
        None => encode::invalid_params(id, StatusCode::OK, "params.uri must be a string"),
    }
}
