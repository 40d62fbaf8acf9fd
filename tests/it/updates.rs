//! Who subscribed to a resource hears that it changed, once, under the URI that it asked for; nobody else does.

use std::time::Duration;

use serde_json::json;

use crate::support::client::{Message, Running};
use crate::support::{
    Ask, Client, Fake, Pair, Proxy, Side, Upstream, eras, eventually, json as text, pairs, resource, template,
};

pairs! {
    an_update_reaches_who_subscribed_and_nobody_else, a_subscription_that_ends_is_ended_upstream,
    an_update_carries_the_uri_that_was_asked_for, a_restart_of_the_upstream_is_one_update,
}

eras! { what_cannot_be_subscribed_to_is_left_out, c084_subscriptions_are_announced_where_they_are }

const URI: &str = "file:///a.txt";
const QUIET: Duration = Duration::from_millis(400);

fn subscribable(fake: Fake) -> Fake {
    fake.subscribable().with("resources", ["file:///a.txt", "file:///b.txt"].map(resource))
}

/// A client's stream, with a subscription to this resource.
fn subscribed(client: &Client, uri: &str) -> Running {
    match client.side() {
        Side::Modern => client.listen_for(&format!("{{\"resourceSubscriptions\":[{}]}}", text::quote(uri))),
        Side::Legacy => {
            let stream = client.listen();
            client.ask(Ask::new("resources/subscribe").params(&format!("{{\"uri\":\"{uri}\"}}"))).result();
            stream
        }
    }
}

/// The URIs of the updates from the first one on, which is waited for, until it is quiet.
fn told_of(stream: &mut Running) -> Vec<String> {
    let first = stream.next(Duration::from_secs(10)).expect("an update");
    let mut all = vec![text::text(&first.text, &["params", "uri"]).expect("a URI")];
    all.extend(updates(stream));
    all
}

/// The URIs of the updates that come until it is quiet.
fn updates(stream: &mut Running) -> Vec<String> {
    let all = stream.until_quiet(QUIET).into_iter();
    let told = all.filter(|message| message.method() == "notifications/resources/updated");
    told.filter_map(|message: Message| text::text(&message.text, &["params", "uri"])).collect()
}

fn knows(alpha: &Upstream, uri: &str, count: usize) {
    eventually!(alpha.subscriptions(uri) == count, "{} subscriptions to {uri}", alpha.subscriptions(uri));
}

fn an_update_reaches_who_subscribed_and_nobody_else(pair: Pair) {
    let (alpha, weir, first) = pair.set_up(subscribable(pair.fake()));
    let (second, other, idle) = (pair.client(&weir), pair.client(&weir), pair.client(&weir));
    let mut own = [subscribed(&first, URI), subscribed(&second, URI)];
    let mut others = [subscribed(&other, "file:///b.txt"), idle.listen()];
    // Clients with sessions have one each at a legacy upstream.
    let both_legacy = (pair.client, pair.upstream) == (Side::Legacy, Side::Legacy);
    knows(&alpha, URI, if both_legacy { 2 } else { 1 });
    knows(&alpha, "file:///b.txt", 1);
    alpha.update(URI);
    for stream in &mut own {
        let told = stream.next(Duration::from_secs(2)).expect("an update");
        assert_eq!(told.method(), "notifications/resources/updated");
        assert_eq!(text::text(&told.text, &["params", "uri"]).as_deref(), Some(URI));
    }
    for stream in own.iter_mut().chain(&mut others) {
        assert_eq!(updates(stream), Vec::<String>::new());
    }
    assert_eq!(alpha.violations(), Vec::<String>::new());
}

fn a_subscription_that_ends_is_ended_upstream(pair: Pair) {
    let (alpha, _weir, client) = pair.set_up(subscribable(pair.fake()));
    let mut stream = subscribed(&client, URI);
    knows(&alpha, URI, 1);
    match client.side() {
        Side::Legacy => {
            let params = format!("{{\"uri\":\"{URI}\"}}");
            client.ask(Ask::new("resources/unsubscribe").params(&params)).result();
            knows(&alpha, URI, 0);
            alpha.update(URI);
            assert_eq!(updates(&mut stream), Vec::<String>::new());
        }
        Side::Modern => {
            stream.leave();
            knows(&alpha, URI, 0);
        }
    }
}

fn an_update_carries_the_uri_that_was_asked_for(pair: Pair) {
    let alpha = subscribable(pair.fake()).start();
    let beta = subscribable(pair.fake().label("beta")).with("templates", [template("db://{id}")]).start();
    let weir = Proxy::before(&alpha).upstream("beta", &beta).run();
    let client = pair.client(&weir);
    for (published, own) in [("file://beta+/a.txt", URI), ("db://7", "db://7")] {
        let mut stream = subscribed(&client, published);
        eventually!(beta.subscriptions(own) > 0);
        beta.update(own);
        alpha.update(own);
        assert_eq!(told_of(&mut stream), [published]);
    }
    assert_eq!(alpha.subscriptions(URI), 0);
}

/// Nobody knows what was missed meanwhile.
fn a_restart_of_the_upstream_is_one_update(pair: Pair) {
    let (alpha, _weir, client) = pair.set_up(subscribable(pair.fake()));
    let mut stream = subscribed(&client, URI);
    knows(&alpha, URI, 1);
    alpha.restart();
    let told = stream.next(Duration::from_secs(10)).expect("an update after the restart");
    assert_eq!(told.method(), "notifications/resources/updated");
    eventually!(alpha.subscriptions(URI) >= 1);
    alpha.update(URI);
    assert_eq!(told_of(&mut stream), [URI]);
}

fn what_cannot_be_subscribed_to_is_left_out(side: Side) {
    let alpha = subscribable(Fake::of(side)).start();
    let beta = Fake::of(side).with("resources", [resource("x:1")]).start();
    let weir = Proxy::before(&alpha).upstream("beta", &beta).run();
    let client = weir.client(side);
    match side {
        Side::Legacy => {
            for uri in ["file:///none", "x:1"] {
                let answer =
                    client.ask(Ask::new("resources/subscribe").params(&format!("{{\"uri\":\"{uri}\"}}")));
                assert!(answer.code() < 0, "{uri}: {answer:?}");
            }
        }
        Side::Modern => {
            let wish = format!(
                "{{\"notifications\":{{\"resourceSubscriptions\":[\"x:1\",\"{URI}\",\"file:///none\"]}}}}"
            );
            let mut stream = client.start(Ask::new("subscriptions/listen").params(&wish));
            let first = stream.next(Duration::from_secs(2)).expect("the acknowledgement");
            let agreed = first.raw(&["params", "notifications"]).map(text::value);
            assert_eq!(agreed, Some(json!({ "resourceSubscriptions": [URI] })));
            let many: Vec<String> = (0..1001).map(|number| format!("\"file:///{number}\"")).collect();
            let wish = format!("{{\"notifications\":{{\"resourceSubscriptions\":[{}]}}}}", many.join(","));
            assert_eq!(client.ask(Ask::new("subscriptions/listen").params(&wish)).code(), -32602);
        }
    }
    assert_eq!(beta.seen("resources/subscribe").len(), 0);
}

fn c084_subscriptions_are_announced_where_they_are(side: Side) {
    for (fake, wanted) in [
        (subscribable(Fake::of(side)), json!({ "listChanged": true, "subscribe": true })),
        (Fake::of(side).with("resources", [resource("x:1")]), json!({ "listChanged": true })),
    ] {
        let alpha = fake.start();
        let weir = Proxy::before(&alpha).run();
        let client = Client::new(weir.address, side);
        let result = match side {
            Side::Legacy => client.initialize().result(),
            Side::Modern => client.ask(Ask::new("server/discover")).result(),
        };
        assert_eq!(result["capabilities"]["resources"], wanted);
    }
}
