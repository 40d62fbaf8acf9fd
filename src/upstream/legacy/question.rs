//! Questions that an upstream asks on the stream of a call.
//!
//! A ping is answered at once. What the client of the call can be asked goes to it; its answer is posted back in the
//! same session, by a task that waits for it. Everything else is refused at once, so that no upstream ever waits for
//! somebody who will not answer.

use super::handshake::reply_to_question;
use super::session::Session;
use crate::exchange::{Answerer, Inquiry, Reaction};
use crate::jsonrpc::{Id, RpcError, response_error, response_result};
use crate::protocol::{Abilities, Question, code};
use crate::task::TaskGroup;
use crate::upstream::chores::{Chore, Chores};
use crate::upstream::http::Destination;
use crate::upstream::reading::Asked;

/// Where answers to an upstream go.
#[derive(Debug)]
pub(super) struct Desk<'a> {
    pub(super) chores: &'a Chores,
    pub(super) tasks: &'a TaskGroup,
    pub(super) session: &'a Session,
}

impl Desk<'_> {
    /// Answers a question, or gives the inquiry that the client must answer. `abilities` is what the client of the
    /// call can be asked, `None` where there is no client.
    pub(super) fn take(&self, asked: &Asked, abilities: Option<&Abilities>) -> Option<Inquiry> {
        let to = self.session.destination();
        let question = Question::parse(&asked.method);
        let (Some(question), Some(abilities)) = (question, abilities) else {
            self.chores.add(Chore::Post(to, reply_to_question(&asked.id, &asked.method)));
            return None;
        };
        if abilities.lacks(question, &asked.params).is_some() {
            let error = RpcError::own(code::METHOD_NOT_FOUND, "the client cannot be asked this", None);
            self.chores.add(Chore::Post(to, response_error(Some(&asked.id), error.raw.get())));
            return None;
        }
        Some(Inquiry { question, params: asked.params.clone(), answerer: self.expect(to, asked.id.clone()) })
    }

    fn expect(&self, to: Destination, id: Id) -> Answerer {
        let (answerer, reaction) = Answerer::new();
        let chores = self.chores.clone();
        self.tasks.spawn_until_cancelled("answer to a question", async move {
            let body = match reaction.await {
                Ok(Reaction::Result(result)) => response_result(&id, &result),
                Ok(Reaction::Error(error)) => response_error(Some(&id), &error),
                Err(_dropped) => {
                    let error = RpcError::own(code::INTERNAL, "nobody answered", None);
                    response_error(Some(&id), error.raw.get())
                }
            };
            chores.add(Chore::Post(to, body));
        });
        answerer
    }
}
