//! Calls of a session: started here, driven by a task of the session, answered as JSON or as an event stream.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::Response;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::line::{BUDGET, Line, Next, Sent};
use super::session::Session;
use super::{Legacy, duplicate, encode, shows_breaks};
use crate::downstream::accept::Accepts;
use crate::downstream::modern::with_comments;
use crate::downstream::{Body, Inbound, Shared, render};
use crate::exchange::{Call, Caller, Event, Failure, Inquiry, Reply};
use crate::jsonrpc::{Edit, Id, Object};
use crate::protocol::{Abilities, Method, encode_event, encode_priming, meta};
use crate::seal::QuestionSeal;

/// How long the head of an answer waits for the first message.
const HEAD_WAIT: Duration = Duration::from_secs(10);
/// What a client is told to wait before it comes back, where no upstream says otherwise.
pub(super) const RETRY: Duration = Duration::from_secs(1);

/// Starts a call and waits for the head of its answer.
pub(super) async fn answer(
    legacy: &Legacy,
    session: &Arc<Session>,
    request: &Inbound,
    (id, method, params): (Id, Method, &Object<'_>),
    accepts: Accepts,
) -> Response<Body> {
    let call = match call(&legacy.shared, session, request, (method, params, accepts)) {
        Ok(call) => call,
        Err(text) => return encode::invalid_params(&id, http::StatusCode::OK, &text),
    };
    let Some(token) = session.begin(&id) else { return duplicate(&id) };
    let seat = legacy.shared.seat(&request.route, &request.principal);
    let reply = legacy.shared.relay.call(&seat, call);
    let line = Arc::new(Line::new(session.number(), token.clone()));
    session.lines.insert(line.number, Arc::clone(&line));
    let driver = Driver {
        shared: Arc::clone(&legacy.shared),
        session: Arc::clone(session),
        line: Arc::clone(&line),
        path: request.route.path.clone(),
        id,
        tool: method == Method::ToolsCall,
        asked: Vec::new(),
    };
    legacy.tasks.spawn("call", driver.run(reply, token));
    head(session, line, accepts).await
}

/// Waits for the first message: if it is the last one too, the answer is JSON.
async fn head(session: &Arc<Session>, line: Arc<Line>, accepts: Accepts) -> Response<Body> {
    let reader = Reader { epoch: line.attach(1), line, session: Arc::clone(session) };
    let whole = match accepts {
        Accepts::Json => reader.line.last().await,
        Accepts::Events => None,
        Accepts::Both | Accepts::Nothing => {
            timeout(HEAD_WAIT, reader.line.first()).await.ok().flatten().filter(|sent| sent.ending.is_some())
        }
    };
    match whole {
        Some(last) => {
            session.lines.remove(&reader.line.number);
            encode::whole(last)
        }
        None => events(reader, true),
    }
}

/// The broken stream that an event id names, from the message after it on. `None` when there is no such stream.
pub(super) fn resume(session: &Arc<Session>, last: &str) -> Option<Response<Body>> {
    let (stream, number) = last.split_once('.')?;
    let stream: u64 = stream.parse().ok()?;
    let number: u64 = number.parse().ok()?;
    let line = session.lines.get(&stream).map(|line| Arc::clone(&line))?;
    let reader = Reader { epoch: line.attach(number.saturating_add(1)), line, session: Arc::clone(session) };
    Some(events(reader, false))
}

fn call(
    shared: &Shared,
    session: &Session,
    request: &Inbound,
    (method, params, accepts): (Method, &Object<'_>, Accepts),
) -> Result<Call, String> {
    let name = match method.name_member() {
        Some(member) => params.text(member).ok_or_else(|| format!("params.{member} must be a string"))?,
        None => String::new(),
    };
    let inner = params.object("_meta").unwrap_or_default();
    let token = inner.get(meta::PROGRESS_TOKEN).filter(|raw| Id::read(raw).is_ok()).map(str::to_owned);
    let seat = shared.seat(&request.route, &request.principal);
    // Who takes no event stream gets no notifications and is asked nothing.
    let abilities = if accepts == Accepts::Json { Abilities::default() } else { session.abilities.clone() };
    Ok(Call {
        method,
        name,
        params: Edit::new().apply(params),
        progress_token: token,
        log_level: Some(session.level()),
        mirrored: Vec::new(),
        mirrors: false,
        forwarded: shared.forwardable(&seat, &request.headers),
        repeatable: false,
        timeout: None,
        caller: Caller { session: Some(session.key), ..shared.caller(&request.principal, abilities) },
    })
}

/// What drives one call to its end, whether anybody reads along or not.
struct Driver {
    shared: Arc<Shared>,
    session: Arc<Session>,
    line: Arc<Line>,
    path: String,
    id: Id,
    tool: bool,
    /// The questions of this call.
    asked: Vec<u64>,
}

impl Drop for Driver {
    /// Also after a panic: whoever waits for the line learns that nothing more comes.
    fn drop(&mut self) {
        self.line.close();
        self.session.finish(&self.id);
        for number in &self.asked {
            self.session.forget(*number);
        }
    }
}

impl Driver {
    async fn run(mut self, mut reply: Reply, cancelled: CancellationToken) {
        loop {
            // Cancel-safe: `next` of a boxed stream takes nothing until it is ready.
            let event = tokio::select! {
                () = cancelled.cancelled() => break,
                event = reply.next() => event.unwrap_or(Event::Failed(Failure::Internal)),
            };
            let last = event.is_last();
            tokio::select! {
                () = cancelled.cancelled() => break,
                () = self.pass(event) => {}
            }
            if last {
                break;
            }
        }
    }

    async fn pass(&mut self, event: Event) {
        if let Event::Paused(retry) = event {
            if shows_breaks(self.session.revision) {
                self.line.pause(retry);
            }
            return;
        }
        let event = match event {
            Event::Inquiry(inquiry) => return self.ask(inquiry).await,
            event => event,
        };
        let encoder =
            encode::Encoder { shared: &self.shared, revision: self.session.revision, path: &self.path };
        let Some((pieces, ending)) = encoder.message(&self.id, event, self.tool) else { return };
        let room = BUDGET.saturating_sub(self.session.kept());
        let is_last = ending.is_some();
        if is_last {
            // Before the answer leaves: who has it may use the id again at once.
            self.session.finish(&self.id);
        }
        if !self.line.write(pieces, ending, room).await && is_last {
            let (pieces, ending) = encoder.lost(&self.id, self.tool);
            self.line.write(pieces, Some(ending), usize::MAX).await;
        }
    }
}

impl Driver {
    /// Asks the client, on the stream of the call, under an id that leads back here.
    async fn ask(&mut self, inquiry: Inquiry) {
        let Inquiry { question, params, answerer } = inquiry;
        let number = self.session.ask(answerer);
        self.asked.push(number);
        let id = QuestionSeal { session: self.session.key.0, number }.seal(&self.shared.keyring);
        let text = encode::question(&id, self.session.revision, question, &params);
        let room = BUDGET.saturating_sub(self.session.kept());
        if !self.line.write(vec![Bytes::from(text)], None, room).await {
            self.session.forget(number);
        }
    }
}

/// The reader of a stream. Dropping it detaches it; the call goes on.
#[derive(Debug)]
struct Reader {
    line: Arc<Line>,
    epoch: u64,
    session: Arc<Session>,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.line.detach(self.epoch);
    }
}

impl Reader {
    fn event_id(&self, number: u64) -> String {
        format!("{}.{number}", self.line.number)
    }
}

/// The event stream of a reader. Clients of 2025-11-25 get the priming event first (2025-11-25, transports, "Sending
/// Messages to the Server").
fn events(reader: Reader, fresh: bool) -> Response<Body> {
    let primed = fresh && shows_breaks(reader.session.revision);
    let priming = primed.then(|| encode_priming(&reader.event_id(0), RETRY));
    let rest = stream::unfold(Some((reader, 0)), |state| async move {
        let (reader, last) = state?;
        match reader.line.next(reader.epoch).await {
            Next::Message(sent) => {
                let number = sent.number;
                let done = sent.ending.is_some();
                let event = as_event(&reader, &sent);
                if done {
                    reader.session.lines.remove(&reader.line.number);
                }
                Some((event, (!done).then_some((reader, number))))
            }
            Next::Pause(pause) => {
                let event = encode_priming(&reader.event_id(last), pause.retry.unwrap_or(RETRY));
                Some((event, None))
            }
            Next::End => None,
        }
    });
    render::events(with_comments(stream::iter(priming).chain(rest)))
}

fn as_event(reader: &Reader, sent: &Sent) -> Bytes {
    let text = sent.pieces.concat();
    encode_event(Some(&reader.event_id(sent.number)), &String::from_utf8_lossy(&text))
}
