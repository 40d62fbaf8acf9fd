//! Dated protocol revisions and the two eras.

use std::fmt;

/// A protocol revision that Weir speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Revision {
    /// HTTP+SSE.
    V2024_11_05,
    /// Streamable HTTP, batches.
    V2025_03_26,
    /// Structured content, the version header.
    V2025_06_18,
    /// The last one with sessions.
    V2025_11_25,
    /// The first stateless one.
    V2026_07_28,
}

/// Legacy: `initialize` and sessions. Modern: stateless, 2026-07-28 and later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Era {
    /// Up to 2025-11-25.
    Legacy,
    /// From 2026-07-28.
    Modern,
}

impl Revision {
    /// All revisions, oldest first.
    pub const ALL: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];
    /// What is answered to a legacy client that asks for a revision Weir does not know.
    pub const NEWEST_LEGACY: Self = Self::V2025_11_25;
    /// The newest of all.
    pub const NEWEST: Self = Self::V2026_07_28;

    /// The date, as it stands on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The revision with this date; `None` for one that Weir does not speak.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == text)
    }

    /// The era of the revision.
    #[must_use]
    pub fn era(self) -> Era {
        if self < Self::V2026_07_28 { Era::Legacy } else { Era::Modern }
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Era {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        })
    }
}
