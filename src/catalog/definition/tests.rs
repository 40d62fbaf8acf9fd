//! Definitions that can and cannot be published: cases C053, C129, threats T076, T083.

use std::time::Duration;

use super::{Checker, PER_UPSTREAM};
use crate::catalog::{Entry, ParamHeader};
use crate::protocol::ListKind;

fn tool(raw: &str) -> Result<Entry, String> {
    Checker::new().tool(raw).map_err(|left_out| left_out.reason)
}

fn with_schema(schema: &str) -> String {
    format!(r#"{{"name":"t","inputSchema":{schema}}}"#)
}

/// Published as it came.
fn passes(raw: &str) {
    assert_eq!(tool(raw).map(|entry| entry.raw.to_string()).as_deref(), Ok(raw));
}

fn refused(raw: &str, reason: &str) {
    let outcome = tool(raw);
    assert!(outcome.as_ref().is_err_and(|text| text.contains(reason)), "{raw}: {outcome:?}");
}

#[test]
fn c053_unusual_but_valid_tools_pass_unchanged() {
    passes(r#"{ "name" : "t", "inputSchema": {"type":"object"}, "x": 1.50e3 }"#);
    for schema in [
        r#"{"type":"object","properties":{"a":true,"b":false},"anyOf":[{"required":["a"]}]}"#,
        r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"$ref":"#"}}}"##,
        r#"{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"items":[true]}}}"#,
        r#"{"type":"object","properties":{"a":{"type":"array","items":[{"type":"string"}]}}}"#,
        r#"{"type":"object","properties":{"a":{"pattern":"^(?=.*a)[^]*$"},"type":{"type":"string"}}}"#,
        r##"{"type":"object","properties":{"a":{"$anchor":"a","type":"string"},"b":{"$ref":"#a"}},"x-unknown":[]}"##,
    ] {
        passes(&with_schema(schema));
    }
    for output in ["true", "{}", r#"{"type":"string"}"#, r#"{"oneOf":[{"type":"null"},{"type":"object"}]}"#] {
        passes(&format!(r#"{{"name":"t","inputSchema":{{"type":"object"}},"outputSchema":{output}}}"#));
    }
}

#[test]
fn c053_broken_tools_are_left_out_with_a_reason() {
    refused(r#"{"inputSchema":{"type":"object"}}"#, "it has no name");
    refused(r#"{"name":"t","inputSchema":null}"#, "inputSchema is not an object");
    refused(r#"{"name":"t"}"#, "no inputSchema");
    refused(&with_schema(r#"{"type":"int"}"#), "inputSchema is not an object");
    refused(&with_schema(r#"{"type":["object"]}"#), "inputSchema is not an object");
    refused(&with_schema(r#"{"type":"object","properties":{"a":{"type":"int"}}}"#), "does not compile");
    refused(&with_schema(r#"{"type":"object","required":"a"}"#), "inputSchema does not compile");
    refused(&with_schema(r#"{"type":"object","properties":{"a":{"pattern":"("}}}"#), "\"(\" is no regex");
    refused(&with_schema(r##"{"type":"object","properties":{"a":{"$ref":"#/nope"}}}"##), "/nope");
    for output in ["null", "7", r#"{"type":"int"}"#] {
        let raw = format!(r#"{{"name":"t","inputSchema":{{"type":"object"}},"outputSchema":{output}}}"#);
        refused(&raw, "outputSchema does not compile");
    }
    for raw in ["[]", "7", "null", r#"{"name":"a","name":"b","inputSchema":{"type":"object"}}"#] {
        refused(raw, "not an object, or holds a member twice");
    }
}

#[test]
fn t076_names_that_cannot_stand_are_left_out_and_others_stay() {
    let named = |name: &str| format!(r#"{{"name":{name},"inputSchema":{{"type":"object"}}}}"#);
    refused(&named("\"\""), "name is empty");
    refused(&named("7"), "not a string");
    refused(&named(&format!("\"{}\"", "x".repeat(1025))), "longer than 1024");
    passes(&named(&format!("\"{}\"", "x".repeat(1024))));
    passes(&named("\"a__b \u{e9} / \\n\""));

    let mut checker = Checker::new();
    assert!(checker.tool(&named("\"a\"")).is_ok());
    let again = checker.tool(&named("\"\\u0061\"")).expect_err("the name is taken");
    assert_eq!((again.name.as_str(), again.reason.as_str()), ("a", "its name occurs twice"));
    assert!(checker.tool(&named("\"b\"")).is_ok());
    let long = Checker::new().tool(&named(&format!("\"{}\"", "x".repeat(2000)))).expect_err("it is too long");
    assert_eq!(long.name.len(), 128);
}

#[test]
fn a_schema_in_another_member_is_moved_with_one_warning() {
    let check = |raw: &str, wanted: &str| {
        assert_eq!(tool(raw).map(|entry| entry.raw.to_string()).as_deref(), Ok(wanted));
    };
    check(
        r#"{"name":"t","input_schema":{"type":"object"},"parameters":{}}"#,
        r#"{"name":"t","parameters":{},"inputSchema":{"type":"object"}}"#,
    );
    check(
        r#"{"name":"t","parameters":{"a":{"type":"string"}, "type":{}}}"#,
        r#"{"name":"t","inputSchema":{"type":"object","properties":{"a":{"type":"string"}, "type":{}}}}"#,
    );
    check(
        r#"{"name":"t","parameters":{}}"#,
        r#"{"name":"t","inputSchema":{"type":"object","properties":{}}}"#,
    );
    refused(r#"{"name":"t","parameters":{"a":{},"b":1}}"#, "inputSchema is not an object");
    refused(r#"{"name":"t","parameters":{"type":"string"}}"#, "inputSchema is not an object");
    refused(r#"{"name":"t","inputSchema":{},"parameters":{}}"#, "inputSchema is not an object");

    let mut checker = Checker::new();
    for name in ["a", "b"] {
        checker.tool(&format!(r#"{{"name":"{name}","parameters":{{}}}}"#)).expect("it is mended");
    }
    assert_eq!(
        checker.warnings(),
        ["tools without inputSchema are published with what they hold in its place (\"parameters\")"]
    );
}

#[test]
fn an_unknown_dialect_passes_with_a_warning() {
    let raw = with_schema(
        r#"{"$schema":"https://example.com/mine","type":"object","properties":{"a":{"type":7}}}"#,
    );
    passes(&raw);
    let mut checker = Checker::new();
    checker.tool(&raw).expect("published");
    assert_eq!(
        checker.warnings(),
        ["tools published unchecked, because their schema dialect is unknown: \"t\""]
    );
}

#[test]
fn t083_nothing_is_fetched() {
    let remote = r#"{"type":"object","properties":{"a":{"$ref":"http://127.0.0.1:9/x.json"}}}"#;
    refused(&with_schema(remote), "does not compile");
}

/// What would take too long is published with a warning.
#[test]
fn t083_costly_schemas_are_not_checked() {
    let doubled = |i: usize| {
        let next = format!(r##"{{"$ref":"#/$defs/d{}"}}"##, i + 1);
        format!(r#""d{i}":{{"unevaluatedProperties":false,"allOf":[{next},{next}]}}"#)
    };
    let chain: Vec<String> = (0..50).map(doubled).collect();
    let costly = [
        format!(r#"{{"type":"object","$defs":{{{},"d50":{{}}}}}}"#, chain.join(",")),
        r#"{"type":"object","properties":{"a":{"pattern":"^(x{1,1000}){1,1000}$"}}}"#.to_owned(),
        format!(r#"{{"type":"object","description":"{}"}}"#, "x".repeat(70_000)),
        format!(r#"{{"type":"object","allOf":[{}{{}}]}}"#, "{},".repeat(2_000)),
    ];
    for schema in costly {
        let mut checker = Checker::new();
        checker.tool(&with_schema(&schema)).expect("published");
        assert!(checker.warnings().iter().any(|text| text.contains("not checked")), "{schema:.60}");
    }
}

#[tokio::test(start_paused = true)]
async fn when_time_is_up_the_rest_is_not_checked_until_the_next_listing() {
    let broken =
        |name: &str| format!(r#"{{"name":"{name}","inputSchema":{{"type":"object","required":7}}}}"#);
    let mut checker = Checker::new();
    checker.tool(&with_schema(r#"{"type":"object"}"#)).expect("published");
    checker.spent = PER_UPSTREAM;
    for i in 0..12 {
        checker.tool(&broken(&format!("t{i}"))).expect("published unchecked");
    }
    let warnings = checker.warnings();
    assert!(warnings[0].contains("\"t0\", \"t1\"") && warnings[0].ends_with("and 2 more"), "{warnings:?}");

    checker.renew();
    assert_eq!(checker.warnings(), Vec::<String>::new());
    assert!(checker.tool(&broken("t0")).is_err());
    // What is known costs nothing.
    checker.spent = PER_UPSTREAM;
    checker.tool(&with_schema(r#"{"type":"object"}"#)).expect("published");
    assert!(checker.tool(&broken("t1")).is_err());
    assert_eq!(checker.warnings(), Vec::<String>::new());
    assert_eq!(checker.spent, PER_UPSTREAM + Duration::ZERO);
}

fn mirrored(header: &str, path: &[&str], integer: bool) -> ParamHeader {
    ParamHeader {
        header: header.to_owned(),
        path: path.iter().map(|key| (*key).to_owned()).collect(),
        integer,
    }
}

#[test]
fn c129_annotations_are_read_and_stay() {
    let raw = with_schema(
        r#"{"type":"object","properties":{
            "region":{"type":"string","x-mcp-header":"Region"},
            "n":{"type":["integer","null"],"x-mcp-header":"N"},
            "o":{"type":"object","properties":{"k":{"type":"boolean","x-mcp-header":"K!"}}},
            "x-mcp-header":{"type":"string","default":{"x-mcp-header":"no"}}}}"#,
    );
    passes(&raw);
    let entry = tool(&raw).expect("published");
    let wanted = [
        mirrored("mcp-param-n", &["n"], true),
        mirrored("mcp-param-k!", &["o", "k"], false),
        mirrored("mcp-param-region", &["region"], false),
    ];
    assert_eq!(entry.mirrored, wanted);
    let escaped =
        with_schema(r#"{"type":"object","properties":{"a":{"type":"string","x-mcp-he\u0061der":"A"}}}"#);
    assert_eq!(tool(&escaped).map(|entry| entry.mirrored.len()), Ok(1));
}

#[test]
fn c129_invalid_annotations_leave_the_tool_out() {
    let string = |name: &str| format!(r#"{{"type":"string","x-mcp-header":{name}}}"#);
    let one = |schema: &str| format!(r#""properties":{{"a":{schema}}}"#);
    let long = format!("\"{}\"", "x".repeat(129));
    let bad = [
        (one(&string("\"\"")), "not a header name"),
        (one(&string("\"a b\"")), "not a header name"),
        (one(&string("\"a\\r\\nb\"")), "not a header name"),
        (one(&string("\"\u{e9}\"")), "not a header name"),
        (one(&string("7")), "not a header name"),
        (one(&string(&long)), "not a header name"),
        (one(r#"{"type":"number","x-mcp-header":"A"}"#), "not of type"),
        (one(r#"{"type":["string","integer"],"x-mcp-header":"A"}"#), "not of type"),
        (one(r#"{"x-mcp-header":"A"}"#), "not of type"),
        (one(r#"{"type":"object","x-mcp-header":"A"}"#), "not of type"),
        (format!(r#""properties":{{"a":{},"b":{}}}"#, string("\"A\""), string("\"a\"")), "twice"),
        (r#""x-mcp-header":"A""#.to_owned(), "no chain"),
        (one(&format!(r#"{{"items":{}}}"#, string("\"A\""))), "no chain"),
        (one(&format!(r#"{{"anyOf":[{}]}}"#, string("\"A\""))), "no chain"),
        (format!(r#""allOf":[{{{}}}]"#, one(&string("\"A\""))), "no chain"),
        (format!(r#""$defs":{{"x":{}}}"#, string("\"A\"")), "no chain"),
        (format!(r#""if":{{{}}}"#, one(&string("\"A\""))), "no chain"),
        (format!(r#""patternProperties":{{"x":{}}}"#, string("\"A\"")), "no chain"),
    ];
    for (members, reason) in bad {
        refused(&with_schema(&format!(r#"{{"type":"object",{members}}}"#)), reason);
    }
}

#[test]
fn hints_are_read_where_they_are_booleans() {
    let raw = r#"{"name":"t","inputSchema":{"type":"object"},
        "annotations":{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":"true"}}"#;
    let entry = tool(raw).expect("published");
    assert_eq!(
        (entry.read_only_hint, entry.destructive_hint, entry.idempotent_hint),
        (Some(true), Some(false), None)
    );
}

#[test]
fn items_of_other_lists_need_their_key_only() {
    let mut checker = Checker::new();
    for (kind, raw, name) in [
        (ListKind::Prompts, r#"{"name":"p", "arguments":[]}"#, "p"),
        (ListKind::Resources, r#"{"uri":"note://1","name":7}"#, "note://1"),
        (ListKind::Templates, r#"{"uriTemplate":"note://{id}"}"#, "note://{id}"),
        (ListKind::Templates, r#"{"uriTemplate":"note://1"}"#, "note://1"),
    ] {
        let entry = checker.plain(kind, raw).expect("published");
        assert_eq!((entry.local.as_str(), &*entry.raw), (name, raw));
    }
    for (kind, raw) in [
        (ListKind::Prompts, r#"{"title":"p"}"#),
        (ListKind::Resources, r#"{"uri":7}"#),
        (ListKind::Resources, r#"{"uri":"note://1"}"#),
        (ListKind::Templates, r#"{"uri":"x"}"#),
    ] {
        assert!(checker.plain(kind, raw).is_err(), "{raw}");
    }
}
