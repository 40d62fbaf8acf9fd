//! Upstreams that are slow, dead, or come back: they cost their own calls only.

use std::net::TcpListener;
use std::time::Duration;

use tokio::time::Instant;

use crate::support::eventually::holds;
use crate::support::{Ask, Client, Fake, Pair, Proxy, Side, Upstream, eras, eventually, pairs};

pairs! { c062_a_recovered_upstream_comes_back_by_itself, a_lost_upstream_keeps_its_place_for_a_while }

eras! {
    c059_an_unreachable_upstream_fails_nothing_else, c061_t085_a_slow_upstream_delays_no_other, c063_attempts_back_off,
    c064_watching_an_upstream_has_no_side_effects,
}

fn first(client: &Client) -> crate::support::client::Answer {
    match client.side() {
        Side::Legacy => client.ask(Ask::new("ping")),
        Side::Modern => client.ask(Ask::new("server/discover")),
    }
}

fn c059_an_unreachable_upstream_fails_nothing_else(side: Side) {
    let (alpha, beta) = (Fake::of(side).stopped(), Fake::of(side).start());
    let weir = Proxy::before(&alpha).upstream("beta", &beta).run();
    let begun = Instant::now();
    let client = weir.client(side);
    assert_eq!(first(&client).status(), 200);
    assert_eq!(client.names().len(), 7);
    assert!(!client.call("beta__echo", "{}").is_failure());
    let lost = client.call("alpha__echo", "{}");
    assert!(lost.is_failure() || lost.code() == -32602, "{lost:?}");
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    let missing = client.ask(Ask::new("tools/list")).result()["_meta"]["dev.weir/missing"].clone();
    assert_eq!(missing[0]["upstream"], "alpha", "{missing}");
    assert!(matches!(missing[0]["reason"].as_str(), Some("down" | "connecting")), "{missing}");
    assert_eq!(missing.as_array().map(Vec::len), Some(1));
}

#[test]
fn c060_starting_does_not_wait_for_upstreams() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", silent.local_addr().unwrap());
    let beta = Fake::legacy().start();
    let begun = Instant::now();
    let weir = Proxy::new().upstream_at("silent", &url, "").upstream("beta", &beta).run();
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    assert_eq!(weir.admin_get("/livez").0, 200);
    assert_eq!(weir.admin_get("/readyz").0, 200);
    assert_eq!(weir.modern().names().len(), 7);
    assert_eq!(weir.missing(), ["silent"]);
}

fn c061_t085_a_slow_upstream_delays_no_other(side: Side) {
    let alpha = Fake::of(side).start();
    alpha.script("tools/list", |_, wire| {
        wire.pause(Duration::from_secs(3));
        wire.result(
            "{\"tools\":[{\"name\":\"late\",\"inputSchema\":{\"type\":\"object\"}}],\
                     \"ttlMs\":0,\"cacheScope\":\"public\"}",
        );
    });
    let beta = Fake::of(side).start();
    let weir = Proxy::before(&alpha).upstream("beta", &beta).run();
    let client = weir.client(side);
    let mut stream = client.listen();
    for _ in 0..5 {
        let begun = Instant::now();
        let names = weir.client(side).names();
        assert!(names.len() >= 7 && names.iter().filter(|name| name.starts_with("beta")).count() == 7);
        assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    }
    let told = stream.next(Duration::from_secs(6)).expect("the late list is announced");
    assert_eq!(told.method(), "notifications/tools/list_changed");
    assert!(client.names().contains(&"alpha__late".to_owned()));
    assert!(stream.until_quiet(Duration::from_millis(500)).is_empty(), "once");
}

fn c062_a_recovered_upstream_comes_back_by_itself(pair: Pair) {
    let (alpha, weir, client) = pair.set_up_with(pair.fake(), "withdraw_after: 100ms");
    let mut stream = client.listen();
    alpha.stop();
    let gone = stream.next(Duration::from_secs(8)).expect("the loss is announced");
    assert_eq!(gone.method(), "notifications/tools/list_changed");
    assert_eq!(client.names(), Vec::<String>::new());
    assert_eq!(weir.missing(), ["alpha"]);
    alpha.restart();
    let back = stream.next(Duration::from_secs(12)).expect("the return is announced");
    assert_eq!(back.method(), "notifications/tools/list_changed");
    assert_eq!(client.names().len(), 7);
    assert!(!client.call("alpha__echo", "{}").is_failure());
    assert!(stream.until_quiet(Duration::from_millis(600)).is_empty(), "once each");
}

fn a_lost_upstream_keeps_its_place_for_a_while(pair: Pair) {
    let (alpha, _weir, client) = pair.set_up(pair.fake());
    let mut stream = client.listen();
    alpha.stop();
    let begun = Instant::now();
    let answer = client.call("alpha__echo", "{}");
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    assert!(answer.is_failure() && answer.said().contains("alpha"), "{answer:?}");
    assert_eq!(client.names().len(), 7, "withdraw_after has not passed");
    alpha.restart();
    eventually!(!client.call("alpha__echo", "{}").is_failure());
    assert!(stream.until_quiet(Duration::from_millis(500)).is_empty(), "no change was seen");
}

/// How many requests come within a time, and the pauses between them.
fn attempts(upstream: &Upstream, time: Duration) -> Vec<Duration> {
    let deadline = Instant::now() + time;
    holds(time, || Instant::now() >= deadline);
    let times: Vec<Instant> = upstream.requests().iter().map(|request| request.at).collect();
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

fn c063_attempts_back_off(side: Side) {
    let alpha =
        Fake::of(side).script("server/discover", |_, wire| wire.page(401, "text/plain", "no")).start();
    let beta = Fake::of(side).script("server/discover", |_, wire| wire.abort()).start();
    let weir = Proxy::before(&alpha).upstream("beta", &beta).run();
    let pauses = attempts(&alpha, Duration::from_secs(4));
    for (upstream, pauses) in [("alpha", pauses), ("beta", attempts(&beta, Duration::ZERO))] {
        assert!((1..9).contains(&pauses.len()), "{upstream}: {pauses:?}");
        assert!(pauses.last() > pauses.first(), "growing: {pauses:?}");
    }
    let mut missing = weir.missing();
    missing.sort();
    assert_eq!(missing, ["alpha", "beta"]);
}

fn c064_watching_an_upstream_has_no_side_effects(side: Side) {
    let alpha = Fake::of(side).without_listening().start();
    let weir = Proxy::new().upstream_with("alpha", &alpha, "refresh: 200ms").run();
    eventually!(alpha.seen("tools/list").len() > 3);
    alpha.script("tools/list", |_, wire| wire.page(429, "text/plain", "slow down"));
    let so_far = alpha.seen("tools/list").len();
    eventually!(alpha.seen("tools/list").len() > so_far);
    assert_eq!(weir.client(side).names().len(), 7, "one 429 takes nothing away");
    alpha.unscript("tools/list");
    assert!(!weir.client(side).call("alpha__echo", "{}").is_failure());
    let known = ["server/discover", "initialize", "notifications/initialized", "tools/list", "tools/call"];
    let listening = ["subscriptions/listen", "logging/setLevel", ""];
    for request in alpha.requests() {
        let method = request.method();
        assert!(
            known.contains(&method.as_str()) || listening.contains(&method.as_str()),
            "{method} was asked"
        );
    }
    assert_eq!(alpha.violations(), Vec::<String>::new());
}

#[test]
fn c065_down_and_empty_can_be_told_apart() {
    let (alpha, beta) = (Fake::legacy().stopped(), Fake::legacy().tools(Vec::<String>::new()).start());
    let weir = Proxy::before(&alpha).upstream("beta", &beta).run();
    assert_eq!(weir.missing(), ["alpha"]);
    assert!(weir.modern().names().is_empty());
    assert!(weir.printed.iter().any(|line| line == "upstreams 1/2 up, 0 tools"), "{:?}", weir.printed);
    eventually!(weir.log().contains("alpha"), "the log names the one that is down");
}
