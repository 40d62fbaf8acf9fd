//! What messages to one upstream travel on: HTTP, or the pipes of child processes.
//!
//! Children are spoken to as if over HTTP: a message is posted and answered with a status, an `initialize` opens a
//! session, which is a process of its own, and what comes beside the calls is a stream that is asked for. So nobody
//! else knows the difference, but for the few questions below.

use http::HeaderMap;
use tokio::time::Instant;

use super::fault::Fault;
use super::http::{Answered, Destination, Http};
use super::stdio::Stdio;

/// The way on which messages travel.
#[derive(Debug)]
pub(super) enum Wire {
    /// Over HTTP.
    Http(Box<Http>),
    /// To children.
    Stdio(Stdio),
}

impl Wire {
    /// Posts one JSON-RPC message.
    pub(super) async fn post(&self, to: impl Into<Destination>, body: String) -> Result<Answered, Fault> {
        match self {
            Self::Http(http) => http.post(to, body).await,
            Self::Stdio(stdio) => stdio.post(&to.into().head, body).await,
        }
    }

    /// Opens a standing stream, or resumes one.
    pub(super) async fn get(&self, head: HeaderMap) -> Result<Answered, Fault> {
        match self {
            Self::Http(http) => http.get(head).await,
            Self::Stdio(stdio) => Ok(stdio.get(&head)),
        }
    }

    /// Ends a session.
    pub(super) async fn delete(&self, head: HeaderMap) -> Result<Answered, Fault> {
        match self {
            Self::Http(http) => http.delete(head).await,
            Self::Stdio(stdio) => Ok(stdio.delete(&head)),
        }
    }

    /// Ends a session at once, where nobody has to be asked for that. False where it has to be said over the wire.
    pub(super) fn ends(&self, head: &HeaderMap) -> bool {
        match self {
            Self::Http(_) => false,
            Self::Stdio(stdio) => {
                stdio.delete(head);
                true
            }
        }
    }

    /// An address that the upstream itself named; see [`Http::place`].
    pub(super) fn place(&self, named: &str, from: usize) -> Option<Destination> {
        match self {
            Self::Http(http) => http.place(named, from),
            Self::Stdio(_) => None,
        }
    }

    /// Another credential from the next request on; children have none.
    pub(super) fn present(&self, credential: HeaderMap) {
        match self {
            Self::Http(http) => http.present(credential),
            Self::Stdio(_) => {}
        }
    }

    /// When the next child may be started, where none may be now.
    pub(super) fn not_before(&self) -> Option<Instant> {
        match self {
            Self::Http(_) => None,
            Self::Stdio(stdio) => stdio.not_before(),
        }
    }

    /// Whether it leads to children.
    pub(super) fn is_stdio(&self) -> bool {
        matches!(self, Self::Stdio(_))
    }

    /// Whether it leads to one child for everybody, who is told of no capability and can ask nothing.
    pub(super) fn is_shared_child(&self) -> bool {
        match self {
            Self::Http(_) => false,
            Self::Stdio(stdio) => stdio.is_shared(),
        }
    }

    /// Ends what runs for it, and waits for that.
    pub(super) async fn close(&self) {
        match self {
            Self::Http(_) => {}
            Self::Stdio(stdio) => stdio.close().await,
        }
    }
}
