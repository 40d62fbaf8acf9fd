//! Scopes: how they are written, what they mean, and which are asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::config::check::upstream::Known;
use crate::config::file::{self, At, Field};
use crate::config::model::{Effect, Rule, ScopeWords};
use crate::config::problem::Findings;
use crate::principal::Scope;

/// What gives a scope a meaning.
pub(super) struct Meaning<'m> {
    pub(super) upstreams: &'m [Known],
    pub(super) rules: &'m [Arc<Rule>],
    pub(super) words: &'m ScopeWords,
}

/// Scopes as RFC 6749, section 3.3, writes them. With a meaning to compare with, those that nothing asks for are
/// noted.
pub(super) fn scopes(
    field: &Field<Vec<At<String>>>,
    meaning: Option<&Meaning<'_>>,
    findings: &Findings,
) -> BTreeSet<Scope> {
    let list = field.written().map(|at| at.value.as_slice()).unwrap_or_default();
    list.iter()
        .filter_map(|at| {
            let scope = one(at, findings)?;
            if meaning.is_some_and(|meaning| !meaning.asks_for(&scope)) {
                let text = "no tool asks for this scope; accepted: mcp:CLASS, UPSTREAM:CLASS, UPSTREAM:tool:NAME, \
                            with read, write or destructive as CLASS, and what rules require";
                findings.warning(&at.place, text);
            }
            Some(scope)
        })
        .collect()
}

/// One scope.
pub(super) fn one(at: &At<String>, findings: &Findings) -> Option<Scope> {
    let legal = |c: u8| c.is_ascii_graphic() && !matches!(c, b'"' | b'\\');
    let fits = !at.value.is_empty() && at.value.bytes().all(legal);
    if !fits {
        findings.error(&at.place, &format!("{} is not a scope; one entry holds one scope", at.shown()));
    }
    fits.then(|| Scope::new(&at.value))
}

impl Meaning<'_> {
    /// Whether anything is reached by this scope.
    fn asks_for(&self, scope: &Scope) -> bool {
        let scopes = self.words.expanded(&BTreeSet::from([scope.clone()]));
        scopes.iter().any(|scope| self.is_of_classes(scope.as_str()) || self.is_required(scope))
    }

    fn is_of_classes(&self, scope: &str) -> bool {
        let Some((family, rest)) = scope.split_once(':') else { return false };
        let is_class = matches!(rest, "read" | "write" | "destructive");
        match family {
            "mcp" => is_class || rest == "admin",
            _ => {
                let is_tool = rest.strip_prefix("tool:").is_some_and(|name| !name.is_empty());
                (is_class || is_tool) && self.upstreams.iter().any(|known| known.name.as_str() == family)
            }
        }
    }

    fn is_required(&self, scope: &Scope) -> bool {
        self.rules.iter().any(|rule| match &rule.effect {
            Effect::Deny => false,
            Effect::Require(require) => {
                require.scopes_all.contains(scope) || require.scopes_any.contains(scope)
            }
        })
    }
}

/// Reads `scopes`: what scopes imply and what else they are called.
pub(super) fn words(field: &Field<file::Scopes>, findings: &Findings) -> ScopeWords {
    let Some(block) = field.written().map(|at| &at.value) else { return ScopeWords::default() };
    let mut direct: BTreeMap<Scope, BTreeSet<Scope>> = BTreeMap::new();
    for (key, implied) in block.implies.written().map(|at| at.value.0.as_slice()).unwrap_or_default() {
        let Some(scope) = one(key, findings) else { continue };
        let implied = scopes(implied, None, findings);
        direct.entry(scope).or_default().extend(implied);
    }
    let implies = closed(&direct);
    for (key, _) in block.implies.written().map(|at| at.value.0.as_slice()).unwrap_or_default() {
        let scope = Scope::new(&key.value);
        if implies.get(&scope).is_some_and(|implied| implied.contains(&scope)) {
            findings.error(&key.place, &format!("{} implies itself, by way of what it implies", key.shown()));
        }
    }
    let mut map = BTreeMap::new();
    for (key, to) in block.map.written().map(|at| at.value.0.as_slice()).unwrap_or_default() {
        let to = to.written().and_then(|at| one(at, findings));
        if let (Some(from), Some(to)) = (one(key, findings), to) {
            map.insert(from, to);
        }
    }
    ScopeWords { implies, map }
}

/// What each scope implies, by however many steps.
fn closed(direct: &BTreeMap<Scope, BTreeSet<Scope>>) -> BTreeMap<Scope, BTreeSet<Scope>> {
    let of = |scope: &Scope| {
        let mut all = BTreeSet::new();
        let mut open: Vec<&Scope> = direct.get(scope).into_iter().flatten().collect();
        while let Some(next) = open.pop() {
            if all.insert(next.clone()) {
                open.extend(direct.get(next).into_iter().flatten());
            }
        }
        all
    };
    direct.keys().map(|scope| (scope.clone(), of(scope))).collect()
}
