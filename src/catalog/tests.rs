//! The catalog: names, collisions, order, and bytes that stay as they were.

use std::sync::Arc;

use jiff::Timestamp;

use super::{Builder, Catalog, Entry, Inventories, Inventory, Presence, Trouble, build};
use crate::config::{Config, Process, read_text};
use crate::names::LocalName;
use crate::protocol::{ListKind, Offer, Revision};

/// A configuration that must be good.
pub(crate) fn config(text: &str) -> Config {
    match read_text(text, None, &Process) {
        Ok(loaded) => loaded.config,
        Err(problems) => panic!("{problems}"),
    }
}

/// A tool as an upstream gave it.
pub(crate) fn tool(raw: &str) -> Arc<Entry> {
    let name: String = crate::jsonrpc::Object::open(raw).and_then(|tool| tool.text("name")).expect("a name");
    Arc::new(Entry {
        local: LocalName::new(&name),
        raw: raw.into(),
        mirrored: Vec::new(),
        read_only_hint: None,
        destructive_hint: None,
        idempotent_hint: None,
    })
}

/// An upstream that is up with these tools.
pub(crate) fn up(tools: &[&str]) -> Presence {
    let inventory = Inventory {
        tools: tools.iter().map(|raw| tool(raw)).collect(),
        ..Inventory::empty(Revision::V2025_11_25, Offer { tools: true, ..Offer::default() })
    };
    Presence::Up { inventory: Arc::new(inventory) }
}

/// An inventory of these tools and of resources at these URIs.
fn offering(tools: &[&str], uris: &[&str]) -> Arc<Inventory> {
    let resource = |uri: &&str| {
        let raw = format!(r#"{{"uri":"{uri}","name":"n"}}"#);
        let entry = (*tool(r#"{"name":"x"}"#)).clone();
        Arc::new(Entry { local: LocalName::new(uri), raw: raw.as_str().into(), ..entry })
    };
    let offer = Offer { tools: true, resources: true, ..Offer::default() };
    Arc::new(Inventory {
        tools: tools.iter().map(|raw| tool(raw)).collect(),
        resources: uris.iter().map(resource).collect(),
        ..Inventory::empty(Revision::NEWEST, offer)
    })
}

/// Upstreams by name.
pub(crate) fn inventories(rows: &[(&str, Presence)]) -> Inventories {
    rows.iter().map(|(name, presence)| (name.parse().expect("a name"), presence.clone())).collect()
}

const TWO: &str = "upstreams:\n  b: { url: http://127.0.0.1:1/mcp }\n  a: { url: http://127.0.0.1:2/mcp }\n";

fn names(catalog: &Catalog) -> Vec<&str> {
    catalog.list(ListKind::Tools).iter().map(|item| item.name.as_str()).collect()
}

#[test]
fn c044_equal_local_names_get_two_published_ones_in_file_order() {
    let search = r#"{"name":"search","inputSchema":{"type":"object"}}"#;
    let catalog = build(&config(TWO), &inventories(&[("a", up(&[search])), ("b", up(&[search]))]));
    assert_eq!(names(&catalog), ["b__search", "a__search"]);
}

#[test]
fn c049_everything_but_the_name_stays_byte_for_byte() {
    let raw = r##"{"x-vendor" : [1.0e5,9007199254740993],"name":"t","inputSchema":{"type":"object","$defs":{"N":{"$ref":"#/$defs/N"}}}, "_meta":{"k":null}}"##;
    let catalog = build(&config(TWO), &inventories(&[("b", up(&[raw]))]));
    let item = &catalog.list(ListKind::Tools)[0];
    assert_eq!(
        &*item.raw,
        r##"{"x-vendor":[1.0e5,9007199254740993],"name":"b__t","inputSchema":{"type":"object","$defs":{"N":{"$ref":"#/$defs/N"}}},"_meta":{"k":null}}"##
    );
    let bare = config("upstreams: { b: { url: http://127.0.0.1:1/mcp, namespace: \"\" } }");
    let catalog = build(&bare, &inventories(&[("b", up(&[raw]))]));
    assert_eq!(&*catalog.list(ListKind::Tools)[0].raw, raw, "with an empty namespace nothing is touched");
}

#[test]
fn c040_a_shortened_name_keeps_the_full_one_in_meta() {
    let long = "n".repeat(80);
    let raw = format!(r#"{{"name":"{long}","inputSchema":{{"type":"object"}},"_meta":{{"k":1}}}}"#);
    let catalog = build(&config(TWO), &inventories(&[("b", up(&[&raw]))]));
    let item = &catalog.list(ListKind::Tools)[0];
    assert_eq!(item.name.len(), 64);
    assert_eq!(item.local(), long);
    assert!(item.raw.contains(&format!(r#""_meta":{{"k":1,"dev.weir/name":"b__{long}"}}"#)), "{}", item.raw);
}

#[test]
fn a_name_that_two_claim_goes_to_the_one_with_a_namespace_and_the_other_is_named() {
    let text = "upstreams:\n  bare: { url: http://127.0.0.1:1/mcp, namespace: \"\" }\n  a: { url: http://127.0.0.1:2/mcp }\n";
    let bare = up(&[r#"{"name":"a__x"}"#, r#"{"name":"y"}"#]);
    let catalog = build(&config(text), &inventories(&[("bare", bare), ("a", up(&[r#"{"name":"x"}"#]))]));
    assert_eq!(names(&catalog), ["y", "a__x"]);
    assert_eq!(catalog.list(ListKind::Tools)[1].upstream.as_str(), "a");
    let left: Vec<&str> = catalog.left_out.iter().map(|(_, left)| left.reason.as_str()).collect();
    assert_eq!(left, ["the name a__x belongs to upstream a"]);
}

#[test]
fn allow_deny_and_rename_use_the_upstreams_own_names() {
    let text = "upstreams:\n  a:\n    url: http://127.0.0.1:2/mcp\n    tools: { allow: [\"get_*\", old], deny: [get_secret], rename: { old: new } }\n";
    let tools =
        up(&[r#"{"name":"get_it"}"#, r#"{"name":"get_secret"}"#, r#"{"name":"old"}"#, r#"{"name":"x"}"#]);
    let catalog = build(&config(text), &inventories(&[("a", tools)]));
    assert_eq!(names(&catalog), ["a__get_it", "a__new"]);
    assert_eq!(catalog.list(ListKind::Tools)[1].local(), "old");
}

#[test]
fn names_of_a_lost_upstream_stay_taken() {
    let text = "upstreams:\n  b: { url: http://127.0.0.1:1/mcp, namespace: x }\n  a: { url: http://127.0.0.1:2/mcp, namespace: \"\" }\n";
    let (short, long) = (
        r#"{"name":"t","inputSchema":{"type":"object"}}"#,
        r#"{"name":"x__t","inputSchema":{"type":"object"}}"#,
    );
    let Presence::Up { inventory } = up(&[short]) else { panic!("it is up") };
    let lost = |last: bool| {
        let trouble = Trouble { label: "ended", text: String::new(), since: Timestamp::now() };
        let claims = Some(Arc::clone(&inventory));
        Presence::Down { trouble, last: claims.clone().filter(|_| last), claims }
    };
    for (presence, published) in [(lost(true), &["x__t"][..]), (lost(false), &[])] {
        let catalog = build(&config(text), &inventories(&[("b", presence), ("a", up(&[long]))]));
        assert_eq!(names(&catalog), published);
        let (upstream, left) = &catalog.left_out[0];
        assert!(upstream.as_str() == "a" && left.reason.contains("belongs to upstream b"), "{left:?}");
    }
}

#[test]
fn c081_a_user_interface_that_two_name_is_told_apart_too() {
    let raw = |place: &str| {
        format!(r#"{{"name":"t","inputSchema":{{"type":"object"}},"_meta":{{"k":1.0,{place}}}}}"#)
    };
    let cases = [
        (
            r#""ui":{"resourceUri":"ui://p/main","visibility":["model"]}"#,
            r#""ui":{"resourceUri":"ui://a+p/main","visibility":["model"]}"#,
        ),
        (r#""ui/resourceUri":"ui://p/main""#, r#""ui/resourceUri":"ui://a+p/main""#),
    ];
    for (own, published) in cases {
        let catalog = build(&config(TWO), &inventories(&[("a", up(&[&raw(own)])), ("b", up(&[&raw(own)]))]));
        let tools = catalog.list(ListKind::Tools);
        assert!(tools[0].raw.contains(own), "{}", tools[0].raw);
        assert!(tools[1].raw.contains(published) && tools[1].raw.contains(r#""k":1.0"#), "{}", tools[1].raw);
    }
}

#[test]
fn an_output_schema_that_is_no_object_has_a_form_without_it() {
    let list = r#"{"name":"l","outputSchema":{"type":"array"}}"#;
    let object = r#"{"name":"o","outputSchema":{"type":"object"}}"#;
    let catalog = build(&config(TWO), &inventories(&[("b", up(&[list, object]))]));
    let items = catalog.list(ListKind::Tools);
    assert_eq!(items[0].object_output.as_deref(), Some(r#"{"name":"b__l"}"#));
    assert!(items[0].free_output && !items[1].free_output);
    assert_eq!(items[1].object_output, None);
}

#[test]
fn c081_a_uri_that_two_publish_is_told_apart_by_file_order() {
    let with = |uris: &[&str]| Presence::Up { inventory: offering(&[], uris) };
    let rows = [("a", with(&["file:///x", "file:///own"])), ("b", with(&["file:///x"]))];
    let catalog = build(&config(TWO), &inventories(&rows));
    let published: Vec<(&str, &str, &str)> = catalog
        .list(ListKind::Resources)
        .iter()
        .map(|item| (item.upstream.as_str(), item.name.as_str(), &*item.raw))
        .collect();
    assert_eq!(
        published,
        [
            ("b", "file:///x", r#"{"uri":"file:///x","name":"n"}"#),
            ("a", "file://a+/x", r#"{"uri":"file://a+/x","name":"n"}"#),
            ("a", "file:///own", r#"{"uri":"file:///own","name":"n"}"#),
        ]
    );
}

/// What an upstream may do: offer some tools and resources, be lost for a while or for good, or not have come yet.
fn presence() -> impl proptest::strategy::Strategy<Value = Presence> {
    use proptest::sample::{Index, subsequence};
    use proptest::strategy::Strategy as _;
    let tools = vec![
        r#"{"name":"t"}"#,
        r#"{"name":"a b","outputSchema":{"type":"array"}}"#,
        r#"{"name":"a.b"}"#,
        r#"{"name":"x__t"}"#,
        r#"{"name":"u","_meta":{"ui":{"resourceUri":"ui://p/main"}}}"#,
    ];
    let uris = vec!["file:///x", "ui://p/main", "file:///own"];
    let parts = (subsequence(tools, 0..=5), subsequence(uris, 0..=3), proptest::arbitrary::any::<Index>());
    parts.prop_map(|(tools, uris, way)| {
        let inventory = offering(&tools, &uris);
        let trouble = Trouble { label: "ended", text: String::new(), since: Timestamp::UNIX_EPOCH };
        match way.index(6) {
            0 => Presence::Connecting { since: Timestamp::UNIX_EPOCH },
            1 => Presence::Down { trouble, last: None, claims: Some(inventory) },
            2 => Presence::Down { trouble, last: Some(Arc::clone(&inventory)), claims: Some(inventory) },
            _ => Presence::Up { inventory },
        }
    })
}

proptest::proptest! {
    #[test]
    fn what_is_remembered_of_a_catalog_changes_nothing(
        changes in proptest::collection::vec((0..3_usize, presence()), 1..12)
    ) {
        let text = "upstreams:\n  b: { url: http://127.0.0.1:1/mcp, namespace: x }\n  a: { url: http://127.0.0.1:2/mcp, namespace: \"\" }\n  c: { url: http://127.0.0.1:3/mcp }\n";
        let config = Arc::new(config(text));
        let mut builder = Builder::default();
        let mut now = inventories(&[]);
        for (upstream, presence) in changes {
            now.insert(["a", "b", "c"][upstream].parse().expect("a name"), presence);
            proptest::prop_assert_eq!(builder.build(&config, &now), build(&config, &now));
        }
    }
}

#[test]
fn what_did_not_change_is_not_made_again() {
    let config = Arc::new(config(TWO));
    let mut builder = Builder::default();
    let mut now = inventories(&[("a", up(&[r#"{"name":"x"}"#])), ("b", up(&[r#"{"name":"y"}"#]))]);
    let before = builder.build(&config, &now);
    now.insert("b".parse().expect("a name"), up(&[r#"{"name":"z"}"#]));
    let after = builder.build(&config, &now);
    assert_eq!(names(&after), ["b__z", "a__x"]);
    let kept = |catalog: &Catalog| Arc::clone(&catalog.list(ListKind::Tools)[1]);
    assert!(Arc::ptr_eq(&kept(&before), &kept(&after)));
}
