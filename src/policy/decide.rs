//! Classes and the decision by class (design contract, section 7).

use std::collections::BTreeSet;

use crate::config::Upstream;
use crate::names::UpstreamName;
use crate::principal::{Rights, Scope};

/// How much harm a call can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Changes nothing.
    Read,
    /// Changes something.
    Write,
    /// May take something away; also what nobody classified.
    Destructive,
}

impl Class {
    /// The word for it, as scopes and `weir list` use it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Destructive => "destructive",
        }
    }
}

/// What a caller may do with an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// See it and use it.
    Allow,
    /// Use it with a token that has these scopes; it is not listed.
    StepUp(Vec<Scope>),
    /// Not even know of it.
    Hide,
}

/// The class of a tool: the operator's lists win; then the upstream's annotations, where they are trusted; else it is
/// destructive.
#[must_use]
pub fn classify(
    upstream: &Upstream,
    local: &str,
    read_only: Option<bool>,
    destructive: Option<bool>,
) -> Class {
    let classes = &upstream.classes;
    if classes.destructive.is_match(local) {
        return Class::Destructive;
    }
    if classes.write.is_match(local) {
        return Class::Write;
    }
    if classes.read.is_match(local) {
        return Class::Read;
    }
    match (upstream.trust_annotations, read_only, destructive) {
        (true, Some(true), _) => Class::Read,
        (true, _, Some(false)) => Class::Write,
        _ => Class::Destructive,
    }
}

/// Decides by class. `tool` is the local name of a tool, `None` for prompts and resources.
#[must_use]
pub fn decide(rights: &Rights, upstream: &UpstreamName, class: Class, tool: Option<&str>) -> Decision {
    let scopes = match rights {
        Rights::All => return Decision::Allow,
        Rights::Granted { scopes, .. } => scopes,
    };
    let own = tool.map(|tool| format!("{upstream}:tool:{tool}"));
    let allowed = grants(scopes, "mcp", class)
        || grants(scopes, upstream.as_str(), class)
        || has(scopes, "mcp:admin")
        || own.is_some_and(|own| has(scopes, &own));
    if allowed {
        return Decision::Allow;
    }
    Decision::StepUp(vec![Scope::new(&format!("mcp:{}", class.as_str()))])
}

/// Whether one of the scopes `PREFIX:read|write|destructive` reaches the class; each implies the ones before it.
fn grants(scopes: &BTreeSet<Scope>, prefix: &str, class: Class) -> bool {
    [Class::Read, Class::Write, Class::Destructive]
        .into_iter()
        .filter(|granted| *granted >= class)
        .any(|granted| has(scopes, &format!("{prefix}:{}", granted.as_str())))
}

fn has(scopes: &BTreeSet<Scope>, wanted: &str) -> bool {
    scopes.iter().any(|scope| scope.as_str() == wanted)
}
