//! One published item, and all of them.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::{Entry, LeftOut};
use crate::names::UpstreamName;
use crate::protocol::ListKind;

/// One tool, prompt, resource or template as clients see it.
#[derive(Debug, PartialEq, Eq)]
pub struct Item {
    /// Which list it stands in.
    pub kind: ListKind,
    /// The upstream that owns it.
    pub upstream: UpstreamName,
    /// What clients call it: the published name, or the URI or template.
    pub name: String,
    /// The definition as its upstream gave it.
    pub entry: Arc<Entry>,
    /// The definition as clients get it.
    pub raw: Arc<str>,
    /// The same without an `outputSchema` that is not of type object, where that differs (clients of 2025-06-18 and
    /// 2025-11-25 know no other).
    pub object_output: Option<Arc<str>>,
    /// Whether the structured content of its results may be something else than an object.
    pub free_output: bool,
    /// A short hash of `raw`, equal on every replica.
    pub hash: u64,
}

impl Item {
    /// The name that the upstream knows it by.
    #[must_use]
    pub fn local(&self) -> &str {
        self.entry.local.as_str()
    }
}

/// The first 8 bytes of the SHA-256 of a text.
pub(crate) fn hash(text: &str) -> u64 {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().take(8).fold(0, |sum, byte| (sum << 8) | u64::from(*byte))
}

/// Everything that is published, to whomever.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Catalog {
    tools: Vec<Arc<Item>>,
    prompts: Vec<Arc<Item>>,
    resources: Vec<Arc<Item>>,
    templates: Vec<Arc<Item>>,
    /// What is not published, and why.
    pub left_out: Vec<(UpstreamName, LeftOut)>,
}

impl Catalog {
    /// The items of one list: upstreams in file order, each one's items in its own order.
    #[must_use]
    pub fn list(&self, kind: ListKind) -> &[Arc<Item>] {
        match kind {
            ListKind::Tools => &self.tools,
            ListKind::Prompts => &self.prompts,
            ListKind::Resources => &self.resources,
            ListKind::Templates => &self.templates,
        }
    }

    pub(super) fn put(&mut self, kind: ListKind, items: Vec<Arc<Item>>) {
        match kind {
            ListKind::Tools => self.tools = items,
            ListKind::Prompts => self.prompts = items,
            ListKind::Resources => self.resources = items,
            ListKind::Templates => self.templates = items,
        }
    }

    /// A hash of everything that is published, equal on every replica with the same upstreams.
    #[must_use]
    pub fn hash(&self) -> u64 {
        ListKind::ALL
            .iter()
            .flat_map(|kind| self.list(*kind))
            .fold(0, |sum: u64, item| sum.wrapping_add(item.hash))
    }
}
