//! All upstreams together.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::registry::Registry;
use tokio::time::Instant;

use super::server::{Answer, Server};
use super::support::{Fixture, call, config, legacy, upstream};
use crate::catalog::Presence;
use crate::config::{Builtin, Kind, Upstream};
use crate::exchange::Event;
use crate::task::TaskGroup;
use crate::upstream::{Metrics, Set};

fn named(name: &str, kind: Kind) -> Arc<Upstream> {
    let mut upstream = upstream(1);
    upstream.name = name.parse().unwrap();
    upstream.kind = kind;
    Arc::new(upstream)
}

#[tokio::test]
async fn c060_every_upstream_has_its_place_from_the_first_moment() {
    let tasks = TaskGroup::new("test");
    let server = Server::start(&tasks, |_| Answer::Silence).await;
    let url = format!("http://127.0.0.1:{}/mcp", server.port).parse().unwrap();
    let upstreams =
        [named("slow", Kind::Http { urls: vec![url] }), named("clock", Kind::Builtin(Builtin::Clock))];
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry);
    let set = Set::start(&config(upstreams.to_vec()), &tasks, metrics).unwrap();
    let all = Arc::clone(&set.material().borrow().inventories);
    let [slow, clock] = upstreams.each_ref().map(|upstream| &all[&upstream.name]);
    assert!(matches!(slow, Presence::Connecting { .. }), "{slow:?}");
    assert!(clock.inventory().is_some_and(|inventory| !inventory.tools.is_empty()), "{clock:?}");
    let states: Vec<(String, &str)> =
        set.status().iter().map(|status| (status.name.to_string(), status.state)).collect();
    assert_eq!(states, [("slow".to_owned(), "connecting"), ("clock".to_owned(), "up")]);
    assert!(set.link(&"other".parse().unwrap()).is_none());
    tasks.cancel();
}

#[tokio::test]
async fn closing_waits_for_two_seconds_at_most() {
    let fixture = Fixture::start(|seen| match seen.method().as_str() {
        "DELETE" => Answer::Silence,
        _ => legacy(seen),
    })
    .await;
    fixture.up().await;
    fixture.result(call("echo", "{}")).await;
    let started = Instant::now();
    fixture.set.close().await;
    assert!(started.elapsed() < Duration::from_secs(3));
    assert_eq!(fixture.server.count("DELETE"), 2);
}

#[tokio::test]
async fn calls_are_counted_by_how_they_end() {
    let tasks = TaskGroup::new("test");
    let server = Server::start(&tasks, |seen| match seen.body["params"]["arguments"].as_str() {
        Some("hang") => Answer::Silence,
        _ => legacy(seen),
    })
    .await;
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry);
    let upstreams = [Arc::new(upstream(server.port))];
    let set = Set::start(&config(upstreams.to_vec()), &tasks, metrics).unwrap();
    server.saw("tools/list", 1).await;
    let link = set.link(&upstreams[0].name).unwrap();
    let last = |events: Vec<Event>| events.into_iter().next_back();
    let events = futures_util::StreamExt::collect(link.call(call("echo", "{}"))).await;
    assert!(matches!(last(events), Some(Event::Result(_))));
    tokio::select! {
        _ = futures_util::StreamExt::into_future(link.call(call("echo", "\"hang\""))) => panic!("it hangs"),
        () = server.saw("tools/call", 2) => {}
    }
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    for outcome in ["result", "cancelled"] {
        let labels = format!(r#"{{method="tools/call",upstream="alpha",outcome="{outcome}"}} 1"#);
        let wanted = format!("mcp_client_operation_duration_seconds_count{labels}");
        assert!(text.contains(&wanted), "{wanted}\n{text}");
    }
    assert!(text.contains(r#"weir_upstream_calls_in_flight{upstream="alpha"} 0"#), "{text}");
    tasks.cancel();
}
