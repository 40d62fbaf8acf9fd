//! A question from an upstream back to the client, while its call runs.

use std::fmt;

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

type Change = Box<dyn FnOnce(Reaction) -> Reaction + Send + Sync>;

/// The way back to the upstream. Dropping it tells the upstream that nobody will answer.
pub struct Answerer {
    sender: oneshot::Sender<Reaction>,
    change: Option<Change>,
}

impl fmt::Debug for Answerer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answerer").finish_non_exhaustive()
    }
}

impl Answerer {
    /// A way back, and where the reaction arrives.
    #[must_use]
    pub fn new() -> (Self, oneshot::Receiver<Reaction>) {
        let (sender, receiver) = oneshot::channel();
        (Self { sender, change: None }, receiver)
    }

    /// The same way, on which each reaction is changed first.
    #[must_use]
    pub fn through(self, change: impl FnOnce(Reaction) -> Reaction + Send + Sync + 'static) -> Self {
        let inner = self.change.unwrap_or_else(|| Box::new(|reaction| reaction));
        Self { sender: self.sender, change: Some(Box::new(move |reaction| inner(change(reaction)))) }
    }

    /// Answers. An upstream that is gone hears nothing.
    pub fn answer(self, reaction: Reaction) {
        let reaction = match self.change {
            Some(change) => change(reaction),
            None => reaction,
        };
        if self.sender.send(reaction).is_err() {
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
