//! Event streams from upstreams: whatever the format permits is read, whatever it does not carry is not invented.

use std::time::Duration;

use tokio::time::Instant;

use crate::support::upstream::pattern;
use crate::support::{Ask, Client, Fake, Pair, Proxy, Side, eventually, pairs, tool};

pairs! {
    c014_crlf_line_endings, c015_several_data_lines_are_one_payload, c016_no_space_after_the_colon,
    c016_only_one_space_is_removed, c017_events_without_data_are_ignored, c018_characters_split_in_a_stream,
    c018_characters_split_in_a_chunked_body, c019_a_byte_order_mark_is_skipped, c020_large_single_events,
    c020_an_answer_above_the_limit_is_a_clear_failure, c021_a_stream_without_an_answer_fails_at_once,
    c022_noise_is_ignored, c022_noise_on_a_standing_stream_is_ignored, t073_only_the_own_answer_is_delivered,
}

const TEXT: &str = "weather 天気, two 😀😀, e\u{301}, and more";

/// The scenario of most rows: everything works behind an upstream that frames its answers like this.
fn works_framed(pair: Pair, framing: fn(&str) -> Vec<u8>) {
    let (alpha, _weir, client) = pair.set_up(pair.fake().framed(framing));
    assert_eq!(client.names().len(), 7);
    let arguments = format!("{{\"text\":\"{TEXT}\",\"n\":[1,2.50,{{}}]}}");
    for _ in 0..2 {
        let answer = client.call("alpha__echo", &arguments);
        assert_eq!(answer.result()["structuredContent"]["text"], TEXT);
        assert_eq!(answer.result()["structuredContent"]["n"], serde_json::json!([1, 2.50, {}]));
        assert!(answer.before.is_empty(), "nothing else is delivered: {:?}", answer.before);
    }
    assert_eq!(alpha.violations(), Vec::<String>::new());
}

fn c014_crlf_line_endings(pair: Pair) {
    works_framed(pair, |message| format!("event: message\r\ndata: {message}\r\n\r\n").into_bytes());
}

fn c015_several_data_lines_are_one_payload(pair: Pair) {
    works_framed(pair, |message| {
        let pretty = message.replacen("\",\"", "\",\n  \"", 3).replacen(",\"id\"", ",\n\"id\"", 1);
        let lines: String = pretty.lines().map(|line| format!("data: {line}\n")).collect();
        format!("{lines}\n").into_bytes()
    });
}

fn c016_no_space_after_the_colon(pair: Pair) {
    works_framed(pair, |message| format!("event:message\ndata:{message}\n\n").into_bytes());
}

fn c016_only_one_space_is_removed(pair: Pair) {
    works_framed(pair, |message| format!("data:   {message}\n\n").into_bytes());
}

fn c017_events_without_data_are_ignored(pair: Pair) {
    works_framed(pair, |message| format!("id: 1\nretry: 1000\ndata:\n\ndata: {message}\n\n").into_bytes());
}

#[test]
fn c017_older_clients_get_no_event_without_data() {
    let framed = |message: &str| format!("id: 1\nretry: 1000\ndata:\n\ndata: {message}\n\n").into_bytes();
    for fake in [Fake::legacy(), Fake::modern()] {
        let alpha = fake.framed(framed).start();
        let weir = Proxy::before(&alpha).run();
        for revision in ["2025-03-26", "2025-06-18"] {
            let client = Client::new(weir.address, Side::Legacy).revision(revision).opened();
            let mut running = client.start(Ask::call("alpha__steps", "{}").progress("1"));
            while running
                .next(Duration::from_secs(5))
                .is_some_and(|message| message.raw(&["result"]).is_none())
            {}
            assert!(running.bare.is_empty(), "{revision}: {:?}", running.bare);
        }
    }
}

/// An upstream whose `echo` answers in pieces of one byte.
fn in_pieces(fake: Fake) -> Fake {
    fake.script("tools/call echo", |_, wire| {
        wire.cut(1, Duration::ZERO);
        wire.result(&format!("{{\"content\":[{{\"type\":\"text\",\"text\":\"{TEXT}\"}}]}}"));
    })
}

fn c018_characters_split_in_a_stream(pair: Pair) {
    let (_alpha, _weir, client) = pair.set_up(in_pieces(pair.fake()).in_streams());
    assert_eq!(client.call("alpha__echo", "{}").said(), TEXT);
}

fn c018_characters_split_in_a_chunked_body(pair: Pair) {
    let (_alpha, _weir, client) = pair.set_up(in_pieces(pair.fake()));
    assert_eq!(client.call("alpha__echo", "{}").said(), TEXT);
}

fn c019_a_byte_order_mark_is_skipped(pair: Pair) {
    let result = "{\"content\":[{\"type\":\"text\",\"text\":\"a\u{feff}b\"}]}";
    let fake = pair
        .fake()
        .script("tools/call echo", move |_, wire| {
            let message = wire.envelope(result);
            wire.bytes(format!("\u{feff}data: {message}\n\n").as_bytes()).end();
        })
        .script("tools/call fail", move |_, wire| {
            let message = wire.envelope(result);
            wire.bytes(b"\xef").pause(Duration::from_millis(60));
            wire.bytes(b"\xbb\xbf").bytes(format!("data: {message}\n\n").as_bytes()).end();
        });
    let (_alpha, _weir, client) = pair.set_up(fake);
    assert_eq!(client.call("alpha__echo", "{}").said(), "a\u{feff}b");
    assert_eq!(client.call("alpha__fail", "{}").said(), "a\u{feff}b", "the mark itself is split");
}

fn c020_large_single_events(pair: Pair) {
    const SIZE: usize = 8 << 20;
    let (_alpha, _weir, client) = pair.set_up(pair.fake().in_streams());
    let answer = client.call("alpha__big", &format!("{{\"n\":{SIZE}}}"));
    assert!(answer.said() == pattern(SIZE), "{} of {SIZE} characters", answer.said().len());
}

fn c020_an_answer_above_the_limit_is_a_clear_failure(pair: Pair) {
    for fake in [pair.fake().in_streams(), pair.fake()] {
        let (_alpha, _weir, client) = pair.set_up_with(fake, "limits: { answer: 256KiB }");
        let answer = client.call("alpha__big", "{\"n\":1000000}");
        assert!(answer.is_failure(), "{answer:?}");
        assert!(answer.said().contains("alpha") && answer.said().contains("limit"), "{}", answer.said());
        assert_eq!(client.call("alpha__big", "{\"n\":1000}").said(), pattern(1000));
    }
}

fn c021_a_stream_without_an_answer_fails_at_once(pair: Pair) {
    let fake = pair.fake().script("tools/call echo", |_, wire| {
        wire.notify("notifications/message", "{\"level\":\"info\",\"data\":1}").end();
    });
    let (alpha, _weir, client) = pair.set_up(fake);
    let begun = Instant::now();
    let answer = client.ask(Ask::call("alpha__echo", "{}").id("\"the one\""));
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert_eq!(answer.id(), Some("\"the one\""));
    assert!(answer.is_failure() && answer.said().contains("ended"), "{answer:?}");
    assert_eq!(alpha.calls("echo").len(), 1, "not sent again");
}

fn c022_noise_is_ignored(pair: Pair) {
    works_framed(pair, |message| {
        let noise = ": keep-alive\n\nevent: ping\ndata: {}\n\nfoo: bar\n\ndata: {\"type\":\"heartbeat\"}\n\n";
        format!("{noise}: more\nfoo: bar\ndata: {message}\n\n").into_bytes()
    });
}

fn c022_noise_on_a_standing_stream_is_ignored(pair: Pair) {
    let (alpha, _weir, client) = pair.set_up(pair.fake());
    eventually!(alpha.streams() >= 1);
    let mut stream = client.listen();
    for noise in
        ["{\"type\":\"heartbeat\"}", "{}", "[]", "not json", "{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}"]
    {
        alpha.say(noise);
    }
    alpha.notify("notifications/vendor/thing", "\"x\":1");
    alpha.set_tools([tool("new1")]);
    alpha.announce();
    let told = stream.next(Duration::from_secs(4)).expect("the change is heard behind the noise");
    assert_eq!(told.method(), "notifications/tools/list_changed");
    assert!(stream.until_quiet(Duration::from_millis(300)).is_empty());
}

fn t073_only_the_own_answer_is_delivered(pair: Pair) {
    let foreign =
        |id: &str| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[],\"foreign\":1}}}}");
    let fake = pair
        .fake()
        .script("tools/call echo", move |_, wire| {
            wire.event(&foreign("999999")).event(&foreign("\"x\"")).event(&foreign("null"));
            wire.result("{\"content\":[{\"type\":\"text\",\"text\":\"own\"}]}");
        })
        .script("tools/call fail", move |_, wire| wire.json(200, &[], &foreign("999999")));
    let (_alpha, _weir, client) = pair.set_up(fake);
    let answer = client.call("alpha__echo", "{}");
    assert_eq!((answer.said(), answer.before.len()), ("own".to_owned(), 0));
    assert!(client.call("alpha__fail", "{}").is_failure(), "an answer to something else is none");
}
