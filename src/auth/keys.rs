//! The keys of one issuer of tokens.
//!
//! One task fetches them at start and from time to time; a token whose key is not among them may have them fetched
//! once more, but not twice within the cool-down, however many such tokens come. A fetch that fails changes nothing:
//! keys are replaced, never lost.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jsonwebtoken::DecodingKey;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse};
use serde_json::value::RawValue;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::fetch::{Fetcher, Trouble};
use super::sha256;
use crate::config::{Algorithm, Issuer, KeySource};
use crate::jsonrpc::Object;

/// How often keys are fetched, from the network and from a file.
const REFRESH: Duration = Duration::from_secs(600);
const REFRESH_FILE: Duration = Duration::from_secs(10);
/// Between two attempts while there were never any; doubled up to the cool-down.
const FIRST_RETRY: Duration = Duration::from_secs(1);
/// Between two fetches that tokens with an unknown key ask for.
const COOL_DOWN: Duration = Duration::from_secs(30);
/// How long a token waits for such a fetch.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long keys are good without a fetch that confirms them: whoever can stop the fetching keeps a withdrawn key no
/// longer than this.
const MAX_STALE: Duration = Duration::from_secs(24 * 3600);
/// Most keys of a set.
const MOST_KEYS: usize = 256;

/// A key and what it is good for.
pub(super) struct Key {
    kid: Option<String>,
    algorithms: Vec<(Algorithm, jsonwebtoken::Algorithm)>,
    pub(super) key: DecodingKey,
}

/// The keys of one fetch.
#[derive(Default)]
pub(super) struct KeySet {
    keys: Vec<Key>,
    /// Counts the sets that differed.
    pub(super) epoch: u64,
    /// Whether there ever was one.
    pub(super) is_loaded: bool,
    text: String,
}

impl KeySet {
    /// Whether a key may verify a token with this `kid` and algorithm.
    pub(super) fn fits(&self, kid: Option<&str>, algorithm: Algorithm) -> bool {
        self.fitting(kid, algorithm).next().is_some()
    }

    /// The keys for a token: those of its `kid`; of a token without one all that have its algorithm.
    pub(super) fn fitting<'s>(
        &'s self,
        kid: Option<&'s str>,
        algorithm: Algorithm,
    ) -> impl Iterator<Item = &'s Key> {
        self.keys.iter().filter(move |key| {
            key.algorithms.iter().any(|(known, _)| *known == algorithm)
                && kid.is_none_or(|kid| key.kid.as_deref() == Some(kid))
        })
    }
}

impl Key {
    /// The algorithm in the words of the crate.
    pub(super) fn of(&self, algorithm: Algorithm) -> jsonwebtoken::Algorithm {
        let own = self.algorithms.iter().find(|(known, _)| *known == algorithm);
        own.map_or(jsonwebtoken::Algorithm::RS256, |(_, theirs)| *theirs)
    }

    /// A public key for signatures; `None` for any other.
    fn read(raw: &str) -> Option<Self> {
        let jwk: Jwk = serde_json::from_str(raw).ok()?;
        if jwk.common.public_key_use.as_ref().is_some_and(|use_of| *use_of != PublicKeyUse::Signature) {
            return None;
        }
        let named = Object::open(raw)?.text("alg");
        let mut algorithms = suitable(&jwk.algorithm);
        algorithms
            .retain(|(own, _)| named.is_none() || named.as_deref().and_then(Algorithm::parse) == Some(*own));
        if algorithms.is_empty() {
            return None;
        }
        Some(Self { kid: jwk.common.key_id.clone(), algorithms, key: DecodingKey::from_jwk(&jwk).ok()? })
    }
}

/// What a key of this kind can verify (RFC 7518, section 6.1). A shared secret verifies nothing here.
fn suitable(kind: &AlgorithmParameters) -> Vec<(Algorithm, jsonwebtoken::Algorithm)> {
    use jsonwebtoken::Algorithm as Their;
    match kind {
        AlgorithmParameters::RSA(_) => vec![
            (Algorithm::Rs256, Their::RS256),
            (Algorithm::Rs384, Their::RS384),
            (Algorithm::Rs512, Their::RS512),
            (Algorithm::Ps256, Their::PS256),
            (Algorithm::Ps384, Their::PS384),
            (Algorithm::Ps512, Their::PS512),
        ],
        AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => {
            vec![(Algorithm::Es256, Their::ES256)]
        }
        AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P384 => {
            vec![(Algorithm::Es384, Their::ES384)]
        }
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
            vec![(Algorithm::EdDsa, Their::EdDSA)]
        }
        _ => Vec::new(),
    }
}

#[derive(Debug, Default)]
struct Extra {
    asked_at: Option<Instant>,
    is_running: bool,
}

/// The keys of one issuer, as they are now.
pub(super) struct Keys {
    pub(super) issuer: Arc<Issuer>,
    /// Stands for everything that the configuration says of the issuer: equal where that is.
    pub(super) terms: [u8; 32],
    set: watch::Sender<Arc<KeySet>>,
    /// When keys last came.
    confirmed: Mutex<Option<Instant>>,
    /// Counts the fetches that ended, whatever came of them.
    fetches: watch::Sender<u64>,
    extra: Mutex<Extra>,
    wanted: Notify,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Keys").field(&self.issuer.issuer).finish()
    }
}

impl Keys {
    /// The keys of an issuer, with those that are known `before` the first fetch.
    pub(super) fn new(issuer: Arc<Issuer>, before: Option<&Arc<Self>>) -> Arc<Self> {
        let confirmed = before.and_then(|before| *before.confirmed());
        let terms = sha256(&format!("{issuer:?}"));
        Arc::new(Self {
            issuer,
            terms,
            set: watch::Sender::new(before.map(|before| before.current()).unwrap_or_default()),
            confirmed: Mutex::new(confirmed),
            fetches: watch::Sender::new(0),
            extra: Mutex::default(),
            wanted: Notify::new(),
        })
    }

    /// Whether there are keys that were confirmed lately enough.
    pub(super) fn are_good(&self) -> bool {
        self.confirmed().is_some_and(|at| at.elapsed() < MAX_STALE)
    }

    fn confirmed(&self) -> MutexGuard<'_, Option<Instant>> {
        self.confirmed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The keys now.
    pub(super) fn current(&self) -> Arc<KeySet> {
        Arc::clone(&self.set.borrow())
    }

    fn extra(&self) -> MutexGuard<'_, Extra> {
        self.extra.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the keys fetched for a token that none of them fits, and waits for it, unless that was done a short while
    /// ago.
    pub(super) async fn look_again(&self) {
        let mut fetches = self.fetches.subscribe();
        let seen = *fetches.borrow_and_update();
        {
            let mut extra = self.extra();
            let is_due = extra.asked_at.is_none_or(|at| at.elapsed() >= COOL_DOWN);
            if is_due && !extra.is_running {
                *extra = Extra { asked_at: Some(Instant::now()), is_running: true };
                self.wanted.notify_one();
            } else if !extra.is_running {
                return;
            }
        }
        let ended = fetches.wait_for(|count| *count > seen);
        if tokio::time::timeout(PATIENCE, ended).await.is_err() {
            tracing::debug!(issuer = %self.issuer.issuer, "the keys do not come");
        }
    }

    /// Fetches keys until its task is cancelled.
    pub(super) async fn keep(self: Arc<Self>, fetcher: Fetcher) {
        let mut failures = 0_u32;
        loop {
            let fetched = {
                let _ended = Ended(&self);
                fetcher.keys(&self.issuer).await.and_then(|text| self.take(text))
            };
            match fetched {
                Ok(()) => failures = 0,
                Err(trouble) => {
                    failures = failures.saturating_add(1);
                    self.failed(failures, &trouble);
                }
            }
            tokio::select! {
                () = tokio::time::sleep(self.pause(failures)) => {}
                () = self.wanted.notified() => {}
            }
        }
    }

    fn pause(&self, failures: u32) -> Duration {
        match (&self.issuer.keys, failures) {
            (KeySource::File(_), _) => REFRESH_FILE,
            (KeySource::Discovery(_) | KeySource::Url(_), 0) => REFRESH,
            (KeySource::Discovery(_) | KeySource::Url(_), _) if self.current().is_loaded => COOL_DOWN,
            (KeySource::Discovery(_) | KeySource::Url(_), _) => {
                FIRST_RETRY.saturating_mul(1 << (failures - 1).min(8)).min(COOL_DOWN)
            }
        }
    }

    fn failed(&self, failures: u32, trouble: &Trouble) {
        if failures == 1 {
            tracing::error!(event = "jwks.error", issuer = %self.issuer.issuer, reason = %trouble, "no keys");
        } else {
            tracing::debug!(event = "jwks.error", issuer = %self.issuer.issuer, reason = %trouble, "still no keys");
        }
    }

    /// Takes a document in.
    ///
    /// # Errors
    /// [`Trouble::NoKey`] for one without a usable key; it changes nothing.
    pub(super) fn take(&self, text: String) -> Result<(), Trouble> {
        let old = self.current();
        let is_known = old.is_loaded && old.text == text;
        let keys = if is_known { Vec::new() } else { read(&text) };
        if keys.is_empty() && !is_known {
            return Err(Trouble::NoKey);
        }
        *self.confirmed() = Some(Instant::now());
        if is_known {
            return Ok(());
        }
        tracing::info!(event = "jwks.rotated", issuer = %self.issuer.issuer, keys = keys.len(), "keys of an issuer");
        let set = KeySet { keys, epoch: old.epoch + 1, is_loaded: true, text };
        self.set.send_replace(Arc::new(set));
        Ok(())
    }
}

/// Says that a fetch has ended, however it did: nobody waits for one that panicked.
struct Ended<'k>(&'k Keys);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.extra().is_running = false;
        self.0.fetches.send_modify(|count| *count += 1);
    }
}

/// The usable keys of a set (RFC 7517, section 5).
fn read(text: &str) -> Vec<Key> {
    let document = Object::open(text).unwrap_or_default();
    let keys: Vec<&RawValue> =
        document.get("keys").and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default();
    keys.into_iter().take(MOST_KEYS).filter_map(|raw| Key::read(raw.get())).collect()
}
