//! The decision table.

use std::collections::BTreeSet;

use super::{Class, Decision, classify, decide};
use crate::catalog::tests::config;
use crate::principal::{Principal, Rights, Scope};

fn rights(scopes: &str) -> Rights {
    let scopes: BTreeSet<Scope> = scopes.split_whitespace().map(Scope::new).collect();
    Principal::fixed("t", scopes, BTreeSet::new()).rights
}

fn check(scopes: &str, class: Class, tool: Option<&str>, allowed: bool) {
    let upstream = "db".parse().expect("a name");
    let wanted = if allowed {
        Decision::Allow
    } else {
        Decision::StepUp(vec![Scope::new(&format!("mcp:{}", class.as_str()))])
    };
    assert_eq!(decide(&rights(scopes), &upstream, class, tool), wanted, "{scopes} {class:?} {tool:?}");
}

#[test]
fn scopes_reach_their_class_and_the_gentler_ones() {
    check("mcp:read", Class::Read, Some("x"), true);
    check("mcp:read", Class::Write, Some("x"), false);
    check("mcp:write", Class::Read, None, true);
    check("mcp:destructive", Class::Write, Some("x"), true);
    check("mcp:admin", Class::Destructive, Some("x"), true);
    check("db:write", Class::Write, Some("x"), true);
    check("other:write", Class::Write, Some("x"), false);
    check("db:tool:x", Class::Destructive, Some("x"), true);
    check("db:tool:x", Class::Destructive, Some("y"), false);
    check("", Class::Read, None, false);
}

#[test]
fn t039_only_exact_scopes_count() {
    for scopes in ["mcp:readx", "MCP:READ", "mcp:rea", "read", "mcp"] {
        check(scopes, Class::Read, Some("x"), false);
    }
}

#[test]
fn open_access_allows_everything() {
    let upstream = "db".parse().expect("a name");
    assert_eq!(decide(&Rights::All, &upstream, Class::Destructive, Some("x")), Decision::Allow);
}

#[test]
fn t118_annotations_count_only_where_they_are_trusted() {
    let class = |text: &str, local: &str, read_only, destructive| {
        let config = config(&format!("upstreams: {{ db: {{ url: http://127.0.0.1:1/mcp{text} }} }}\n"));
        classify(&config.upstreams[0], local, read_only, destructive)
    };
    assert_eq!(class("", "x", Some(true), None), Class::Destructive);
    assert_eq!(class(", trust_annotations: true", "x", Some(true), None), Class::Read);
    assert_eq!(class(", trust_annotations: true", "x", None, Some(false)), Class::Write);
    assert_eq!(class(", trust_annotations: true", "x", Some(false), None), Class::Destructive);
    let lists = ", trust_annotations: true, classes: { read: [\"get_*\"], destructive: [get_rid] }";
    assert_eq!(class(lists, "get_it", None, None), Class::Read);
    assert_eq!(class(lists, "get_rid", Some(true), None), Class::Destructive);
}
