//! Sessions (2025-03-26 to 2025-11-25).
//!
//! A call belongs to the session, not to the connection it came on: a broken stream detaches its reader, and the call
//! goes on until it ends by its result, a cancellation, a time-out, DELETE, the end of the session, or because nobody
//! came back for its stream. Session ids are sealed values; whoever cannot open one learns nothing.

mod batch;
mod calls;
mod decode;
mod encode;
mod engine;
mod keeper;
mod line;
mod locked;
mod pipe;
mod session;
mod standing;
mod table;
#[cfg(test)]
mod tests;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use http::{Response, StatusCode};

use super::accept::{self, Accepts};
use super::{Body, Inbound, Shared, negotiate, render, session_id, unreadable};
use crate::config::Route;
use crate::exchange::Reaction;
use crate::jsonrpc::{Error, Id, Message, Object};
use crate::principal::Principal;
use crate::protocol::{ListKind, LogLevel, Method, headers, notification};
use crate::relay::{ListCall, Seat};
use crate::seal::QuestionSeal;
use crate::task::TaskGroup;
use calls::Resumed;
use session::Session;
use table::{Table, Verdict};

/// What a client is told to wait before it comes back, where no upstream says otherwise.
const RETRY: Duration = Duration::from_secs(1);

/// The legacy half of the endpoint. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Legacy {
    shared: Arc<Shared>,
    table: Arc<Table>,
    /// The calls of sessions. They outlive their connections.
    calls: TaskGroup,
    /// What sessions do in the background; none of it is waited for.
    tasks: TaskGroup,
    /// The clients of HTTP+SSE.
    pipes: Arc<pipe::Pipes>,
}

impl Legacy {
    pub(super) fn new(shared: Arc<Shared>, tasks: &TaskGroup) -> Self {
        let table = Arc::new(Table::new(Arc::clone(&shared)));
        let tasks = tasks.child("sessions");
        tasks.spawn_until_cancelled("session keeper", keeper::run(Arc::clone(&table)));
        Self { shared, table, calls: TaskGroup::new("calls"), tasks, pipes: Arc::default() }
    }

    /// Who holds a session of this route that stands for its token.
    pub(super) fn token_holder(&self, sealed: &str, route: &Route) -> Option<Principal> {
        self.table.of_token(sealed, route).map(|session| session.principal.clone())
    }

    /// How many sessions there are.
    pub(super) fn count(&self) -> usize {
        self.table.len()
    }

    /// The calls that are running, whether or not somebody reads along.
    pub(super) fn calls(&self) -> &TaskGroup {
        &self.calls
    }

    /// Ends every session.
    pub(super) fn end_all(&self) {
        self.table.end_all();
    }

    /// Answers one legacy message.
    pub(super) async fn post(&self, request: &Inbound, message: Message<'_>) -> Response<Body> {
        let accepts = accept::read(&request.headers);
        if accepts == Accepts::Nothing {
            return encode::refused(
                StatusCode::NOT_ACCEPTABLE,
                "Accept admits neither JSON nor an event stream",
            );
        }
        if let Message::Request { id, method, params } = &message
            && method == Method::Initialize.as_str()
        {
            return self.initialize(request, id, params, accepts);
        }
        let session = match self.session(request) {
            Ok(session) => session,
            Err(refusal) => return *refusal,
        };
        match message {
            Message::Request { id, method, params } => {
                self.request(&session, request, (id, &method, &params), accepts).await
            }
            Message::Notification { method, params } => {
                self.notified(&session, &method, &params);
                render::empty(StatusCode::ACCEPTED)
            }
            Message::Result { id, result } => {
                self.answered(&session, &id, Reaction::Result(result.to_owned()));
                render::empty(StatusCode::ACCEPTED)
            }
            Message::Error { id, error } => {
                if let Some(id) = id {
                    self.answered(&session, &id, Reaction::Error(error.to_owned()));
                }
                render::empty(StatusCode::ACCEPTED)
            }
        }
    }

    /// Acts on a notification of the client.
    fn notified(&self, session: &Session, method: &str, params: &Object<'_>) {
        match method {
            notification::INITIALIZED => session.initialized(),
            notification::ROOTS_CHANGED => self.shared.relay.roots_changed(session.key),
            notification::CANCELLED => {
                if let Some(id) = params.get("requestId").and_then(|raw| Id::read(raw).ok()) {
                    session.cancel(&id);
                }
            }
            _ => {}
        }
    }

    /// The client answers a question of its session; anything else is ignored.
    fn answered(&self, session: &Session, id: &Id, reaction: Reaction) {
        let Ok(id) = serde_json::from_str::<String>(id.as_json()) else { return };
        if let Some(seal) = QuestionSeal::open(&self.shared.keyring, &id)
            && seal.session == session.key.0
        {
            session.answer(seal.number, reaction);
        }
    }

    /// Answers a request of the oldest transport.
    pub(super) fn sse(&self, request: Inbound, query: Option<&str>) -> Response<Body> {
        pipe::serve(self, request, query)
    }

    /// Answers a batch, in a session that may have them; `None` elsewhere.
    pub(super) async fn batch(&self, request: &Inbound) -> Option<Response<Body>> {
        batch::serve(self, request).await
    }

    /// The session that a request names.
    fn session(&self, request: &Inbound) -> Result<Arc<Session>, Box<Response<Body>>> {
        let Some(sealed) = session_id(&request.headers) else {
            return Err(Box::new(encode::refused(StatusCode::BAD_REQUEST, "Mcp-Session-Id is missing")));
        };
        let Ok(sealed) = std::str::from_utf8(sealed) else {
            let text = "Mcp-Session-Id is not visible ASCII";
            return Err(Box::new(encode::refused(StatusCode::BAD_REQUEST, text)));
        };
        let session = self.table.find(sealed, request).ok_or_else(|| Box::new(encode::no_such_session()))?;
        let asked = super::header_text(&request.headers, headers::PROTOCOL_VERSION);
        if asked.is_some_and(|asked| asked != session.revision.as_str()) {
            self.shared.metrics.revision_mismatch.inc();
        }
        session.used();
        session.seen_as(&request.principal);
        Ok(session)
    }

    fn initialize(
        &self,
        request: &Inbound,
        id: &Id,
        params: &Object<'_>,
        accepts: Accepts,
    ) -> Response<Body> {
        let hello = match decode::initialize(params, request.piped) {
            Ok(hello) => hello,
            Err(text) => return encode::invalid_params(id, StatusCode::BAD_REQUEST, text),
        };
        match self.table.open(request, &hello) {
            Verdict::Opened(sealed) => {
                let seat = self.shared.seat(request);
                let response = encode::initialized(id, hello.revision, &seat, accepts);
                render::with_header(response, headers::SESSION_ID, &sealed)
            }
            Verdict::TooMany => encode::busy(id, StatusCode::TOO_MANY_REQUESTS),
            Verdict::Full => encode::busy(id, StatusCode::SERVICE_UNAVAILABLE),
        }
    }

    async fn request(
        &self,
        session: &Arc<Session>,
        request: &Inbound,
        (id, method, params): (Id, &str, &Object<'_>),
        accepts: Accepts,
    ) -> Response<Body> {
        let Some(known) = Method::legacy(method) else {
            return encode::unknown_method(&id, method);
        };
        let seat = self.shared.seat(request);
        match known {
            Method::Ping => encode::result(&id, "{}", accepts),
            Method::SetLevel => match params.text("level").and_then(|level| LogLevel::parse(&level)) {
                Some(level) => {
                    session.set_level(level);
                    encode::result(&id, "{}", accepts)
                }
                None => encode::invalid_params(&id, StatusCode::OK, "params.level must be a log level"),
            },
            Method::List(kind) => {
                self.list(session, (request, &seat), (&id, kind, params.get("cursor")), accepts)
            }
            known if (known.is_of_task() || known == Method::TasksList) && !session.knows_tasks() => {
                encode::unknown_method(&id, method)
            }
            Method::ToolsCall
            | Method::PromptsGet
            | Method::ResourcesRead
            | Method::Complete
            | Method::TasksGet
            | Method::TasksResult
            | Method::TasksList
            | Method::TasksCancel => {
                calls::answer(self, session, (request, &seat), (id, known, params), accepts).await
            }
            Method::ResourcesSubscribe => {
                watch::subscribe(self, session, (request, &seat), (&id, params), accepts)
            }
            Method::ResourcesUnsubscribe => watch::unsubscribe(session, (&id, params), accepts),
            Method::Initialize | Method::Discover | Method::Listen | Method::TasksUpdate => {
                encode::unknown_method(&id, method)
            }
        }
    }

    fn list(
        &self,
        session: &Session,
        (request, seat): (&Inbound, &Seat),
        (id, kind, cursor): (&Id, ListKind, Option<&str>),
        accepts: Accepts,
    ) -> Response<Body> {
        let form = decode::form(session.revision);
        let call = ListCall { kind, cursor, form, principal: &request.principal };
        match self.shared.relay.list(seat, &call) {
            Ok(listing) => {
                session.listed(kind, seat.view.hashes);
                encode::listing(id, seat, listing, accepts)
            }
            Err(failure) => encode::failure(&self.shared, request, (id, false), &failure),
        }
    }

    /// The standing stream, or a broken stream again.
    pub(super) fn get(&self, request: &Inbound) -> Response<Body> {
        if session_id(&request.headers).is_none() || negotiate::is_modern_head(&request.headers) {
            return render::method_not_allowed();
        }
        if matches!(accept::read(&request.headers), Accepts::Json | Accepts::Nothing) {
            return encode::refused(StatusCode::NOT_ACCEPTABLE, "Accept must admit text/event-stream");
        }
        let session = match self.session(request) {
            Ok(session) => session,
            Err(refusal) => return *refusal,
        };
        let last = super::header_text(&request.headers, headers::LAST_EVENT_ID);
        match last.map_or(Resumed::Other, |last| calls::resume(&session, last)) {
            Resumed::Stream(response) => response,
            Resumed::Gone => {
                encode::refused(StatusCode::BAD_REQUEST, "this stream is over: there is nothing to resume")
            }
            Resumed::Other => {
                standing::open(&self.shared, &session, request, (&self.shared.seat(request), last))
            }
        }
    }

    /// The end of a session.
    pub(super) fn delete(&self, request: &Inbound) -> Response<Body> {
        if negotiate::is_modern_head(&request.headers) {
            return render::method_not_allowed();
        }
        match self.session(request) {
            Ok(session) => {
                self.table.end(session.key);
                render::empty(StatusCode::NO_CONTENT)
            }
            Err(refusal) => *refusal,
        }
    }
}

/// An id that is in use already.
fn duplicate(id: &Id) -> Response<Body> {
    unreadable(&Error::Invalid { reason: "a request with this id is in flight", id: Some(id.clone()) })
}
