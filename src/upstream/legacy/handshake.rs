//! `initialize` and `notifications/initialized`.

use bytes::Bytes;
use http::HeaderValue;

use super::line::Held;
use super::session::Session;
use crate::exchange::Reason;
use crate::jsonrpc::{Id, Object, RpcError, Text, request, response_error, response_result};
use crate::protocol::{Method, Offer, Revision, code, notification};
use crate::upstream::fault::Fault;
use crate::upstream::http::{Answered, Form};
use crate::upstream::messages::Messages;
use crate::upstream::reading::{Incoming, read};
use crate::upstream::way::Way;

/// How the messages of a session travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::upstream) enum Carriage {
    /// Each answer comes with the POST that asked for it (2025-03-26 and later, "Streamable HTTP").
    Posts,
    /// All of them come on one stream (2024-11-05, "HTTP with SSE").
    Line,
}

/// A session that has been opened, and what the upstream said when it was.
#[derive(Debug)]
pub(in crate::upstream) struct Opened {
    /// The session.
    pub(in crate::upstream) session: Session,
    /// The revision that was agreed on.
    pub(in crate::upstream) revision: Revision,
    /// What the upstream offers.
    pub(in crate::upstream) offer: Offer,
    /// Its instructions.
    pub(in crate::upstream) instructions: Option<String>,
}

/// Why no session was opened.
#[derive(Debug)]
pub(in crate::upstream) enum Refused {
    /// The upstream is at fault.
    Fault(Fault),
    /// It does not want this `initialize`; another revision may suit it. Its words, and the fault if none does.
    Version(String, Fault),
}

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl Refused {
    /// The fault that it comes down to.
    pub(in crate::upstream) fn into_fault(self) -> Fault {
        match self {
            Self::Fault(fault) | Self::Version(_, fault) => fault,
        }
    }
}

/// Opens a session in a revision. No version header goes along: none has been agreed on yet.
pub(in crate::upstream) async fn open(
    way: &Way,
    revision: Revision,
    capabilities: &str,
    carriage: Carriage,
) -> Result<Opened, Refused> {
    let refuses = |error: &RpcError| way.upstream.credential_error_codes.contains(&error.code);
    let id = way.ids.next();
    let body = request(Some(&id), Method::Initialize.as_str(), &params(revision, capabilities));
    let line = match carriage {
        Carriage::Posts => None,
        Carriage::Line => Some(Held::open(way).await?),
    };
    let mut waiting = line.as_ref().map(|line| line.wait(&id));
    let to = line.as_ref().map(|line| line.to().clone()).unwrap_or_default();
    let mut answered = way.wire.post(to, body).await?;
    if !answered.is_success() {
        return Err(refusal(answered, &id, refuses).await);
    }
    let given = answered.session.clone().filter(|_| line.is_none());
    let messages = match &mut waiting {
        Some(waiting) => {
            answered.body.finish().await;
            waiting.messages()
        }
        None => Messages::of(answered)?,
    };
    let opened = agreed(way, (messages, &id), (given.as_ref(), line), revision).await;
    if opened.is_err() && given.is_some() {
        // A session was opened all the same.
        Session::new(given.as_ref(), None, revision).give_back(&way.wire).await;
    }
    opened
}

/// The session that the answer to `initialize` opens, once it is confirmed.
async fn agreed(
    way: &Way,
    (messages, id): (Messages, &Id),
    (given, line): (Option<&HeaderValue>, Option<Held>),
    revision: Revision,
) -> Result<Opened, Refused> {
    let refuses = |error: &RpcError| way.upstream.credential_error_codes.contains(&error.code);
    let result = match answer(way, messages, id, given).await? {
        Ok(result) => result,
        Err(error) if refuses(&error) => return Err(Fault::unsent(Reason::Credential).into()),
        Err(error) => {
            return Err(Refused::Version(error.raw.get().to_owned(), Fault::unsent(Reason::NotMcp)));
        }
    };
    let opened = opened(&result, (given, line), revision).ok_or_else(|| Fault::unsent(Reason::NotMcp))?;
    let initialized = request(None, notification::INITIALIZED, "");
    let mut answered = way.wire.post(opened.session.destination(), initialized).await?;
    if !answered.is_success() {
        return Err(Fault::status(answered.status).into());
    }
    answered.body.finish().await;
    Ok(opened)
}

fn params(revision: Revision, capabilities: &str) -> String {
    let mut info = Text::object();
    info.text("name", "weir");
    info.text("version", env!("CARGO_PKG_VERSION"));
    let mut params = Text::object();
    params.text("protocolVersion", revision.as_str());
    params.member("capabilities", capabilities);
    params.member("clientInfo", &info.close());
    params.close()
}

/// Reads the answer to `initialize`. A ping on its stream is answered at once.
async fn answer(
    way: &Way,
    mut messages: Messages,
    id: &Id,
    session: Option<&HeaderValue>,
) -> Result<Result<Bytes, RpcError>, Fault> {
    let missing = if messages.is_document() { Reason::NotMcp } else { Reason::Ended };
    while let Some(message) = messages.next().await? {
        let Ok(incoming) = read(&message) else { continue };
        match incoming {
            Incoming::Result { id: of, result } if of == *id => {
                messages.release(&way.tasks);
                return Ok(Ok(result));
            }
            Incoming::Error { id: of, error } if of.as_ref().is_none_or(|of| of == id) => {
                return Ok(Err(error));
            }
            Incoming::Question(asked) => {
                let head = Session::new(session, None, Revision::V2024_11_05).head();
                way.wire.post(head, reply_to_question(&asked.id, &asked.method)).await?;
            }
            Incoming::Result { .. } | Incoming::Error { .. } | Incoming::Notice { .. } => {}
        }
    }
    Err(Fault::sent(missing))
}

/// What Weir answers to a request of an upstream: it can be pinged, and asked nothing else.
pub(in crate::upstream) fn reply_to_question(id: &Id, method: &str) -> String {
    if method == Method::Ping.as_str() {
        return response_result(id, "{}");
    }
    response_error(Some(id), RpcError::own(code::METHOD_NOT_FOUND, "Method not found", None).raw.get())
}

fn opened(
    result: &Bytes,
    (session, line): (Option<&HeaderValue>, Option<Held>),
    asked: Revision,
) -> Option<Opened> {
    let result = Object::open(std::str::from_utf8(result).ok()?)?;
    let revision = match result.text("protocolVersion") {
        Some(named) => Revision::parse(&named).filter(|revision| *revision < Revision::V2026_07_28)?,
        None => asked,
    };
    Some(Opened {
        session: Session::new(session, line, revision),
        revision,
        offer: Offer::of_sessions(result.get("capabilities").unwrap_or("{}")),
        instructions: result.text("instructions").filter(|text| !text.is_empty()),
    })
}

/// What a refused `initialize` means.
async fn refusal(mut answered: Answered, id: &Id, refuses: impl Fn(&RpcError) -> bool) -> Refused {
    let fault = Fault::status(answered.status);
    let is_client_error = matches!(answered.status, 400 | 402 | 404..=428 | 430..=499);
    if !is_client_error {
        return fault.into();
    }
    let text = answered.body.whole().await.unwrap_or_default();
    let error = (answered.form == Form::Json).then(|| read(&text).ok()).flatten();
    match error {
        Some(Incoming::Error { error, .. }) if refuses(&error) => Fault::unsent(Reason::Credential).into(),
        Some(Incoming::Error { id: of, error }) if of.as_ref().is_none_or(|of| of == id) => {
            Refused::Version(error.raw.get().to_owned(), fault)
        }
        _ if answered.status == 400 => Refused::Version(String::from_utf8_lossy(&text).into_owned(), fault),
        _ => fault.into(),
    }
}
