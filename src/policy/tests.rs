//! Classes and decisions: threats T033, T034, T039.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use globset::{Glob, GlobSet, GlobSetBuilder};
use proptest::prelude::{prop, prop_assert_eq, proptest};

use super::{Asked, Class, Decision, Ruling, classify, decide};
use crate::config::{
    Classes, Concurrency, Credential, Kind, Policy, Sharing, Timeouts, ToolFilter, Transport, Upstream,
    UpstreamLimits,
};
use crate::names::{LocalName, Namespace};
use crate::principal::{Grant, Principal, Rights, STATIC, Scope, Subject};
use crate::protocol::ListKind;

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

/// The decision about an item of `github`: a tool with a name, or a prompt.
fn decided(policy: &Policy, rights: &Rights, (class, tool): (Class, Option<&str>)) -> Decision {
    let (route, upstream) = ("default".parse().expect("a name"), "github".parse().expect("a name"));
    let kind = if tool.is_some() { ListKind::Tools } else { ListKind::Prompts };
    let asked = Asked { route: &route, upstream: &upstream, kind, local: tool.unwrap_or("p"), class };
    decide(policy, rights, &asked).0
}

fn asked(scopes: &[&str], class: Class, tool: Option<&str>) -> Decision {
    let scopes: BTreeSet<Scope> = scopes.iter().map(|scope| Scope::new(scope)).collect();
    let principal = Principal::fixed("ci", scopes, BTreeSet::new());
    decided(&Policy::default(), &principal.rights, (class, tool))
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
    let asked = (Class::Destructive, None);
    assert_eq!(decided(&Policy::default(), &Principal::open().rights, asked), Decision::Allow);
}

#[test]
fn t039_scopes_that_only_look_alike_grant_nothing() {
    for scope in
        ["mcp:readx", "MCP:READ", " mcp:read", "mcp:read mcp:write", "mcp", "mcp:*", "gitlab:read", ""]
    {
        assert!(matches!(asked(&[scope], Class::Read, Some("x")), Decision::StepUp(_)), "{scope}");
    }
}

/// The policy of the first route of a configuration with these rules.
fn policy(access: &str) -> Policy {
    let text = format!(
        "upstreams: {{ github: {{ url: http://127.0.0.1:1/mcp }}, db-one: {{ url: http://127.0.0.1:2/mcp }} }}\n\
         access:\n  anonymous: {{ scopes: [] }}\n{access}"
    );
    crate::catalog::tests::config(&text).routes[0].policy.clone()
}

fn rights(scopes: &[&str], groups: &[&str], subject: &str) -> Rights {
    let grant = Grant {
        scopes: scopes.iter().map(|scope| Scope::new(scope)).collect(),
        groups: groups.iter().map(|group| (*group).into()).collect(),
        holder: Some(Subject { issuer: STATIC.into(), subject: subject.into() }),
        is_anonymous: false,
    };
    Rights::Granted(std::sync::Arc::new(grant))
}

/// What is decided, in a word, and by what.
fn ruled(
    policy: &Policy,
    rights: &Rights,
    (upstream, kind, local, class): (&str, ListKind, &str, Class),
) -> String {
    let (route, upstream) = ("default".parse().expect("a name"), upstream.parse().expect("a name"));
    let asked = Asked { route: &route, upstream: &upstream, kind, local, class };
    let (decision, by) = decide(policy, rights, &asked);
    let decision = match decision {
        Decision::Allow => "allow".to_owned(),
        Decision::Hide => "hide".to_owned(),
        Decision::StepUp(scopes) => scopes.iter().map(Scope::as_str).collect::<Vec<_>>().join(" "),
    };
    match by {
        Ruling::Open => format!("{decision}, open"),
        Ruling::Rule(name) => format!("{decision}, {name}"),
        Ruling::Class => format!("{decision}, class"),
        Ruling::Nothing => format!("{decision}, nothing"),
    }
}

#[test]
fn rules_decide_in_their_order_and_a_deny_wins_from_anywhere() {
    let policy = policy(
        "  rules:\n\
         \x20   - { name: pay, match: { upstream: github, tool: \"pay_*\" }, require: { scopes_all: [a, b], groups_any: [fin] } }\n\
         \x20   - { name: either, match: { tool: any }, require: { scopes_any: [x, y] } }\n\
         \x20   - { name: secret, match: { tool: secret }, require: { scopes_all: [s] }, on_denied: hide }\n\
         \x20   - { name: mine, match: { tool: mine }, require: { subjects: [kim] } }\n\
         \x20   - { name: all, match: { kind: prompt } }\n\
         \x20   - { name: drops, match: { upstream: \"db-*\", class: [write, destructive] }, deny: true }\n\
         \x20   - { name: files, match: { resource: \"file:///etc/*\" }, deny: true }\n",
    );
    let tool = |name| ("github", ListKind::Tools, name, Class::Write);
    let nobody = rights(&[], &[], "x");
    let cases = [
        (&nobody, tool("pay_now"), "hide, pay"),
        (&rights(&[], &["fin"], "x"), tool("pay_now"), "a b, pay"),
        (&rights(&["a"], &["fin"], "x"), tool("pay_now"), "b, pay"),
        (&rights(&["a", "b"], &["fin"], "x"), tool("pay_now"), "allow, pay"),
        (&rights(&["mcp:admin"], &[], "x"), tool("pay_now"), "hide, pay"),
        (&nobody, tool("any"), "x, either"),
        (&rights(&["y"], &[], "x"), tool("any"), "allow, either"),
        (&nobody, tool("secret"), "hide, secret"),
        (&rights(&["s"], &[], "x"), tool("secret"), "allow, secret"),
        (&nobody, tool("mine"), "hide, mine"),
        (&rights(&[], &[], "kim"), tool("mine"), "allow, mine"),
        (&nobody, ("github", ListKind::Prompts, "p", Class::Read), "allow, all"),
        (&rights(&["mcp:admin"], &[], "x"), ("db-one", ListKind::Tools, "any", Class::Write), "hide, drops"),
        (&rights(&["mcp:read"], &[], "x"), ("db-one", ListKind::Tools, "t", Class::Read), "allow, class"),
        (&nobody, ("github", ListKind::Resources, "file:///etc/passwd", Class::Read), "hide, files"),
        (&nobody, ("github", ListKind::Templates, "file:///etc/{x}", Class::Read), "hide, files"),
        (&nobody, ("github", ListKind::Resources, "file:///a", Class::Read), "mcp:read, class"),
        (&nobody, tool("other"), "mcp:write, class"),
    ];
    for (rights, asked, wanted) in cases {
        assert_eq!(ruled(&policy, rights, asked), wanted, "{asked:?}");
    }
    let grant = Grant {
        holder: Some(Subject { issuer: "https://id.example".into(), subject: "kim".into() }),
        ..Grant::default()
    };
    let namesake = Rights::Granted(std::sync::Arc::new(grant));
    assert_eq!(ruled(&policy, &namesake, tool("mine")), "hide, mine", "a subject is one of its issuer");
    let anybody = Principal::anonymous(BTreeSet::new()).rights;
    assert_eq!(ruled(&policy, &anybody, ("github", ListKind::Prompts, "p", Class::Read)), "hide, all");
}

#[test]
fn t119_default_deny_without_a_rule_allows_nothing() {
    let policy = policy("  default: deny\n");
    let asked = ("github", ListKind::Tools, "t", Class::Read);
    assert_eq!(ruled(&policy, &rights(&["mcp:admin"], &[], "x"), asked), "hide, nothing");
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
