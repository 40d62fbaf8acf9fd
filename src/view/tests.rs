//! Views: pages, hashes, what is missing, and that lists and look-ups agree.

use std::sync::Arc;

use jiff::Timestamp;

use super::{Form, Found, View, Views};
use crate::catalog::tests::{config, inventories, up};
use crate::catalog::{Presence, Snapshot, Trouble, build};
use crate::principal::Rights;
use crate::protocol::ListKind;

fn snapshot(text: &str, rows: &[(&str, Presence)]) -> Snapshot {
    let config = Arc::new(config(text));
    let inventories = Arc::new(inventories(rows));
    let catalog = Arc::new(build(&config, &inventories));
    Snapshot { generation: 1, config, catalog, inventories }
}

fn view(snapshot: &Snapshot) -> Arc<View> {
    Views::default().of(snapshot, &snapshot.config.routes[0], &Rights::All)
}

const ONE: &str = "upstreams: { a: { url: http://127.0.0.1:1/mcp } }\n";

#[test]
fn equal_decisions_share_one_view_whoever_asks() {
    let text = "upstreams: { a: { url: http://127.0.0.1:1/mcp, classes: { read: [t] } } }\naccess: { anonymous: { scopes: [] } }\n";
    let config = Arc::new(config(text));
    let inventories =
        Arc::new(inventories(&[("a", up(&[r#"{"name":"t","inputSchema":{"type":"object"}}"#]))]));
    let catalog = Arc::new(build(&config, &inventories));
    let snapshot = Snapshot { generation: 1, config: Arc::clone(&config), catalog, inventories };
    let views = Views::default();
    let of = |scope: &str| {
        let scopes = [crate::principal::Scope::new(scope)].into();
        let rights = crate::principal::Principal::fixed("x", scopes, [].into()).rights;
        views.of(&snapshot, &config.routes[0], &rights)
    };
    let (read, write, other) = (of("mcp:read"), of("mcp:write"), of("other"));
    assert!(Arc::ptr_eq(&read, &write) && !Arc::ptr_eq(&read, &other));
    let items = |view: &View| view.page(ListKind::Tools, Form::Whole, 0).map(|page| page.items);
    assert_eq!(
        (items(&read).map(|items| !items.is_empty()), items(&other).map(|items| items.is_empty())),
        (Some(true), Some(true))
    );
}

#[test]
fn views_in_use_are_ready_before_their_snapshot_is_published() {
    let before = snapshot(ONE, &[("a", up(&[r#"{"name":"t"}"#]))]);
    let next = |generation: u64, tools: &[&str]| Snapshot {
        generation,
        config: Arc::clone(&before.config),
        ..snapshot(ONE, &[("a", up(tools))])
    };
    let after = next(2, &[r#"{"name":"u"}"#]);
    // What would have to be made of this one is another one.
    let empty = next(2, &[]);
    let views = Views::default();
    let of = |snapshot: &Snapshot| views.of(snapshot, &snapshot.config.routes[0], &Rights::All);
    let old = of(&before);
    views.get_ready(&after);
    assert!(Arc::ptr_eq(&of(&before), &old), "who reads the old snapshot goes on");
    assert!(matches!(of(&empty).find(ListKind::Tools, "a__u"), Found::Shown(_)));
    views.forget_before(&after);
    assert!(!Arc::ptr_eq(&of(&before), &old) && Arc::ptr_eq(&of(&after), &of(&after)));
    views.get_ready(&next(3, &[]));
    assert_eq!(of(&after).list(ListKind::Tools).len(), 1);
    let reloaded = Snapshot { generation: 2, ..snapshot(ONE, &[("a", up(&[]))]) };
    assert!(
        of(&reloaded).list(ListKind::Tools).is_empty(),
        "a route of another configuration is another one"
    );
}

#[test]
fn c057_pages_follow_each_other_without_loss() {
    let text = format!("{ONE}listen: {{ page: {{ items: 2, bytes: 1MiB }} }}\n");
    let tools = [r#"{"name":"p"}"#, r#"{"name":"q"}"#, r#"{"name":"r"}"#];
    let view = view(&snapshot(&text, &[("a", up(&tools))]));
    let first = view.page(ListKind::Tools, Form::Whole, 0).expect("a page");
    assert_eq!(
        (first.items.as_ref(), first.next),
        (br#"{"name":"a__p"},{"name":"a__q"}"#.as_slice(), Some(2))
    );
    let second = view.page(ListKind::Tools, Form::Whole, 2).expect("a page");
    assert_eq!((second.items.as_ref(), second.next), (br#"{"name":"a__r"}"#.as_slice(), None));
    assert!(view.page(ListKind::Tools, Form::Whole, 1).is_none());
    let empty = view.page(ListKind::Prompts, Form::Whole, 0).expect("an empty list is a list");
    assert!(empty.items.is_empty() && empty.next.is_none());
}

#[test]
fn c075_order_is_not_a_change_and_content_is() {
    let of = |tools: &[&str]| view(&snapshot(ONE, &[("a", up(tools))])).hashes;
    let (x, y) = (r#"{"name":"x"}"#, r#"{"name":"y"}"#);
    assert_eq!(of(&[x, y]), of(&[y, x]));
    assert_ne!(of(&[x, y]), of(&[x]));
    assert_ne!(of(&[x]), of(&[r#"{"name":"x","title":"t"}"#]));
}

#[test]
fn what_is_listed_is_found_and_nothing_else() {
    let text =
        "upstreams: { a: { url: http://127.0.0.1:1/mcp, mode: read-only, classes: { read: [see] } } }\n";
    let view = view(&snapshot(text, &[("a", up(&[r#"{"name":"see"}"#, r#"{"name":"do"}"#]))]));
    assert_eq!(view.list(ListKind::Tools).len(), 1);
    assert!(matches!(view.find(ListKind::Tools, "a__see"), Found::Shown(_)));
    assert!(matches!(view.find(ListKind::Tools, "a__do"), Found::Nothing));
    assert!(matches!(view.find(ListKind::Prompts, "a__see"), Found::Nothing));
}

#[test]
fn a_missing_upstream_is_named_and_makes_the_list_stale() {
    let text = "upstreams: { a: { url: http://127.0.0.1:1/mcp }, b: { url: http://127.0.0.1:2/mcp } }\n";
    let trouble = Trouble { label: "unreachable", text: "no".to_owned(), since: Timestamp::UNIX_EPOCH };
    let down = Presence::Down { trouble, last: None, claims: None };
    let view = view(&snapshot(text, &[("a", up(&[])), ("b", down)]));
    assert_eq!(
        view.missing.as_deref(),
        Some(r#"[{"reason":"down","since":"1970-01-01T00:00:00Z","upstream":"b"}]"#)
    );
    assert_eq!(view.ttl_ms, 0);
    assert!(view.offer.prompts, "what was never listed may have anything");
}

#[test]
fn the_ttl_is_the_shortest_refresh_and_at_most_five_minutes() {
    let of = |refresh: &str| {
        let text = format!("upstreams: {{ a: {{ url: http://127.0.0.1:1/mcp, refresh: {refresh} }} }}\n");
        view(&snapshot(&text, &[("a", up(&[]))])).ttl_ms
    };
    assert_eq!((of("30s"), of("1h")), (30_000, 300_000));
}
