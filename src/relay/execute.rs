//! The way back: events in the client's words.

use futures_util::StreamExt as _;

use crate::exchange::{Event, Reply};
use crate::jsonrpc::{Edit, Object};
use crate::protocol::meta;

/// What the relay knows of a result before it comes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Marks {
    /// Its structured content may be something else than an object.
    pub(super) free_output: bool,
    /// It depends on nothing that belongs to the caller.
    pub(super) shareable: bool,
}

/// Puts the client's progress token back, drops progress that nobody asked for, and marks results whose structured
/// content may be something else than an object.
pub(super) fn rewritten(reply: Reply, token: Option<String>, marks: Marks) -> Reply {
    Box::pin(reply.filter_map(move |event| {
        let event = match event {
            Event::Progress(params) => {
                token.as_ref().and_then(|token| with_token(&params, token)).map(Event::Progress)
            }
            Event::Result(mut answer) => {
                answer.free_output = marks.free_output && answer.stateless;
                answer.shareable = marks.shareable;
                Some(Event::Result(answer))
            }
            other @ (Event::Log(..)
            | Event::Paused(_)
            | Event::Inquiry(_)
            | Event::Asks(_)
            | Event::Error(_)
            | Event::Failed(_)) => Some(other),
        };
        std::future::ready(event)
    }))
}

fn with_token(params: &str, token: &str) -> Option<String> {
    let params = Object::open(params)?;
    Some(Edit::new().set(meta::PROGRESS_TOKEN, token).apply(&params))
}
