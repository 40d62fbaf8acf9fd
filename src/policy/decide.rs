//! Classes of tools, and the decision by class and scope (`default: by_class`).

use std::collections::BTreeSet;

use super::Class;
use crate::config::Upstream;
use crate::names::{LocalName, UpstreamName};
use crate::principal::{Principal, Rights, Scope};

/// What becomes of an item for one principal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It is listed and may be used.
    Allow,
    /// It is not listed, and whoever asks for it is told which scopes are missing: all of them.
    StepUp(Vec<Scope>),
    /// To this principal it does not exist.
    Hide,
}

/// The class of a tool. The operator's lists win, the more careful one first; annotations count only where the
/// operator trusts them; of everything else the worst is assumed.
#[must_use]
pub fn classify(
    upstream: &Upstream,
    local: &LocalName,
    read_only_hint: Option<bool>,
    destructive_hint: Option<bool>,
) -> Class {
    let name = local.as_str();
    let lists = [
        (&upstream.classes.destructive, Class::Destructive),
        (&upstream.classes.write, Class::Write),
        (&upstream.classes.read, Class::Read),
    ];
    if let Some((_, class)) = lists.into_iter().find(|(globs, _)| globs.is_match(name)) {
        return class;
    }
    match (upstream.trust_annotations, read_only_hint, destructive_hint) {
        (true, Some(true), _) => Class::Read,
        (true, _, Some(false)) => Class::Write,
        _ => Class::Destructive,
    }
}

/// Decides about one item of an upstream. `tool` is its local name where it is a tool; prompts and resources have
/// class read and no name here.
#[must_use]
pub fn decide(
    principal: &Principal,
    upstream: &UpstreamName,
    class: Class,
    tool: Option<&LocalName>,
) -> Decision {
    let scopes = match &principal.rights {
        Rights::All => return Decision::Allow,
        Rights::Granted { scopes, .. } => scopes,
    };
    let by_name = tool.is_some_and(|tool| holds(scopes, &format!("{upstream}:tool:{tool}")));
    if holds(scopes, "mcp:admin")
        || by_name
        || reaches(scopes, "mcp", class)
        || reaches(scopes, upstream.as_str(), class)
    {
        return Decision::Allow;
    }
    Decision::StepUp(vec![Scope::new(&format!("mcp:{class}"))])
}

/// Whether a scope of this family grants the class: each class implies the more harmless ones.
fn reaches(scopes: &BTreeSet<Scope>, family: &str, class: Class) -> bool {
    Class::ALL
        .iter()
        .filter(|granted| **granted >= class)
        .any(|granted| holds(scopes, &format!("{family}:{granted}")))
}

/// Scopes count only whole and exact.
fn holds(scopes: &BTreeSet<Scope>, scope: &str) -> bool {
    scopes.iter().any(|held| held.as_str() == scope)
}
