//! An upstream of the revisions up to 2025-11-25: sessions, and answers that can be resumed.
//!
//! Owns how a call is written for such an upstream and what its answers mean. Sessions come from [`Pool`]; a call
//! whose session turns out to be forgotten is missed with the cure of sending it again, in a new one. A call that is
//! given up (dropped, timed out) is cancelled with `notifications/cancelled` and the id that the upstream saw.

mod attend;
mod handshake;
mod line;
mod outstanding;
mod pool;
mod question;
mod session;
mod stream;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;

use super::conversation::{Audience, Beside, Conversation, Told};
use super::fault::{Cure, Fault, Miss};
use super::http::{Answered, Destination, Form};
use super::messages::{Messages, Resume};
use super::reading::{Incoming, read};
use super::way::Way;
use super::wishes::Want;
use crate::exchange::Reason;
use crate::jsonrpc::{Edit, Object, Text, request};
use crate::protocol::{
    Abilities, LogLevel, Method, Offer, RESPONSES, Revision, STATE, code, headers, meta, retried,
};

pub(super) use attend::attend;
pub(super) use handshake::{Carriage, Opened, Refused, open, reply_to_question};
use outstanding::Outstanding;
pub(super) use pool::{Key, Lease, Pool};
pub(super) use session::Session;
pub(super) use stream::listen;

/// How long to wait before a stream is resumed, where the upstream does not say.
const RETRY: Duration = Duration::from_secs(1);
/// The least wait, whatever it says: it may say 0.
const LEAST_RETRY: Duration = Duration::from_millis(100);
/// So often is a stream asked for in vain before the call is given up.
const MOST_RESUMES: u32 = 5;
/// A call that takes so long has the standing stream of its session heard.
const SHORT: Duration = Duration::from_millis(250);
/// How long an answer to a POST is waited for that nobody needs any more.
const POSTED: Duration = Duration::from_secs(5);
/// How long `logging/setLevel` may hold up a call.
const SET_LEVEL: Duration = Duration::from_secs(2);

/// A legacy upstream.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) way: Way,
    pub(super) pool: Arc<Pool>,
    pub(super) revision: Revision,
    pub(super) offer: Offer,
    pub(super) instructions: Option<String>,
}

impl Peer {
    /// Makes one attempt at a call, in the session of its caller.
    pub(super) async fn attempt(&self, audience: Audience<'_>) -> Result<Told, Miss> {
        let call = audience.call;
        let key = self.pool.key(&call.caller);
        let party = self.way.wishes.party(&key);
        let lease = self.pool.lease(key, Some(&call.caller.abilities)).await?;
        let stands = party.is_some_and(|party| party.stander().is_some());
        // What can be asked may be asked on the standing stream as soon as the call has begun.
        let want = (!stands && call.caller.askable().is_some_and(Abilities::has_questions))
            .then(|| self.heard(&lease, audience))
            .flatten();
        if stands || want.is_some() {
            lease.session().stream_settled().await;
        }
        if let Some(level) = call.log_level.filter(|_| call.log_asked) {
            self.lower_log_level(&lease, level).await;
        }
        let talk = Conversation { id: self.way.ids.next(), audience: Some(audience) };
        let params = with_token(&without_answers(&call.params), talk.token());
        let mut outstanding = Outstanding::new(self.pool.chores(), &lease, &talk.id);
        let body = request(Some(&talk.id), call.method.as_str(), &params);
        let told = self.attended(&lease, audience, Box::pin(self.converse(&talk, &lease, body))).await;
        let is_given_up = matches!(&told, Err(miss) if miss.fault.reason == Reason::TooLarge);
        if !is_given_up {
            outstanding.settle();
        }
        told
    }

    /// Has the standing stream of the session heard while a call runs that takes a while.
    async fn attended<T, F>(&self, lease: &Lease, audience: Audience<'_>, mut call: F) -> T
    where
        F: Future<Output = T> + Unpin,
    {
        if let Ok(done) = tokio::time::timeout(SHORT, &mut call).await {
            return done;
        }
        let _want = self.heard(lease, audience);
        call.await
    }

    /// Has the standing stream of the session heard as long as this is held, where there may be one.
    fn heard(&self, lease: &Lease, audience: Audience<'_>) -> Option<Want> {
        let is_heard = lease.is_of_client() && self.pool.has_streams();
        is_heard.then(|| self.way.wishes.call(lease.key().clone(), &audience.call.caller.abilities))
    }

    /// The upstream says that a resource was updated.
    fn updated(&self, key: &Key, params: &str) {
        let uri = Object::open(params).and_then(|params| params.text("uri"));
        if let (Some(uri), Some(party)) = (uri, self.way.wishes.party(key)) {
            party.updated(&uri);
        }
    }

    /// Asks something for Weir itself, in the session of its listing, which is opened again where it was lost.
    pub(super) async fn ask(&self, method: Method, params: &str) -> Result<Told, Fault> {
        let first = self.ask_once(method, params).await;
        match first {
            Err(miss) if miss.cure == Cure::Resend && miss.fault.reason != Reason::Unreachable => {
                self.ask_once(method, params).await.map_err(|miss| miss.fault)
            }
            told => told.map_err(|miss| miss.fault),
        }
    }

    /// Whether the session of Weir's listing was opened again since this was last asked. The upstream may have been
    /// restarted then, and offer other things.
    pub(super) fn was_reopened(&self) -> bool {
        self.pool.was_reopened()
    }

    async fn ask_once(&self, method: Method, params: &str) -> Result<Told, Miss> {
        let lease = self.pool.lease(Key::Listing, None).await?;
        self.converse_alone(&lease, method, params).await
    }

    /// Asks something for Weir itself, in a session that others use too.
    async fn ask_in(&self, lease: &Lease, method: Method, params: &str) -> Result<Told, Fault> {
        self.converse_alone(lease, method, params).await.map_err(|miss| miss.fault)
    }

    async fn converse_alone(&self, lease: &Lease, method: Method, params: &str) -> Result<Told, Miss> {
        let talk = Conversation { id: self.way.ids.next(), audience: None };
        self.converse(&talk, lease, request(Some(&talk.id), method.as_str(), params)).await
    }

    async fn converse(&self, talk: &Conversation<'_>, lease: &Lease, body: String) -> Result<Told, Miss> {
        // A session that everybody shares can ask nobody.
        let abilities =
            talk.abilities().filter(|_| *lease.key() != Key::Shared && !self.way.wire.is_shared_child());
        let beside = Beside {
            question: &|asked| self.pool.desk(lease.session()).take(&asked, abilities),
            updated: &|params| self.updated(lease.key(), params),
        };
        talk.written();
        let to = talk.forward(lease.session().destination());
        if let Some(line) = lease.session().line() {
            let mut waiting = line.wait(&talk.id);
            let mut messages = waiting.messages();
            let hearing = Box::pin(talk.hear(&mut messages, beside));
            return self.posted(talk, lease, (to, body), hearing).await;
        }
        let answered = self.way.wire.post(to, body).await?;
        if !answered.is_success() {
            return self.refused(talk, lease, answered).await;
        }
        let mut messages = Messages::of(answered)?;
        lease.session().has_worked();
        loop {
            match talk.hear(&mut messages, beside).await {
                Ok(Some(told)) => {
                    messages.release(&self.way.tasks);
                    return self.judged(told);
                }
                Ok(None) => {}
                Err(fault) if fault == Fault::sent(Reason::Ended) => {}
                Err(fault) => return Err(fault.into()),
            }
            let point = messages.resume().ok_or_else(|| Fault::sent(Reason::Ended))?;
            messages = self.resumed(talk, lease, point).await?;
        }
    }

    /// Posts a request whose answer is heard on a line. That to the POST matters only where it refuses, and may come
    /// later or never.
    async fn posted(
        &self,
        talk: &Conversation<'_>,
        lease: &Lease,
        (to, body): (Destination, String),
        mut hearing: impl Future<Output = Result<Option<Told>, Fault>> + Unpin,
    ) -> Result<Told, Miss> {
        let wire = Arc::clone(&self.way.wire);
        let mut posting = Box::pin(async move { wire.post(to, body).await });
        let told = tokio::select! {
            told = &mut hearing => {
                self.way.tasks.spawn_until_cancelled("end of a post", async move {
                    drop(tokio::time::timeout(POSTED, posting).await);
                });
                told?
            }
            answered = &mut posting => {
                let mut answered = answered?;
                if !answered.is_success() {
                    return self.refused(talk, lease, answered).await;
                }
                answered.body.finish().await;
                hearing.await?
            }
        };
        let told = told.ok_or_else(|| Fault::sent(Reason::Ended))?;
        lease.session().has_worked();
        self.judged(told)
    }

    /// Takes a broken stream up again (2025-11-25, transports, "Resumability and Redelivery").
    async fn resumed(
        &self,
        talk: &Conversation<'_>,
        lease: &Lease,
        point: Resume,
    ) -> Result<Messages, Fault> {
        let ended = || Fault::sent(Reason::Ended);
        let last = HeaderValue::from_bytes(point.last_event_id.as_bytes()).map_err(|_invalid| ended())?;
        talk.paused(point.retry).await;
        for _ in 0..MOST_RESUMES {
            tokio::time::sleep(point.retry.unwrap_or(RETRY).max(LEAST_RETRY)).await;
            let mut head = lease.session().head();
            head.insert(headers::LAST_EVENT_ID, last.clone());
            match self.way.wire.get(head).await {
                Ok(answered) if answered.is_success() && answered.form == Form::Events => {
                    return Ok(Messages::of(answered)?.resumed(point));
                }
                Ok(answered) if answered.status < 500 && answered.status != 429 => return Err(ended()),
                Ok(_) | Err(_) => {}
            }
        }
        Err(ended())
    }

    /// What a status that is no success means.
    async fn refused(
        &self,
        talk: &Conversation<'_>,
        lease: &Lease,
        mut answered: Answered,
    ) -> Result<Told, Miss> {
        let fault = Fault::status(answered.status);
        if fault.reason == Reason::Credential || fault.may_have_run {
            return Err(fault.into());
        }
        let text = match answered.form {
            Form::Json => answered.body.whole().await.unwrap_or_default(),
            Form::Events | Form::Lines | Form::Other => Bytes::new(),
        };
        let (own, error) = match read(&text) {
            Ok(Incoming::Error { id, error }) if talk.is_answer(id.as_ref(), true) => {
                (id.is_some(), Some(error))
            }
            _ => (false, None),
        };
        let is_unknown_method = error.as_ref().is_some_and(|error| error.code == code::METHOD_NOT_FOUND);
        let is_lost = match answered.status {
            404 => !(own && is_unknown_method),
            400 => !own,
            _ => false,
        };
        if is_lost && (lease.session().is_distinct() || self.way.wire.is_stdio()) {
            // Whatever it was, the next call gets another one.
            self.pool.lose(lease);
            // Of a child it is certain, and where nobody was asked.
            let is_certain = self.way.wire.is_stdio() || answered.is_unsent;
            if is_certain || lease.session().can_be_lost() {
                return Err(Miss { fault, cure: Cure::Resend });
            }
        }
        error.map_or(Err(fault.into()), |error| self.judged(Told::Error(error)))
    }

    fn judged(&self, told: Told) -> Result<Told, Miss> {
        match told {
            Told::Error(error) if self.way.upstream.credential_error_codes.contains(&error.code) => {
                Err(Fault::unsent(Reason::Credential).into())
            }
            told => Ok(told),
        }
    }

    /// Asks for log messages that nobody in the session wanted before. What it answers does not matter: a server
    /// that refuses sends what it sends.
    async fn lower_log_level(&self, lease: &Lease, level: LogLevel) {
        if !self.offer.logging {
            return;
        }
        // Who wants what another call is asking for waits until the upstream has said yes.
        let Some(lowering) = lease.session().lower_log_level(level as u8).await else { return };
        let mut params = Text::object();
        params.text("level", level.as_str());
        let talk = Conversation { id: self.way.ids.next(), audience: None };
        let body = request(Some(&talk.id), Method::SetLevel.as_str(), &params.close());
        let asked = Box::pin(self.converse(&talk, lease, body));
        if tokio::time::timeout(SET_LEVEL, asked).await.is_err() {
            tracing::debug!(upstream = %self.way.upstream.name, "no answer to logging/setLevel");
        }
        lowering.done();
    }
}

/// The params without the members that only stateless servers know.
fn without_answers(params: &str) -> Cow<'_, str> {
    if !params.contains(RESPONSES) && !params.contains(STATE) {
        return Cow::Borrowed(params);
    }
    Object::open(params).map_or(Cow::Borrowed(params), |object| Cow::Owned(retried(&object, &[], None)))
}

/// The params as they came, with Weir's progress token where progress is wanted.
fn with_token(params: &str, token: Option<&str>) -> String {
    let Some(token) = token else { return params.to_owned() };
    let params = Object::open(params).unwrap_or_default();
    let old = params.object("_meta").unwrap_or_default();
    let new = Edit::new().set(meta::PROGRESS_TOKEN, token).apply(&old);
    Edit::new().set("_meta", new).apply(&params)
}
