//! Tokens that must not be accepted, and those that must: threats T102 to T111.

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use jsonwebtoken::crypto::sign;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm as Their, EncodingKey};
use proptest::prelude::{any, prop, proptest};
use serde_json::{Value, json};

use super::{Jwts, Keys, Reject};
use crate::config::{Algorithm, Issuer, KeySource};
use crate::principal::{Principal, Scope};

const NOW: i64 = 1_800_000_000;
const ISSUER: &str = "https://id.example";
const AUDIENCE: &str = "https://gw.example/mcp";

/// Somebody who signs.
struct Signer {
    key: EncodingKey,
    jwk: Value,
}

impl Signer {
    fn new(kid: &str) -> Self {
        let random = aws_lc_rs::rand::SystemRandom::new();
        let document =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).expect("a key");
        let key = EncodingKey::from_ec_der(document.as_ref());
        let mut jwk =
            serde_json::to_value(Jwk::from_encoding_key(&key, Their::ES256).expect("a key")).expect("JSON");
        jwk["kid"] = json!(kid);
        Self { key, jwk }
    }

    fn token(&self, header: &str, claims: &str) -> String {
        let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
        let signature = sign(message.as_bytes(), &self.key, Their::ES256).expect("a signature");
        format!("{message}.{signature}")
    }
}

fn issuer() -> Issuer {
    Issuer {
        issuer: ISSUER.to_owned(),
        audiences: vec!["https://other.example".to_owned()],
        keys: KeySource::Url("https://id.example/keys".to_owned()),
        algorithms: vec![Algorithm::Es256, Algorithm::Rs256],
        require_typ: None,
        leeway: Duration::from_secs(30),
        scope_claims: vec!["scope".to_owned(), "scp".to_owned()],
        group_claims: vec!["groups".to_owned()],
    }
}

fn jwts(issuer: Issuer, keys: &[&Signer]) -> Jwts {
    let set = Keys::new(Arc::new(issuer), None);
    let all: Vec<&Value> = keys.iter().map(|signer| &signer.jwk).collect();
    set.take(json!({ "keys": all }).to_string()).expect("usable keys");
    Jwts::new(vec![set])
}

async fn ask(jwts: &Jwts, token: &str) -> Result<Principal, Reject> {
    let now = Timestamp::from_second(NOW).expect("a moment");
    jwts.principal(token, &[AUDIENCE.to_owned()], now).await
}

const HEADER: &str = r#"{"alg":"ES256","kid":"k"}"#;

fn claims(change: &[(&str, Value)]) -> String {
    let mut all =
        json!({ "iss": ISSUER, "aud": AUDIENCE, "sub": "kim", "exp": NOW + 60, "scope": "mcp:read a" });
    for (name, value) in change {
        match value {
            Value::Null => drop(all.as_object_mut().expect("an object").remove(*name)),
            value => all[*name] = value.clone(),
        }
    }
    all.to_string()
}

#[tokio::test(start_paused = true)]
async fn a_good_token_is_its_holder() {
    let signer = Signer::new("k");
    let jwts = jwts(issuer(), &[&signer]);
    let more = claims(&[("scp", json!(["b", "c d"])), ("groups", json!("fin"))]);
    let principal = ask(&jwts, &signer.token(HEADER, &more)).await.expect("a principal");
    assert_eq!((&*principal.subject.issuer, &*principal.subject.subject), (ISSUER, "kim"));
    let scopes: Vec<&str> = principal.scopes().map(Scope::as_str).collect();
    assert_eq!(scopes, ["a", "b", "c d", "mcp:read"]);
    assert_eq!(principal.until, Some(NOW + 90), "with the leeway");
}

#[tokio::test(start_paused = true)]
async fn t102_to_t108_what_claims_may_not_say() {
    let signer = Signer::new("k");
    let jwts = jwts(issuer(), &[&signer]);
    let cases: &[(&str, Value, Option<Reject>)] = &[
        ("exp", json!(NOW - 29), None),
        ("exp", json!(NOW as f64 + 0.5), None),
        ("exp", json!(NOW - 31), Some(Reject::Expired)),
        ("exp", Value::Null, Some(Reject::Claim)),
        ("exp", json!((NOW + 60).to_string()), Some(Reject::Claim)),
        ("exp", json!(-1), Some(Reject::Claim)),
        ("exp", json!(9_223_372_036_854_775_808_u64), Some(Reject::Claim)),
        ("nbf", json!(NOW + 29), None),
        ("nbf", json!(NOW + 31), Some(Reject::Early)),
        ("nbf", json!("0"), Some(Reject::Claim)),
        ("iat", json!("x"), Some(Reject::Claim)),
        ("aud", Value::Null, Some(Reject::Audience)),
        ("aud", json!(["x", AUDIENCE]), None),
        ("aud", json!("https://other.example"), None),
        ("aud", json!(["x"]), Some(Reject::Audience)),
        ("aud", json!(format!("{AUDIENCE}.evil")), Some(Reject::Audience)),
        ("aud", json!(format!("{AUDIENCE}/")), Some(Reject::Audience)),
        ("aud", json!({ "a": AUDIENCE }), Some(Reject::Claim)),
        ("iss", Value::Null, Some(Reject::Issuer)),
        ("iss", json!([ISSUER]), Some(Reject::Issuer)),
        ("iss", json!("https://ID.example"), Some(Reject::Issuer)),
        ("iss", json!("https://id.example/"), Some(Reject::Issuer)),
        ("sub", Value::Null, Some(Reject::Claim)),
        ("sub", json!(""), Some(Reject::Claim)),
        ("scope", json!(5), Some(Reject::Claim)),
        ("groups", json!([1]), Some(Reject::Claim)),
    ];
    for (name, value, wanted) in cases {
        let token = signer.token(HEADER, &claims(&[(name, value.clone())]));
        assert_eq!(ask(&jwts, &token).await.err(), *wanted, "{name}: {value}");
    }
}

#[tokio::test(start_paused = true)]
async fn t105_to_t109_what_heads_and_forms_may_not_be() {
    let (signer, other) = (Signer::new("k"), Signer::new("other"));
    let jwts = jwts(issuer(), &[&signer]);
    let whole = claims(&[]);
    let heads: &[(&str, Reject)] = &[
        (r#"{"alg":"none"}"#, Reject::Algorithm),
        (r#"{"alg":"NONE","kid":"k"}"#, Reject::Algorithm),
        (r#"{"alg":"HS256","kid":"k"}"#, Reject::Algorithm),
        (r#"{"alg":"ES384","kid":"k"}"#, Reject::Algorithm),
        (r#"{"alg":"RS256","kid":"k"}"#, Reject::Key),
        (r#"{"kid":"k"}"#, Reject::Algorithm),
        (r#"{"alg":"ES256","kid":"unknown"}"#, Reject::Key),
        (r#"{"alg":"ES256","kid":5}"#, Reject::Header),
        (r#"{"alg":"ES256","kid":"k","crit":["x"]}"#, Reject::Header),
        (r#"{"alg":"ES256","kid":"k","b64":false}"#, Reject::Header),
        (r#"{"alg":"ES256","alg":"none","kid":"k"}"#, Reject::Format),
    ];
    for (head, wanted) in heads {
        assert_eq!(ask(&jwts, &signer.token(head, &whole)).await.err(), Some(*wanted), "{head}");
    }
    let ignored = r#"{"alg":"ES256","kid":"k","jku":"https://evil.example","jwk":{"kty":"oct","k":"AA"}}"#;
    assert!(ask(&jwts, &signer.token(ignored, &whole)).await.is_ok(), "no header leads to a key");
    assert_eq!(ask(&jwts, &other.token(HEADER, &whole)).await.err(), Some(Reject::Signature));
    let twice = whole.replacen('{', r#"{"sub":"root","#, 1);
    assert_eq!(ask(&jwts, &signer.token(HEADER, &twice)).await.err(), Some(Reject::Format));
    let good = signer.token(HEADER, &whole);
    let bare = good.rsplit_once('.').expect("three parts").0;
    for bad in [format!("{bare}."), bare.to_owned(), format!("{good}.x.y"), format!("{good}="), ".".repeat(2)]
    {
        assert!(ask(&jwts, &bad).await.is_err(), "{bad}");
    }
}

#[tokio::test(start_paused = true)]
async fn t110_the_type_counts_where_the_operator_wants_it() {
    let signer = Signer::new("k");
    let strict = Issuer { require_typ: Some("at+jwt".to_owned()), ..issuer() };
    let jwts = jwts(strict, &[&signer]);
    for (typ, wanted) in [
        (r#","typ":"at+jwt""#, None),
        (r#","typ":"application/AT+JWT""#, None),
        (r#","typ":"JWT""#, Some(Reject::Header)),
        ("", Some(Reject::Header)),
    ] {
        let head = format!(r#"{{"alg":"ES256","kid":"k"{typ}}}"#);
        assert_eq!(ask(&jwts, &signer.token(&head, &claims(&[]))).await.err(), wanted, "{head}");
    }
}

#[tokio::test(start_paused = true)]
async fn t111_a_removed_key_ends_what_it_verified() {
    let (old, new) = (Signer::new("k"), Signer::new("n"));
    let jwts = jwts(issuer(), &[&old]);
    let token = old.token(HEADER, &claims(&[]));
    assert!(ask(&jwts, &token).await.is_ok());
    jwts.keys()[0].take(json!({ "keys": [new.jwk] }).to_string()).expect("usable keys");
    assert_eq!(ask(&jwts, &token).await.err(), Some(Reject::Key));
    for garbage in ["", "{}", "[]", r#"{"keys":[]}"#, r#"{"keys":[{"kty":"oct","k":"AAAA","kid":"n"}]}"#] {
        assert!(jwts.keys()[0].take(garbage.to_owned()).is_err(), "{garbage}: looked for again soon");
    }
    let head = r#"{"alg":"ES256","kid":"n"}"#;
    assert!(ask(&jwts, &new.token(head, &claims(&[]))).await.is_ok(), "garbage does not take keys away");
}

#[tokio::test(start_paused = true)]
async fn t111_t112_keys_that_nobody_confirms_end_after_a_day() {
    let signer = Signer::new("k");
    let jwts = jwts(issuer(), &[&signer]);
    let token = signer.token(HEADER, &claims(&[]));
    let document = json!({ "keys": [signer.jwk] }).to_string();
    for (hours, confirmed, wanted) in [
        (23, false, None),
        (2, false, Some(Reject::NoKeys)),
        (0, true, None),
        (23, true, None),
        (23, false, None),
    ] {
        tokio::time::advance(Duration::from_secs(hours * 3600)).await;
        if confirmed {
            jwts.keys()[0].take(document.clone()).expect("usable keys");
        }
        assert_eq!(ask(&jwts, &token).await.err(), wanted, "{hours} {confirmed}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_keys_nothing_is_accepted() {
    let signer = Signer::new("k");
    let jwts = Jwts::new(vec![Keys::new(Arc::new(issuer()), None)]);
    assert_eq!(ask(&jwts, &signer.token(HEADER, &claims(&[]))).await.err(), Some(Reject::NoKeys));
}

proptest! {
    /// Whatever is changed in a token, it is not accepted; whatever comes, nothing panics.
    #[test]
    fn no_changed_token_is_accepted(at in any::<prop::sample::Index>(), to in "[A-Za-z0-9_.-]", other in "[ -~]{0,60}") {
        let signer = Signer::new("k");
        let jwts = jwts(issuer(), &[&signer]);
        let token = signer.token(HEADER, &claims(&[]));
        let mut changed = token.clone().into_bytes();
        let at = at.index(changed.len());
        changed[at] = to.as_bytes()[0];
        let changed = String::from_utf8(changed).expect("ASCII");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(async {
            if changed != token {
                assert!(ask(&jwts, &changed).await.is_err());
            }
            assert!(ask(&jwts, &other).await.is_err());
        });
    }
}
