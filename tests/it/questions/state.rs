//! `requestState`: sealed, good for one caller and one call, and for a parked call once.

use super::{EVERYTHING, able, ask};
use crate::support::client::{Answer, asks};
use crate::support::{Ask, Client, Pair, Proxy, Request, Side, Upstream, Weir, eras, json};

eras! {
    c127_the_state_is_sealed_and_the_upstreams_own_arrives, c127_a_state_is_good_for_one_caller_and_call,
    c127_missing_answers_are_asked_again, c127_a_retry_is_decided_like_a_call,
}

/// A modern client before an upstream of this era.
fn pair(upstream: Side) -> Pair {
    Pair { client: Side::Modern, upstream }
}

fn with_tokens(upstream: Side) -> (Upstream, Weir, [Client; 2]) {
    let alpha = pair(upstream).fake().asking().start();
    let weir = Proxy::before(&alpha)
        .token("x", "token-x", "\"mcp:admin\"")
        .token("y", "token-y", "\"mcp:admin\"")
        .run();
    let clients = ["token-x", "token-y"].map(|token| able(&weir, Side::Modern, EVERYTHING).token(token));
    (alpha, weir, clients)
}

/// The state of a first answer, as text, and the answers to its questions.
pub(crate) fn first(answer: &Answer) -> (String, String) {
    let (questions, state) = asks(answer, 0).unwrap_or_else(|| panic!("no questions: {answer:?}"));
    let given: Vec<String> =
        questions.iter().map(|q| format!("{}:{}", json::quote(&q.key), q.accept())).collect();
    (
        json::value(&state.expect("a state")).as_str().unwrap_or_default().to_owned(),
        format!("{{{}}}", given.join(",")),
    )
}

fn c127_the_state_is_sealed_and_the_upstreams_own_arrives(upstream: Side) {
    let (alpha, _weir, [client, _]) = with_tokens(upstream);
    let call = ask("alpha", "form", "m");
    let (state, given) = first(&client.ask(call.clone()));
    assert!(state.starts_with("w1.") && !state.contains("alpha"), "{state}");
    let answer = client.ask(call.again(&given, Some(&json::quote(&state))));
    assert!(answer.said().contains("\"name\":\"m\""), "{answer:?}");
    if upstream == Side::Modern {
        let calls = alpha.calls("ask");
        let own = calls[1].raw(&["params", "requestState"]);
        assert_eq!(own, Some("\"[\\\"alpha\\\",0]\""), "exactly what it gave");
        assert_eq!(calls[1].raw(&["params", "inputResponses"]), Some(given.replace("q1", "k0").as_str()));
        assert_ne!(calls[0].id(), calls[1].id());
    } else {
        assert_eq!(alpha.calls("ask").len(), 1, "the call that was parked goes on");
    }
    assert_eq!(alpha.violations(), Vec::<String>::new());
}

fn c127_a_state_is_good_for_one_caller_and_call(upstream: Side) {
    let (alpha, _weir, [client, other]) = with_tokens(upstream);
    let call = ask("alpha", "form", "m");
    let (state, given) = first(&client.ask(call.clone()));
    let quoted = json::quote(&state);
    let calls = alpha.calls("ask").len();
    let refused = |who: &Client, what: &str, call: Ask, state: &str| {
        let answer = who.ask(call.again(&given, Some(state)));
        assert_eq!(answer.code(), -32602, "{what}: {answer:?}");
    };
    let other_letter = |at: usize| {
        let swap = |c: char| if c == 'A' { 'B' } else { 'A' };
        let letters = state.chars().enumerate().map(|(place, c)| if place == at { swap(c) } else { c });
        json::quote(&letters.collect::<String>())
    };
    let (middle, altered) = (other_letter(40), other_letter(state.len() - 1));
    refused(&client, "altered", call.clone(), &middle);
    refused(&client, "altered at the end", call.clone(), &altered);
    refused(&client, "not one of Weir's", call.clone(), "\"[\\\"alpha\\\",0]\"");
    refused(&client, "not a text", call.clone(), "7");
    refused(
        &client,
        "another tool",
        Ask::call("alpha__echo", "{\"ask\":\"form\",\"marker\":\"m\"}"),
        &quoted,
    );
    refused(&client, "other arguments", ask("alpha", "form", "n"), &quoted);
    refused(&other, "another principal", call.clone(), &quoted);
    assert_eq!(alpha.calls("ask").len(), calls, "the upstream sees none of it");
    let arguments = "{ \"marker\" : \"m\", \"ask\":\"form\" }";
    let answer = client.ask(Ask::call("alpha__ask", arguments).again(&given, Some(&quoted)));
    assert!(answer.said().contains("\"name\":\"m\""), "order and white space do not matter: {answer:?}");
    if upstream == Side::Legacy {
        refused(&client, "answered before", call, &quoted);
    }
}

fn c127_missing_answers_are_asked_again(upstream: Side) {
    let (alpha, _weir, [client, _]) = with_tokens(upstream);
    let call = ask("alpha", "form,roots", "m");
    let answer = client.ask(call.clone());
    let (questions, state) = asks(&answer, 0).expect("questions");
    assert_eq!(questions.len(), 2);
    let nothing = client.ask(call.clone().again("{\"unknown\":{}}", state.as_deref()));
    let (again, state) = asks(&nothing, 1).expect("they are asked again");
    assert_eq!(again.len(), 2, "{nothing:?}");
    let roots = again.iter().find(|question| question.method == "roots/list").expect("the roots");
    let given = format!("{{{}:{}}}", json::quote(&roots.key), roots.accept());
    let half = client.ask(call.clone().again(&given, state.as_deref()));
    if upstream == Side::Legacy {
        let (left, state) = asks(&half, 2).expect("one is left");
        assert_eq!(left.iter().map(|q| q.method.as_str()).collect::<Vec<_>>(), ["elicitation/create"]);
        let given = format!("{{{}:{}}}", json::quote(&left[0].key), left[0].accept());
        let last = client.ask(call.again(&given, state.as_deref()));
        assert_eq!(last.said(), format!("[{},{}]", left[0].accept(), roots.accept()));
    } else {
        assert!(asks(&half, 2).is_some(), "a stateless upstream asks again itself");
    }
    assert_eq!(alpha.violations(), Vec::<String>::new());
}

/// A retry without its state is a first attempt.
fn c127_a_retry_is_decided_like_a_call(upstream: Side) {
    let (alpha, _weir, [client, _]) = with_tokens(upstream);
    let call = ask("alpha", "form", "m");
    let (state, given) = first(&client.ask(call.clone()));
    let anew = client.ask(call.clone().again(&given, None));
    assert!(asks(&anew, 0).is_some(), "{anew:?}");
    let stranger = able_without_token(&client, &call, &given, &state);
    assert_eq!(stranger, 401);
    assert_eq!(alpha.seen("tools/call").iter().filter(|call: &&Request| call.name() == "ask").count(), 2);
}

fn able_without_token(client: &Client, call: &Ask, given: &str, state: &str) -> u16 {
    let retry = call.clone().again(given, Some(&json::quote(state))).without("Authorization");
    client.request(&retry).send().status()
}
