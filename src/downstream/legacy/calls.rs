//! Calls of a session: started here, driven by whoever reads along, answered as JSON or as an event stream.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use http::{Response, StatusCode};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::engine::Engine;
use super::line::{Ending, Head, Line, Lost, Next, Sent};
use super::session::Session;
use super::{Legacy, RETRY, duplicate, encode};
use crate::downstream::accept::Accepts;
use crate::downstream::render::{self, HEAD_WAIT, with_comments};
use crate::downstream::{Body, Inbound, Shared};
use crate::exchange::{Call, Caller, Event, Failure, Inquiry, Reply};
use crate::jsonrpc::{Id, Object};
use crate::protocol::{LogLevel, Method, encode_pieces, encode_priming, meta};
use crate::relay::Seat;
use crate::seal::QuestionSeal;

/// Beyond so many streams of one session, those that were handed out whole are not kept.
const MOST_LINES: usize = 256;

/// Starts a call and waits for the head of its answer.
pub(super) async fn answer(
    legacy: &Legacy,
    session: &Arc<Session>,
    (request, seat): (&Inbound, &Seat),
    (id, method, params): (Id, Method, &Object<'_>),
    accepts: Accepts,
) -> Response<Body> {
    let call = match call(&legacy.shared, session, (request, seat), (method, params, accepts)) {
        Ok(call) => call,
        Err(text) => return encode::invalid_params(&id, StatusCode::OK, &text),
    };
    let number = session.number();
    let Some(token) = session.begin(&id, number) else { return duplicate(&id) };
    let reply = legacy.shared.relay.call(seat, call);
    let tool = method == Method::ToolsCall;
    let lost = Lost(Box::new({
        let id = id.clone();
        move || encode::lost(&id, tool)
    }));
    let line = Arc::new(Line::new(
        number,
        (token.clone(), Engine::new(&legacy.calls)),
        (session.account.clone(), lost),
    ));
    session.lines.insert(number, Arc::clone(&line));
    let driver = Driver {
        shared: Arc::clone(&legacy.shared),
        session: Arc::clone(session),
        line: Arc::clone(&line),
        path: request.route.path.clone(),
        id,
        tool,
        cancelled: token,
    };
    line.engine.start(driver.run(reply));
    head(session, line, accepts).await
}

/// Waits for the first message: if it is the last one too, the answer is JSON.
async fn head(session: &Arc<Session>, line: Arc<Line>, accepts: Accepts) -> Response<Body> {
    let reader = Reader { epoch: line.attach(1), line, session: Arc::clone(session) };
    let engine = &reader.line.engine;
    let first = || timeout(HEAD_WAIT, engine.while_waiting(reader.line.head()));
    let head = match accepts {
        Accepts::Json => {
            let last = engine.while_waiting(reader.line.last()).await;
            last.map_or(Head::Nothing, Head::Whole)
        }
        // What an HTTP status says, an event stream cannot.
        Accepts::Events => match first().await {
            Ok(Head::Whole(last)) if last.ending.as_ref().is_some_and(Ending::has_status) => {
                Head::Whole(last)
            }
            Ok(Head::Nothing) => Head::Nothing,
            Ok(Head::Whole(_) | Head::Stream) | Err(_) => Head::Stream,
        },
        Accepts::Both | Accepts::Nothing => first().await.unwrap_or(Head::Stream),
    };
    match head {
        Head::Whole(last) => {
            // It goes out without an event id: there is nothing to come back for.
            session.lines.remove(&reader.line.number);
            encode::whole(last)
        }
        Head::Stream => events(reader, 0, true),
        // The client has cancelled the call, and wants no answer.
        Head::Nothing => render::empty(StatusCode::ACCEPTED),
    }
}

/// What an event id of a call's stream leads to.
pub(super) enum Resumed {
    /// The stream, from the message after it on.
    Stream(Response<Body>),
    /// A stream that is over, or never was.
    Gone,
    /// It is no id of a call's stream.
    Other,
}

/// Takes up the broken stream that an event id names.
pub(super) fn resume(session: &Arc<Session>, last: &str) -> Resumed {
    let Some((stream, number)) = last.split_once('.') else { return Resumed::Other };
    let (Ok(stream), Ok(number)) = (stream.parse::<u64>(), number.parse::<u64>()) else {
        return Resumed::Other;
    };
    let Some(line) = session.lines.get(&stream) else { return Resumed::Gone };
    // Who read before may not be polled any more.
    line.engine.release();
    let reader = Reader { epoch: line.attach(number.saturating_add(1)), line, session: Arc::clone(session) };
    Resumed::Stream(events(reader, number, false))
}

fn call(
    shared: &Shared,
    session: &Session,
    (request, seat): (&Inbound, &Seat),
    (method, params, accepts): (Method, &Object<'_>, Accepts),
) -> Result<Call, String> {
    let name = match method.name_member() {
        Some(member) => params.text(member).ok_or_else(|| format!("params.{member} must be a string"))?,
        None => String::new(),
    };
    let inner = params.object("_meta").unwrap_or_default();
    let token = inner.get(meta::PROGRESS_TOKEN).filter(|raw| Id::read(raw).is_ok()).map(str::to_owned);
    // Who takes no event stream gets no notifications and is asked nothing.
    let is_mute = accepts == Accepts::Json;
    Ok(Call {
        method,
        name,
        params: params.as_json().to_owned(),
        progress_token: token,
        log_level: Some(session.level().unwrap_or(LogLevel::Debug)),
        log_asked: session.level().is_some(),
        mirrored: Vec::new(),
        mirrors: false,
        forwarded: shared.forwardable(seat, &request.headers),
        repeatable: false,
        timeout: None,
        caller: Caller { is_mute, ..session.caller(shared, &request.principal) },
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
    cancelled: CancellationToken,
}

impl Drop for Driver {
    /// Also after a panic: whoever waits for the line learns that nothing more comes.
    fn drop(&mut self) {
        self.line.close();
        self.session.finish(&self.id, self.line.number);
    }
}

impl Driver {
    async fn run(self, mut reply: Reply) {
        let cancelled = self.cancelled.clone();
        while !self.line.has_ended() {
            // Cancel-safe: `next` of a boxed stream takes nothing until it is ready.
            let event = tokio::select! {
                // What a client has cancelled is not gone on with, whatever else has come.
                biased;
                () = cancelled.cancelled() => return,
                event = AssertUnwindSafe(reply.next()).catch_unwind() => event,
            };
            // A panic below is a fault of Weir's, and an answer like others.
            let event = event.ok().flatten().unwrap_or(Event::Failed(Failure::Internal));
            tokio::select! {
                biased;
                () = cancelled.cancelled() => return,
                () = self.pass(event) => {}
            }
        }
    }

    async fn pass(&self, event: Event) {
        if let Event::Paused(retry) = event {
            if self.session.shows_breaks() {
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
        if ending.is_some() {
            // Before the answer leaves: who has it may use the id again at once.
            self.session.finish(&self.id, self.line.number);
        }
        let session = Arc::clone(&self.session);
        self.line.write(pieces, ending, move || session.room()).await;
    }

    /// Asks the client, on the stream of the call, under an id that leads back here.
    async fn ask(&self, inquiry: Inquiry) {
        let Inquiry { question, params, answerer } = inquiry;
        let number = self.session.ask(Some(self.line.number), answerer);
        let id = QuestionSeal { session: self.session.key.0, number }.seal(&self.shared.keyring);
        let text = encode::question(&id, self.session.revision, question, &params);
        let session = Arc::clone(&self.session);
        self.line.write(vec![Bytes::from(text)], None, move || session.room()).await;
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
        self.line.engine.release();
        let is_crowded = self.session.lines.len() > MOST_LINES;
        let room = if is_crowded { 0 } else { self.session.room() };
        if self.line.detach(self.epoch, room) {
            self.session.lines.remove(&self.line.number);
        }
    }
}

impl Reader {
    fn event_id(&self, number: u64) -> String {
        format!("{}.{number}", self.line.number)
    }
}

/// The event stream of a reader that has seen messages up to `last`. Clients of 2025-11-25 get the priming event first
/// (2025-11-25, transports, "Sending Messages to the Server"). A stream that was handed out whole stays, detached,
/// until the session's time for resuming has passed: that it was handed out does not say that it arrived.
fn events(reader: Reader, last: u64, fresh: bool) -> Response<Body> {
    let primed = fresh && reader.session.shows_breaks();
    let priming = primed.then(|| encode_priming(&reader.event_id(0), RETRY));
    let rest = stream::unfold(Some((reader, last)), |state| async move {
        let (reader, last) = state?;
        match reader.line.engine.while_waiting(reader.line.next(reader.epoch)).await {
            Next::Message(sent) => {
                let done = sent.ending.is_some();
                let event = as_event(&reader, &sent);
                Some((event, (!done).then_some((reader, sent.number))))
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
    encode_pieces(Some(&reader.event_id(sent.number)), &sent.pieces)
}
