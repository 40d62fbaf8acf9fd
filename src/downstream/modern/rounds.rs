//! One attempt at a call, and the questions that may end it (2026-07-28, patterns/mrtr).

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use super::parking::Parked;
use super::state::{Binding, answers, restore};
use crate::downstream::{Inbound, Shared};
use crate::exchange::{Call, Event, Failure, Inquiry};
use crate::jsonrpc::{Edit, Id, Object, RpcError};
use crate::principal::Holder;
use crate::protocol::{Abilities, InputRequest, InputRequired, Method, Question, code};
use crate::relay::Seat;
use crate::seal::Thread;

/// How long further questions are waited for once one has come.
const GATHER: Duration = Duration::from_millis(25);

/// What belongs to one attempt.
#[derive(Debug, Clone)]
pub(super) struct Round {
    pub(super) shared: Arc<Shared>,
    pub(super) id: Id,
    pub(super) method: Method,
    binding: Binding,
    holder: Holder,
    abilities: Abilities,
}

/// What comes next in an attempt.
#[derive(Debug)]
pub(super) enum Outcome {
    /// A message before the answer.
    Message(Event),
    /// The answer.
    Last(Event),
    /// The raw result that asks the client.
    Asked(String),
}

/// How an attempt begins.
pub(super) enum Begun {
    /// The call runs.
    Running(Parked),
    /// It cannot go on before more is answered.
    Asked(String),
}

impl Round {
    pub(super) fn new(shared: &Arc<Shared>, request: &Inbound, id: Id, call: &Call) -> Self {
        Self {
            shared: Arc::clone(shared),
            id,
            method: call.method,
            binding: Binding::of(request, call.method),
            holder: request.holder(),
            abilities: call.caller.abilities.clone(),
        }
    }

    /// Starts a call, or takes up the one that its state leads to.
    ///
    /// # Errors
    /// A state that is not good for this caller and this call, or was used before; a denial.
    pub(super) async fn begin(&self, seat: &Seat, mut call: Call) -> Result<Begun, Failure> {
        let refuse = |text: &str| Failure::InvalidParams(text.to_owned());
        match self.binding.open(&self.shared, &call).map_err(refuse)? {
            None => Ok(Begun::Running(Parked::new(self.shared.relay.call(seat, call)))),
            Some(Thread::Upstream(state)) => {
                restore(&mut call, &state);
                Ok(Begun::Running(Parked::new(self.shared.relay.call(seat, call))))
            }
            Some(Thread::Parked(number)) => {
                // A retry is a call: it is decided like the first one.
                self.shared.relay.permits(seat, &call)?;
                let params = Object::open(&call.params).unwrap_or_default();
                let given = answers(&params);
                let parked = self.shared.parking.take(number).await;
                let mut parked = parked.ok_or_else(|| refuse("already answered, or waited too long"))?;
                parked.answer(given);
                if parked.questions().is_empty() {
                    Ok(Begun::Running(parked))
                } else {
                    Ok(Begun::Asked(self.park(parked)))
                }
            }
        }
    }

    /// The next thing of a running call. The call leaves its slot when it is parked.
    ///
    /// # Cancel safety
    /// A question that was read stays with the call; nothing is lost.
    pub(super) async fn next(&self, slot: &mut Option<Parked>) -> Outcome {
        loop {
            let Some(call) = slot.as_mut() else { return Outcome::Last(Event::Failed(Failure::Internal)) };
            if call.is_asking() {
                call.gather(GATHER).await;
                return match slot.take() {
                    Some(call) => Outcome::Asked(self.park(call)),
                    None => Outcome::Last(Event::Failed(Failure::Internal)),
                };
            }
            match call.next().await.unwrap_or(Event::Failed(Failure::Internal)) {
                // Without room the question is dropped, and that tells the upstream that nobody will answer.
                Event::Inquiry(inquiry) if self.shared.parking.has_room(&self.holder) => {
                    call.add(anonymous(inquiry));
                }
                Event::Inquiry(_) => {}
                Event::Asks(result) => return self.asked(&String::from_utf8_lossy(&result)),
                Event::Error(error) if error.code == code::LEGACY_URL_ELICITATION => {
                    return self.urls(error);
                }
                event if event.is_last() => return Outcome::Last(event),
                event => return Outcome::Message(event),
            }
        }
    }

    /// A legacy error that wants the user to open addresses first (2025-11-25, client/elicitation, "URL Elicitation
    /// Required"), as questions. The retry makes the call again.
    fn urls(&self, error: RpcError) -> Outcome {
        let requests = elicitations(&error);
        if requests.is_empty() || !self.abilities.elicitation_url {
            return Outcome::Last(Event::Error(error));
        }
        Outcome::Asked(InputRequired::write(&requests, None))
    }

    fn park(&self, call: Parked) -> String {
        let questions = call.questions();
        let number = self.shared.parking.park(call, &self.holder);
        InputRequired::write(&questions, Some(&self.binding.seal(&self.shared, Thread::Parked(number))))
    }

    /// The questions of a stateless upstream, as far as this client can be asked them.
    fn asked(&self, result: &str) -> Outcome {
        let Some(asked) = InputRequired::read(result) else {
            return Outcome::Last(Event::Failed(Failure::Internal));
        };
        let lacking = asked.requests.iter().find_map(|one| self.abilities.lacks(one.question, &one.params));
        if let Some(lacking) = lacking {
            return Outcome::Last(Event::Failed(Failure::NeedsAbilities(lacking)));
        }
        match self.binding.asks(&self.shared, result) {
            Some(result) => Outcome::Asked(result),
            None => Outcome::Last(Event::Failed(Failure::Internal)),
        }
    }
}

/// An elicitation of a legacy upstream without the id that only its own era uses.
fn anonymous(inquiry: Inquiry) -> Inquiry {
    let params = (inquiry.question == Question::Elicitation)
        .then(|| Object::open(&inquiry.params))
        .flatten()
        .filter(|params| params.get("elicitationId").is_some())
        .map(|params| Edit::new().remove("elicitationId").apply(&params));
    match params {
        Some(params) => Inquiry { params, ..inquiry },
        None => inquiry,
    }
}

/// The elicitations that an error names, under keys of Weir's own.
fn elicitations(error: &RpcError) -> Vec<InputRequest> {
    let object = Object::open(error.raw.get()).unwrap_or_default();
    let data = object.object("data").unwrap_or_default();
    let list: Vec<&RawValue> =
        data.get("elicitations").and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default();
    let params = list.iter().filter_map(|one| Object::open(one.get()));
    params
        .enumerate()
        .map(|(index, params)| InputRequest {
            key: format!("url{}", index + 1),
            question: Question::Elicitation,
            params: Edit::new().remove("elicitationId").set("mode", "\"url\"").apply(&params),
        })
        .collect()
}
