//! What one upstream offers now, as the upstream side publishes it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::jsonrpc::Object;
use crate::names::{LocalName, UpstreamName};
use crate::protocol::{ListKind, Offer, Revision, Ttl};

/// One item of a list, as the upstream gave it (definitions that needed mending are mended already).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name, URI or URI template.
    pub local: LocalName,
    /// The raw definition.
    pub raw: Arc<str>,
    /// Which arguments are mirrored into headers (tools only).
    pub mirrored: Vec<ParamHeader>,
    /// `annotations.readOnlyHint`
    pub read_only_hint: Option<bool>,
    /// `annotations.destructiveHint`
    pub destructive_hint: Option<bool>,
    /// `annotations.idempotentHint`
    pub idempotent_hint: Option<bool>,
}

/// An `x-mcp-header` annotation (2026-07-28, transports/streamable-http, "Custom Headers from Tool Parameters").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamHeader {
    /// The header's whole name in lower case, `mcp-param-…`.
    pub header: String,
    /// The chain of `properties` keys that leads to the argument.
    pub path: Vec<String>,
    /// Whether the argument is an integer, and therefore compared as a number.
    pub integer: bool,
}

impl ParamHeader {
    /// The argument as the text that its header stands for, from the raw `arguments`. `None` where it is absent,
    /// null, or no string, integer or boolean: it has no header then.
    #[must_use]
    pub fn value(&self, arguments: &str) -> Option<String> {
        let mut raw = arguments;
        for key in &self.path {
            raw = Object::open(raw)?.get(key)?;
        }
        match raw.as_bytes().first()? {
            b'"' => serde_json::from_str(raw).ok(),
            b't' | b'f' | b'-' | b'0'..=b'9' => Some(raw.to_owned()),
            _ => None,
        }
    }
}

/// An item that is not published, and why.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct LeftOut {
    /// Its name, cut to 128 characters; empty where it has none.
    pub name: String,
    /// The reason in words.
    pub reason: String,
}

/// Everything one upstream offered when it was last listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inventory {
    /// The revision that is spoken to it.
    pub revision: Revision,
    /// Its capabilities.
    pub offer: Offer,
    /// Its own instructions.
    pub instructions: Option<String>,
    /// Tools in the upstream's order.
    pub tools: Vec<Arc<Entry>>,
    /// Prompts in the upstream's order.
    pub prompts: Vec<Arc<Entry>>,
    /// Resources in the upstream's order.
    pub resources: Vec<Arc<Entry>>,
    /// Resource templates in the upstream's order.
    pub templates: Vec<Arc<Entry>>,
    /// Items that are not published.
    pub left_out: Vec<LeftOut>,
    /// Things the operator should know.
    pub warnings: Vec<String>,
    /// Whether nothing was cut at a limit or refused while listing.
    pub is_whole: bool,
    /// The smallest cache hint of its lists, where it gave any.
    pub ttl: Option<Ttl>,
}

impl Inventory {
    /// The inventory of an upstream that offers this and has listed nothing.
    #[must_use]
    pub fn empty(revision: Revision, offer: Offer) -> Self {
        Self {
            revision,
            offer,
            instructions: None,
            tools: Vec::new(),
            prompts: Vec::new(),
            resources: Vec::new(),
            templates: Vec::new(),
            left_out: Vec::new(),
            warnings: Vec::new(),
            is_whole: true,
            ttl: None,
        }
    }

    /// The entries of one list.
    #[must_use]
    pub fn list(&self, kind: ListKind) -> &[Arc<Entry>] {
        match kind {
            ListKind::Tools => &self.tools,
            ListKind::Prompts => &self.prompts,
            ListKind::Resources => &self.resources,
            ListKind::Templates => &self.templates,
        }
    }
}

/// Why an upstream is not up, for people and for `data`; never an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// A closed label, as `exchange::Reason::label`.
    pub label: &'static str,
    /// In words.
    pub text: String,
    /// Since when.
    pub since: Timestamp,
}

/// Where one upstream stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    /// Never listed yet.
    Connecting {
        /// Since when.
        since: Timestamp,
    },
    /// Listed and reachable.
    Up {
        /// What it offers.
        inventory: Arc<Inventory>,
    },
    /// Lost, or never had.
    Down {
        /// Why.
        trouble: Trouble,
        /// What it offered last, while `withdraw_after` has not passed; its place in the lists is kept.
        last: Option<Arc<Inventory>>,
        /// What it offered last, however long ago: its names stay taken.
        claims: Option<Arc<Inventory>>,
    },
}

impl Presence {
    /// What it takes names with, whether or not clients see any of it.
    #[must_use]
    pub fn claims(&self) -> Option<&Arc<Inventory>> {
        match self {
            Self::Connecting { .. } => None,
            Self::Up { inventory } => Some(inventory),
            Self::Down { claims, .. } => claims.as_ref(),
        }
    }

    /// What clients see of it.
    #[must_use]
    pub fn inventory(&self) -> Option<&Arc<Inventory>> {
        match self {
            Self::Connecting { .. } => None,
            Self::Up { inventory } => Some(inventory),
            Self::Down { last, .. } => last.as_ref(),
        }
    }
}

/// All upstreams at one moment.
pub type Inventories = BTreeMap<UpstreamName, Presence>;
