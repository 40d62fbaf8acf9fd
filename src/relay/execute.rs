//! The way back: events in the client's words.

use futures_util::StreamExt as _;

use super::links::Links;
use super::tasks::Ids;
use crate::exchange::{Answer, Event, Failure, Reply};
use crate::jsonrpc::{Edit, Object, RpcError};
use crate::protocol::{ListKind, code, meta};

/// What the relay knows of a result before it comes.
#[derive(Debug, Clone)]
pub(super) struct Marks {
    /// Its structured content may be something else than an object.
    pub(super) free_output: bool,
    /// It depends on nothing that belongs to the caller.
    pub(super) shareable: bool,
    /// The URI that is read, as the client asked for it.
    pub(super) read: Option<String>,
    /// How URIs in it are published; `None` where it holds none.
    pub(super) links: Option<Links>,
    /// How ids of tasks are published; `None` where there are none.
    pub(super) tasks: Option<Ids>,
}

impl Marks {
    fn beside(&self, params: String) -> String {
        match &self.tasks {
            Some(tasks) => tasks.beside(params),
            None => params,
        }
    }

    fn result(&self, mut answer: Answer) -> Answer {
        answer.free_output = self.free_output && answer.stateless;
        answer.shareable = self.shareable;
        if let Some(links) = &self.links {
            answer.result = links.published(answer.result);
        }
        if let Some(tasks) = &self.tasks {
            answer.result = tasks.result(answer.result);
        }
        answer
    }
}

/// Puts the client's progress token back, drops progress that nobody asked for, publishes URIs and ids of tasks, and
/// marks results whose structured content may be something else than an object.
pub(super) fn rewritten(reply: Reply, token: Option<String>, marks: Marks) -> Reply {
    Box::pin(reply.filter_map(move |event| {
        let event = match event {
            Event::Progress(params) => token
                .as_ref()
                .and_then(|token| with_token(&params, token))
                .map(|params| Event::Progress(marks.beside(params))),
            Event::Log(level, params) => Some(Event::Log(level, marks.beside(params))),
            Event::Inquiry(inquiry) => Some(Event::Inquiry(match &marks.tasks {
                Some(tasks) => tasks.inquiry(inquiry),
                None => inquiry,
            })),
            Event::Task(params) => {
                marks.tasks.as_ref().and_then(|tasks| tasks.news(&params)).map(Event::Task)
            }
            Event::Result(answer) => Some(Event::Result(marks.result(answer))),
            Event::Error(error) => Some(known_or_not(error, marks.read.as_deref())),
            other @ (Event::Paused(_) | Event::Asks(_) | Event::Failed(_)) => Some(other),
        };
        std::future::ready(event)
    }))
}

/// An upstream that does not know a resource is answered for in Weir's own words, the same as for a hidden one.
fn known_or_not(error: RpcError, read: Option<&str>) -> Event {
    match read {
        Some(uri) if matches!(error.code, code::LEGACY_RESOURCE_NOT_FOUND | code::INVALID_PARAMS) => {
            Event::Failed(Failure::Unknown { kind: ListKind::Resources, name: uri.to_owned() })
        }
        Some(_) | None => Event::Error(error),
    }
}

/// The last event of a reply; what comes before it is for nobody.
pub(super) async fn last(mut reply: Reply) -> Event {
    while let Some(event) = reply.next().await {
        if event.is_last() {
            return event;
        }
    }
    Event::Failed(Failure::Internal)
}

fn with_token(params: &str, token: &str) -> Option<String> {
    let params = Object::open(params)?;
    Some(Edit::new().set(meta::PROGRESS_TOKEN, token).apply(&params))
}
