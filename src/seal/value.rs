//! What is inside sealed values, in few bytes.

use sha2::{Digest, Sha256};

use super::{Keyring, Purpose};
use crate::names::RouteName;
use crate::principal::Subject;
use crate::protocol::{ListKind, Revision};

/// The first byte of each payload, so that a later form is not taken for this one.
const FORM: u8 = 1;

/// Why a sealed value is not accepted. Clients are not told which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is no sealed value of this kind, or of another key.
    #[error("the sealed value does not open")]
    Unreadable,
    /// Its time is over.
    #[error("the sealed value has expired")]
    Expired,
    /// It was given to somebody else, or on another route.
    #[error("the sealed value belongs to another principal or route")]
    Foreign,
}

/// Whom a sealed value belongs to: a digest of the route and of (issuer, subject).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Owner(pub [u8; 16]);

impl Owner {
    /// The owner of what this caller is given on this route.
    #[must_use]
    pub fn new(route: &RouteName, subject: &Subject) -> Self {
        let mut hash = Sha256::new();
        for part in [route.as_str(), &subject.issuer, &subject.subject] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        let digest: [u8; 32] = hash.finalize().into();
        Self(digest.first_chunk().copied().unwrap_or_default())
    }
}

/// The id of a legacy session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSeal {
    /// The session's identity inside Weir.
    pub key: [u8; 16],
    /// The revision that was negotiated.
    pub revision: Revision,
    /// When it was opened, in seconds since 1970 UTC.
    pub issued: i64,
    /// When it ends at the latest, in seconds since 1970 UTC.
    pub expires: i64,
    /// Whose it is.
    pub owner: Owner,
}

impl SessionSeal {
    /// The session id: visible ASCII, far below 512 characters.
    #[must_use]
    pub fn seal(&self, keyring: &Keyring) -> String {
        let revision = Revision::ALL.iter().position(|revision| *revision == self.revision);
        let mut payload = vec![FORM];
        payload.push(revision.and_then(|index| u8::try_from(index).ok()).unwrap_or(u8::MAX));
        payload.extend_from_slice(&self.key);
        payload.extend_from_slice(&self.issued.to_be_bytes());
        payload.extend_from_slice(&self.expires.to_be_bytes());
        payload.extend_from_slice(&self.owner.0);
        keyring.seal(Purpose::Session, &payload)
    }

    /// Opens a session id for a caller, at a time in seconds since 1970 UTC.
    ///
    /// # Errors
    /// [`Refused`] when it is none of ours, over, or another caller's.
    pub fn open(keyring: &Keyring, sealed: &str, owner: Owner, now: i64) -> Result<Self, Refused> {
        let payload = keyring.open(Purpose::Session, sealed).ok_or(Refused::Unreadable)?;
        let seal = Self::read(&payload).ok_or(Refused::Unreadable)?;
        if seal.owner != owner {
            return Err(Refused::Foreign);
        }
        if seal.expires <= now {
            return Err(Refused::Expired);
        }
        Ok(seal)
    }

    /// The identity that a session id leads to, whoever it was given to. Good for nothing but to look who that is.
    #[must_use]
    pub fn key_of(keyring: &Keyring, sealed: &str) -> Option<[u8; 16]> {
        Self::read(&keyring.open(Purpose::Session, sealed)?).map(|seal| seal.key)
    }

    fn read(payload: &[u8]) -> Option<Self> {
        let (&[FORM, revision], rest) = payload.split_first_chunk()? else { return None };
        let (key, rest) = rest.split_first_chunk()?;
        let (issued, rest) = rest.split_first_chunk()?;
        let (expires, rest) = rest.split_first_chunk()?;
        Some(Self {
            key: *key,
            revision: *Revision::ALL.get(usize::from(revision))?,
            issued: i64::from_be_bytes(*issued),
            expires: i64::from_be_bytes(*expires),
            owner: Owner(rest.try_into().ok()?),
        })
    }
}

/// A position in a list that is given out in pages. It is good until the view that it was made from changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CursorSeal {
    /// Which list.
    pub list: ListKind,
    /// A hash of what the caller sees of it.
    pub view: u64,
    /// The index of the first item of the next page.
    pub position: u32,
    /// Whose it is.
    pub owner: Owner,
}

impl CursorSeal {
    /// The cursor.
    #[must_use]
    pub fn seal(&self, keyring: &Keyring) -> String {
        let list = ListKind::ALL.iter().position(|kind| *kind == self.list);
        let mut payload = vec![FORM];
        payload.push(list.and_then(|index| u8::try_from(index).ok()).unwrap_or(u8::MAX));
        payload.extend_from_slice(&self.view.to_be_bytes());
        payload.extend_from_slice(&self.position.to_be_bytes());
        payload.extend_from_slice(&self.owner.0);
        keyring.seal(Purpose::Cursor, &payload)
    }

    /// Opens a cursor for a caller. Whether its list and view are the right ones is for the caller to compare.
    ///
    /// # Errors
    /// [`Refused`] when it is none of ours or another caller's.
    pub fn open(keyring: &Keyring, sealed: &str, owner: Owner) -> Result<Self, Refused> {
        let payload = keyring.open(Purpose::Cursor, sealed).ok_or(Refused::Unreadable)?;
        let seal = Self::read(&payload).ok_or(Refused::Unreadable)?;
        if seal.owner == owner { Ok(seal) } else { Err(Refused::Foreign) }
    }

    fn read(payload: &[u8]) -> Option<Self> {
        let (&[FORM, list], rest) = payload.split_first_chunk()? else { return None };
        let (view, rest) = rest.split_first_chunk()?;
        let (position, rest) = rest.split_first_chunk()?;
        Some(Self {
            list: *ListKind::ALL.get(usize::from(list))?,
            view: u64::from_be_bytes(*view),
            position: u32::from_be_bytes(*position),
            owner: Owner(rest.try_into().ok()?),
        })
    }
}
