//! Rules.

use std::str::FromStr as _;
use std::sync::Arc;

use globset::GlobSet;

use super::voucher::Vouchers;
use super::{Scene, scope};
use crate::config::check::pattern;
use crate::config::file::{self, At, Field, Texts};
use crate::config::model::{Class, Effect, Match, Require, Rule};
use crate::config::problem::{Findings, Place};
use crate::names::RouteName;
use crate::protocol::ListKind;

/// Reads a list of rules. A rule without a name is called by its place.
pub(super) fn rules(
    field: &Field<Vec<At<file::Rule>>>,
    around: (Scene<'_>, &Vouchers),
    findings: &Findings,
) -> Vec<Arc<Rule>> {
    let list = field.written().map(|at| at.value.as_slice()).unwrap_or_default();
    let rules: Vec<Arc<Rule>> = list.iter().map(|at| Arc::new(rule(at, around, findings))).collect();
    warn_of_unreachable(list, &rules, findings);
    rules
}

fn rule(at: &At<file::Rule>, (scene, vouchers): (Scene<'_>, &Vouchers), findings: &Findings) -> Rule {
    let block = &at.value;
    let name = block.name.written().map_or_else(|| at.place.key.clone(), |at| at.value.clone());
    let denies = block.deny.written().is_some_and(|at| at.value);
    let effect = if denies {
        for place in [block.require.place(), block.on_denied.place()].into_iter().flatten() {
            findings.error(place, "a rule that denies asks for nothing; leave this key out");
        }
        Effect::Deny
    } else {
        if block.require.is_absent() && block.when.is_absent() {
            let text = "neither denies nor requires anything, so whoever has a credential may; \"require: {}\" says \
                        that this is meant";
            findings.warning(&at.place, text);
        }
        Effect::Require(require(block, vouchers, findings))
    };
    Rule { name, matches: matches(&block.matches, scene, findings), effect }
}

fn require(block: &file::Rule, vouchers: &Vouchers, findings: &Findings) -> Require {
    let none = file::Require::default();
    let needs = block.require.written().map_or(&none, |at| &at.value);
    let list = |field: &Field<Vec<At<String>>>| -> Vec<String> {
        let list = field.written().map(|at| at.value.as_slice()).unwrap_or_default();
        list.iter().map(|at| at.value.clone()).collect()
    };
    for field in [&needs.scopes_all, &needs.scopes_any, &needs.groups_any, &needs.subjects] {
        if let Some(at) = field.written().filter(|at| at.value.is_empty()) {
            findings.error(&at.place, "the list is empty; leave the key out, or name something");
        }
    }
    let subjects = needs.subjects.written().map(|at| at.value.as_slice()).unwrap_or_default();
    let scopes = |field: &Field<Vec<At<String>>>| {
        let list = field.written().map(|at| at.value.as_slice()).unwrap_or_default();
        list.iter().filter_map(|at| scope::one(at, findings)).collect()
    };
    Require {
        scopes_all: scopes(&needs.scopes_all),
        scopes_any: scopes(&needs.scopes_any),
        groups_any: list(&needs.groups_any).iter().map(|group| group.as_str().into()).collect(),
        subjects: subjects.iter().filter_map(|at| vouchers.subject(at, findings)).collect(),
        hides: block.on_denied.written().is_some_and(|at| matches!(at.value, file::OnDenied::Hide)),
        message: block.message.written().map(|at| at.value.clone()),
    }
}

fn matches(field: &Field<file::Match>, scene: Scene<'_>, findings: &Findings) -> Match {
    let Some(block) = field.written().map(|at| &at.value) else { return Match::default() };
    let named = [
        (ListKind::Tools, &block.tool),
        (ListKind::Prompts, &block.prompt),
        (ListKind::Resources, &block.resource),
    ];
    let mut names = Vec::new();
    for (kind, field) in named {
        let Some(globs) = globs(field, findings) else { continue };
        if kind == ListKind::Resources {
            names.push((ListKind::Templates, globs.clone()));
        }
        names.push((kind, globs));
    }
    let upstream = globs(&block.upstream, findings);
    if let (Some(globs), Some(place)) = (&upstream, block.upstream.place())
        && !scene.upstreams.iter().any(|known| globs.is_match(known.name.as_str()))
    {
        let names: Vec<&str> = scene.upstreams.iter().map(|known| known.name.as_str()).collect();
        findings.warning(place, &format!("no upstream has such a name; there are {}", names.join(", ")));
    }
    let matches = Match {
        routes: texts(&block.route)
            .map(|list| list.iter().filter_map(|at| route(at, scene.routes, findings)).collect()),
        upstream,
        kinds: kinds(&block.kind),
        names: (!names.is_empty()).then_some(names),
        classes: classes(&block.class),
    };
    warn_of_nothing(block, &matches, findings);
    matches
}

/// A rule that can be about nothing is a mistake that nobody notices: empty lists, and a kind beside a name of another.
fn warn_of_nothing(block: &file::Match, matches: &Match, findings: &Findings) {
    let is_empty = [
        (block.route.place(), texts(&block.route).map(|list| list.len())),
        (block.upstream.place(), texts(&block.upstream).map(|list| list.len())),
        (block.tool.place(), texts(&block.tool).map(|list| list.len())),
        (block.prompt.place(), texts(&block.prompt).map(|list| list.len())),
        (block.resource.place(), texts(&block.resource).map(|list| list.len())),
        (block.kind.place(), matches.kinds.as_ref().map(Vec::len)),
        (block.class.place(), matches.classes.as_ref().map(Vec::len)),
    ];
    for (place, length) in is_empty {
        if let (Some(place), Some(0)) = (place, length) {
            findings.error(place, "the list is empty, so the rule is about nothing; leave the key out");
        }
    }
    let Some(place) = block.kind.place() else { return };
    let (Some(kinds), Some(names)) = (&matches.kinds, &matches.names) else { return };
    if !kinds.is_empty() && !names.iter().any(|(kind, _)| kinds.contains(kind)) {
        findings.error(
            place,
            "no item is of this kind and has a name of the other kind; the rule is about nothing",
        );
    }
}

/// One text, or the texts of a list; `None` where nothing was written.
fn texts(field: &Field<Texts>) -> Option<Vec<At<String>>> {
    let at = field.written()?;
    Some(match &at.value {
        Texts::One(text) => {
            vec![At { place: at.place.clone(), template: at.template.clone(), value: text.clone() }]
        }
        Texts::Any(list) => list
            .iter()
            .map(|at| At { place: at.place.clone(), template: at.template.clone(), value: at.value.clone() })
            .collect(),
    })
}

fn globs(field: &Field<Texts>, findings: &Findings) -> Option<GlobSet> {
    let place = field.place().cloned().unwrap_or_else(|| Place::nowhere(""));
    let value = texts(field)?;
    Some(pattern::set(&Field::Written(At { place, template: None, value }), findings))
}

fn route(at: &At<String>, known: &[String], findings: &Findings) -> Option<RouteName> {
    if !known.contains(&at.value) {
        let text = format!("{} is not a route; accepted: {}", at.shown(), known.join(", "));
        findings.error(&at.place, &text);
        return None;
    }
    RouteName::from_str(&at.value)
        .inspect_err(|error| findings.error(&at.place, &format!("{} is not a name: {error}", at.shown())))
        .ok()
}

fn kinds(field: &Field<file::Kinds>) -> Option<Vec<ListKind>> {
    let kind = |kind: &file::ItemKind| match kind {
        file::ItemKind::Tool => ListKind::Tools,
        file::ItemKind::Prompt => ListKind::Prompts,
        file::ItemKind::Resource => ListKind::Resources,
        file::ItemKind::Template => ListKind::Templates,
    };
    field.written().map(|at| match &at.value {
        file::Kinds::One(one) => vec![kind(one)],
        file::Kinds::Any(list) => list.iter().map(kind).collect(),
    })
}

fn classes(field: &Field<file::ClassNames>) -> Option<Vec<Class>> {
    let class = |class: &file::ClassName| match class {
        file::ClassName::Read => Class::Read,
        file::ClassName::Write => Class::Write,
        file::ClassName::Destructive => Class::Destructive,
    };
    field.written().map(|at| match &at.value {
        file::ClassNames::One(one) => vec![class(one)],
        file::ClassNames::Any(list) => list.iter().map(class).collect(),
    })
}

/// A rule behind one that decides about everything is never asked. A deny is: it wins from any place.
fn warn_of_unreachable(list: &[At<file::Rule>], rules: &[Arc<Rule>], findings: &Findings) {
    let is_last = |rule: &Rule| matches!(rule.effect, Effect::Require(_)) && rule.matches.is_everything();
    let Some(last) = rules.iter().position(|rule| is_last(rule)) else { return };
    for (at, rule) in list.iter().zip(rules).skip(last + 1) {
        if let (Effect::Require(_), Some(earlier)) = (&rule.effect, rules.get(last)) {
            let text = format!("never reached: the rule {} before it decides about everything", earlier.name);
            findings.warning(&at.place, &text);
        }
    }
}
