//! Classes of tools, and the decision about one item.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::Class;
use crate::config::{DefaultDecision, Effect, Match, Policy, Require, Rule, Upstream};
use crate::names::{LocalName, RouteName, UpstreamName};
use crate::principal::{Grant, Rights, Scope};
use crate::protocol::ListKind;

/// What becomes of an item for equal rights.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Decision {
    /// It is listed and may be used.
    Allow,
    /// It is not listed, and whoever asks for it is told which scopes are missing: all of them.
    StepUp(Vec<Scope>),
    /// To this caller it does not exist.
    Hide,
}

impl Decision {
    /// The stricter of two decisions; of two that ask for scopes one that asks for all of them.
    #[must_use]
    pub fn or_stricter(self, other: Self) -> Self {
        match (self, other) {
            (Self::Hide, _) | (_, Self::Hide) => Self::Hide,
            (Self::StepUp(mut scopes), Self::StepUp(further)) => {
                scopes.extend(further);
                scopes.dedup();
                Self::StepUp(scopes)
            }
            (Self::Allow, other) => other,
            (one, Self::Allow) => one,
        }
    }
}

/// A decision, and what decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ruling<'p> {
    /// Access is open.
    Open,
    /// This rule.
    Rule(&'p str),
    /// No rule: the class of the item.
    Class,
    /// No rule: nothing is allowed then.
    Nothing,
}

impl fmt::Display for Ruling<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open => f.write_str("open"),
            Self::Rule(name) => write!(f, "rule {name}"),
            Self::Class => f.write_str("class"),
            Self::Nothing => f.write_str("default"),
        }
    }
}

/// What is decided about.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// On which route.
    pub route: &'a RouteName,
    /// Whose item.
    pub upstream: &'a UpstreamName,
    /// Its kind.
    pub kind: ListKind,
    /// Its local name, URI or template.
    pub local: &'a str,
    /// Its class.
    pub class: Class,
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

/// Decides about one item: any rule that denies it wins; else the first rule about it decides; else the default of the
/// route.
#[must_use]
pub fn decide<'p>(policy: &'p Policy, rights: &Rights, asked: &Asked<'_>) -> (Decision, Ruling<'p>) {
    let grant = match rights {
        Rights::All => return (Decision::Allow, Ruling::Open),
        Rights::Granted(grant) => grant,
    };
    among(policy, grant, asked, policy.rules.iter().filter(|rule| is_about(&rule.matches, asked)))
}

/// Which rules are about an item, by their places: that depends on nobody's rights.
#[must_use]
pub fn about(policy: &Policy, asked: &Asked<'_>) -> Box<[usize]> {
    let rules = policy.rules.iter().enumerate();
    rules.filter(|(_, rule)| is_about(&rule.matches, asked)).map(|(place, _)| place).collect()
}

/// As [`decide`], where it is known which rules are [`about`] the item.
#[must_use]
pub fn decide_by<'p>(
    policy: &'p Policy,
    rights: &Rights,
    asked: &Asked<'_>,
    about: &[usize],
) -> (Decision, Ruling<'p>) {
    match rights {
        Rights::All => (Decision::Allow, Ruling::Open),
        Rights::Granted(grant) => {
            among(policy, grant, asked, about.iter().filter_map(|place| policy.rules.get(*place)))
        }
    }
}

fn among<'p>(
    policy: &'p Policy,
    grant: &Grant,
    asked: &Asked<'_>,
    rules: impl Iterator<Item = &'p Arc<Rule>>,
) -> (Decision, Ruling<'p>) {
    let mut first = None;
    for rule in rules {
        match &rule.effect {
            Effect::Deny => return (Decision::Hide, Ruling::Rule(&rule.name)),
            Effect::Require(require) => {
                first.get_or_insert((rule, require));
            }
        }
    }
    match first {
        Some((rule, require)) => by_rule(rule, require, policy, grant),
        None => match policy.default {
            DefaultDecision::ByClass => (by_class(policy, grant, asked), Ruling::Class),
            DefaultDecision::Deny => (Decision::Hide, Ruling::Nothing),
        },
    }
}

/// Whether a rule that matches so is about an item.
#[must_use]
pub fn is_about(matches: &Match, asked: &Asked<'_>) -> bool {
    matches.routes.as_ref().is_none_or(|routes| routes.contains(asked.route))
        && matches.upstream.as_ref().is_none_or(|globs| globs.is_match(asked.upstream.as_str()))
        && matches.kinds.as_ref().is_none_or(|kinds| kinds.contains(&asked.kind))
        && matches.classes.as_ref().is_none_or(|classes| classes.contains(&asked.class))
        && matches.names.as_ref().is_none_or(|names| {
            names.iter().any(|(kind, globs)| *kind == asked.kind && globs.is_match(asked.local))
        })
}

fn by_rule<'p>(rule: &'p Rule, require: &Require, policy: &Policy, grant: &Grant) -> (Decision, Ruling<'p>) {
    let by = Ruling::Rule(&rule.name);
    let asks_nothing = require.scopes_all.is_empty()
        && require.scopes_any.is_empty()
        && require.groups_any.is_empty()
        && require.subjects.is_empty();
    let is_in_group =
        require.groups_any.is_empty() || require.groups_any.iter().any(|group| grant.groups.contains(group));
    let is_named = require.subjects.is_empty()
        || grant.holder.as_ref().is_some_and(|holder| require.subjects.contains(holder));
    // No scope makes up for these.
    if !is_in_group || !is_named || (asks_nothing && grant.is_anonymous) {
        return (Decision::Hide, by);
    }
    let mut missing: Vec<Scope> =
        require.scopes_all.iter().filter(|scope| !holds(&grant.scopes, scope.as_str())).cloned().collect();
    if !require.scopes_any.iter().any(|scope| holds(&grant.scopes, scope.as_str())) {
        missing.extend(require.scopes_any.first().filter(|scope| !missing.contains(scope)).cloned());
    }
    let decision = match (missing.is_empty(), require.hides) {
        (true, _) => Decision::Allow,
        (false, true) => Decision::Hide,
        (false, false) => step_up(policy, &missing),
    };
    (decision, by)
}

/// The missing scopes as those call them who grant them.
fn step_up(policy: &Policy, missing: &[Scope]) -> Decision {
    Decision::StepUp(missing.iter().map(|scope| policy.words.outward(scope).clone()).collect())
}

fn by_class(policy: &Policy, grant: &Grant, asked: &Asked<'_>) -> Decision {
    let Asked { upstream, kind, local, class, .. } = *asked;
    let scopes = &grant.scopes;
    let by_name = kind == ListKind::Tools && holds(scopes, &format!("{upstream}:tool:{local}"));
    if holds(scopes, "mcp:admin")
        || by_name
        || reaches(scopes, "mcp", class)
        || reaches(scopes, upstream.as_str(), class)
    {
        return Decision::Allow;
    }
    step_up(policy, &[Scope::new(&format!("mcp:{class}"))])
}

/// Whether a scope of this family grants the class: each class implies the more harmless ones.
fn reaches(scopes: &BTreeSet<Scope>, family: &str, class: Class) -> bool {
    Class::ALL
        .iter()
        .filter(|granted| **granted >= class)
        .any(|granted| holds(scopes, &format!("{family}:{granted}")))
}

/// Scopes count only whole and exact. One that stands for all of Weir's own is not one that a rule asks for.
fn holds(scopes: &BTreeSet<Scope>, scope: &str) -> bool {
    scopes.iter().any(|held| held.as_str() == scope)
}
