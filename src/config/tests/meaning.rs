//! What good texts mean.

use std::time::Duration;

use secrecy::ExposeSecret as _;

use super::fixtures::Known;
use crate::config::{Access, Allowed, Builtin, Config, Credential, Kind, LogFormat, Sharing, read_text};
use crate::names::{Characters, LocalName};
use crate::principal::Rights;
use crate::protocol::Revision;

fn read(text: &str) -> Config {
    read_text(text, None, &Known::new()).unwrap_or_else(|problems| panic!("{problems}")).config
}

fn upstream(members: &str) -> Config {
    read(&format!("upstreams: {{ a: {{ url: \"http://h/mcp\", {members} }} }}"))
}

#[test]
fn defaults_are_those_of_the_contract() {
    let config = read("upstreams: { a: { url: http://h/mcp }, clock: { builtin: clock } }");
    assert_eq!(config.listen.address.to_string(), "127.0.0.1:8080");
    assert_eq!(config.admin.address.to_string(), "127.0.0.1:8090");
    assert_eq!(
        (&config.listen.allowed_hosts, &config.listen.allowed_origins),
        (&Allowed::Loopback, &Allowed::Loopback)
    );
    assert_eq!(config.listen.limits.body, 16 * 1024 * 1024);
    assert_eq!(config.listen.sessions.max_age, Duration::from_secs(86_400));
    assert_eq!(config.listen.drain.deadline, Duration::from_secs(20));
    assert_eq!((config.names.max_length, config.names.characters), (64, Characters::Strict));
    assert_eq!(config.names.separator.as_str(), "__");
    assert_eq!(config.telemetry.format, LogFormat::Text);
    let [a, clock] = config.upstreams.as_slice() else { panic!() };
    assert_eq!((a.sessions, clock.sessions), (Sharing::Client, Sharing::Shared));
    assert!(matches!(clock.kind, Kind::Builtin(Builtin::Clock)));
    assert_eq!((a.namespace.to_string(), a.revision), ("a".to_owned(), None));
    assert_eq!(a.timeout.call_max, Duration::from_secs(600));
    assert_eq!((a.concurrency.calls, a.concurrency.writes, a.concurrency.queue), (Some(64), None, 64));
    let [route] = config.routes.as_slice() else { panic!() };
    assert_eq!((route.name.as_str(), route.path.as_str(), route.upstreams.len()), ("default", "/mcp", 2));
    assert!(matches!(config.access, Access::Open) && !config.open_anywhere);
}

#[test]
fn c100_an_empty_allow_list_allows_nothing() {
    for (tools, admitted) in
        [("{}", true), ("{ allow: [] }", false), ("{ allow: [\"*\"], deny: [x] }", false)]
    {
        assert_eq!(upstream(&format!("tools: {tools}")).upstreams[0].tools.admits("x"), admitted, "{tools}");
    }
}

#[test]
fn globs_are_about_the_whole_text_and_case() {
    let cases = [
        ("get_*", "get_", true),
        ("get_*", "get_a/b.c", true),
        ("get_*", "forget_a", false),
        ("get_*", "Get_a", false),
        ("get", "get_a", false),
        ("?", "a", true),
        ("[a-c]{x,y}", "by", true),
        ("*.x", "a/b.x", true),
        ("*", "", true),
        ("*", "..", true),
        ("*.", "a.", true),
    ];
    for (glob, name, wanted) in cases {
        let config = upstream(&format!("tools: {{ allow: [\"{glob}\"] }}"));
        assert_eq!(config.upstreams[0].tools.admits(name), wanted, "{glob} {name}");
    }
}

#[test]
fn the_default_namespace_has_no_foreign_characters() {
    let config = read("upstreams: { io.github.example.cdn: { builtin: clock } }");
    assert_eq!(config.upstreams[0].namespace.as_str(), "io_github_example_cdn");
}

#[test]
fn routes_show_enabled_upstreams_in_file_order() {
    let config = read(
        "upstreams: { a: { builtin: clock }, b: { builtin: notes, enabled: false }, c: { builtin: notes } }\n\
         routes: [ { name: one, upstreams: [c, b, a] }, { name: two, path: /x/y/ }, { name: three, path: / } ]",
    );
    let names: Vec<_> = config.routes[0].upstreams.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["a", "c"]);
    let paths: Vec<_> = config.routes.iter().map(|route| route.path.as_str()).collect();
    assert_eq!(paths, ["/one", "/x/y", "/"]);
}

#[test]
fn substitution_puts_in_variables_and_files() {
    let text = "upstreams: { a: { url: \"http://h:${env:PORT}/mcp\", credential: { bearer: \"${file:secret}\" } } }\n\
                routes: [ { name: x, instructions: \"$${env:PORT} is ${env:PORT}, ${env:EMPTY}$5\" } ]";
    let path = std::path::Path::new("fixtures/routes.yaml");
    let config = read_text(text, Some(path), &Known::new()).unwrap().config;
    let Kind::Http { urls } = &config.upstreams[0].kind else { panic!() };
    let url = &urls[0];
    assert_eq!(url.port_u16(), Some(9001));
    let Credential::Bearer(secret) = &config.upstreams[0].credential else { panic!() };
    assert_eq!(secret.expose_secret(), "canary-from-file");
    assert_eq!(config.routes[0].instructions, "${env:PORT} is 9001, $5");
}

#[test]
fn tokens_have_an_end_and_rights_of_their_own() {
    let hash = |last: char| format!("sha256:{}{last}", "0".repeat(63));
    let config = read(&format!(
        "upstreams: {{ a: {{ builtin: clock }} }}\naccess: {{ tokens: [ \
         {{ name: ci, hash: \"{}\", scopes: [mcp:read], groups: [g], not_after: 2027-01-31 }}, \
         {{ name: ci, hash: \"{}\", scopes: [mcp:write] }} ] }}",
        hash('1'),
        hash('f')
    ));
    let tokens = &config.access.guard().expect("it is guarded").tokens;
    assert_eq!(tokens[0].not_after, Some(1_801_440_000), "2027-02-01T00:00:00Z");
    assert_eq!((tokens[0].hash[31], tokens[1].hash[31]), (1, 15));
    assert_eq!(tokens[0].principal.subject, tokens[1].principal.subject);
    assert_ne!(tokens[0].principal.rights, tokens[1].principal.rights);
    let Rights::Granted(grant) = &tokens[0].principal.rights else { panic!() };
    assert_eq!((grant.scopes.len(), grant.groups.len()), (1, 1));
}

#[test]
fn hosts_and_origins_follow_the_listener() {
    let hosts = |listen: &str| {
        let config =
            read(&format!("listen: {listen}\nupstreams: {{ a: {{ builtin: clock }} }}\naccess: open"));
        (config.listen.allowed_hosts, config.listen.allowed_origins)
    };
    let these = |hosts: &[&str]| Allowed::These(hosts.iter().map(|host| (*host).to_owned()).collect());
    let none = || these(&[]);
    assert_eq!(hosts("{ address: \"[::1]:1\" }"), (Allowed::Loopback, Allowed::Loopback));
    assert_eq!(hosts("{ address: 0.0.0.0:1 }"), (Allowed::Any, none()));
    let public = "public_url: \"https://MCP.example.com:8443/x/\"";
    assert_eq!(
        hosts(&format!("{{ address: 0.0.0.0:1, {public} }}")),
        (these(&["mcp.example.com:8443"]), none())
    );
    assert_eq!(
        hosts(&format!("{{ {public} }}")),
        (these(&["localhost", "127.0.0.1", "[::1]", "mcp.example.com:8443"]), Allowed::Loopback)
    );
    assert_eq!(
        hosts("{ address: 0.0.0.0:1, allowed_hosts: [A.example], allowed_origins: [https://B.example] }"),
        (these(&["a.example"]), these(&["https://b.example"]))
    );
}

#[test]
fn one_upstream_has_its_own_values() {
    let config = upstream(
        "revision: 2026-07-28, sessions: shared, mode: read-only, namespace: \"\", trust_annotations: true, \
         credential_error_codes: [-32001], forward_headers: [X-Request-Id, x-request-id], required: true, \
         tools: { rename: { old: new } }, timeout: { call: 250ms, tools: { slow_*: 5m, \"*\": 1h } }, \
         concurrency: { calls: 0, writes: 1 }",
    );
    let a = &config.upstreams[0];
    assert_eq!((a.revision, a.sessions, a.read_only), (Some(Revision::V2026_07_28), Sharing::Shared, true));
    assert!(a.namespace.is_empty() && a.trust_annotations && a.required);
    assert_eq!((a.credential_error_codes.as_slice(), a.forward_headers.len()), ([-32001].as_slice(), 1));
    assert_eq!(a.tools.rename.get(&LocalName::new("old")), Some(&LocalName::new("new")));
    assert_eq!(a.timeout.call, Duration::from_millis(250));
    assert!(a.timeout.tools[0].tools.is_match("slow_one") && !a.timeout.tools[0].tools.is_match("fast"));
    assert_eq!((a.concurrency.calls, a.concurrency.writes), (None, Some(1)));
}

#[test]
fn t097_debug_shows_no_query_and_no_secret() {
    let config = read(
        "upstreams: { a: { url: \"http://h/mcp?key=canary\", credential: { bearer: \"${env:TOKEN}\" } }, \
         b: { url: \"http://h/\", credential: { headers: { X-Key: \"${env:TOKEN}\" } } } }",
    );
    let text = format!("{config:?}");
    assert!(text.contains("http://h/mcp") && !text.contains("canary"), "{text}");
}

#[test]
fn a_scope_that_nothing_asks_for_is_warned_of() {
    let warned = |scope: &str| {
        let text = format!(
            "upstreams: {{ clock: {{ builtin: clock }} }}\naccess: {{ tokens: [ \
             {{ name: ci, hash: \"sha256:{}\", scopes: [\"{scope}\"] }} ] }}",
            "0".repeat(64)
        );
        !read_text(&text, None, &Known::new()).unwrap().warnings.is_empty()
    };
    for scope in ["mcp:read", "mcp:admin", "clock:destructive", "clock:tool:now"] {
        assert!(!warned(scope), "{scope}");
    }
    for scope in ["mcp:reed", "nosuch:read", "foo", "clock:raed", "clock:tool:", "mcp:tool:now"] {
        assert!(warned(scope), "{scope}");
    }
}
