//! Classes and decisions: threats T033, T034, T039.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use globset::{Glob, GlobSet, GlobSetBuilder};
use proptest::prelude::{prop, prop_assert_eq, proptest};

use super::{Class, Decision, classify, decide};
use crate::config::{
    Classes, Concurrency, Credential, Kind, Sharing, Timeouts, ToolFilter, Transport, Upstream,
    UpstreamLimits,
};
use crate::names::{LocalName, Namespace};
use crate::principal::{Principal, Scope};

fn globs(patterns: &[&str]) -> GlobSet {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(Glob::new(pattern).expect("a glob"));
    }
    set.build().expect("globs")
}

fn upstream(trust_annotations: bool, classes: Classes) -> Upstream {
    let second = Duration::from_secs(1);
    Upstream {
        name: "github".parse().expect("a name"),
        namespace: Namespace::new("github", &"__".parse().expect("a separator")).expect("a namespace"),
        kind: Kind::Builtin(crate::config::Builtin::Clock),
        transport: Transport::Auto,
        revision: None,
        sessions: Sharing::Client,
        credential: Credential::None,
        credential_error_codes: Vec::new(),
        forward_headers: Vec::new(),
        read_only: false,
        tools: ToolFilter { allow: globs(&["*"]), deny: globs(&[]), rename: BTreeMap::new() },
        classes,
        trust_annotations,
        timeout: Timeouts { connect: second, call: second, call_max: second, tools: Vec::new() },
        concurrency: Concurrency { calls: None, writes: None, queue: 0 },
        limits: UpstreamLimits { answer: 0, tools: 0, list_bytes: 0, pages: 0 },
        probe: true,
        refresh: second,
        withdraw_after: second,
        idle: second,
        required: false,
    }
}

fn classes(read: &[&str], write: &[&str], destructive: &[&str]) -> Classes {
    Classes { read: globs(read), write: globs(write), destructive: globs(destructive) }
}

#[test]
fn annotations_count_only_where_they_are_trusted() {
    let (trusted, other) = (upstream(true, classes(&[], &[], &[])), upstream(false, classes(&[], &[], &[])));
    let tool = LocalName::new("x");
    for (read_only, destructive, class) in [
        (Some(true), None, Class::Read),
        (Some(true), Some(true), Class::Read),
        (Some(false), Some(false), Class::Write),
        (None, Some(false), Class::Write),
        (Some(false), None, Class::Destructive),
        (None, Some(true), Class::Destructive),
        (None, None, Class::Destructive),
    ] {
        assert_eq!(classify(&trusted, &tool, read_only, destructive), class);
        assert_eq!(classify(&other, &tool, read_only, destructive), Class::Destructive);
    }
}

#[test]
fn the_operators_lists_win_and_the_careful_one_first() {
    let upstream = upstream(true, classes(&["get_*", "list_*"], &["*_issue"], &["get_secret"]));
    let class = |name: &str| classify(&upstream, &LocalName::new(name), Some(false), Some(true));
    assert_eq!(class("get_x"), Class::Read);
    assert_eq!(class("get_issue"), Class::Write);
    assert_eq!(class("get_secret"), Class::Destructive);
    assert_eq!(class("other"), Class::Destructive);
    assert_eq!(classify(&upstream, &LocalName::new("get_secret"), Some(true), None), Class::Destructive);
}

fn asked(scopes: &[&str], class: Class, tool: Option<&str>) -> Decision {
    let scopes: BTreeSet<Scope> = scopes.iter().map(|scope| Scope::new(scope)).collect();
    let principal = Principal::fixed("ci", scopes, BTreeSet::new());
    decide(&principal.rights, &"github".parse().expect("a name"), class, tool.map(LocalName::new).as_ref())
}

#[test]
fn each_class_implies_the_more_harmless_ones() {
    let missing = |class: Class| Decision::StepUp(vec![Scope::new(&format!("mcp:{class}"))]);
    for (granted, class) in Class::ALL.iter().flat_map(|granted| Class::ALL.map(|class| (*granted, class))) {
        let wanted = if granted >= class { Decision::Allow } else { missing(class) };
        for family in ["mcp", "github"] {
            let scope = format!("{family}:{granted}");
            assert_eq!(asked(&[&scope], class, Some("x")), wanted, "{scope} for {class}");
        }
    }
    for class in Class::ALL {
        assert_eq!(asked(&["mcp:admin"], class, None), Decision::Allow);
        assert_eq!(asked(&["gitlab:destructive"], class, None), missing(class));
    }
}

#[test]
fn one_tool_can_be_granted_by_its_name() {
    let scopes = ["github:tool:drop"];
    assert_eq!(asked(&scopes, Class::Destructive, Some("drop")), Decision::Allow);
    for other in [Some("drop2"), Some("Drop"), Some(""), None] {
        assert!(matches!(asked(&scopes, Class::Read, other), Decision::StepUp(_)), "{other:?}");
    }
}

#[test]
fn open_access_allows_everything() {
    let upstream = "github".parse().expect("a name");
    assert_eq!(decide(&Principal::open().rights, &upstream, Class::Destructive, None), Decision::Allow);
}

#[test]
fn t039_scopes_that_only_look_alike_grant_nothing() {
    for scope in
        ["mcp:readx", "MCP:READ", " mcp:read", "mcp:read mcp:write", "mcp", "mcp:*", "gitlab:read", ""]
    {
        assert!(matches!(asked(&[scope], Class::Read, Some("x")), Decision::StepUp(_)), "{scope}");
    }
}

proptest! {
    /// More scopes never take anything away, and the scopes a refusal names do cure it.
    #[test]
    fn t033_the_named_scopes_cure_the_refusal(
        scopes in prop::collection::vec("(mcp|github|other):(read|write|destructive|admin|tool:x)", 0..4),
        class in prop::sample::select(Class::ALL.to_vec()),
    ) {
        let mut held: Vec<&str> = scopes.iter().map(String::as_str).collect();
        if let Decision::StepUp(missing) = asked(&held, class, Some("x")) {
            let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
            held.extend(missing.iter().map(String::as_str));
            prop_assert_eq!(asked(&held, class, Some("x")), Decision::Allow);
        }
    }
}
