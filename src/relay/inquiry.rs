//! Calls of clients that are asked while a call runs, to upstreams that ask between calls.
//!
//! Such an upstream ends a call with questions and wants it made again with the answers (2026-07-28, patterns/mrtr).
//! Here each question becomes an inquiry on the client's stream, and the answers become the next attempt.

use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::sync::oneshot;

use crate::exchange::{Answerer, Call, Emitter, Event, Failure, Inquiry, Reaction, Reason, Reply, reply};
use crate::jsonrpc::Object;
use crate::protocol::{Abilities, InputRequest, InputRequired, Question, retried};
use crate::upstream::Link;

/// After so many rounds Weir stops.
const MOST_ROUNDS: usize = 16;
/// How long it waits first where an upstream asks for another attempt without a question; doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The reply of a call whose upstream may ask between attempts.
pub(super) fn answered(link: Link, call: Call) -> Reply {
    reply(move |emitter| rounds(link, call, emitter))
}

async fn rounds(link: Link, mut call: Call, emitter: Emitter) -> Event {
    let _held = link.held();
    let mut pause = FIRST_PAUSE;
    for _ in 0..MOST_ROUNDS {
        let last = attempt(&link, call.clone(), &emitter).await;
        let Event::Asks(result) = last else { return last };
        let Some(asked) = std::str::from_utf8(&result).ok().and_then(InputRequired::read) else {
            return Event::Failed(link.failed(Reason::NotMcp));
        };
        let nothing = Abilities::default();
        let abilities = call.caller.askable().unwrap_or(&nothing);
        let lacking = asked.requests.iter().find_map(|one| abilities.lacks(one.question, &one.params));
        if let Some(lacking) = lacking {
            return Event::Failed(Failure::NeedsAbilities(lacking));
        }
        if asked.requests.is_empty() {
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        let answers = match ask(asked.requests, &emitter).await {
            Ok(answers) => answers,
            Err(failure) => return Event::Failed(failure),
        };
        let Some(params) = Object::open(&call.params) else { return Event::Failed(Failure::Internal) };
        call.params = retried(&params, &answers, asked.state.as_deref());
    }
    Event::Failed(link.failed(Reason::NeedsClient))
}

/// One attempt; everything but its last event goes to the client.
async fn attempt(link: &Link, call: Call, emitter: &Emitter) -> Event {
    let mut reply = link.call(call);
    loop {
        match reply.next().await {
            Some(event) if event.is_last() => return event,
            Some(event) => emitter.emit(event).await,
            None => return Event::Failed(Failure::Internal),
        }
    }
}

/// Asks all questions at once and waits for all answers.
async fn ask(requests: Vec<InputRequest>, emitter: &Emitter) -> Result<Vec<(String, String)>, Failure> {
    let mut waiting: Vec<(String, Question, oneshot::Receiver<Reaction>)> =
        Vec::with_capacity(requests.len());
    for InputRequest { key, question, params } in requests {
        let (answerer, reaction) = Answerer::new();
        emitter.emit(Event::Inquiry(Inquiry { question, params, answerer })).await;
        waiting.push((key, question, reaction));
    }
    let mut answers = Vec::with_capacity(waiting.len());
    for (key, question, reaction) in waiting {
        match (reaction.await, question) {
            (Ok(Reaction::Result(result)), _) => answers.push((key, result)),
            // The stateless wire carries no errors of clients; an elicitation has a word for it.
            (Ok(Reaction::Error(_)) | Err(_), Question::Elicitation) => {
                answers.push((key, r#"{"action":"cancel"}"#.to_owned()));
            }
            (Ok(Reaction::Error(_)) | Err(_), Question::Sampling | Question::Roots) => {
                return Err(Failure::Refused(question));
            }
        }
    }
    Ok(answers)
}
