//! An upstream of 2026-07-28: stateless.
//!
//! Every request carries its revision, who Weir is and what it can be asked (nothing) in `_meta`, and mirrors parts
//! of its body into headers, computed from the body that goes out. Giving a call up means dropping its answer: the
//! closed stream is the cancellation. Such an upstream asks nothing on a stream, so what it asks is ignored.

mod encode;
mod listen;
mod tasks;
mod updates;

use super::capabilities::NO_CAPABILITIES;
use super::conversation::{Audience, Beside, Conversation, Told};
use super::fault::{Cure, Fault, Miss};
use super::http::{Answered, Form};
use super::messages::Messages;
use super::reading::{Incoming, read};
use super::way::Way;
use crate::exchange::Reason;
use crate::jsonrpc::{Object, RpcError, mentioning};
use crate::protocol::{Abilities, Method, Offer, Revision, code};

use encode::Outgoing;
pub(super) use encode::mirror;
pub(super) use listen::listen;
pub(super) use tasks::follow;
pub(super) use updates::attend;

/// A modern upstream.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) leg: Leg,
    pub(super) offer: Offer,
    /// What is declared where Weir itself asks.
    pub(super) listing: String,
    pub(super) instructions: Option<String>,
}

/// The way to it, which needs no knowledge of what it offers.
#[derive(Debug, Clone)]
pub(super) struct Leg {
    pub(super) way: Way,
    pub(super) revision: Revision,
}

impl Peer {
    /// Makes one attempt at a call.
    pub(super) async fn attempt(&self, audience: Audience<'_>) -> Result<Told, Miss> {
        let call = audience.call;
        let talk = Conversation { id: self.leg.way.ids.next(), audience: Some(audience) };
        let capabilities =
            call.caller.askable().map_or_else(|| NO_CAPABILITIES.to_owned(), Abilities::to_json);
        let outgoing = Outgoing {
            revision: self.leg.revision,
            method: call.method,
            params: &call.params,
            capabilities: &capabilities,
            mirrored: &call.mirrored,
        };
        let told = self.leg.converse(&talk, &outgoing).await?;
        self.judged(told)
    }

    /// Asks something for Weir itself.
    pub(super) async fn ask(&self, method: Method, params: &str) -> Result<Told, Fault> {
        self.leg.ask(method, params, &self.listing).await
    }

    fn judged(&self, told: Told) -> Result<Told, Miss> {
        match told {
            Told::Error(error) => match error.code {
                _ if self.leg.refuses_credential(&error) => Err(Fault::unsent(Reason::Credential).into()),
                code::HEADER_MISMATCH | code::UNSUPPORTED_REVISION => {
                    Err(Miss { fault: Fault::unsent(Reason::NotMcp), cure: Cure::Relist })
                }
                _ => Ok(Told::Error(error)),
            },
            Told::Result(result) if asks_the_client(&result) => Ok(Told::Asks(result)),
            told @ (Told::Result(_) | Told::Asks(_)) => Ok(told),
        }
    }
}

impl Leg {
    /// Asks something for Weir itself. What the answer means is for the caller to say.
    pub(super) async fn ask(&self, method: Method, params: &str, capabilities: &str) -> Result<Told, Fault> {
        let talk = Conversation { id: self.way.ids.next(), audience: None };
        let outgoing = Outgoing { revision: self.revision, method, params, capabilities, mirrored: &[] };
        self.converse(&talk, &outgoing).await
    }

    /// Whether an error means that Weir's credential was refused.
    pub(super) fn refuses_credential(&self, error: &RpcError) -> bool {
        self.way.upstream.credential_error_codes.contains(&error.code)
    }

    async fn converse(&self, talk: &Conversation<'_>, outgoing: &Outgoing<'_>) -> Result<Told, Fault> {
        let answered = self.send(talk, outgoing).await?;
        if !answered.is_success() {
            return refused(talk, answered).await;
        }
        let mut messages = Messages::of(answered)?;
        let beside = Beside { question: &|_asked| None, updated: &|_params| {} };
        let told = talk.hear(&mut messages, beside).await?.ok_or_else(|| Fault::sent(Reason::Ended))?;
        messages.release(&self.way.tasks);
        Ok(told)
    }

    async fn send(&self, talk: &Conversation<'_>, outgoing: &Outgoing<'_>) -> Result<Answered, Fault> {
        let (head, body) = outgoing.written(&talk.id, talk.token(), talk.asked_level());
        talk.written();
        self.way.wire.post(talk.forward(head), body).await
    }
}

/// What a status that is no success means. Errors of the protocol come with one (2026-07-28, transports).
async fn refused(talk: &Conversation<'_>, mut answered: Answered) -> Result<Told, Fault> {
    let fault = Fault::status(answered.status);
    if fault.reason == Reason::Credential || fault.may_have_run || answered.form != Form::Json {
        return Err(fault);
    }
    let text = answered.body.whole().await.unwrap_or_default();
    match read(&text) {
        Ok(Incoming::Error { id, error }) if talk.is_answer(id.as_ref(), true) => Ok(Told::Error(error)),
        Ok(_) | Err(_) => Err(fault),
    }
}

/// Whether a result is a question (2026-07-28, patterns/mrtr). A result that cannot be one is not opened.
fn asks_the_client(result: &[u8]) -> bool {
    const ASKS: &str = "input_required";
    let result = mentioning(result, ASKS).and_then(Object::reopen);
    result.and_then(|result| result.text("resultType")).as_deref() == Some(ASKS)
}
