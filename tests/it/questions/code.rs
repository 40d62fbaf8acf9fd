//! C133: an error by which a legacy upstream asks for a URL becomes the question itself where the era has no such code.

use super::{EVERYTHING, able};
use crate::support::client::{Question, asks};
use crate::support::{Ask, Fake, Proxy, Side, Upstream, json};

const NEEDS: &str = "{\"code\":-32042,\"message\":\"consent first\",\"data\":{\"elicitations\":[{\"mode\":\"url\",\
    \"elicitationId\":\"e-1\",\"url\":\"https://example.com/consent\",\"message\":\"please\"}]}}";

/// Its first call of `echo` needs consent, later ones do not.
fn consenting() -> Upstream {
    let asked = std::sync::atomic::AtomicBool::new(false);
    Fake::legacy()
        .script("tools/call echo", move |_, wire| {
            if asked.swap(true, std::sync::atomic::Ordering::SeqCst) {
                wire.result("{\"content\":[{\"type\":\"text\",\"text\":\"with consent\"}]}");
            } else {
                wire.error(NEEDS);
            }
        })
        .start()
}

#[test]
fn c133_a_url_that_is_needed_becomes_a_question_to_modern_clients() {
    let alpha = consenting();
    let weir = Proxy::before(&alpha).run();
    let client = able(&weir, Side::Modern, EVERYTHING);
    let call = Ask::call("alpha__echo", "{}");
    let first = client.ask(call.clone());
    let (questions, state) = asks(&first, 0).unwrap_or_else(|| panic!("no question: {first:?}"));
    assert_eq!(questions.iter().map(Question::marker).collect::<Vec<_>>(), ["please"]);
    let params = json::value(&questions[0].params);
    assert_eq!((&params["mode"], &params["url"]), (&"url".into(), &"https://example.com/consent".into()));
    assert!(params["elicitationId"].is_null(), "{params}");
    let given = format!("{{{}:{{\"action\":\"accept\"}}}}", json::quote(&questions[0].key));
    assert_eq!(client.ask(call.again(&given, state.as_deref())).said(), "with consent");
}

#[test]
fn c133_a_url_that_is_needed_never_reaches_modern_clients_as_that_code() {
    let alpha = consenting();
    let weir = Proxy::before(&alpha).run();
    let client = able(&weir, Side::Modern, "{\"elicitation\":{\"form\":{}}}");
    let answer = client.call("alpha__echo", "{}");
    assert_eq!(answer.code(), -32603, "{answer:?}");
}

#[test]
fn c133_a_url_that_is_needed_passes_to_legacy_clients() {
    let alpha = consenting();
    let weir = Proxy::before(&alpha).run();
    let client = able(&weir, Side::Legacy, EVERYTHING);
    assert_eq!(client.call("alpha__echo", "{}").raw(&["error"]), Some(NEEDS));
}
