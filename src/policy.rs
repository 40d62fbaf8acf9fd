//! What may be seen and done: the class of each item, and one decision for lists, calls and reads alike.
//!
//! Pure, and asked for every item: an item is listed if and only if it can be called. What is refused by no scope
//! that could cure it is hidden, and then looks like something that does not exist.

mod decide;

use std::fmt;

pub use decide::{Decision, classify, decide};

/// How much harm an item can do. Greater ones come later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// It changes nothing. Prompts and resources always are.
    Read,
    /// It adds or changes.
    Write,
    /// It may destroy; also everything of which nothing better is known.
    Destructive,
}

impl Class {
    /// All classes, the most harmless first.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Destructive];

    /// The word for it in scopes, rules and output.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Destructive => "destructive",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests;
