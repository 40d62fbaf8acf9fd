//! The JSON-RPC messages of an answer, whichever form it has.
//!
//! A JSON body is one message (or, from a server of 2025-03-26, an array of them), an event stream is one per
//! event; on a line of HTTP+SSE somebody else reads them. Messages are handed out as slices of the bytes they came in. Of an event stream the last event id and the
//! `retry` time are kept, for who wants to resume it.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::fault::Fault;
use super::http::{Answered, Body, Form};
use super::stdio::Lines;
use crate::exchange::Reason;
use crate::protocol::{Decoder, SseEvent};
use crate::task::TaskGroup;

/// Where a broken stream can be taken up again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Resume {
    /// The last event id that the upstream gave.
    pub(super) last_event_id: String,
    /// How long it wants to be left alone first.
    pub(super) retry: Option<Duration>,
}

/// The messages of one answer.
#[derive(Debug)]
pub(super) struct Messages {
    source: Source,
    ready: VecDeque<Bytes>,
    last_event_id: Option<String>,
    retry: Option<Duration>,
    endpoint: Option<String>,
}

#[derive(Debug)]
enum Source {
    Document(Body),
    Events(Body, Decoder),
    /// Somebody else reads, and hands on what belongs here.
    Heard(mpsc::Receiver<Bytes>),
    /// What a child says.
    Lines(Lines),
    Ended,
}

impl Messages {
    /// The messages of a success. An answer that is neither JSON nor an event stream is a fault.
    pub(super) fn of(answered: Answered) -> Result<Self, Fault> {
        if let Some(lines) = answered.lines {
            return Ok(Self::from(Source::Lines(lines)));
        }
        let body = answered.body;
        let source = match answered.form {
            Form::Json => Source::Document(body),
            Form::Events => {
                let decoder = Decoder::new(body.largest());
                Source::Events(body, decoder)
            }
            Form::Lines | Form::Other => return Err(Fault::sent(Reason::NotMcp)),
        };
        Ok(Self::from(source))
    }

    /// Messages that somebody else reads.
    pub(super) fn heard(messages: mpsc::Receiver<Bytes>) -> Self {
        Self::from(Source::Heard(messages))
    }

    fn from(source: Source) -> Self {
        Self { source, ready: VecDeque::new(), last_event_id: None, retry: None, endpoint: None }
    }

    /// Goes on with a resumed stream; what is known of the old one is kept until the new one says otherwise.
    pub(super) fn resumed(mut self, old: Resume) -> Self {
        self.last_event_id = Some(old.last_event_id);
        self.retry = old.retry;
        self
    }

    /// Whether this is one JSON document, which must hold the answer.
    pub(super) fn is_document(&self) -> bool {
        matches!(self.source, Source::Document(_))
    }

    /// Where to resume, if the upstream gave an event id.
    pub(super) fn resume(&self) -> Option<Resume> {
        let last_event_id = self.last_event_id.clone()?;
        Some(Resume { last_event_id, retry: self.retry })
    }

    /// The next message as its bytes; `None` when the answer has ended.
    ///
    /// # Cancel safety
    /// A dropped future loses nothing but bytes of an answer that is given up with it.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Fault> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Ok(Some(message));
            }
            match &mut self.source {
                Source::Ended => return Ok(None),
                Source::Heard(messages) => return Ok(messages.recv().await),
                Source::Lines(lines) => return Ok(lines.next().await),
                Source::Document(body) => {
                    let whole = body.whole().await?;
                    self.source = Source::Ended;
                    split(whole, &mut self.ready);
                }
                Source::Events(body, decoder) => match body.chunk().await? {
                    None => self.source = Source::Ended,
                    Some(chunk) => {
                        let events =
                            decoder.feed(&chunk).map_err(|_too_long| Fault::sent(Reason::TooLarge))?;
                        events.into_iter().for_each(|event| self.take(event));
                    }
                },
            }
        }
    }

    /// The address that a stream of HTTP+SSE begins with; `None` where it begins with something else.
    pub(super) async fn endpoint(&mut self) -> Result<Option<String>, Fault> {
        while let (None, true, Source::Events(body, decoder)) =
            (&self.endpoint, self.ready.is_empty(), &mut self.source)
        {
            let Some(chunk) = body.chunk().await? else { break };
            let events = decoder.feed(&chunk).map_err(|_too_long| Fault::sent(Reason::TooLarge))?;
            events.into_iter().for_each(|event| self.take(event));
        }
        Ok(self.endpoint.take())
    }

    /// The answer is there. Servers end the stream a moment later; the connection is kept for that long.
    pub(super) fn release(self, tasks: &TaskGroup) {
        if let Source::Events(mut body, _) = self.source
            && body.finish().now_or_never().is_none()
        {
            tasks.spawn_until_cancelled("end of an answer", async move { body.finish().await });
        }
    }

    fn take(&mut self, event: SseEvent) {
        if event.id.is_some() {
            self.last_event_id = event.id.filter(|id| !id.is_empty());
        }
        self.retry = event.retry.or(self.retry);
        let is_message = event.event.as_deref().is_none_or(|name| name.is_empty() || name == "message");
        if event.event.as_deref() == Some("endpoint") && self.ready.is_empty() {
            self.endpoint = event.data;
        } else if let Some(data) = event.data.filter(|_| is_message) {
            split(Bytes::from(data), &mut self.ready);
        }
    }
}

/// Takes an array of messages apart; anything else is one message.
fn split(text: Bytes, ready: &mut VecDeque<Bytes>) {
    if text.trim_ascii_start().first() != Some(&b'[') {
        if !text.trim_ascii().is_empty() {
            ready.push_back(text);
        }
        return;
    }
    match serde_json::from_slice::<Vec<&RawValue>>(&text) {
        Ok(batch) => ready.extend(batch.iter().map(|raw| text.slice_ref(raw.get().as_bytes()))),
        Err(_) => ready.push_back(text.clone()),
    }
}
