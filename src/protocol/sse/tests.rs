//! Event streams cut at every place: cases C014 to C022.

use std::time::Duration;

use proptest::prelude::{prop, prop_assert_eq, proptest};

use super::{Decoder, SseEvent, TooLong, comment, encode_event, encode_pieces, encode_priming};

const LIMIT: usize = 1 << 20;

fn decode(chunks: &[&[u8]]) -> Vec<SseEvent> {
    let mut decoder = Decoder::new(LIMIT);
    chunks.iter().flat_map(|chunk| decoder.feed(chunk).expect("within the limit")).collect()
}

fn message(data: &str) -> SseEvent {
    SseEvent { data: Some(data.to_owned()), ..SseEvent::default() }
}

fn named(event: &str, data: &str) -> SseEvent {
    SseEvent { event: Some(event.to_owned()), ..message(data) }
}

/// The stream gives these events whole, cut once at every place, and byte by byte.
fn check(stream: impl AsRef<[u8]>, wanted: &[SseEvent]) {
    let stream = stream.as_ref();
    assert_eq!(decode(&[stream]), wanted, "whole");
    for cut in 0..=stream.len() {
        let (head, tail) = stream.split_at(cut);
        assert_eq!(decode(&[head, tail]), wanted, "cut at {cut}");
    }
    let single: Vec<&[u8]> = stream.chunks(1).collect();
    assert_eq!(decode(&single), wanted, "byte by byte");
}

#[test]
fn c014_every_line_ending_is_read_alike() {
    let wanted = [named("message", "{}"), message("2")];
    check("event: message\ndata: {}\n\ndata: 2\n\n", &wanted);
    check("event: message\r\ndata: {}\r\n\r\ndata: 2\r\n\r\n", &wanted);
    check("event: message\rdata: {}\r\rdata: 2\r\r", &wanted);
    check("event: message\r\ndata: {}\n\rdata: 2\r\n\n", &wanted);
}

#[test]
fn c014_an_event_that_ends_in_cr_is_not_held_back() {
    let mut decoder = Decoder::new(LIMIT);
    assert_eq!(decoder.feed(b"data: 1\r\r"), Ok(vec![message("1")]));
    assert_eq!(decoder.feed(b"\ndata: 2\n\n"), Ok(vec![message("2")]));
}

#[test]
fn c015_data_lines_are_joined_with_lf() {
    check("data: {\ndata:  \"a\":1,\ndata: }\n\n", &[message("{\n \"a\":1,\n}")]);
    check("data: a\ndata:\ndata\ndata: b\n\n", &[message("a\n\n\nb")]);
}

#[test]
fn c016_one_leading_space_is_removed_and_none_is_needed() {
    check("event:message\ndata:{}\n\n", &[named("message", "{}")]);
    check("data:   {}\n\n", &[message("  {}")]);
    check("data: a: b\n\n", &[message("a: b")]);
}

#[test]
fn c017_events_without_data_show_their_id_and_retry_only() {
    let priming =
        SseEvent { id: Some("1".to_owned()), retry: Some(Duration::from_secs(1)), ..SseEvent::default() };
    check("id: 1\nretry: 1000\ndata:\n\ndata: x\n\n", &[priming.clone(), message("x")]);
    check("id: 1\nretry: 1000\n\n", &[priming]);
    check("event: message\ndata:\n\nevent: x\n\n\n\n", &[]);
    check("id\ndata: x\n\n", &[SseEvent { id: Some(String::new()), ..message("x") }]);
}

#[test]
fn c018_characters_cut_anywhere_survive() {
    check("data: 世界 🦀 é\n\n", &[message("世界 🦀 é")]);
}

#[test]
fn c019_one_leading_mark_is_skipped() {
    check("\u{feff}data: a\u{feff}b\n\n", &[message("a\u{feff}b")]);
    check("\u{feff}\u{feff}data: a\n\ndata: b\n\n", &[message("b")]);
    check(b"\xef\xbbdata: a\n\ndata: b\n\n", &[message("b")]);
    check("data: a\n\n\u{feff}data: b\n\n", &[message("a")]);
}

#[test]
fn c020_an_event_may_be_as_long_as_the_limit_and_no_longer() {
    let stream = |bytes: usize| format!("data:{}\n\n", "x".repeat(bytes - 5));
    for (bytes, fits) in [(64, true), (65, false)] {
        for chunk in [1, 7, 100] {
            let text = stream(bytes);
            let mut decoder = Decoder::new(64);
            let outcome: Result<Vec<_>, TooLong> =
                text.as_bytes().chunks(chunk).map(|part| decoder.feed(part)).collect();
            assert_eq!(outcome.is_ok(), fits, "{bytes} in chunks of {chunk}");
        }
    }
    let mut decoder = Decoder::new(64);
    assert_eq!(decoder.feed("data: 0123456789\n".repeat(8).as_bytes()), Err(TooLong));
    let mut decoder = Decoder::new(64);
    assert_eq!(
        decoder.feed("data: 0123456789\n\n".repeat(100).as_bytes()).map(|events| events.len()),
        Ok(100)
    );
}

#[test]
fn c021_an_incomplete_event_at_the_end_is_none() {
    check("data: x\n\ndata: y\n", &[message("x")]);
    check("data: x", &[]);
}

#[test]
fn c022_comments_and_unknown_fields_are_ignored() {
    check(
        ": keep-alive\n\nevent: ping\ndata: {}\n\nfoo: bar\nData: no\ndata: 1\n:\n\n",
        &[named("ping", "{}"), message("1")],
    );
    let mut decoder = Decoder::new(16);
    for _ in 0..100 {
        assert_eq!(decoder.feed(b": a comment of any length"), Ok(vec![]));
    }
    assert_eq!(decoder.feed(b"\ndata: 1\n\n"), Ok(vec![message("1")]));
}

#[test]
fn ids_with_nul_and_odd_retries_are_ignored() {
    check(b"id: a\0b\ndata: x\n\n", &[message("x")]);
    check("retry: 1s\ndata: x\n\n", &[message("x")]);
    check("retry:\ndata: x\n\n", &[message("x")]);
    check("retry: 99999999999999999999999\ndata: x\n\n", &[message("x")]);
}

#[test]
fn what_is_not_utf8_is_replaced() {
    check(b"data: a\xffb\n\n", &[message("a\u{fffd}b")]);
    check(b"data: a\xe4\xb8\n\n", &[message("a\u{fffd}")]);
}

#[test]
fn encoded_events_are_legal() {
    assert_eq!(encode_event(None, "{}"), "event: message\ndata: {}\n\n");
    assert_eq!(encode_event(Some("a.1"), "{\r\n}"), "event: message\nid: a.1\ndata: {\ndata: }\n\n");
    assert_eq!(encode_priming("a.0", Duration::from_millis(500)), "id: a.0\nretry: 500\ndata:\n\n");
    assert_eq!(encode_event(Some("a\nb\0"), ""), "event: message\nid: ab\ndata: \n\n");
    check(comment(), &[]);
}

proptest! {
    #[test]
    fn c015_what_is_encoded_is_decoded(data in "[a-z\u{20}:\r\n世]{1,40}", cut in 0_usize..60) {
        let bytes = encode_event(Some("7"), &data);
        let (head, tail) = bytes.split_at(cut.min(bytes.len()));
        let lines = data.replace("\r\n", "\n").replace('\r', "\n");
        let data = Some(lines).filter(|text| !text.is_empty());
        let wanted = SseEvent { event: Some("message".into()), data, id: Some("7".into()), retry: None };
        prop_assert_eq!(decode(&[head, tail]), vec![wanted]);
    }

    #[test]
    fn any_bytes_in_any_chunks_give_the_same_events(
        bytes in prop::collection::vec(prop::sample::select(b"data:id \r\n\xef\xbb\xbfx\0".to_vec()), 0..60),
        size in 1_usize..9,
    ) {
        let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
        prop_assert_eq!(decode(&chunks), decode(&[&bytes]));
    }
}

proptest! {
    #[test]
    fn an_event_in_pieces_is_written_as_one_in_a_whole(pieces in prop::collection::vec("[a-z\\r\\n\u{e9}]{0,6}", 0..5)) {
        let slices: Vec<bytes::Bytes> = pieces.iter().map(|piece| piece.clone().into()).collect();
        prop_assert_eq!(encode_pieces(Some("7"), &slices), encode_event(Some("7"), &pieces.concat()));
    }
}
