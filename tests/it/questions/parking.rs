//! Calls that are parked between two attempts: how many, how long, and what their end does.

use std::time::Duration;

use tokio::time::Instant;

use super::state::first;
use super::{EVERYTHING, able, ask};
use crate::support::client::asks;
use crate::support::{Client, Fake, Proxy, Side, Upstream, Weir, eventually, json};

fn parking(limits: &str) -> (Upstream, Weir, Client) {
    let alpha = Fake::legacy().label("alpha").asking().start();
    let weir = Proxy::before(&alpha).listen(&format!("limits: {limits}")).run();
    let client = able(&weir, Side::Modern, EVERYTHING);
    (alpha, weir, client)
}

fn parked(weir: &Weir) -> f64 {
    weir.metric("weir_parked", &[]).expect("the gauge is there")
}

/// A question for which there is no room: the upstream hears that nobody will answer.
fn is_refused(client: &Client, marker: &str) {
    let begun = Instant::now();
    let answer = client.ask(ask("alpha", "form", marker));
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert!(answer.said().contains("\"error\""), "{answer:?}");
}

#[test]
fn a_parked_call_whose_wait_ends_is_cancelled() {
    let (alpha, weir, client) = parking("{ parked_wait: 700ms }");
    let call = ask("alpha", "form", "m");
    let (state, given) = first(&client.ask(call.clone()));
    assert_eq!(parked(&weir), 1.0);
    let begun = Instant::now();
    eventually!(alpha.gone(&alpha.calls("ask")[0]).is_some());
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    eventually!(alpha.was_told_to_cancel(&alpha.calls("ask")[0]));
    eventually!(parked(&weir) == 0.0);
    let late = client.ask(call.again(&given, Some(&json::quote(&state))));
    assert_eq!(late.code(), -32602, "{late:?}");
    assert_eq!(alpha.calls("ask").len(), 1);
}

#[test]
fn parked_calls_are_bounded() {
    let (_alpha, weir, client) = parking("{ parked: 2, parked_per_principal: 2 }");
    let call = ask("alpha", "form", "a");
    let (state, given) = first(&client.ask(call.clone()));
    first(&client.ask(ask("alpha", "form", "b")));
    assert_eq!(parked(&weir), 2.0);
    is_refused(&client, "c");
    assert_eq!(parked(&weir), 2.0);
    let answer = client.ask(call.again(&given, Some(&json::quote(&state))));
    assert!(answer.said().contains("\"name\":\"a\""), "those that are parked go on: {answer:?}");
    eventually!(parked(&weir) == 1.0);
    first(&client.ask(ask("alpha", "form", "d")));
}

#[test]
fn parked_calls_of_one_principal_are_bounded() {
    let alpha = Fake::legacy().label("alpha").asking().start();
    let weir = Proxy::before(&alpha)
        .listen("limits: { parked: 10, parked_per_principal: 1 }")
        .token("x", "token-x", "\"mcp:admin\"")
        .token("y", "token-y", "\"mcp:admin\"")
        .run();
    let [x, y] = ["token-x", "token-y"].map(|token| able(&weir, Side::Modern, EVERYTHING).token(token));
    first(&x.ask(ask("alpha", "form", "a")));
    is_refused(&x, "b");
    assert!(asks(&y.ask(ask("alpha", "form", "c")), 0).is_some(), "others have room");
}

#[test]
fn a_result_that_comes_while_a_call_is_parked_is_kept() {
    let alpha = Fake::legacy()
        .label("alpha")
        .script("tools/call echo", |_, wire| {
            let params = "{\"message\":\"m\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}";
            wire.event(&format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":\"e\",\"method\":\"elicitation/create\",\"params\":{params}}}"
            ));
            wire.pause(Duration::from_millis(200));
            wire.result("{\"content\":[{\"type\":\"text\",\"text\":\"without you\"}]}");
        })
        .start();
    let weir = Proxy::before(&alpha).run();
    let client = able(&weir, Side::Modern, EVERYTHING);
    let call = crate::support::Ask::call("alpha__echo", "{}");
    let (state, given) = first(&client.ask(call.clone()));
    eventually!(alpha.calls("echo")[0].status.is_some());
    let last = client.ask(call.again(&given, Some(&json::quote(&state))));
    assert_eq!(last.said(), "without you");
}

#[test]
fn two_retries_of_one_parked_call_get_one_result() {
    let (alpha, _weir, client) = parking("{ parked: 10 }");
    let call = ask("alpha", "form", "m");
    let (state, given) = first(&client.ask(call.clone()));
    let retry = || client.ask(call.clone().again(&given, Some(&json::quote(&state))));
    let both = std::thread::scope(|scope| {
        let other = scope.spawn(retry);
        [retry(), other.join().expect("an answer")]
    });
    let mut codes = both.each_ref().map(crate::support::client::Answer::code);
    codes.sort_unstable();
    assert_eq!(codes, [-32602, 0], "{both:?}");
    assert_eq!(alpha.violations(), Vec::<String>::new());
}
