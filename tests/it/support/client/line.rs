//! The one stream of a client of HTTP+SSE (2024-11-05), on which every message to it comes.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::Message;
use crate::support::exchange::{Events, Exchange, PATIENCE};

/// The stream, and where messages are posted. Who asks reads it until the answer has come: one request at a time.
#[derive(Debug)]
pub(crate) struct Line {
    events: Mutex<Events>,
    /// The path, with its query, for messages.
    pub(super) post: String,
}

impl Line {
    /// Opens the stream and reads the first event, which names the address for messages.
    pub(super) fn open(mut exchange: Exchange, path: &str) -> Option<Self> {
        exchange.retarget(&format!("{path}/sse"));
        let response = exchange.try_send()?;
        if response.status() != 200 || !response.is_stream() {
            return None;
        }
        let mut events = response.events();
        let (first, _) = events.next(PATIENCE)?;
        assert_eq!(first.kind.as_deref(), Some("endpoint"), "the first event names the address: {first:?}");
        let post = first.data.expect("the endpoint event has data");
        Some(Self { events: Mutex::new(events), post })
    }

    /// The next message, if one comes in this time.
    pub(super) fn next(&self, within: Duration) -> Option<Message> {
        let deadline = Instant::now() + within;
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let (event, at) = events.next(deadline.saturating_duration_since(Instant::now()))?;
            let named = event.kind.as_deref().is_none_or(|kind| kind == "message");
            if let Some(data) = event.data.clone().filter(|data| named && !data.is_empty()) {
                return Some(Message { text: data, event: Some(event), at });
            }
        }
    }
}
