//! What access costs: a JWT with each call, 50 rules, and an audit log.

use std::fmt::Write as _;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::crypto::sign;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey};

use super::calls::is_good;
use super::client::{MODERN, modern};
use super::{Bench, Contender, Size, ratio_row};

const RULES: usize = 50;

/// The same calls with access and without.
pub(crate) fn access(bench: &Bench) {
    let folder = tempfile::tempdir().expect("a directory");
    let keys = folder.path().join("keys.json");
    let (token, jwks) = token();
    std::fs::write(&keys, jwks).expect("written");
    let mut more = format!(
        "listen: {{ public_url: \"https://gw.example\", allowed_hosts: [\"127.0.0.1\"] }}\n\
         telemetry: {{ audit: {{ file: \"{}\" }} }}\n\
         access:\n  jwt: [ {{ issuer: \"https://id.example\", algorithms: [ES256], jwks: {{ file: \"{}\" }} }} ]\n  rules:\n",
        folder.path().join("audit.jsonl").display(),
        keys.display()
    );
    for number in 0..RULES {
        writeln!(
            more,
            "    - {{ match: {{ tool: \"other{number}_*\" }}, require: {{ scopes_any: [\"s{number}\"] }} }}"
        )
        .expect("written");
    }
    let plain = bench.gateway(MODERN, 1, "/mcp");
    let ruled = bench.gateway_with(MODERN, (1, "/mcp"), &more, &[]);
    let call = |head: &str| {
        vec![modern(
            "/mcp",
            head,
            ("tools/call", "up0__big", r#""name":"up0__big","arguments":{"bytes":64}"#),
        )]
    };
    let (of_plain, of_ruled) = (|| plain.cpu(), || ruled.cpu());
    let bearer = format!("authorization: Bearer {token}\r\n");
    let contenders = [
        Contender { label: String::new(), address: &plain.address, requests: call(""), cpu: &of_plain },
        Contender { label: String::new(), address: &ruled.address, requests: call(&bearer), cpu: &of_ruled },
    ];
    let size = Size { calls: bench.calls, clients: 16, bytes: 64 };
    let best = bench.compete(&contenders, size, is_good);
    let [without, with] = best.as_slice() else { return };
    let what = format!("a JWT, {RULES} rules and an audit log, against the same without");
    ratio_row(&what, 1.25, (with.cpu, without.cpu));
}

/// A token for an hour, and the keys of its issuer.
fn token() -> (String, String) {
    let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
    let key = EncodingKey::from_ec_der(document.expect("a key").as_ref());
    let jwk = Jwk::from_encoding_key(&key, Algorithm::ES256).expect("a public key");
    let mut jwk = serde_json::to_value(jwk).expect("JSON");
    jwk.as_object_mut().expect("an object").insert("kid".to_owned(), "bench".into());
    let end = jiff::Timestamp::now().as_second() + 3600;
    let claims = serde_json::json!({
        "iss": "https://id.example", "aud": "https://gw.example/mcp", "sub": "kim", "exp": end, "scope": "mcp:admin",
    });
    let head = URL_SAFE_NO_PAD.encode(r#"{"alg":"ES256","kid":"bench"}"#);
    let message = format!("{head}.{}", URL_SAFE_NO_PAD.encode(claims.to_string()));
    let signature = sign(message.as_bytes(), &key, Algorithm::ES256).expect("a signature");
    (format!("{message}.{signature}"), serde_json::json!({ "keys": [jwk] }).to_string())
}
