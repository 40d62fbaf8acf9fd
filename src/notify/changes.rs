//! A set of changed lists.

use crate::protocol::ListKind;
use crate::view::Hashes;

/// A set of changed lists. Templates count as resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Changes {
    /// The tools.
    pub tools: bool,
    /// The prompts.
    pub prompts: bool,
    /// The resources or the templates.
    pub resources: bool,
}

impl Changes {
    /// All of them.
    pub const ALL: Self = Self { tools: true, prompts: true, resources: true };

    /// What differs between two sets of visible lists.
    #[must_use]
    pub fn between(before: Hashes, now: Hashes) -> Self {
        Self {
            tools: before.tools != now.tools,
            prompts: before.prompts != now.prompts,
            resources: before.resources != now.resources,
        }
    }

    /// What stands in both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            tools: self.tools && other.tools,
            prompts: self.prompts && other.prompts,
            resources: self.resources && other.resources,
        }
    }

    /// What stands in either.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            tools: self.tools || other.tools,
            prompts: self.prompts || other.prompts,
            resources: self.resources || other.resources,
        }
    }

    /// Whether nothing changed.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// The list kinds to announce, one for each notification.
    pub fn kinds(self) -> impl Iterator<Item = ListKind> {
        let all = [
            (self.tools, ListKind::Tools),
            (self.prompts, ListKind::Prompts),
            (self.resources, ListKind::Resources),
        ];
        all.into_iter().filter(|(changed, _)| *changed).map(|(_, kind)| kind)
    }
}
