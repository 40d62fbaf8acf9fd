//! Planning: pure, so tables.

mod access;

use std::sync::Arc;

use super::Seat;
use super::plan::{Memory, Plan, plan};
use crate::catalog::tests::{config, inventories, tool};
use crate::catalog::{Entry, Inventory, ParamHeader, Presence, Snapshot, build};
use crate::exchange::{Call, Caller, Failure};
use crate::principal::{Principal, Rights};
use crate::protocol::{ListKind, Method, Offer, Revision};
use crate::seal::Keyring;
use crate::view::Views;

const META: &str = r#""_meta":{"progressToken":5,"io.modelcontextprotocol/protocolVersion":"2026-07-28","vendor/key":{"a":1}}"#;

fn seat() -> Seat {
    let text = "upstreams: { a: { url: http://127.0.0.1:1/mcp } }\n";
    let annotated = Entry {
        mirrored: vec![ParamHeader {
            header: "mcp-param-region".to_owned(),
            path: vec!["region".to_owned()],
            integer: false,
        }],
        ..(*tool(r#"{"name":"q"}"#)).clone()
    };
    let inventory = Inventory {
        tools: vec![tool(r#"{"name":"slow.one"}"#), Arc::new(annotated)],
        prompts: vec![tool(r#"{"name":"slow.one"}"#)],
        ..Inventory::empty(Revision::NEWEST, Offer { tools: true, ..Offer::default() })
    };
    let config = Arc::new(config(text));
    let inventories = Arc::new(inventories(&[("a", Presence::Up { inventory: Arc::new(inventory) })]));
    let catalog = Arc::new(build(&config, &inventories));
    let route = Arc::clone(&config.routes[0]);
    let snapshot = Arc::new(Snapshot { generation: 1, config, catalog, inventories });
    let view = Views::default().of(&snapshot, &route, &Rights::All);
    Seat { snapshot, route, view }
}

fn planned(call: Call) -> Result<Plan, Failure> {
    plan(&seat(), &Memory::new(Arc::new(Keyring::random())), call)
}

fn call(method: Method, name: &str, params: &str) -> Call {
    Call {
        progress_token: Some("5".to_owned()),
        mirrors: true,
        ..Call::plain(method, name, params.to_owned(), Caller::local(Principal::open()))
    }
}

#[test]
fn c043_only_the_name_and_the_legs_own_meta_change() {
    let params = format!(r#"{{"arguments":{{"id":9007199254740993, "x":1.0}},"name":"a__slow_one",{META}}}"#);
    let plan = planned(call(Method::ToolsCall, "a__slow_one", &params)).expect("a plan");
    assert_eq!(plan.upstream.as_str(), "a");
    assert_eq!(plan.call.name, "slow.one");
    assert_eq!(
        plan.call.params,
        r#"{"arguments":{"id":9007199254740993, "x":1.0},"name":"slow.one","_meta":{"vendor/key":{"a":1}}}"#
    );
    assert_eq!(plan.progress_token.as_deref(), Some("5"));
    assert!(!plan.call.repeatable);
}

#[test]
fn c051_absent_arguments_stay_absent() {
    let plan = planned(call(Method::ToolsCall, "a__slow_one", r#"{"name":"a__slow_one"}"#)).expect("a plan");
    assert_eq!(plan.call.params, r#"{"name":"slow.one"}"#);
}

#[test]
fn c116_t038_names_that_are_not_published_are_unknown() {
    for name in ["nope", "", "a__", "__slow_one", "slow.one", "A__slow_one", "a__slow_one ", "a__a__slow_one"]
    {
        let failed = planned(call(Method::ToolsCall, name, "{}")).expect_err("no plan");
        assert_eq!(failed, Failure::Unknown { kind: ListKind::Tools, name: name.to_owned() }, "{name}");
    }
}

#[test]
fn c082_prompts_are_planned_by_their_own_list() {
    let plan = planned(call(Method::PromptsGet, "a__slow_one", r#"{"name":"a__slow_one"}"#)).expect("a plan");
    assert_eq!((plan.call.name.as_str(), plan.call.repeatable), ("slow.one", true));
}

fn mirrored(arguments: &str, sent: &[(&str, &str)], mirrors: bool) -> Result<Vec<(String, String)>, String> {
    let mut call = call(Method::ToolsCall, "a__q", &format!(r#"{{"name":"a__q","arguments":{arguments}}}"#));
    call.mirrored = sent.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    call.mirrors = mirrors;
    planned(call).map(|plan| plan.call.mirrored).map_err(|failure| failure.label().to_owned())
}

#[test]
fn c129_mirrored_headers_are_checked_and_computed() {
    let header = |value: &str| Ok(vec![("mcp-param-region".to_owned(), value.to_owned())]);
    let mismatch = || Err("header_mismatch".to_owned());
    let eu = [("mcp-param-region", "eu")];
    assert_eq!(mirrored(r#"{"region":"eu"}"#, &eu, true), header("eu"));
    assert_eq!(mirrored(r#"{"region":"us"}"#, &eu, true), mismatch());
    assert_eq!(mirrored(r#"{"region":"eu"}"#, &[], true), mismatch());
    assert_eq!(mirrored(r#"{"region":null}"#, &[], true), Ok(Vec::new()));
    assert_eq!(mirrored(r#"{}"#, &eu, true), mismatch());
    assert_eq!(
        mirrored(r#"{"region":"é"}"#, &[("mcp-param-region", "=?base64?w6k=?=")], true),
        header("=?base64?w6k=?=")
    );
    assert_eq!(
        mirrored(r#"{"region":"é"}"#, &[], false),
        header("=?base64?w6k=?="),
        "added for clients that mirror nothing"
    );
    let unknown = [("mcp-param-foo", "x")];
    assert_eq!(mirrored("{}", &unknown, true), Ok(vec![("mcp-param-foo".to_owned(), "x".to_owned())]));
}
