//! What reads untrusted bytes, before a fuzzer: event streams, envelopes, names, configurations, lines of children.
//!
//! `cargo test` replays every kept input (`__fuzz__/NAME/corpus`, and `crashes` where one was found) and tries random
//! ones for a while. `docs/reliability.md` says how to try for longer.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use weir::config::{Environment, read_text};
use weir::jsonrpc::{Edit, Id, Message, Object, canonical, request, scan};
use weir::names::{Characters, LocalName, NameRules, Namespace, Separator};
use weir::protocol::{Decoder, LineDecoder, SseEvent, encode_event, encode_line};

const LARGEST: usize = 512;

/// A first byte that says where to cut, and the rest.
fn cut(input: &[u8]) -> (usize, &[u8]) {
    input.split_first().map_or((1, input), |(first, rest)| (usize::from(*first).max(1), rest))
}

#[test]
fn event_stream() {
    bolero::check!().for_each(|input: &[u8]| {
        let (piece, bytes) = cut(input);
        let whole = Decoder::new(LARGEST).feed(bytes);
        let mut decoder = Decoder::new(LARGEST);
        let pieces: Result<Vec<Vec<SseEvent>>, _> =
            bytes.chunks(piece).map(|chunk| decoder.feed(chunk)).collect();
        match (whole, pieces) {
            (Ok(whole), Ok(pieces)) => {
                assert_eq!(whole, pieces.concat(), "where a chunk is cut does not matter")
            }
            (whole, pieces) => assert_eq!(whole.is_err(), pieces.is_err()),
        }
        if let Ok(text) = std::str::from_utf8(bytes) {
            let events = Decoder::new(usize::MAX).feed(&encode_event(Some("7"), text)).expect("no limit");
            assert_eq!(events.len(), 1, "one event is written as one");
            let plain = text.replace("\r\n", "\n").replace('\r', "\n");
            assert_eq!(events[0].data.clone().unwrap_or_default(), plain);
        }
    });
}

#[test]
fn envelope() {
    bolero::check!().for_each(|input: &[u8]| {
        let Ok(text) = scan(input) else { return };
        let Ok(message) = Message::read(text) else { return };
        let value: serde_json::Value = serde_json::from_str(text).expect("what is accepted is JSON");
        assert!(value.is_object());
        if let Message::Request { id, method, params } = message {
            assert_eq!(value["method"], method.as_ref());
            let same = Edit::new().apply(&params);
            let again = request(Some(&id), &method, &same);
            let Ok(Message::Request { id: twice, params: kept, .. }) = Message::read(&again) else {
                panic!("what Weir writes it reads: {again}")
            };
            assert_eq!((twice, Edit::new().apply(&kept)), (id, same));
        }
        let once = canonical(text);
        assert_eq!(canonical(&once), once, "canonical once is canonical for ever");
        if let Some(object) = Object::open(text) {
            let edited = Edit::new().set("id", "1").remove("params").apply(&object);
            let edited = Object::open(&edited).expect("an edit makes an object");
            assert_eq!(edited.get("id").map(Id::read), Some(Id::read("1")));
            assert_eq!(edited.get("params"), None);
        }
    });
}

#[test]
fn names() {
    bolero::check!().for_each(|input: &[u8]| {
        let (longest, rest) = cut(input);
        let text = String::from_utf8_lossy(rest);
        let separator: Separator = "__".parse().expect("a separator");
        let characters = [Characters::Strict, Characters::Spec, Characters::Any][longest % 3];
        let max_length = 24 + longest;
        let rules = NameRules { separator: separator.clone(), max_length, characters };
        let Ok(namespace) = Namespace::new("alpha", &separator) else { return };
        let locals: HashSet<&str> = text.split('\n').filter(|name| !name.is_empty()).collect();
        let locals: Vec<LocalName> = locals.into_iter().map(LocalName::new).collect();
        let published: Vec<String> =
            rules.publish(&namespace, &locals).iter().map(|name| name.name.to_string()).collect();
        let different: HashSet<&String> = published.iter().collect();
        assert_eq!(different.len(), locals.len(), "no two names become one: {published:?}");
        for name in &published {
            assert!(name.chars().count() <= max_length, "{name} is longer than {max_length}");
            let strict = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            assert!(characters != Characters::Strict || name.chars().all(strict), "{name}");
        }
    });
}

/// Nothing but one variable.
struct Bare;

impl Environment for Bare {
    fn variable(&self, name: &str) -> Option<String> {
        (name == "SECRET").then(|| "canary-secret".to_owned())
    }

    fn file(&self, _path: &Path, _limit: u64) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn matches(&self, _folder: &Path, _pattern: &str) -> Result<Vec<PathBuf>, String> {
        Ok(Vec::new())
    }
}

#[test]
fn configuration() {
    bolero::check!().for_each(|input: &[u8]| {
        let Ok(text) = std::str::from_utf8(input) else { return };
        let shown = match read_text(text, None, &Bare) {
            Ok(loaded) => format!("{loaded:?}{}", loaded.warnings),
            Err(problems) => {
                assert!(problems.has_errors(), "what is refused has a reason");
                problems.to_string()
            }
        };
        assert!(!shown.contains("canary-secret"), "a secret is printed: {shown}");
    });
}

#[test]
fn lines() {
    bolero::check!().for_each(|input: &[u8]| {
        let (piece, bytes) = cut(input);
        let whole = LineDecoder::new(LARGEST).feed(bytes);
        let mut decoder = LineDecoder::new(LARGEST);
        let pieces: Result<Vec<_>, _> = bytes.chunks(piece).map(|chunk| decoder.feed(chunk)).collect();
        match (whole, pieces) {
            (Ok(whole), Ok(pieces)) => {
                assert!(whole.iter().all(|line| line.len() <= LARGEST && !line.contains(&b'\n')));
                assert_eq!(whole, pieces.concat(), "where a chunk is cut does not matter");
            }
            (whole, pieces) => assert_eq!(whole.is_err(), pieces.is_err()),
        }
        if let Ok(text) = std::str::from_utf8(bytes)
            && let Ok(value) = serde_json::from_str::<serde_json::Value>(text)
        {
            let line = encode_line(text.to_owned());
            assert_eq!(line.matches('\n').count(), 1, "one line");
            assert_eq!(
                serde_json::from_str::<serde_json::Value>(&line).ok(),
                Some(value),
                "the same message"
            );
        }
    });
}
