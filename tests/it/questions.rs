//! An upstream asks the client of a call, and the answer reaches who asked: in every pair of eras.

mod code;
mod crowd;
mod parking;
mod refusal;
pub(crate) mod state;

use std::time::Duration;

use crate::support::client::{Question, Reaction, question_of};
use crate::support::{
    Ask, CANNOT, Client, Pair, Proxy, Request, Side, Upstream, Weir, eventually, json, pairs,
};

pairs! {
    c079_answers_return_to_who_asked, c079_decline_and_cancel_travel_back, c079_an_error_travels_back,
    c080_what_the_client_has_is_what_the_upstream_sees, several_questions_in_several_rounds,
    c127_prompts_and_resources_ask_too, t084_an_answer_after_the_end_reaches_nobody,
}

/// What a client can be asked that can be asked everything.
pub(crate) const EVERYTHING: &str = "{\"roots\":{},\"sampling\":{},\"elicitation\":{\"form\":{},\"url\":{}}}";

/// A client of this era with these capabilities.
fn able(weir: &Weir, side: Side, capabilities: &str) -> Client {
    let client = Client::new(weir.address, side).capable(capabilities);
    if side == Side::Legacy { client.opened() } else { client }
}

/// A call of the tool that asks.
pub(crate) fn ask(namespace: &str, what: &str, marker: &str) -> Ask {
    Ask::call(&format!("{namespace}__ask"), &format!("{{\"ask\":\"{what}\",\"marker\":\"{marker}\"}}"))
}

/// The same, asking also what the client did not declare.
fn force(what: &str) -> Ask {
    Ask::call("alpha__ask", &format!("{{\"ask\":\"{what}\",\"marker\":\"m\",\"force\":\"yes\"}}"))
}

fn set_up(pair: Pair) -> (Upstream, Weir, Client) {
    let alpha = pair.fake().asking().start();
    let weir = Proxy::before(&alpha).run();
    let client = able(&weir, pair.client, EVERYTHING);
    (alpha, weir, client)
}

/// What the upstream answered to whom it asked, as the text of the list of answers.
fn answers<const N: usize>(raw: [&str; N]) -> String {
    format!("[{}]", raw.join(","))
}

/// The responses that an upstream got to questions of its own.
fn responses(alpha: &Upstream) -> Vec<Request> {
    let responds =
        |request: &Request| request.verb() == "POST" && request.method().is_empty() && request.id().is_some();
    alpha.requests().into_iter().filter(responds).collect()
}

fn c079_answers_return_to_who_asked(pair: Pair) {
    let (alpha, beta) = (pair.fake().asking().start(), pair.fake().label("beta").asking().start());
    let weir = Proxy::before(&alpha).upstream("beta", &beta).run();
    let client = able(&weir, pair.client, EVERYTHING);
    match pair.client {
        Side::Legacy => in_reverse_on_streams(&client),
        Side::Modern => in_reverse_by_retries(&client),
    }
    if pair.upstream == Side::Legacy {
        for upstream in [&alpha, &beta] {
            let all = responses(upstream);
            assert_eq!(all.iter().map(Request::id).collect::<Vec<_>>(), [Some("1")], "under its own id");
            assert_eq!(all[0].session(), upstream.calls("ask")[0].session());
        }
    }
    assert_eq!((alpha.violations(), beta.violations()), (Vec::new(), Vec::new()));
}

fn in_reverse_on_streams(client: &Client) {
    let mut running = ["alpha", "beta"].map(|name| client.start(ask(name, "form", name)));
    let questions = running.each_mut().map(|call| {
        let message = call.next(Duration::from_secs(5)).expect("a question on the stream of its call");
        question_of(&message, 0).expect("a request")
    });
    assert_eq!(questions.each_ref().map(Question::marker), ["alpha", "beta"]);
    assert_ne!(questions[0].key, questions[1].key);
    for question in questions.iter().rev() {
        assert_eq!(client.respond(&question.key, "result", &question.accept()), 202);
    }
    let said = running.map(|call| call.answer().said());
    assert_eq!(said, questions.each_ref().map(|question| answers([&question.accept()])));
}

fn in_reverse_by_retries(client: &Client) {
    let asks = ["alpha", "beta"].map(|name| ask(name, "form", name));
    let first = asks.each_ref().map(|one| client.ask(one.clone()));
    for (one, answer) in asks.iter().zip(&first).rev() {
        let (questions, sealed) = crate::support::client::asks(answer, 0).expect("questions");
        let question = &questions[0];
        let given = format!("{{{}:{}}}", json::quote(&question.key), question.accept());
        let last = client.ask(one.clone().again(&given, sealed.as_deref()));
        assert_eq!(last.said(), answers([&question.accept()]));
    }
}

fn c079_decline_and_cancel_travel_back(pair: Pair) {
    let (alpha, _weir, client) = set_up(pair);
    for raw in ["{\"action\":\"decline\"}", "{\"action\":\"cancel\"}"] {
        let talk = client.converse_with(ask("alpha", "form", "m"), |_| Reaction::Result(raw.to_owned()));
        assert_eq!(talk.answer.said(), answers([raw]));
    }
    assert_eq!(alpha.violations(), Vec::<String>::new());
}

/// Only a legacy client can answer with an error, and only a legacy upstream can hear it: a modern one hears that an
/// elicitation was cancelled; for the rest it has no word, and the call fails.
fn c079_an_error_travels_back(pair: Pair) {
    if pair.client == Side::Modern {
        return;
    }
    let (_alpha, _weir, client) = set_up(pair);
    let raw = "{\"code\":-1,\"message\":\"User rejected\",\"data\":1.50}";
    let told =
        |what| client.converse_with(ask("alpha", what, "m"), |_| Reaction::Error(raw.to_owned())).answer;
    let error = format!("{{\"error\":{raw}}}");
    match pair.upstream {
        Side::Legacy => {
            assert_eq!(told("form").said(), answers([&error]));
            assert_eq!(told("sampling").said(), answers([&error]));
        }
        Side::Modern => {
            assert_eq!(told("form").said(), answers(["{\"action\":\"cancel\"}"]));
            assert!(told("sampling").is_failure());
        }
    }
}

fn c080_what_the_client_has_is_what_the_upstream_sees(pair: Pair) {
    let (alpha, weir, client) = set_up(pair);
    let seen = |alpha: &Upstream| {
        let call = alpha.calls("ask").pop().expect("a call");
        let opened = alpha.seen("initialize").into_iter().rev();
        let mut capabilities = opened.filter_map(|r| r.raw(&["params", "capabilities"]).map(str::to_owned));
        let own = call.meta("io.modelcontextprotocol/clientCapabilities").map(str::to_owned);
        json::value(&own.or_else(|| capabilities.next()).expect("capabilities"))
    };
    for capabilities in ["{}", "{\"roots\":{}}", "{\"experimental\":{\"elicitation\":{}}}"] {
        let poor = able(&weir, pair.client, capabilities);
        let answer = poor.converse(ask("alpha", "form", "m")).answer;
        assert_eq!(answer.said(), CANNOT, "{capabilities}");
        assert!(seen(&alpha)["elicitation"].is_null(), "{capabilities}: {}", seen(&alpha));
    }
    assert_eq!(client.converse(ask("alpha", "form", "m")).asked.len(), 1);
    assert!(seen(&alpha)["elicitation"].is_object());
    let form = able(&weir, pair.client, "{\"elicitation\":{}}");
    assert_eq!(form.converse(ask("alpha", "form", "m")).asked.len(), 1);
    assert_eq!(form.converse(ask("alpha", "url", "m")).answer.said(), CANNOT, "no mode is form only");
    assert_eq!(alpha.violations(), Vec::<String>::new());
}

fn several_questions_in_several_rounds(pair: Pair) {
    let (alpha, _weir, client) = set_up(pair);
    let talk = client.converse(ask("alpha", "form,roots;sampling,url", "m"));
    let methods: Vec<&str> = talk.asked.iter().map(|question| question.method.as_str()).collect();
    assert_eq!(methods, ["elicitation/create", "roots/list", "sampling/createMessage", "elicitation/create"]);
    let wanted: Vec<String> = talk.asked.iter().map(Question::accept).collect();
    assert_eq!(talk.answer.said(), format!("[{}]", wanted.join(",")));
    if pair.client == Side::Modern {
        assert_eq!(talk.asked.iter().map(|question| question.round).collect::<Vec<_>>(), [0, 0, 1, 1]);
        assert_ne!(talk.states[0], talk.states[1]);
    }
    assert_eq!(alpha.violations(), Vec::<String>::new());
}

fn c127_prompts_and_resources_ask_too(pair: Pair) {
    let (alpha, _weir, client) = set_up(pair);
    let params = "{\"name\":\"alpha__ask\",\"arguments\":{\"ask\":\"form\",\"marker\":\"p\"}}";
    let talk = client.converse(Ask::new("prompts/get").params(params));
    let text = talk.answer.result()["messages"][0]["content"]["text"].clone();
    assert_eq!((talk.asked[0].marker(), text), ("p".to_owned(), answers([&talk.asked[0].accept()]).into()));
    let talk = client.converse(Ask::new("resources/read").params("{\"uri\":\"ask://form/r\"}"));
    let text = talk.answer.result()["contents"][0]["text"].clone();
    assert_eq!((talk.asked[0].marker(), text), ("r".to_owned(), answers([&talk.asked[0].accept()]).into()));
    assert_eq!(alpha.violations(), Vec::<String>::new());
}

fn t084_an_answer_after_the_end_reaches_nobody(pair: Pair) {
    if pair.client == Side::Modern {
        return;
    }
    let (alpha, weir, client) = set_up(pair);
    let other = able(&weir, Side::Legacy, EVERYTHING);
    let mut call = client.start(ask("alpha", "form", "m").id("\"q\""));
    let question =
        question_of(&call.next(Duration::from_secs(5)).expect("a question"), 0).expect("a request");
    let answer = question.accept();
    assert!(matches!(other.respond(&question.key, "result", &answer), 202 | 400), "another session's");
    assert!(call.next(Duration::from_millis(200)).is_none(), "the answer of another session is no answer");
    assert_eq!(client.cancel("\"q\""), 202);
    if pair.upstream == Side::Legacy {
        eventually!(alpha.gone(&alpha.calls("ask")[0]).is_some());
    }
    let before = responses(&alpha).iter().filter(|response| response.raw(&["result"]).is_some()).count();
    assert!(matches!(client.respond(&question.key, "result", &answer), 202 | 400), "too late");
    assert!(!client.call("alpha__echo", "{}").is_failure());
    let after = responses(&alpha).iter().filter(|response| response.raw(&["result"]).is_some()).count();
    assert_eq!((before, after), (0, 0));
    assert_eq!(alpha.calls("ask").len(), 1, "nor is the call made again");
}
