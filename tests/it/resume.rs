//! Broken streams of legacy clients: the call goes on, and what was missed is told once, on its own stream.

use std::time::Duration;

use crate::support::client::Message;
use crate::support::{Ask, Client, Fake, Proxy, Side, Weir, eras, eventually, tool};

eras! { a_broken_call_is_resumed, a_break_that_lasts_too_long_cancels, an_answer_is_told_once }

const SOON: Duration = Duration::from_secs(5);

fn id_of(message: &Message) -> String {
    message.event.as_ref().and_then(|event| event.id.clone()).expect("an event id")
}

fn behind(side: Side) -> (crate::support::Upstream, Weir, Client) {
    let alpha = Fake::of(side).start();
    let weir = Proxy::before(&alpha).listen("sessions: { resume: 1s }").run();
    let client = weir.legacy();
    (alpha, weir, client)
}

fn steps(ms: u32) -> Ask {
    Ask::call("alpha__steps", &format!("{{\"ms\":{ms}}}")).progress("\"p\"").id("\"r\"")
}

fn a_broken_call_is_resumed(side: Side) {
    let (alpha, _weir, client) = behind(side);
    let mut running = client.start(steps(300));
    let first = running.next(SOON).expect("progress");
    running.leave();
    eventually!(alpha.calls("steps").len() == 1);
    let again = client.stream(Some(&id_of(&first)));
    assert!(again.is_stream());
    let answer = again.answer();
    assert_eq!((answer.said(), answer.id()), ("done".to_owned(), Some("\"r\"")));
    let progress: Vec<_> =
        answer.before.iter().map(|m| m.raw(&["params", "progress"]).unwrap_or_default()).collect();
    assert_eq!(progress, ["2", "3"], "what came after the break, once");
    assert_eq!(alpha.calls("steps").len(), 1);
}

fn an_answer_is_told_once(side: Side) {
    let (_alpha, _weir, client) = behind(side);
    let mut running = client.start(steps(0));
    let all: Vec<Message> = std::iter::from_fn(|| running.next(Duration::from_millis(500))).collect();
    assert_eq!(all.len(), 4);
    let mut ids: Vec<String> = all.iter().map(id_of).collect();
    let mut other = client.start(steps(0).id("\"r2\""));
    ids.extend(std::iter::from_fn(|| other.next(Duration::from_millis(500))).map(|message| id_of(&message)));
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count, "ids are unique in the session");
    let mut standing = client.listen();
    assert!(standing.until_quiet(Duration::from_millis(200)).is_empty(), "not on another stream");
}

fn a_break_that_lasts_too_long_cancels(side: Side) {
    let (alpha, _weir, client) = behind(side);
    let sent = client.request(&Ask::call("alpha__slow", "{}").id("\"s\"")).send_only();
    eventually!(alpha.calls("slow").len() == 1);
    drop(sent);
    eventually!(alpha.gone(&alpha.calls("slow")[0]).is_some(), "cancelled after sessions.resume");
}

#[test]
fn a_client_of_2025_11_25_gets_the_first_event_without_data() {
    let alpha = Fake::legacy().start();
    let weir = Proxy::before(&alpha).run();
    let client = weir.legacy();
    let mut running = client.start(steps(50));
    running.next(SOON).expect("progress");
    let first = running.bare.first().expect("an event without data first");
    assert!(first.id.is_some() && first.retry.is_some(), "{first:?}");
    let mut standing = client.listen();
    standing.next(Duration::from_millis(200));
    assert!(standing.bare.first().is_some_and(|event| event.id.is_some()), "{:?}", standing.bare);
    for revision in ["2025-03-26", "2025-06-18"] {
        let older = Client::new(weir.address, Side::Legacy).revision(revision).opened();
        let mut running = older.start(steps(50));
        running.next(SOON).expect("progress");
        assert!(running.bare.is_empty(), "{revision}: {:?}", running.bare);
    }
}

#[test]
fn a_standing_stream_is_resumed_with_what_was_missed() {
    let alpha = Fake::legacy().start();
    let weir = Proxy::before(&alpha).run();
    let client = weir.legacy();
    eventually!(alpha.streams() >= 1);
    let mut stream = client.listen();
    alpha.set_tools([tool("new1")]);
    alpha.announce();
    let told = stream.next(SOON).expect("told");
    let last = id_of(&told);
    assert_eq!(last.split('.').count(), 3, "STREAM.SEQ.HASH: {last}");
    stream.leave();
    alpha.set_tools([tool("new2")]);
    alpha.announce();
    eventually!(client.names() == ["alpha__new2"]);
    let mut again = client.stream(Some(&last));
    let missed = again.next(SOON).expect("the change that was missed");
    assert_eq!(missed.method(), "notifications/tools/list_changed");
    assert!(again.until_quiet(Duration::from_millis(400)).is_empty(), "once");
}

#[test]
fn t054_a_place_in_another_sessions_stream_gives_nothing() {
    let alpha = Fake::legacy().start();
    let weir = Proxy::before(&alpha).run();
    let (own, other) = (weir.legacy(), weir.legacy());
    let mut running = own.start(steps(200));
    let first = running.next(SOON).expect("progress");
    running.leave();
    for place in [id_of(&first), "junk".to_owned(), "1.2".to_owned(), "x".repeat(5000)] {
        let mut stolen = other.stream(Some(&place));
        assert!(matches!(stolen.status(), 200 | 400 | 404), "{}", stolen.status());
        let got =
            if stolen.is_stream() { stolen.until_quiet(Duration::from_millis(400)) } else { Vec::new() };
        assert!(got.is_empty(), "{got:?}");
    }
}

#[test]
fn a_deleted_session_ends_its_streams_and_calls() {
    let alpha = Fake::legacy().start();
    let weir = Proxy::before(&alpha).run();
    let client = weir.legacy();
    let mut stream = client.listen();
    std::thread::scope(|scope| {
        scope.spawn(|| client.request(&Ask::call("alpha__slow", "{}")).try_send().is_some());
        eventually!(alpha.calls("slow").len() == 1);
        assert_eq!(client.delete(), 204);
        eventually!(alpha.gone(&alpha.calls("slow")[0]).is_some(), "the call is cancelled");
    });
    assert!(stream.ended(SOON).is_some(), "the standing stream ends");
    assert_eq!(client.stream(None).status(), 404);
}
