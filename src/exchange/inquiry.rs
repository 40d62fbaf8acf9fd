//! A question from an upstream back to the client, while its call runs.

use tokio::sync::oneshot;

use crate::protocol::Question;

/// What a client made of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reaction {
    /// Its result, raw.
    Result(String),
    /// Its JSON-RPC error object, raw.
    Error(String),
}

/// The way back to the upstream. Dropping it tells the upstream that nobody will answer.
#[derive(Debug)]
pub struct Answerer(oneshot::Sender<Reaction>);

impl Answerer {
    /// A way back, and where the reaction arrives.
    #[must_use]
    pub fn new() -> (Self, oneshot::Receiver<Reaction>) {
        let (sender, receiver) = oneshot::channel();
        (Self(sender), receiver)
    }

    /// Answers. An upstream that is gone hears nothing.
    pub fn answer(self, reaction: Reaction) {
        if self.0.send(reaction).is_err() {
            tracing::debug!("an answer came after its question was gone");
        }
    }
}

/// One question.
#[derive(Debug)]
pub struct Inquiry {
    /// What is asked.
    pub question: Question,
    /// The raw params, `{}` where there are none.
    pub params: String,
    /// The way back.
    pub answerer: Answerer,
}
