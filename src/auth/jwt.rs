//! JSON Web Tokens as access tokens (RFC 7519, RFC 8725, RFC 9068).
//!
//! The crate verifies signatures and reads keys. What a token says is read here, since much of it is left open there:
//! times are numbers, `iss` is one text, `aud` names this route exactly, the algorithm is one of the issuer's list and
//! fits the key, no header leads to a key, and no member occurs twice. A verified token is remembered by its hash for
//! at most a minute, not beyond its end, and not beyond the key set that verified it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use dashmap::DashMap;
use jiff::Timestamp;
use jsonwebtoken::crypto::verify;
use serde_json::Value;
use tokio::time::Instant;

use super::keys::{KeySet, Keys};
use super::sha256;
use crate::config::{Algorithm, Issuer};
use crate::jsonrpc::Object;
use crate::principal::{Grant, Principal, Scope, Subject};

/// The longest subject, in bytes.
const LONGEST_SUBJECT: usize = 1024;
/// How long a verified token is remembered, and how many are.
const REMEMBERED: Duration = Duration::from_secs(60);
const MOST_REMEMBERED: usize = 8192;

/// Why a token is not accepted; for the log, clients are not told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reject {
    /// It is no JWS of three parts whose parts can be read.
    Format,
    /// Its issuer is none of the configured ones.
    Issuer,
    /// Its algorithm is not accepted, or does not fit the key.
    Algorithm,
    /// A header member that must be understood, or a type that is not the required one.
    Header,
    /// No key verifies it.
    Key,
    /// The signature is not the key's.
    Signature,
    /// A claim of the wrong type, or one that is missing.
    Claim,
    /// It has ended.
    Expired,
    /// It has not begun.
    Early,
    /// It was made for somebody else.
    Audience,
    /// The keys of its issuer were never had, or too long ago.
    NoKeys,
}

impl Reject {
    /// A closed label.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Format => "format",
            Self::Issuer => "issuer",
            Self::Algorithm => "alg",
            Self::Header => "header",
            Self::Key => "kid",
            Self::Signature => "signature",
            Self::Claim => "claim_type",
            Self::Expired => "expired",
            Self::Early => "early",
            Self::Audience => "audience",
            Self::NoKeys => "no_keys",
        }
    }
}

/// What a verified token says.
#[derive(Debug, Clone)]
struct Verified {
    principal: Principal,
    audiences: Vec<String>,
    not_before: Option<f64>,
    issuer: Arc<Issuer>,
}

struct Remembered {
    verified: Arc<Verified>,
    keys: Arc<Keys>,
    epoch: u64,
    at: Instant,
}

/// Verifies tokens of the configured issuers.
#[derive(Default)]
pub(super) struct Jwts {
    issuers: Vec<Arc<Keys>>,
    remembered: DashMap<[u8; 32], Remembered>,
}

impl std::fmt::Debug for Jwts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Jwts").field("issuers", &self.issuers).finish_non_exhaustive()
    }
}

impl Jwts {
    pub(super) fn new(issuers: Vec<Arc<Keys>>) -> Self {
        Self { issuers, remembered: DashMap::new() }
    }

    /// Whether there are issuers at all.
    pub(super) fn is_empty(&self) -> bool {
        self.issuers.is_empty()
    }

    /// The keys of the issuer that this one is, from the same place.
    pub(super) fn keys_like(&self, issuer: &Issuer) -> Option<&Arc<Keys>> {
        let is_like =
            |keys: &&Arc<Keys>| keys.issuer.issuer == issuer.issuer && keys.issuer.keys == issuer.keys;
        self.issuers.iter().find(is_like)
    }

    /// The key sets.
    pub(super) fn keys(&self) -> &[Arc<Keys>] {
        &self.issuers
    }

    /// The principal of a token that was made for one of these audiences and is good at this moment.
    pub(super) async fn principal(
        &self,
        token: &str,
        audiences: &[String],
        now: Timestamp,
    ) -> Result<Principal, Reject> {
        let hash = sha256(token);
        let verified = match self.recalled(&hash) {
            Some(verified) => verified,
            None => {
                let (keys, epoch, verified) = self.verified(token).await?;
                let verified = Arc::new(verified);
                self.remember(hash, keys, epoch, Arc::clone(&verified));
                verified
            }
        };
        verified.is_good(audiences, now)?;
        Ok(verified.principal.clone())
    }

    fn recalled(&self, hash: &[u8; 32]) -> Option<Arc<Verified>> {
        let known = self.remembered.get(hash)?;
        let is_fresh = known.at.elapsed() < REMEMBERED && known.keys.current().epoch == known.epoch;
        is_fresh.then(|| Arc::clone(&known.verified))
    }

    fn remember(&self, hash: [u8; 32], keys: Arc<Keys>, epoch: u64, verified: Arc<Verified>) {
        if self.remembered.len() >= MOST_REMEMBERED {
            self.remembered.clear();
        }
        self.remembered.insert(hash, Remembered { verified, keys, epoch, at: Instant::now() });
    }

    async fn verified(&self, token: &str) -> Result<(Arc<Keys>, u64, Verified), Reject> {
        let parts = Parts::read(token).ok_or(Reject::Format)?;
        let claims = Object::open(&parts.claims).ok_or(Reject::Format)?;
        let name = claims.text("iss").ok_or(Reject::Issuer)?;
        let keys = self.issuers.iter().find(|keys| keys.issuer.issuer == name).ok_or(Reject::Issuer)?;
        let header = Header::read(&parts.header, &keys.issuer)?;
        let mut set = keys.current();
        if !keys.are_good() {
            keys.look_again().await;
            set = keys.current();
        } else if !set.fits(header.kid.as_deref(), header.algorithm) {
            // Perhaps the issuer has a new key. It is asked once in a while, however many such tokens come.
            keys.look_again().await;
            set = keys.current();
        }
        if !keys.are_good() {
            return Err(Reject::NoKeys);
        }
        check_signature(&set, &header, &parts)?;
        let verified = read_claims(&claims, keys)?;
        Ok((Arc::clone(keys), set.epoch, verified))
    }
}

impl Verified {
    /// Whether it is good for one of these audiences now.
    #[expect(clippy::cast_precision_loss, reason = "seconds since 1970 are far below what a double holds")]
    fn is_good(&self, audiences: &[String], now: Timestamp) -> Result<(), Reject> {
        let now = now.as_second() as f64;
        let end = self.principal.until.unwrap_or(i64::MAX) as f64;
        if now >= end {
            return Err(Reject::Expired);
        }
        if self.not_before.is_some_and(|begin| begin - self.issuer.leeway.as_secs_f64() > now) {
            return Err(Reject::Early);
        }
        let is_ours =
            |audience: &String| audiences.contains(audience) || self.issuer.audiences.contains(audience);
        if !self.audiences.iter().any(is_ours) {
            return Err(Reject::Audience);
        }
        Ok(())
    }
}

/// The parts of a JWS in compact form, the first two decoded.
struct Parts<'t> {
    message: &'t str,
    signature: &'t str,
    header: String,
    claims: String,
}

impl<'t> Parts<'t> {
    fn read(token: &'t str) -> Option<Self> {
        let (message, signature) = token.rsplit_once('.')?;
        let (header, claims) = message.split_once('.')?;
        if claims.contains('.') || signature.is_empty() {
            return None;
        }
        let decoded = |part: &str| String::from_utf8(URL_SAFE_NO_PAD.decode(part).ok()?).ok();
        Some(Self { message, signature, header: decoded(header)?, claims: decoded(claims)? })
    }
}

struct Header {
    algorithm: Algorithm,
    kid: Option<String>,
}

impl Header {
    /// Reads a header. Members that lead to a key (`jku`, `jwk`, `x5u`, `x5c`) are not looked at.
    fn read(text: &str, issuer: &Issuer) -> Result<Self, Reject> {
        let header = Object::open(text).ok_or(Reject::Format)?;
        let algorithm = header.text("alg").as_deref().and_then(Algorithm::parse);
        let algorithm =
            algorithm.filter(|known| issuer.algorithms.contains(known)).ok_or(Reject::Algorithm)?;
        if header.get("crit").is_some() || header.get("b64").is_some() {
            return Err(Reject::Header);
        }
        let kind = header.text("typ").map(|kind| media_type(&kind));
        if issuer.require_typ.as_ref().is_some_and(|wanted| kind != Some(media_type(wanted))) {
            return Err(Reject::Header);
        }
        let kid = match header.get("kid") {
            None => None,
            Some(_) => Some(header.text("kid").ok_or(Reject::Header)?),
        };
        Ok(Self { algorithm, kid })
    }
}

/// `typ` in lower case, without the prefix that may be left out (RFC 7515, section 4.1.9).
fn media_type(text: &str) -> String {
    let text = text.to_ascii_lowercase();
    text.strip_prefix("application/").map_or_else(|| text.clone(), str::to_owned)
}

fn check_signature(set: &KeySet, header: &Header, parts: &Parts<'_>) -> Result<(), Reject> {
    let mut keys = set.fitting(header.kid.as_deref(), header.algorithm).peekable();
    if keys.peek().is_none() {
        return Err(Reject::Key);
    }
    let is_good = keys.any(|key| {
        verify(parts.signature, parts.message.as_bytes(), &key.key, key.of(header.algorithm)).unwrap_or(false)
    });
    if is_good { Ok(()) } else { Err(Reject::Signature) }
}

fn read_claims(claims: &Object<'_>, keys: &Keys) -> Result<Verified, Reject> {
    let issuer = &keys.issuer;
    let leeway = issuer.leeway.as_secs_f64();
    let end = time(claims, "exp")?.ok_or(Reject::Claim)?;
    let not_before = time(claims, "nbf")?;
    time(claims, "iat")?;
    let subject = claims.text("sub").filter(|sub| !sub.is_empty() && sub.len() <= LONGEST_SUBJECT);
    let subject = Subject {
        issuer: issuer.issuer.as_str().into(),
        subject: subject.ok_or(Reject::Claim)?.as_str().into(),
    };
    let grant = Grant {
        scopes: words(claims, &issuer.scope_claims)?.iter().map(|scope| Scope::new(scope)).collect(),
        groups: list(claims, &issuer.group_claims)?.iter().map(|group| group.as_str().into()).collect(),
        ..Grant::default()
    };
    #[expect(clippy::cast_possible_truncation, reason = "its size was checked")]
    let until = (end + leeway).floor() as i64;
    let principal = Principal::granted(subject, grant, Some(until));
    Ok(Verified {
        principal: principal.under(keys.terms),
        audiences: texts(claims, "aud")?,
        not_before,
        issuer: Arc::clone(issuer),
    })
}

/// A time in seconds since 1970, which may have a fraction (RFC 7519, section 2, `NumericDate`).
fn time(claims: &Object<'_>, name: &str) -> Result<Option<f64>, Reject> {
    const LATEST: f64 = 253_402_300_800.0;
    let Some(raw) = claims.get(name) else { return Ok(None) };
    let value: Value = serde_json::from_str(raw).map_err(|_why| Reject::Claim)?;
    let number = value.as_number().and_then(serde_json::Number::as_f64);
    number.filter(|number| (0.0..LATEST).contains(number)).map(Some).ok_or(Reject::Claim)
}

/// A claim that is a text or a list of texts; empty where it is absent.
fn texts(claims: &Object<'_>, name: &str) -> Result<Vec<String>, Reject> {
    let Some(raw) = claims.get(name) else { return Ok(Vec::new()) };
    if let Ok(one) = serde_json::from_str::<String>(raw) {
        return Ok(vec![one]);
    }
    serde_json::from_str(raw).map_err(|_why| Reject::Claim)
}

/// Claims whose texts hold words with one space between them; a list holds one word in each item.
fn words(claims: &Object<'_>, names: &[String]) -> Result<BTreeSet<String>, Reject> {
    let mut all = BTreeSet::new();
    for name in names {
        let Some(raw) = claims.get(name) else { continue };
        if let Ok(text) = serde_json::from_str::<String>(raw) {
            all.extend(text.split(' ').filter(|word| !word.is_empty()).map(str::to_owned));
        } else {
            all.extend(texts(claims, name)?);
        }
    }
    Ok(all)
}

fn list(claims: &Object<'_>, names: &[String]) -> Result<BTreeSet<String>, Reject> {
    let mut all = BTreeSet::new();
    for name in names {
        all.extend(texts(claims, name)?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
