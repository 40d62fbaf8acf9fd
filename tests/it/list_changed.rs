//! A change is heard once by who sees it, and by nobody else.

use std::time::Duration;

use crate::support::client::{Message, Running};
use crate::support::{Ask, Client, Fake, Pair, Proxy, Side, eras, eventually, json, pairs, tool};

pairs! {
    c074_a_change_is_passed_on_and_seen, c075_without_a_change_nothing_is_said,
    a_burst_of_announcements_is_one_change, a_change_of_a_definition_is_a_change, what_nobody_sees_is_no_change,
}

eras! { a_change_found_on_refresh_is_announced, every_listener_hears_of_it_once }

const CHANGED: &str = "notifications/tools/list_changed";
const SOON: Duration = Duration::from_secs(4);
const QUIET: Duration = Duration::from_millis(500);

/// The methods of what came until it was quiet.
fn methods(stream: &mut Running) -> Vec<String> {
    stream.until_quiet(QUIET).iter().map(Message::method).collect()
}

/// A stream of the client, opened when the gateway hears the upstream.
fn listening(alpha: &crate::support::Upstream, client: &Client) -> Running {
    eventually!(alpha.streams() >= 1);
    client.listen()
}

fn c074_a_change_is_passed_on_and_seen(pair: Pair) {
    let (alpha, _weir, client) = pair.set_up(pair.fake());
    let mut stream = listening(&alpha, &client);
    for number in 1..4 {
        let new = format!("new{number}");
        alpha.set_tools([tool("echo"), tool(&new)]);
        alpha.announce();
        let message = stream.next(Duration::from_secs(1)).expect("told within a second");
        assert_eq!(message.method(), CHANGED);
        assert_eq!(
            client.names(),
            ["alpha__echo".to_owned(), format!("alpha__{new}")],
            "who lists at once sees it"
        );
        assert!(!client.call(&format!("alpha__{new}"), "{}").is_failure());
    }
    assert_eq!(methods(&mut stream), Vec::<String>::new(), "once each");
    assert_eq!(alpha.violations(), Vec::<String>::new());
}

fn c075_without_a_change_nothing_is_said(pair: Pair) {
    let tools = ["echo", "slow", "big"].map(tool);
    let (alpha, _weir, client) = pair.set_up(pair.fake().tools(tools.clone()));
    let mut stream = listening(&alpha, &client);
    let lists = alpha.seen("tools/list").len();
    alpha.announce();
    eventually!(alpha.seen("tools/list").len() > lists, "the gateway looks");
    let [a, b, c] = tools;
    alpha.set_tools([c, b, a]);
    alpha.announce();
    eventually!(alpha.seen("tools/list").len() > lists + 1);
    alpha.close_streams();
    eventually!(alpha.streams() >= 1, "the gateway listens again");
    assert_eq!(methods(&mut stream), Vec::<String>::new());
}

fn a_burst_of_announcements_is_one_change(pair: Pair) {
    let (alpha, _weir, client) = pair.set_up(pair.fake());
    let mut stream = listening(&alpha, &client);
    alpha.set_tools([tool("new1")]);
    for _ in 0..200 {
        alpha.announce();
    }
    assert_eq!(stream.next(SOON).map(|message| message.method()).as_deref(), Some(CHANGED));
    assert_eq!(methods(&mut stream), Vec::<String>::new());
    let lists = alpha.seen("tools/list").len();
    assert!(lists < 30, "{lists} listings for 200 announcements");
}

fn a_change_of_a_definition_is_a_change(pair: Pair) {
    let (alpha, _weir, client) = pair.set_up(pair.fake().tools([tool("echo")]));
    let mut stream = listening(&alpha, &client);
    alpha.set_tools([tool("echo").replace("The tool", "Another text of")]);
    alpha.announce();
    assert_eq!(stream.next(SOON).map(|message| message.method()).as_deref(), Some(CHANGED));
    assert!(client.tools()[0].contains("Another text of"));
    assert_eq!(methods(&mut stream), Vec::<String>::new());
}

fn what_nobody_sees_is_no_change(pair: Pair) {
    let (alpha, _weir, client) = pair.set_up_with(pair.fake(), "tools: { deny: [\"hidden*\"] }");
    let mut stream = listening(&alpha, &client);
    let names = client.names();
    let lists = alpha.seen("tools/list").len();
    alpha.set_tools(["echo", "slow", "incr", "steps", "big", "fail", "chatty", "hidden1"].map(tool));
    alpha.announce();
    eventually!(alpha.seen("tools/list").len() > lists);
    assert_eq!(methods(&mut stream), Vec::<String>::new());
    assert_eq!(client.names(), names);
}

#[test]
fn changes_that_never_stop_are_told_all_the_same() {
    let alpha = Fake::modern().start();
    let weir = Proxy::before(&alpha).notify("{ debounce: 400ms, max_wait: 800ms }").run();
    let client = weir.modern();
    let mut stream = listening(&alpha, &client);
    let mut told = 0;
    for turn in 0..30 {
        alpha.set_tools([tool(&format!("new{turn}"))]);
        alpha.announce();
        told += stream.until_quiet(Duration::from_millis(80)).len();
    }
    assert!((1..6).contains(&told), "{told} within about two and a half seconds");
}

fn a_change_found_on_refresh_is_announced(side: Side) {
    for fake in [Fake::legacy(), Fake::modern()] {
        let alpha = fake.without_listening().start();
        let weir = Proxy::new().upstream_with("alpha", &alpha, "refresh: 300ms").run();
        let client = weir.client(side);
        let mut stream = client.listen();
        alpha.set_tools([tool("new1")]);
        assert_eq!(stream.next(SOON).map(|message| message.method()).as_deref(), Some(CHANGED));
        assert_eq!(client.names(), ["alpha__new1"]);
        let lists = alpha.seen("tools/list").len();
        eventually!(alpha.seen("tools/list").len() > lists + 1);
        assert_eq!(methods(&mut stream), Vec::<String>::new());
    }
}

fn every_listener_hears_of_it_once(side: Side) {
    let alpha = Fake::of(side).start();
    let weir = Proxy::before(&alpha).run();
    eventually!(alpha.streams() >= 1);
    let clients = [weir.legacy(), weir.legacy(), weir.modern(), weir.modern()];
    let mut streams: Vec<Running> = clients.iter().map(Client::listen).collect();
    let second = clients[0].listen();
    alpha.set_tools([tool("new1")]);
    alpha.announce();
    for stream in &mut streams[1..] {
        assert_eq!(stream.next(SOON).map(|message| message.method()).as_deref(), Some(CHANGED));
        assert_eq!(methods(stream), Vec::<String>::new());
    }
    let heard: usize = [streams.remove(0), second].iter_mut().map(|stream| methods(stream).len()).sum();
    assert_eq!(heard, 1, "one of two streams of a session carries it");
}

#[test]
fn c128_listen_is_acknowledged_first_and_gives_what_was_asked() {
    let (alpha, beta) = (Fake::modern().start(), Fake::legacy().start());
    let weir = Proxy::before(&alpha).upstream("beta", &beta).run();
    eventually!(alpha.streams() >= 1 && beta.streams() >= 1);
    let client = weir.modern();
    for id in ["\"l-1\"", "7"] {
        let wish = "{\"notifications\":{\"toolsListChanged\":true}}";
        let mut stream = client.start(Ask::new("subscriptions/listen").params(wish).id(id));
        let first = stream.next(Duration::from_secs(1)).expect("at once");
        assert_eq!(first.method(), "notifications/subscriptions/acknowledged");
        assert_eq!(first.raw(&["params", "notifications"]), Some("{\"toolsListChanged\":true}"));
        assert!(stream.header("mcp-session-id").is_none());
        for (upstream, new) in [(&alpha, format!("a{}", id.len())), (&beta, format!("b{}", id.len()))] {
            upstream.set_tools([tool(&new)]);
            upstream.announce();
            let told = stream.next(SOON).expect("told");
            assert_eq!(told.method(), CHANGED);
            for message in [&told, &first] {
                let key = "io.modelcontextprotocol/subscriptionId";
                assert_eq!(message.raw(&["params", "_meta", key]), Some(id), "{}", message.text);
            }
        }
    }
}

#[test]
fn c128_who_asks_for_nothing_hears_nothing() {
    let alpha = Fake::modern().start();
    let weir = Proxy::before(&alpha).run();
    eventually!(alpha.streams() >= 1);
    let wish = Ask::new("subscriptions/listen").params("{\"notifications\":{\"promptsListChanged\":true}}");
    let mut stream = weir.modern().start(wish);
    let first = stream.next(SOON).expect("acknowledged");
    assert_eq!(json::raw(&first.text, &["params", "notifications", "toolsListChanged"]), None);
    alpha.set_tools([tool("new1")]);
    alpha.announce();
    eventually!(weir.modern().names() == ["alpha__new1"]);
    assert_eq!(methods(&mut stream), Vec::<String>::new());
}
