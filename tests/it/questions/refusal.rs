//! Who cannot be asked: the upstream learns it at once, and nothing hangs.

use std::time::Duration;

use tokio::time::Instant;

use super::{able, answers, ask, force, responses, set_up};
use crate::support::{CANNOT, Fake, Pair, Proxy, Side, eras, eventually, json, pairs, tool};

pairs! { c080_a_client_without_the_capability_is_not_waited_for, a_client_that_takes_json_only_is_asked_nothing }

eras! { c080_a_shared_session_can_ask_nothing, t084_a_question_on_no_calls_stream_is_refused }

fn c080_a_client_without_the_capability_is_not_waited_for(pair: Pair) {
    let (alpha, weir, _) = set_up(pair);
    let client = able(&weir, pair.client, "{}");
    let needed = [
        ("form", "{\"elicitation\":{\"form\":{}}}"),
        ("url", "{\"elicitation\":{\"url\":{}}}"),
        ("sampling", "{\"sampling\":{}}"),
        ("roots", "{\"roots\":{}}"),
    ];
    for (what, capability) in needed {
        let begun = Instant::now();
        let talk = client.converse(force(what));
        assert!(begun.elapsed() < Duration::from_secs(1), "{what}: {:?}", begun.elapsed());
        assert_eq!(talk.asked.len(), 0, "{what}");
        let answer = talk.answer;
        match (pair.client, pair.upstream) {
            (_, Side::Legacy) => assert!(answer.said().contains("-32601"), "{what}: {answer:?}"),
            (Side::Legacy, Side::Modern) => {
                assert!(answer.is_failure(), "{what}: {answer:?}");
                let word = if what == "form" || what == "url" { "elicitation" } else { what };
                assert!(answer.said().contains(word), "it names the capability: {}", answer.said());
            }
            (Side::Modern, Side::Modern) => {
                assert_eq!((answer.status(), answer.code()), (400, -32021), "{what}: {answer:?}");
                let data = answer.raw(&["error", "data", "requiredCapabilities"]).map(json::value);
                assert_eq!(data, Some(json::value(capability)));
            }
        }
    }
    assert_eq!(alpha.violations(), Vec::<String>::new());
}

fn a_client_that_takes_json_only_is_asked_nothing(pair: Pair) {
    let (alpha, _weir, client) = set_up(pair);
    let begun = Instant::now();
    let talk = client.converse(ask("alpha", "form", "m").header("Accept", "application/json"));
    let said = talk.answer.said();
    // A legacy upstream knows what the client's session can be asked, not who takes the answer to this call.
    assert!(said == CANNOT || (pair == Pair::LEGACY && said.contains("-32601")), "{said}");
    assert_eq!(talk.asked.len(), 0);
    let forced = client.converse(force("form").header("Accept", "application/json"));
    assert_eq!(forced.asked.len(), 0);
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    assert_eq!(client.converse(ask("alpha", "form", "m")).asked.len(), 1, "the next call can ask again");
    assert_eq!(alpha.violations(), Vec::<String>::new());
}

fn c080_a_shared_session_can_ask_nothing(side: Side) {
    let alpha = Fake::legacy().asking().start();
    let weir = Proxy::new().upstream_with("alpha", &alpha, "sessions: shared").run();
    let client = able(&weir, side, super::EVERYTHING);
    assert_eq!(client.converse(ask("alpha", "form", "m")).answer.said(), CANNOT);
    let begun = Instant::now();
    let talk = client.converse(force("form"));
    assert!(begun.elapsed() < Duration::from_secs(1));
    assert!(talk.asked.is_empty() && talk.answer.said().contains("-32601"), "{:?}", talk.answer);
    let call = alpha.calls("ask").pop().expect("a call");
    let opened = alpha.seen("initialize");
    let empty =
        opened.iter().filter(|request| request.raw(&["params", "capabilities"]) == Some("{}")).count();
    assert_eq!(empty, 1, "one session for all, and it declares nothing");
    assert!(call.session().is_some());
}

/// Weir listens in a session of its own, which is no client's.
fn t084_a_question_on_no_calls_stream_is_refused(side: Side) {
    let alpha = Fake::legacy().asking().start();
    let weir = Proxy::before(&alpha).run();
    let client = able(&weir, side, super::EVERYTHING);
    let mut stream = client.listen();
    eventually!(alpha.streams() >= 1);
    for (id, method) in
        [("\"e\"", "elicitation/create"), ("\"s\"", "sampling/createMessage"), ("\"r\"", "roots/list")]
    {
        alpha.say(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{{}}}}"));
        let found = || responses(&alpha).into_iter().find(|response| response.id() == Some(id));
        eventually!(found().is_some(), "no answer to {method}");
        let code = found().and_then(|response| response.raw(&["error", "code"]).map(str::to_owned));
        assert_eq!(code.as_deref(), Some("-32601"));
    }
    assert!(stream.until_quiet(Duration::from_millis(200)).is_empty(), "no client sees it");
    let talk = client.converse(ask("alpha", "form", "m"));
    assert_eq!(talk.answer.said(), answers([&talk.asked[0].accept()]), "calls can ask all the same");
}

/// A server that asks beside its call is heard from the first call on, so that the refusal comes at once.
#[test]
fn c080_who_has_no_standing_stream_is_not_waited_for() {
    let alpha =
        Fake::legacy().with("tools", [tool("beside")]).script("tools/call beside", |request, wire| {
            if let Some(answer) = wire.ask_beside(request, "roots/list", "{}") {
                wire.say(request, &answer);
            }
        });
    let alpha = alpha.start();
    let weir = Proxy::before(&alpha).run();
    let client = able(&weir, Side::Modern, super::EVERYTHING);
    for _ in 0..3 {
        let begun = Instant::now();
        let answer = client.call("alpha__beside", "{}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        assert!(answer.said().contains("-32601"), "{answer:?}");
    }
}

/// Unless the session belongs to one client that stands by: it is asked on its standing stream.
#[test]
fn c079_a_question_between_calls_goes_to_the_client_that_stands_by() {
    let alpha = Fake::legacy().asking().start();
    let weir = Proxy::before(&alpha).run();
    let client = able(&weir, Side::Legacy, super::EVERYTHING);
    let (mut stream, other) = (client.listen(), able(&weir, Side::Legacy, super::EVERYTHING));
    let mut elsewhere = other.listen();
    client.call("alpha__echo", "{}").result();
    other.call("alpha__echo", "{}").result();
    let session = alpha.calls("echo")[0].session().expect("a session").to_owned();
    let question = "{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"roots/list\",\"params\":{}}";
    eventually!(alpha.say_in(&session, question) > 0, "the client's session has no standing stream");
    let asked = stream.next(Duration::from_secs(5)).expect("the question");
    let asked = super::question_of(&asked, 0).expect("a request");
    assert_eq!(asked.method, "roots/list");
    assert_eq!(client.respond(&asked.key, "result", &asked.accept()), 202);
    let own = || responses(&alpha).into_iter().find(|response| response.id() == Some("77"));
    eventually!(own().is_some());
    let answer = own().expect("an answer");
    assert_eq!(answer.raw(&["result"]), Some(asked.accept().as_str()));
    assert_eq!(answer.session(), Some(session.as_str()));
    assert!(elsewhere.until_quiet(Duration::from_millis(200)).is_empty(), "nobody else is asked");
}
