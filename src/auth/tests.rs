//! Credentials in and challenges out: threats T031, T032, T100, T101.

use std::collections::BTreeSet;

use futures_util::FutureExt as _;
use http::{HeaderMap, HeaderValue, header};
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::{Authenticator, Challenger, Jwts, Metadata, Refusal, Seen, Sources, Tokens};
use crate::config::{Config, Token};
use crate::principal::{Principal, Scope, Voucher};

const METADATA: &str = "resource_metadata=\"https://gw.example/.well-known/oauth-protected-resource/mcp\"";

fn principal(name: &str) -> Principal {
    Principal::fixed(name, BTreeSet::from([Scope::new("mcp:read")]), BTreeSet::new())
}

fn token(text: &str, name: &str, not_after: Option<i64>) -> Token {
    Token { hash: Sha256::digest(text.as_bytes()).into(), principal: principal(name), not_after }
}

fn with_tokens(public_url: Option<&str>) -> Authenticator {
    let tokens = [
        token("weir_abc", "ci", None),
        token("old", "ci", Some(1_000)),
        token("twice", "first", Some(1_000)),
        token("twice", "second", None),
        token("a~b+c/d==", "odd", None),
    ];
    Authenticator {
        sources: Some(Sources {
            tokens: Tokens::new(&tokens),
            jwts: Jwts::default(),
            takes_initialize_tokens: false,
        }),
        public_url: String::new(),
        challenger: Challenger::new(public_url),
        metadata: Metadata::default(),
        seen: Seen::default(),
    }
}

/// A configuration with one route, at `/mcp`.
fn plain() -> Config {
    crate::catalog::tests::config("upstreams: { clock: { builtin: clock } }\n")
}

/// The answer to a request with these headers; static tokens wait for nothing.
fn answer(authenticator: &Authenticator, headers: &HeaderMap, now: Timestamp) -> Result<Principal, Refusal> {
    let config = plain();
    let asked = authenticator.authenticate(headers, &config.routes[0], now);
    asked.now_or_never().expect("nothing is waited for")
}

fn headers(values: &[&[u8]]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for value in values {
        headers.append(header::AUTHORIZATION, HeaderValue::from_bytes(value).expect("a header value"));
    }
    headers
}

fn ask(values: &[&str], now: i64) -> Result<Principal, Refusal> {
    let values: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
    let now = Timestamp::from_second(now).expect("a moment");
    answer(&with_tokens(Some("https://gw.example/")), &headers(&values), now)
}

/// The principal of a static token, as it would be without one.
fn holder(values: &[&str], now: i64) -> Result<Principal, Refusal> {
    ask(values, now).map(|found| {
        assert!(matches!(found.voucher, Voucher::Token(_)), "{found:?}");
        Principal { voucher: principal("ci").voucher, ..found }
    })
}

fn refused(values: &[&str], now: i64, status: u16, event: &str) -> String {
    let refusal = ask(values, now).expect_err("it is refused");
    assert_eq!((refusal.status.as_u16(), refusal.event), (status, event), "{values:?}");
    refusal.www_authenticate.expect("a challenge")
}

#[test]
fn a_configured_token_is_its_principal() {
    assert_eq!(holder(&["Bearer weir_abc"], 0), Ok(principal("ci")));
    assert_eq!(holder(&["bEARER  weir_abc "], 0), Ok(principal("ci")));
    assert_eq!(holder(&["Bearer a~b+c/d=="], 0), Ok(principal("odd")));
}

#[test]
fn a_token_ends_with_its_last_day() {
    assert_eq!(holder(&["Bearer old"], 999), Ok(Principal { until: Some(1_000), ..principal("ci") }));
    refused(&["Bearer old"], 1_000, 401, "auth.invalid");
    assert_eq!(holder(&["Bearer twice"], 5_000), Ok(principal("second")));
}

#[test]
fn a_token_that_is_written_twice_is_good_while_one_of_them_is() {
    let tokens = Tokens::new(&[token("twice", "first", None), token("twice", "second", Some(1_000))]);
    for (now, subject) in [(999, "second"), (1_000, "first")] {
        let now = Timestamp::from_second(now).unwrap();
        let found = tokens.find("twice", now).unwrap();
        assert_eq!(found.subject, principal(subject).subject);
        let hash = Sha256::digest("twice").into();
        assert_eq!(tokens.with_hash(&hash, now), Some(found), "a session that it opened goes on");
    }
}

#[test]
fn t031_without_a_credential_the_challenge_names_no_error() {
    assert_eq!(refused(&[], 0, 401, "auth.missing"), format!("Bearer {METADATA}, scope=\"mcp:read\""));
    let now = Timestamp::UNIX_EPOCH;
    let refusal = answer(&with_tokens(None), &HeaderMap::new(), now).expect_err("it is refused");
    assert_eq!(refusal.www_authenticate.as_deref(), Some("Bearer scope=\"mcp:read\""));
}

#[test]
fn t032_malformed_credentials_are_refused() {
    let long = format!("Bearer {}", "x".repeat(20_000));
    let malformed = [
        "Basic dXNlcjpwYXNz",
        "Bearer",
        "Bearer ",
        "Bearer a b",
        "Bearer a,b",
        "Bearer =",
        "weir_abc",
        "",
        &long,
    ];
    for value in malformed {
        let challenge = refused(&[value], 0, 401, "auth.malformed");
        assert!(challenge.starts_with("Bearer error=\"invalid_token\", error_description=\""), "{challenge}");
        assert!(challenge.ends_with(&format!("{METADATA}, scope=\"mcp:read\"")), "{challenge}");
    }
    let raw = headers(&[b"Bearer caf\xe9"]);
    assert!(answer(&with_tokens(None), &raw, Timestamp::UNIX_EPOCH).is_err());
}

#[test]
fn t032_two_headers_are_a_bad_request_even_if_equal() {
    let challenge = refused(&["Bearer weir_abc", "Bearer weir_abc"], 0, 400, "auth.malformed");
    assert!(challenge.starts_with("Bearer error=\"invalid_request\""), "{challenge}");
}

#[test]
fn t101_whatever_is_wrong_with_a_token_the_answer_is_the_same() {
    let unknown = refused(&["Bearer weir_abd"], 0, 401, "auth.invalid");
    for other in ["Bearer weir_ab", "Bearer weir_abcd", "Bearer WEIR_ABC", "Bearer x"] {
        assert_eq!(refused(&[other], 0, 401, "auth.invalid"), unknown);
    }
    assert_eq!(refused(&["Bearer old"], 2_000, 401, "auth.invalid"), unknown);
    assert_eq!(refused(&["Basic x"], 0, 401, "auth.malformed"), unknown);
}

#[test]
fn open_access_asks_for_nothing() {
    let open = Authenticator::new(&plain()).expect("it can be set up");
    for values in [&[][..], &[b"Bearer x".as_slice()], &[b"a", b"b"]] {
        let asked = answer(&open, &headers(values), Timestamp::UNIX_EPOCH);
        assert_eq!(asked, Ok(Principal::open()));
    }
}

#[test]
fn a_challenge_for_scopes_names_all_that_are_legal() {
    let scopes = ["mcp:write", "github:call", "a b", "q\"", "back\\slash", "caf\u{e9}", "", "x\r\ny"];
    let scopes: Vec<Scope> = scopes.into_iter().map(Scope::new).collect();
    assert_eq!(
        with_tokens(Some("https://gw.example")).insufficient_scope(&scopes, "/mcp"),
        format!("Bearer error=\"insufficient_scope\", scope=\"mcp:write github:call\", {METADATA}")
    );
    assert_eq!(with_tokens(None).insufficient_scope(&[], "/mcp"), "Bearer error=\"insufficient_scope\"");
}

#[test]
fn scopes_are_expanded_on_the_route_and_challenged_in_the_issuers_words() {
    let hash = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    let text = format!(
        "upstreams: {{ clock: {{ builtin: clock }} }}\nlisten: {{ public_url: \"https://gw.example\" }}\n\
         access:\n  tokens: [ {{ name: a, hash: \"{hash}\", scopes: [\"team:lead\", \"api://gw/Tools.Read\"] }} ]\n  \
         anonymous: {{ scopes: [\"mcp:read\"] }}\n  scopes:\n    \
         implies: {{ \"team:lead\": [\"team:member\"], \"team:member\": [\"mcp:write\"] }}\n    \
         map: {{ \"api://gw/Tools.Read\": \"mcp:read\" }}\n"
    );
    let config = crate::catalog::tests::config(&text);
    let authenticator = Authenticator::new(&config).expect("it can be set up");
    let ask = |values: &[&[u8]]| {
        let now = Timestamp::UNIX_EPOCH;
        let headers = headers(values);
        authenticator.authenticate(&headers, &config.routes[0], now).now_or_never().expect("at once")
    };
    let known = ask(&[b"Bearer test"]).expect("a principal");
    let scopes: Vec<&str> = known.scopes().map(Scope::as_str).collect();
    assert_eq!(scopes, ["api://gw/Tools.Read", "mcp:read", "mcp:write", "team:lead", "team:member"]);
    let anybody = ask(&[]).expect("a principal");
    assert!(!anybody.is_named() && anybody.scopes().map(Scope::as_str).eq(["mcp:read"]));
    let refusal = ask(&[b"Bearer other"]).expect_err("a bad credential is never anonymous");
    let challenge = refusal.www_authenticate.expect("a challenge");
    assert!(challenge.contains("scope=\"api://gw/Tools.Read\""), "{challenge}");
}

#[test]
fn metadata_stands_between_origin_and_path() {
    let check = |url: &str, path: &str, wanted: &str| {
        let challenge = with_tokens(Some(url)).insufficient_scope(&[], path);
        assert_eq!(challenge, format!("Bearer error=\"insufficient_scope\", resource_metadata=\"{wanted}\""));
    };
    let known = "https://gw.example:8443/.well-known/oauth-protected-resource";
    check("https://gw.example:8443", "/mcp", &format!("{known}/mcp"));
    check("https://gw.example:8443/team/a/", "/mcp", &format!("{known}/team/a/mcp"));
    check("https://gw.example:8443", "/", known);
}

#[test]
fn c086_metadata_stands_where_clients_look_for_it() {
    let text = "upstreams: { clock: { builtin: clock } }\nlisten: { public_url: \"https://gw.example/pre\" }\n\
                access: { tokens: [ { name: a, hash: \"sha256:0000000000000000000000000000000000000000000000000000000000000000\", scopes: [mcp:read] } ] }\n";
    let authenticator = Authenticator::new(&crate::catalog::tests::config(text)).expect("it can be set up");
    let wanted = r#""resource":"https://gw.example/pre/mcp""#;
    for path in ["", "/mcp", "/pre/mcp"] {
        let path = format!("/.well-known/oauth-protected-resource{path}");
        assert!(authenticator.metadata(&path).is_some_and(|document| document.contains(wanted)), "{path}");
    }
    for path in
        ["/.well-known/oauth-protected-resource/", "/.well-known/oauth-protected-resource/other", "/mcp"]
    {
        assert_eq!(authenticator.metadata(path), None, "{path}");
    }
}

#[test]
fn c086_a_challenge_names_a_place_where_the_document_of_its_route_is() {
    for prefix in ["", "/pre"] {
        let text = format!(
            "upstreams: {{ clock: {{ builtin: clock }} }}\nlisten: {{ public_url: \"https://gw.example{prefix}\" }}\n\
             routes: [ {{ name: one }}, {{ name: root, path: / }} ]\naccess: {{ anonymous: {{ scopes: [] }} }}\n"
        );
        let config = crate::catalog::tests::config(&text);
        let authenticator = Authenticator::new(&config).expect("it can be set up");
        for route in &config.routes {
            let challenge = authenticator.insufficient_scope(&[], &route.path);
            let place = challenge.split('"').find(|part| part.contains("/.well-known/")).expect("a place");
            let document = authenticator.metadata(place.trim_start_matches("https://gw.example"));
            let wanted = format!("\"resource\":\"https://gw.example{prefix}{}\"", route.path);
            assert!(document.is_some_and(|document| document.contains(&wanted)), "{place}: {document:?}");
        }
    }
}

#[test]
fn what_scopes_imply_on_a_route_is_remembered_for_that_route_alone() {
    let text = |implied: &str| {
        format!(
            "upstreams: {{ a: {{ url: http://127.0.0.1:1/mcp }} }}\naccess: {{ tokens: [ {{ name: x, hash: \"sha256:{}\" }} ], scopes: {{ implies: {{ \"mcp:read\": [{implied}] }} }} }}\n",
            "0".repeat(64)
        )
    };
    let route = |implied: &str| {
        let loaded = crate::config::read_text(&text(implied), None, &crate::config::Process);
        std::sync::Arc::clone(&loaded.map(|loaded| loaded.config).expect("a configuration").routes[0])
    };
    let (before, after) = (route("extra"), route(""));
    let seen = Seen::default();
    let principal = principal("ci");
    let first = seen.on_route(principal.clone(), &before);
    assert_eq!(first, super::on_route(&principal, &before.policy));
    assert_eq!(seen.on_route(principal.clone(), &before), first);
    assert_eq!(seen.on_route(principal.clone(), &after), super::on_route(&principal, &after.policy));
    assert_ne!(first, super::on_route(&principal, &after.policy));
}
