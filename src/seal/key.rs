//! Keys, and sealing and opening of bytes with them.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use hkdf::Hkdf;
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;

const PREFIX: &str = "w1.";
const ID_BYTES: usize = 4;
const NONCE_BYTES: usize = 24;
/// Longer texts are not looked at.
const LONGEST: usize = 256 * 1024;

/// What a sealed value is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The id of a legacy session.
    Session,
    /// `requestState` of a modern client's retry.
    State,
    /// The id of a question to a legacy client.
    Question,
    /// The id of a task.
    Task,
    /// A position in a list.
    Cursor,
}

impl Purpose {
    const ALL: [Self; 5] = [Self::Session, Self::State, Self::Question, Self::Task, Self::Cursor];

    fn label(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::State => "state",
            Self::Question => "question",
            Self::Task => "task",
            Self::Cursor => "cursor",
        }
    }
}

/// The keys of this process: the first seals, all open. Clones share them.
#[derive(Clone)]
pub struct Keyring {
    first: Arc<Key>,
    rest: Arc<[Key]>,
}

/// One secret's derived keys.
struct Key {
    id: [u8; ID_BYTES],
    ciphers: [(Purpose, XChaCha20Poly1305); Purpose::ALL.len()],
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keyring({} keys)", self.rest.len() + 1)
    }
}

impl Keyring {
    /// A ring of one random key, which ends with the process.
    #[must_use]
    pub fn random() -> Self {
        Self { first: Arc::new(Key::derive(&random_bytes::<32>())), rest: Arc::default() }
    }

    /// A ring of configured secrets. Without any, as [`Keyring::random`].
    #[must_use]
    pub fn new(secrets: &[SecretString]) -> Self {
        let mut keys = secrets.iter().map(|secret| Key::derive(secret.expose_secret().as_bytes()));
        match keys.next() {
            Some(first) => Self { first: Arc::new(first), rest: keys.collect() },
            None => Self::random(),
        }
    }

    /// Seals a payload.
    #[must_use]
    pub fn seal(&self, purpose: Purpose, payload: &[u8]) -> String {
        let nonce = random_bytes::<NONCE_BYTES>();
        let mut sealed = Vec::with_capacity(ID_BYTES + NONCE_BYTES + payload.len() + 16);
        sealed.extend_from_slice(&self.first.id);
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(&self.first.encrypt(purpose, nonce, payload));
        format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(sealed))
    }

    /// Opens a sealed value; `None` for anything that was not sealed for this purpose with a key of this ring.
    #[must_use]
    pub fn open(&self, purpose: Purpose, sealed: &str) -> Option<Vec<u8>> {
        let text = sealed.strip_prefix(PREFIX).filter(|text| text.len() <= LONGEST)?;
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (id, rest) = bytes.split_first_chunk::<ID_BYTES>()?;
        let (nonce, ciphertext) = rest.split_first_chunk::<NONCE_BYTES>()?;
        let mut keys = std::iter::once(&*self.first).chain(self.rest.iter()).filter(|key| key.id == *id);
        keys.find_map(|key| key.decrypt(purpose, *nonce, ciphertext))
    }
}

impl Key {
    fn derive(secret: &[u8]) -> Self {
        let source = Hkdf::<Sha256>::new(Some(b"weir w1"), secret);
        Self {
            id: expand(&source, "key id"),
            ciphers: Purpose::ALL.map(|purpose| {
                (purpose, XChaCha20Poly1305::new(&expand::<32>(&source, purpose.label()).into()))
            }),
        }
    }

    fn encrypt(&self, purpose: Purpose, nonce: [u8; NONCE_BYTES], payload: &[u8]) -> Vec<u8> {
        let payload = Payload { msg: payload, aad: &self.id };
        let sealed = self.cipher(purpose).map(|cipher| cipher.encrypt(&XNonce::from(nonce), payload));
        // Encryption fails for payloads of more than 256 GiB only; an empty text opens as nothing.
        sealed.and_then(Result::ok).unwrap_or_default()
    }

    fn decrypt(&self, purpose: Purpose, nonce: [u8; NONCE_BYTES], ciphertext: &[u8]) -> Option<Vec<u8>> {
        let payload = Payload { msg: ciphertext, aad: &self.id };
        self.cipher(purpose)?.decrypt(&XNonce::from(nonce), payload).ok()
    }

    fn cipher(&self, purpose: Purpose) -> Option<&XChaCha20Poly1305> {
        self.ciphers.iter().find(|(of, _)| *of == purpose).map(|(_, cipher)| cipher)
    }
}

#[expect(clippy::expect_used, reason = "HKDF-SHA-256 gives up to 8160 bytes, and at most 32 are asked for")]
fn expand<const N: usize>(source: &Hkdf<Sha256>, label: &str) -> [u8; N] {
    let mut out = [0; N];
    source.expand(label.as_bytes(), &mut out).expect("the length is permitted");
    out
}

/// Random bytes of the operating system, for keys, nonces and ids that nobody may guess.
///
/// # Panics
/// When the operating system has none to give; going on with guessable ones would be worse.
#[must_use]
#[expect(
    clippy::expect_used,
    reason = "without random bytes nothing here is safe; the system always has some"
)]
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut out = [0; N];
    getrandom::fill(&mut out).expect("the operating system gives random bytes");
    out
}
