//! An event stream as a test's client reads it: events with their fields and times, comments, and its end.

use std::io::BufRead;
use std::sync::mpsc::SyncSender;

use tokio::time::Instant;

/// One block of a stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct Event {
    /// `id:`
    pub(crate) id: Option<String>,
    /// `event:`
    pub(crate) kind: Option<String>,
    /// `retry:`
    pub(crate) retry: Option<String>,
    /// The lines of `data:`, joined; `None` where there was none.
    pub(crate) data: Option<String>,
    /// Fields that the format does not know.
    pub(crate) unknown: Vec<String>,
}

/// What comes out of a stream.
#[derive(Debug)]
pub(crate) enum Item {
    /// An event and when its last byte came.
    Event(Event, Instant),
    /// A comment line.
    Comment,
    /// The end; whether it was an orderly one.
    End(bool),
}

/// Reads a stream until it ends or nobody listens.
pub(crate) fn read(mut from: impl BufRead, to: &SyncSender<Item>) {
    let mut event = Event::default();
    let mut fresh = true;
    loop {
        let mut line = Vec::new();
        match from.read_until(b'\n', &mut line) {
            Ok(0) => return drop(to.send(Item::End(fresh))),
            Err(_) => return drop(to.send(Item::End(false))),
            Ok(_) => {}
        }
        let line = String::from_utf8(line).expect("an event stream is UTF-8");
        let line = line.trim_end_matches(['\r', '\n']);
        let sent = if line.is_empty() {
            fresh = true;
            to.send(Item::Event(std::mem::take(&mut event), Instant::now()))
        } else if line.starts_with(':') {
            to.send(Item::Comment)
        } else {
            fresh = false;
            field(&mut event, line);
            Ok(())
        };
        if sent.is_err() {
            return;
        }
    }
}

fn field(event: &mut Event, line: &str) {
    let (name, value) = line.split_once(':').unwrap_or((line, ""));
    let value = value.strip_prefix(' ').unwrap_or(value);
    match name {
        "id" => event.id = Some(value.to_owned()),
        "event" => event.kind = Some(value.to_owned()),
        "retry" => event.retry = Some(value.to_owned()),
        "data" => match &mut event.data {
            Some(data) => {
                data.push('\n');
                data.push_str(value);
            }
            None => event.data = Some(value.to_owned()),
        },
        _ => event.unknown.push(line.to_owned()),
    }
}
