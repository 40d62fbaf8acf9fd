//! Listing everything an upstream offers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::server::{Answer, Seen, error, result};
use super::support::{Fixture, legacy, modern};
use crate::catalog::{Inventory, Presence};

fn names(inventory: &Inventory) -> Vec<&str> {
    inventory.tools.iter().map(|tool| tool.local.as_str()).collect()
}

fn tool(name: &str) -> String {
    format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}}"#)
}

fn tools(seen: &Seen, names: &[&str], next: Option<&str>) -> Answer {
    let list: Vec<String> = names.iter().map(|name| tool(name)).collect();
    let next = next.map(|next| format!(r#","nextCursor":"{next}""#)).unwrap_or_default();
    result(seen, &format!(r#"{{"tools":[{}]{next}}}"#, list.join(",")))
}

#[tokio::test]
async fn c056_all_pages_are_read_in_order() {
    let fixture = Fixture::start(|seen| match seen.method().as_str() {
        "tools/list" => {
            let from: usize =
                seen.body["params"]["cursor"].as_str().map_or(0, |cursor| cursor.parse().unwrap());
            let to = (from + 1000).min(2500);
            let list: Vec<String> = (from..to).map(|number| tool(&format!("t{number}"))).collect();
            let next = if to < 2500 { format!(r#","nextCursor":"{to}""#) } else { String::new() };
            result(seen, &format!(r#"{{"tools":[{}]{next}}}"#, list.join(",")))
        }
        _ => legacy(seen),
    })
    .await;
    let inventory = fixture.up().await;
    let wanted: Vec<String> = (0..2500).map(|number| format!("t{number}")).collect();
    assert_eq!(names(&inventory), wanted);
    assert!(inventory.warnings.is_empty());
}

#[tokio::test]
async fn c058_a_repeated_cursor_ends_the_list() {
    let fixture = Fixture::start(|seen| match seen.method().as_str() {
        "tools/list" => tools(seen, &["a", "b"], Some("8")),
        _ => legacy(seen),
    })
    .await;
    let inventory = fixture.up().await;
    assert_eq!(names(&inventory), ["a", "b"]);
    assert_eq!(fixture.server.count("tools/list"), 2);
    assert_eq!(inventory.warnings, ["tools: the upstream repeats a cursor"]);
    assert!(inventory.left_out.is_empty(), "the same item once more is no loss");
    assert_eq!(fixture.set.status()[0].state, "degraded");
}

#[tokio::test]
async fn t080_endless_lists_are_cut() {
    let fixture = Fixture::with(
        |seen| match seen.method().as_str() {
            "tools/list" => tools(seen, &[&format!("t{}", seen.number)], Some(&seen.number.to_string())),
            _ => legacy(seen),
        },
        |up| up.limits.pages = 3,
    )
    .await;
    let inventory = fixture.up().await;
    assert_eq!((inventory.tools.len(), inventory.warnings.len()), (3, 1));
    let fixture = Fixture::with(
        |seen| match seen.method().as_str() {
            "tools/list" => tools(seen, &["a", "b", "c"], None),
            _ => legacy(seen),
        },
        |up| up.limits.tools = 2,
    )
    .await;
    assert_eq!(names(&*fixture.up().await), ["a", "b"]);
}

#[tokio::test]
async fn c053_one_bad_tool_is_left_out_alone() {
    let fixture = Fixture::start(|seen| match seen.method().as_str() {
        "tools/list" => {
            let twice = r#"{"name":"a","description":"other","inputSchema":{"type":"object"}}"#;
            let list = format!(r#"{{"tools":[{},{{"title":"none"}},{},{twice}]}}"#, tool("a"), tool("b"));
            result(seen, &list)
        }
        _ => legacy(seen),
    })
    .await;
    let inventory = fixture.up().await;
    assert_eq!(names(&inventory), ["a", "b"]);
    let left_out: Vec<&str> = inventory.left_out.iter().map(|item| item.name.as_str()).collect();
    assert_eq!(left_out, ["", "a"]);
}

#[tokio::test]
async fn every_declared_list_is_read_and_no_other() {
    let fixture = Fixture::start(|seen| match seen.method().as_str() {
        "server/discover" => result(
            seen,
            r#"{"supportedVersions":["2026-07-28"],"capabilities":{"prompts":{},"resources":{}}}"#,
        ),
        "prompts/list" => result(seen, r#"{"prompts":[{"name":"p"}],"ttlMs":500,"cacheScope":"private"}"#),
        "resources/list" => {
            result(seen, r#"{"resources":[{"uri":"x://1","name":"r"}],"ttlMs":900,"cacheScope":"public"}"#)
        }
        "resources/templates/list" => error(seen, 404, -32601, "Method not found"),
        _ => modern(seen),
    })
    .await;
    let inventory = fixture.up().await;
    let lengths = (inventory.prompts.len(), inventory.resources.len(), inventory.templates.len());
    assert_eq!(lengths, (1, 1, 0));
    assert_eq!(fixture.server.count("tools/list"), 0);
    let ttl = inventory.ttl.unwrap();
    assert_eq!((ttl.fresh, ttl.public), (Duration::from_millis(500), false));
}

/// A legacy server whose tool list is answered by the phase that a test sets.
async fn phased(
    script: impl Fn(usize, &Seen) -> Answer + Send + Sync + 'static,
) -> (Fixture, Arc<AtomicUsize>) {
    let phase = Arc::new(AtomicUsize::new(0));
    let current = Arc::clone(&phase);
    let fixture = Fixture::with(
        move |seen| match seen.method().as_str() {
            "tools/list" => script(current.load(Ordering::Relaxed), seen),
            _ => legacy(seen),
        },
        |up| up.refresh = Duration::from_millis(60),
    )
    .await;
    (fixture, phase)
}

#[tokio::test]
async fn a_change_is_found_on_refresh_and_equal_content_publishes_nothing() {
    let (fixture, phase) = phased(|phase, seen| match phase {
        0 => tools(seen, &["a"], None),
        _ => tools(seen, &["a", "b"], None),
    })
    .await;
    fixture.up().await;
    let mut inventories = fixture.set.material();
    inventories.mark_unchanged();
    fixture.server.saw("tools/list", 3).await;
    assert!(!inventories.has_changed().unwrap(), "equal content wakes nobody");
    phase.store(1, Ordering::Relaxed);
    fixture.stands(|presence| presence.inventory().is_some_and(|i| i.tools.len() == 2)).await;
}

#[tokio::test]
async fn a_failed_refresh_never_replaces_a_good_list() {
    let (fixture, phase) = phased(|phase, seen| match (phase, seen.body["params"]["cursor"].as_str()) {
        (0, _) => tools(seen, &["a", "b"], None),
        (1, None) => tools(seen, &["x"], Some("next")),
        (1, _) => super::server::empty(502),
        (_, None) => tools(seen, &["x"], Some("next")),
        (_, _) => error(seen, 200, -32603, "broken"),
    })
    .await;
    fixture.up().await;
    phase.store(1, Ordering::Relaxed);
    let down = fixture.stands(|presence| matches!(presence, Presence::Down { .. })).await;
    assert_eq!(names(down.inventory().unwrap()), ["a", "b"]);
    phase.store(2, Ordering::Relaxed);
    let up = fixture.up().await;
    assert_eq!(names(&up), ["a", "b"]);
    assert_eq!(up.warnings, ["tools: the upstream refused: broken"]);
}

#[tokio::test]
async fn c064_one_429_does_not_make_an_upstream_lost() {
    let (fixture, phase) = phased(|phase, seen| match phase {
        1 => super::server::empty(429),
        _ => tools(seen, &["a"], None),
    })
    .await;
    fixture.up().await;
    phase.store(1, Ordering::Relaxed);
    let seen = fixture.server.count("tools/list");
    fixture.server.saw("tools/list", seen + 1).await;
    phase.store(0, Ordering::Relaxed);
    fixture.server.saw("tools/list", seen + 3).await;
    assert!(matches!(fixture.set.material().borrow().inventories[&fixture.name], Presence::Up { .. }));
    assert_eq!(fixture.server.count("server/discover"), 1, "nothing is probed again");
}

#[tokio::test]
async fn a_lost_upstream_gives_up_its_place_after_a_while() {
    let dead = Arc::new(AtomicUsize::new(0));
    let current = Arc::clone(&dead);
    let fixture = Fixture::with(
        move |seen| match current.load(Ordering::Relaxed) {
            0 => modern(seen),
            _ => super::server::empty(503),
        },
        |up| {
            up.refresh = Duration::from_millis(60);
            up.withdraw_after = Duration::from_millis(200);
        },
    )
    .await;
    fixture.up().await;
    dead.store(1, Ordering::Relaxed);
    fixture.stands(|presence| matches!(presence, Presence::Down { last: Some(_), .. })).await;
    fixture.stands(|presence| matches!(presence, Presence::Down { last: None, .. })).await;
    dead.store(0, Ordering::Relaxed);
    fixture.up().await;
}

#[tokio::test]
async fn a_restarted_upstream_is_asked_anew_what_it_offers() {
    const OFFERS: [&str; 2] = [r#"{"tools":{}}"#, r#"{"tools":{},"prompts":{}}"#];
    let life = Arc::new(AtomicUsize::new(0));
    let current = Arc::clone(&life);
    let fixture = Fixture::with(
        move |seen| {
            let life = current.load(Ordering::Relaxed);
            let (id, offer) = (format!("life{life}"), OFFERS[life]);
            match seen.method().as_str() {
                "initialize" => {
                    let answer = format!(r#"{{"protocolVersion":"2025-11-25","capabilities":{offer}}}"#);
                    result(seen, &answer).with("mcp-session-id", &id)
                }
                "server/discover" => legacy(seen),
                _ if seen.header("mcp-session-id") != Some(&id) => super::server::empty(404),
                "prompts/list" => result(seen, r#"{"prompts":[{"name":"p"}]}"#),
                _ => legacy(seen),
            }
        },
        |up| up.refresh = Duration::from_millis(60),
    )
    .await;
    fixture.up().await;
    life.store(1, Ordering::Relaxed);
    fixture.stands(|presence| presence.inventory().is_some_and(|i| i.prompts.len() == 1)).await;
    assert!(matches!(fixture.set.material().borrow().inventories[&fixture.name], Presence::Up { .. }));
}

#[tokio::test]
async fn a_lost_upstream_is_tried_by_its_keeper_alone() {
    let dead = Arc::new(AtomicUsize::new(0));
    let current = Arc::clone(&dead);
    let fixture = Fixture::with(
        move |seen| match (current.load(Ordering::Relaxed), seen.method().as_str()) {
            (0, "GET") => {
                super::server::events(&[], Some(super::server::Piece::Wait(Duration::from_millis(100))))
            }
            (0, _) => legacy(seen),
            _ => super::server::empty(503),
        },
        |up| up.refresh = Duration::from_millis(150),
    )
    .await;
    fixture.up().await;
    dead.store(1, Ordering::Relaxed);
    fixture.stands(|presence| matches!(presence, Presence::Down { .. })).await;
    let streams = fixture.server.count("GET");
    fixture.server.saw("server/discover", 3).await;
    assert_eq!(fixture.server.count("GET"), streams);
    assert_eq!(fixture.server.count("initialize"), 1, "a server error says nothing about the era");
}
