//! The state that a stateless client carries between two attempts at a call (2026-07-28, patterns/mrtr).

use super::key::{Keyring, Purpose};
use super::value::{Owner, Refused};

/// The form of the payload.
const FORM: u8 = 1;

/// What the state leads back to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Thread {
    /// The upstream's own raw state.
    Upstream(String),
    /// A call that waits in this process, by number.
    Parked(u64),
}

/// A `requestState` of Weir's own. It is good for one caller, one route, one call and a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateSeal {
    /// Whose it is.
    pub owner: Owner,
    /// When it ends, in seconds since 1970 UTC.
    pub expires: i64,
    /// A digest of method, name and arguments.
    pub call: [u8; 16],
    /// What it leads back to.
    pub thread: Thread,
}

impl StateSeal {
    /// The state.
    #[must_use]
    pub fn seal(&self, keyring: &Keyring) -> String {
        let mut payload = vec![FORM];
        payload.extend_from_slice(&self.owner.0);
        payload.extend_from_slice(&self.expires.to_be_bytes());
        payload.extend_from_slice(&self.call);
        match &self.thread {
            Thread::Upstream(state) => {
                payload.push(0);
                payload.extend_from_slice(state.as_bytes());
            }
            Thread::Parked(number) => {
                payload.push(1);
                payload.extend_from_slice(&number.to_be_bytes());
            }
        }
        keyring.seal(Purpose::State, &payload)
    }

    /// Opens a state for a caller and a call, at a time in seconds since 1970 UTC.
    ///
    /// # Errors
    /// [`Refused`] when it is none of ours, over, another caller's, or another call's.
    pub fn open(
        keyring: &Keyring,
        sealed: &str,
        (owner, call): (Owner, [u8; 16]),
        now: i64,
    ) -> Result<Self, Refused> {
        let payload = keyring.open(Purpose::State, sealed).ok_or(Refused::Unreadable)?;
        let seal = Self::read(&payload).ok_or(Refused::Unreadable)?;
        if seal.owner != owner || seal.call != call {
            return Err(Refused::Foreign);
        }
        if seal.expires <= now {
            return Err(Refused::Expired);
        }
        Ok(seal)
    }

    fn read(payload: &[u8]) -> Option<Self> {
        let (&[FORM], rest) = payload.split_first_chunk()? else { return None };
        let (owner, rest) = rest.split_first_chunk()?;
        let (expires, rest) = rest.split_first_chunk()?;
        let (call, rest) = rest.split_first_chunk()?;
        let (tag, rest) = rest.split_first()?;
        let thread = match tag {
            0 => Thread::Upstream(String::from_utf8(rest.to_vec()).ok()?),
            1 => Thread::Parked(u64::from_be_bytes(rest.try_into().ok()?)),
            _ => return None,
        };
        Some(Self { owner: Owner(*owner), expires: i64::from_be_bytes(*expires), call: *call, thread })
    }
}

/// The id of a question to a legacy client: it leads back to the session and the question in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuestionSeal {
    /// The session's identity inside Weir.
    pub session: [u8; 16],
    /// The number of the question in it.
    pub number: u64,
}

impl QuestionSeal {
    /// The id.
    #[must_use]
    pub fn seal(&self, keyring: &Keyring) -> String {
        let mut payload = vec![FORM];
        payload.extend_from_slice(&self.session);
        payload.extend_from_slice(&self.number.to_be_bytes());
        keyring.seal(Purpose::Question, &payload)
    }

    /// Opens an id; `None` when it is none of ours.
    #[must_use]
    pub fn open(keyring: &Keyring, sealed: &str) -> Option<Self> {
        let payload = keyring.open(Purpose::Question, sealed)?;
        let (&[FORM], rest) = payload.split_first_chunk()? else { return None };
        let (session, rest) = rest.split_first_chunk()?;
        Some(Self { session: *session, number: u64::from_be_bytes(rest.try_into().ok()?) })
    }
}
