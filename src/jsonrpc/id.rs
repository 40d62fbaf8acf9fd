//! Request ids, kept exactly as they were written.

use std::fmt;
use std::sync::Arc;

/// A JSON-RPC id: a string or an integer (2026-07-28, basic, "Requests": never null), as the raw JSON text that
/// came, so that `1` and `"1"` differ and no digit is lost. Two ids are equal when their texts are.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(Arc<str>);

impl Id {
    const MAX_BYTES: usize = 4096;

    /// Takes the raw JSON text of an `id` member.
    ///
    /// # Errors
    /// A reason for the client when it is neither a string of at most 4 KiB nor an integer.
    pub fn read(raw: &str) -> Result<Self, &'static str> {
        if raw.len() > Self::MAX_BYTES {
            return Err("the id is too long");
        }
        let digits = raw.strip_prefix('-').unwrap_or(raw);
        let integer = !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit());
        if integer || raw.starts_with('"') {
            Ok(Self(raw.into()))
        } else {
            Err("the id must be a string or an integer")
        }
    }

    /// An id of Weir's own: a number with a fixed width of 16 digits.
    #[must_use]
    pub fn own(number: u64) -> Self {
        // The leading 1 keeps the width fixed without a leading zero, and stays below 2^53.
        Self(format!("{}", 1_000_000_000_000_000 + number % 1_000_000_000_000_000).into())
    }

    /// The raw JSON text, as it goes back on the wire.
    #[must_use]
    pub fn as_json(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
