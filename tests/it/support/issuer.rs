//! An issuer of tokens: metadata and keys over HTTP, and tokens as a test wants them, also bad ones.

use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use jsonwebtoken::crypto::sign;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey};
use serde_json::{Value, json};

use super::http::Head;

struct Signer {
    kid: String,
    key: EncodingKey,
    jwk: Value,
}

impl Signer {
    fn new(kid: &str) -> Self {
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        let key = EncodingKey::from_ec_der(document.expect("a key").as_ref());
        let jwk = Jwk::from_encoding_key(&key, Algorithm::ES256).expect("a public key");
        let mut jwk = serde_json::to_value(jwk).expect("JSON");
        jwk["kid"] = json!(kid);
        Self { kid: kid.to_owned(), key, jwk }
    }
}

struct State {
    signer: Mutex<Signer>,
    published: Mutex<String>,
    fetches: AtomicUsize,
    is_down: AtomicBool,
}

/// An issuer.
pub(crate) struct Issuer {
    address: SocketAddr,
    state: Arc<State>,
}

impl Issuer {
    /// One that has a key and tells of it.
    pub(crate) fn start() -> Self {
        let signer = Signer::new("first");
        let published = json!({ "keys": [signer.jwk] }).to_string();
        let state = Arc::new(State {
            signer: Mutex::new(signer),
            published: Mutex::new(published),
            fetches: AtomicUsize::new(0),
            is_down: AtomicBool::new(false),
        });
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::clone(&state);
        thread::spawn(move || serve(&listener, address, &shared));
        Self { address, state }
    }

    /// What it calls itself.
    pub(crate) fn name(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The `access` section that trusts it; `more` are further lines below `access`.
    pub(crate) fn access(&self, more: &str) -> String {
        let lines: String = more.lines().map(|line| format!("  {line}\n")).collect();
        format!("access:\n  jwt: [ {{ issuer: \"{}\", leeway: 0s }} ]\n{lines}", self.name())
    }

    /// Another key from now on; the old one is not told of any more.
    pub(crate) fn rotate(&self, kid: &str) {
        let signer = Signer::new(kid);
        self.publish(&json!({ "keys": [signer.jwk] }).to_string());
        *self.state.signer.lock().unwrap_or_else(PoisonError::into_inner) = signer;
    }

    /// Another document instead of its keys.
    pub(crate) fn publish(&self, document: &str) {
        document.clone_into(&mut self.state.published.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// It answers 503, or no longer.
    pub(crate) fn down(&self, is_down: bool) {
        self.state.is_down.store(is_down, Ordering::Relaxed);
    }

    /// How often its keys were asked for.
    pub(crate) fn fetches(&self) -> usize {
        self.state.fetches.load(Ordering::Relaxed)
    }

    /// A token of `kim` for this audience with these scopes, good for an hour.
    pub(crate) fn token(&self, audience: &str, scopes: &str) -> String {
        self.signed(audience, &[("scope", json!(scopes))])
    }

    /// A token with changed claims; null takes a claim away.
    pub(crate) fn signed(&self, audience: &str, change: &[(&str, Value)]) -> String {
        self.made(None, audience, change)
    }

    /// The same with a head of the test's own.
    pub(crate) fn made(&self, head: Option<&str>, audience: &str, change: &[(&str, Value)]) -> String {
        let end = Timestamp::now().as_second() + 3600;
        let mut claims = json!({ "iss": self.name(), "aud": audience, "sub": "kim", "exp": end });
        for (name, value) in change {
            if value.is_null() {
                claims.as_object_mut().expect("an object").remove(*name);
            } else {
                claims[*name] = value.clone();
            }
        }
        let signer = self.state.signer.lock().unwrap_or_else(PoisonError::into_inner);
        let own = json!({ "alg": "ES256", "kid": signer.kid }).to_string();
        let head = URL_SAFE_NO_PAD.encode(head.unwrap_or(&own));
        let message = format!("{head}.{}", URL_SAFE_NO_PAD.encode(claims.to_string()));
        let signature = sign(message.as_bytes(), &signer.key, Algorithm::ES256).expect("a signature");
        format!("{message}.{signature}")
    }
}

fn serve(listener: &TcpListener, address: SocketAddr, state: &State) {
    for mut socket in listener.incoming().map_while(Result::ok) {
        let Ok(Some(head)) = Head::read(&mut BufReader::new(&socket)) else { continue };
        let keys = || state.published.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (status, body) = match head.word(1) {
            _ if state.is_down.load(Ordering::Relaxed) => ("503 Service Unavailable", String::new()),
            "/.well-known/openid-configuration" => {
                let name = format!("http://{address}");
                ("200 OK", json!({ "issuer": name, "jwks_uri": format!("{name}/keys") }).to_string())
            }
            "/keys" => {
                state.fetches.fetch_add(1, Ordering::Relaxed);
                ("200 OK", keys())
            }
            _ => ("404 Not Found", String::new()),
        };
        let length = body.len();
        let text = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
        socket.write_all(text.as_bytes()).ok();
    }
}
