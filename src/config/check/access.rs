//! Who may call, and what.

mod jwt;
mod rule;
mod scope;
mod token;
mod voucher;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::hosts::is_loopback;
use super::listen::Listener;
use super::upstream::Known;
use crate::config::file::{self, At, Field};
use crate::config::model::{Access, DefaultDecision, Guard, Policy};
use crate::config::problem::{Findings, Place};
use crate::principal::Scope;
use scope::Meaning;
use voucher::Vouchers;

const SOURCES: &str = "tokens, generate, jwt, introspection, mtls, anonymous";

/// Why a listener off loopback is refused.
pub(crate) const NEEDS_ACCESS: &str = "this address can be reached from other machines, so \"access\" must say who \
                                       may call; \"access: open\" lets anybody in";

/// Why tokens in bodies are refused off loopback.
pub(crate) const PLAIN_TOKENS: &str = "true is for a listener on loopback, or one with TLS";

/// What there is to decide about.
#[derive(Clone, Copy)]
pub(super) struct Scene<'s> {
    pub(super) upstreams: &'s [Known],
    /// The names of routes.
    pub(super) routes: &'s [String],
}

/// What `access` comes to.
pub(super) struct Understood {
    /// Who may call.
    pub(super) access: Access,
    /// Whether `access: open` was written out.
    pub(super) open_anywhere: bool,
    /// What decides where a route says nothing else.
    pub(super) policy: Policy,
    /// Who vouches for the subjects that rules name.
    vouchers: Vouchers,
}

impl Understood {
    fn of(access: Access, open_anywhere: bool) -> Self {
        Self { access, open_anywhere, policy: Policy::default(), vouchers: Vouchers::default() }
    }
}

/// Reads `access`. Relative paths begin at `folder`.
pub(super) fn access(
    field: Field<file::Access>,
    listener: &Listener,
    (scene, folder): (Scene<'_>, &Path),
    findings: &Findings,
) -> Understood {
    match field {
        Field::Absent if is_loopback(listener.listen.address) => Understood::of(Access::Open, false),
        Field::Absent => {
            findings.error(&listener.place, NEEDS_ACCESS);
            Understood::of(Access::Open, false)
        }
        Field::Bad => Understood::of(Access::Guarded(Guard::default()), false),
        Field::Written(At { value: file::Access::Word(_), .. }) => Understood::of(Access::Open, true),
        Field::Written(At { place, value: file::Access::Block(block), .. }) => {
            refuse_no_source(&block, &place, findings);
            let has_issuers = block.jwt.written().is_some_and(|at| !at.value.is_empty());
            if has_issuers && listener.listen.public_url.is_none() {
                let text = "needs listen.public_url: tokens must be made for the address that clients know";
                findings.error(block.jwt.place().unwrap_or(&place), text);
            }
            let vouchers = Vouchers::of(&block);
            let policy = policy(&block, (scene, &vouchers), findings);
            let meaning = Meaning { upstreams: scene.upstreams, rules: &policy.rules, words: &policy.words };
            let tokens = token::tokens(&block, &meaning, findings);
            let guard = Guard {
                tokens,
                generate: block.generate.written().map(|at| folder.join(&at.value)),
                initialize_token: block.initialize_token.written().is_some_and(|at| at.value),
                issuers: jwt::issuers(&block.jwt, folder, findings),
            };
            refuse_plain_tokens(&block, listener, findings);
            warn_of_ungranted(&block, &policy, &guard, findings);
            Understood { access: Access::Guarded(guard), open_anywhere: false, policy, vouchers }
        }
    }
}

fn refuse_no_source(block: &file::AccessBlock, place: &Place, findings: &Findings) {
    let empty = |list: Option<usize>| list.is_none_or(|length| length == 0);
    let none = empty(block.tokens.written().map(|at| at.value.len()))
        && empty(block.jwt.written().map(|at| at.value.len()))
        && empty(block.introspection.written().map(|at| at.value.len()))
        && block.generate.is_absent()
        && block.mtls.is_absent()
        && block.anonymous.is_absent();
    if none {
        findings.error(place, &format!("names no source of credentials; accepted: one or more of {SOURCES}"));
    }
}

/// A token in a body is for listeners that nobody reads along on.
fn refuse_plain_tokens(block: &file::AccessBlock, listener: &Listener, findings: &Findings) {
    if let Some(at) = block.initialize_token.written().filter(|at| at.value)
        && !is_loopback(listener.listen.address)
    {
        findings.error(&at.place, PLAIN_TOKENS);
    }
}

fn policy(block: &file::AccessBlock, around: (Scene<'_>, &Vouchers), findings: &Findings) -> Policy {
    Policy {
        default: default(&block.default),
        rules: rule::rules(&block.rules, around, findings),
        anonymous: anonymous(&block.anonymous, findings),
        audiences: Vec::new(),
        words: Arc::new(scope::words(&block.scopes, findings)),
    }
}

fn default(field: &Field<file::DefaultRule>) -> DefaultDecision {
    match field.written().map(|at| &at.value) {
        Some(file::DefaultRule::Deny) => DefaultDecision::Deny,
        Some(file::DefaultRule::ByClass) | None => DefaultDecision::ByClass,
    }
}

fn anonymous(field: &Field<file::Anonymous>, findings: &Findings) -> Option<BTreeSet<Scope>> {
    field.written().map(|at| scope::scopes(&at.value.scopes, None, findings))
}

/// What decides on a route: its own keys in place of the global ones, its rules before them.
pub(super) fn of_route(
    field: &Field<file::RouteAccess>,
    global: &Understood,
    scene: Scene<'_>,
    findings: &Findings,
) -> Policy {
    let Some(at) = field.written() else { return global.policy.clone() };
    let block = &at.value;
    if global.access.is_open() {
        findings.error(
            &at.place,
            "access is open, so there is nothing to replace; write a global \"access\" block",
        );
    }
    let mut rules = rule::rules(&block.rules, (scene, &global.vouchers), findings);
    rules.extend(global.policy.rules.iter().map(Arc::clone));
    let audiences = block.audiences.written().map(|at| at.value.as_slice()).unwrap_or_default();
    Policy {
        default: if block.default.is_absent() { global.policy.default } else { default(&block.default) },
        rules,
        anonymous: match block.anonymous {
            Field::Absent => global.policy.anonymous.clone(),
            Field::Bad | Field::Written(_) => anonymous(&block.anonymous, findings),
        },
        audiences: audiences.iter().map(|at| at.value.clone()).collect(),
        words: if block.scopes.is_absent() {
            Arc::clone(&global.policy.words)
        } else {
            Arc::new(scope::words(&block.scopes, findings))
        },
    }
}

/// Scopes that a rule asks for and that nothing can grant. An issuer of JWTs may grant any.
fn warn_of_ungranted(block: &file::AccessBlock, policy: &Policy, guard: &Guard, findings: &Findings) {
    if !guard.issuers.is_empty() || !block.introspection.is_absent() || !block.mtls.is_absent() {
        return;
    }
    let granted = granted(policy, guard);
    for at in block.rules.written().map(|at| at.value.as_slice()).unwrap_or_default() {
        let Some(require) = at.value.require.written().map(|at| &at.value) else { continue };
        let asked =
            [&require.scopes_all, &require.scopes_any].into_iter().filter_map(|field| field.written());
        for at in asked.flat_map(|list| &list.value) {
            if !granted.contains(&Scope::new(&at.value)) {
                findings.warning(&at.place, &format!("nothing grants {}, so nobody has it", at.shown()));
            }
        }
    }
}

fn granted(policy: &Policy, guard: &Guard) -> BTreeSet<Scope> {
    let mut all: BTreeSet<Scope> = policy.anonymous.iter().flatten().cloned().collect();
    for token in &guard.tokens {
        all.extend(token.principal.scopes().cloned());
    }
    if guard.generate.is_some() {
        all.insert(Scope::new("mcp:admin"));
    }
    policy.words.expanded(&all)
}
