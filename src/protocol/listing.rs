//! The four lists and one page of one.

use std::time::Duration;

use serde_json::value::RawValue;

use super::method::notification;
use crate::jsonrpc::Object;

/// Which of the four lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ListKind {
    /// `tools/list`
    Tools,
    /// `prompts/list`
    Prompts,
    /// `resources/list`
    Resources,
    /// `resources/templates/list`
    Templates,
}

impl ListKind {
    /// All four, in the order in which upstreams are asked.
    pub const ALL: [Self; 4] = [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];

    /// The member of the result that holds the items.
    #[must_use]
    pub fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    /// The notification that says that the list changed. Templates share that of resources.
    #[must_use]
    pub fn changed(self) -> &'static str {
        match self {
            Self::Tools => notification::TOOLS_CHANGED,
            Self::Prompts => notification::PROMPTS_CHANGED,
            Self::Resources | Self::Templates => notification::RESOURCES_CHANGED,
        }
    }

    /// Whether a notification of this name says that a list changed.
    #[must_use]
    pub fn is_changed(notification: &str) -> bool {
        Self::ALL.iter().any(|kind| kind.changed() == notification)
    }

    /// The member of an item that names it.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }
}

/// The cache hints of a modern list (2026-07-28, server/utilities/caching).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ttl {
    /// How long it may be held fresh.
    pub fresh: Duration,
    /// Whether others than the caller may be given it.
    pub public: bool,
}

/// One page of a list result: items as raw text, and where to go on.
#[derive(Debug)]
pub struct Page<'a> {
    /// The items, in their order.
    pub items: Vec<&'a str>,
    /// The cursor of the next page as raw JSON, absent on the last one.
    pub next: Option<&'a str>,
    /// The cache hints, where the upstream gave them.
    pub ttl: Option<Ttl>,
}

impl<'a> Page<'a> {
    /// Reads a raw list result. `None` when it is no list of this kind.
    #[must_use]
    pub fn read(kind: ListKind, result: &'a str) -> Option<Self> {
        let result = Object::open(result)?;
        let items: Vec<&'a RawValue> = serde_json::from_str(result.get(kind.member())?).ok()?;
        let next = result.get("nextCursor").filter(|raw| *raw != "null");
        let fresh = result.get("ttlMs").and_then(|raw| raw.parse().ok()).map(Duration::from_millis);
        let public = result.text("cacheScope").as_deref() == Some("public");
        let ttl = fresh.map(|fresh| Ttl { fresh, public });
        Some(Self { items: items.into_iter().map(RawValue::get).collect(), next, ttl })
    }
}
