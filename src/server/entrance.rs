//! Who a request comes from, before anything else of it is looked at.
//!
//! The head says it. Only where the operator permits it (`access.initialize_token`) a body may, too: that of a legacy
//! `initialize` without `Authorization`, of a small size, whose token is taken out before anybody else sees the message;
//! from then on the session says it.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Response, header};
use hyper::body::Incoming;
use jiff::Timestamp;

use super::body::of_post;
use super::doors::Doors;
use super::refuse::unauthenticated;
use crate::auth::Authenticator;
use crate::config::{ListenLimits, Route};
use crate::downstream::Body;
use crate::jsonrpc::{Edit, Message, Object};
use crate::principal::Principal;
use crate::protocol;

/// The largest body that is read before its sender is known, in bytes.
const LARGEST: usize = 64 * 1024;

/// A request that may come in.
pub(super) struct Admitted {
    pub(super) principal: Principal,
    pub(super) body: Coming,
    /// Whether the session that it opens stands for its token.
    pub(super) by_session: bool,
}

/// A body, read or not.
pub(super) enum Coming {
    /// Not yet.
    Unread(Incoming),
    /// All of it.
    Read(Bytes),
}

impl Coming {
    /// The whole body, within this limit.
    pub(super) async fn read(
        self,
        limits: &ListenLimits,
        head: &http::request::Parts,
        most: usize,
    ) -> Result<Bytes, Box<Response<Body>>> {
        match self {
            Self::Unread(body) => of_post(limits, head, body, most).await,
            Self::Read(whole) => Ok(whole),
        }
    }
}

/// What decides at the entrance, as the configuration has it that the request sees.
pub(super) struct Entrance<'r> {
    pub(super) doors: &'r Doors,
    pub(super) authenticator: &'r Authenticator,
    pub(super) limits: &'r ListenLimits,
}

/// Finds out who sent a request.
///
/// # Errors
/// The answer to a request whose sender is not accepted.
pub(super) async fn admit(
    entrance: &Entrance<'_>,
    head: &http::request::Parts,
    body: Incoming,
    route: &Arc<Route>,
) -> Result<Admitted, Box<Response<Body>>> {
    let Entrance { doors, authenticator, limits } = *entrance;
    let now = Timestamp::now();
    let has_header = head.headers.contains_key(header::AUTHORIZATION);
    let mut body = Coming::Unread(body);
    if !has_header && authenticator.takes_initialize_tokens() {
        // What the session says is asked again: its token may be another one by now, or none.
        let holder = doors.endpoint.token_holder(&head.headers, route, now);
        let holder = holder.and_then(|holder| authenticator.again(&holder, route, now));
        if head.method == Method::POST {
            let most = if holder.is_some() { limits.body } else { LARGEST };
            let whole = body.read(limits, head, most).await?;
            if let Some((token, rest)) = initialize_token(&whole) {
                return match authenticator.holder_of_static(&token, route, now) {
                    Ok(principal) => Ok(Admitted { principal, body: Coming::Read(rest), by_session: true }),
                    Err(refused) => Err(Box::new(unauthenticated(doors.audit.as_ref(), &refused, route))),
                };
            }
            if let Some(principal) = holder
                && doors.endpoint.is_within_session(&head.headers, &whole)
            {
                return Ok(Admitted { principal, body: Coming::Read(whole), by_session: true });
            }
            body = Coming::Read(whole);
        } else if let Some(principal) = holder {
            return Ok(Admitted { principal, body, by_session: true });
        }
    }
    match authenticator.authenticate(&head.headers, route, now).await {
        Ok(principal) => Ok(Admitted { principal, body, by_session: false }),
        Err(refused) => Err(Box::new(unauthenticated(doors.audit.as_ref(), &refused, route))),
    }
}

/// The token of an `initialize`, and the message without it.
fn initialize_token(body: &[u8]) -> Option<(String, Bytes)> {
    let Ok(Message::Request { method, params, .. }) = Message::of(body) else { return None };
    let token = params.text("token").filter(|_| method == protocol::Method::Initialize.as_str())?;
    let whole = Object::open(std::str::from_utf8(body).ok()?)?;
    let params = Edit::new().remove("token").apply(&params);
    Some((token, Bytes::from(Edit::new().set("params", params).apply(&whole))))
}
