//! The id of a task, as clients are given it (2025-11-25, basic/utilities/tasks; the extension
//! `io.modelcontextprotocol/tasks`).

use super::key::{Keyring, Purpose};
use super::value::{Owner, Refused};
use crate::names::UpstreamName;

/// The form of the payload.
const FORM: u8 = 1;

/// A task id: it leads to the upstream that has the task, and to the tool whose call made it. It does not expire: how
/// long a task is kept is its upstream's affair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskSeal {
    /// Whose it is.
    pub owner: Owner,
    /// When it was given, in seconds since 1970 UTC.
    pub issued: i64,
    /// Who has the task.
    pub upstream: UpstreamName,
    /// The local name of the tool.
    pub tool: String,
    /// The upstream's own id.
    pub id: String,
}

impl TaskSeal {
    /// The id for clients.
    #[must_use]
    pub fn seal(&self, keyring: &Keyring) -> String {
        let mut payload = vec![FORM];
        payload.extend_from_slice(&self.owner.0);
        payload.extend_from_slice(&self.issued.to_be_bytes());
        for part in [self.upstream.as_str(), &self.tool] {
            payload.extend_from_slice(&u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes());
            payload.extend_from_slice(part.as_bytes());
        }
        payload.extend_from_slice(self.id.as_bytes());
        keyring.seal(Purpose::Task, &payload)
    }

    /// Opens an id for a caller.
    ///
    /// # Errors
    /// [`Refused`] when it is none of ours or another caller's.
    pub fn open(keyring: &Keyring, sealed: &str, owner: Owner) -> Result<Self, Refused> {
        let payload = keyring.open(Purpose::Task, sealed).ok_or(Refused::Unreadable)?;
        let seal = Self::read(&payload).ok_or(Refused::Unreadable)?;
        if seal.owner == owner { Ok(seal) } else { Err(Refused::Foreign) }
    }

    fn read(payload: &[u8]) -> Option<Self> {
        let (&[FORM], rest) = payload.split_first_chunk()? else { return None };
        let (owner, rest) = rest.split_first_chunk()?;
        let (issued, rest) = rest.split_first_chunk()?;
        let (upstream, rest) = part(rest)?;
        let (tool, rest) = part(rest)?;
        Some(Self {
            owner: Owner(*owner),
            issued: i64::from_be_bytes(*issued),
            upstream: upstream.parse().ok()?,
            tool,
            id: String::from_utf8(rest.to_vec()).ok()?,
        })
    }
}

/// A text with its length before it, and what follows.
fn part(payload: &[u8]) -> Option<(String, &[u8])> {
    let (length, rest) = payload.split_first_chunk()?;
    let (text, rest) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
    Some((String::from_utf8(text.to_vec()).ok()?, rest))
}
