//! Who may call, and what.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use globset::GlobSet;

use crate::names::RouteName;
use crate::principal::{Principal, Scope, Subject};
use crate::protocol::ListKind;

/// Who may call.
#[derive(Debug)]
pub enum Access {
    /// Anybody.
    Open,
    /// Whoever one of its sources recognises.
    Guarded(Guard),
}

impl Access {
    /// Whether anybody may call.
    #[must_use]
    pub fn is_open(&self) -> bool {
        match self {
            Self::Open => true,
            Self::Guarded(_) => false,
        }
    }

    /// The sources of credentials, where there are some.
    #[must_use]
    pub fn guard(&self) -> Option<&Guard> {
        match self {
            Self::Open => None,
            Self::Guarded(guard) => Some(guard),
        }
    }
}

/// Sources of credentials. Callers without one are a matter of the route ([`Policy::anonymous`]).
#[derive(Debug, Default)]
pub struct Guard {
    /// Static tokens.
    pub tokens: Vec<Token>,
    /// Where a token is written to at the first start.
    pub generate: Option<PathBuf>,
    /// Whether legacy clients may send a static token as `params.token` of `initialize`.
    pub initialize_token: bool,
    /// Issuers whose JWTs are accepted.
    pub issuers: Vec<Arc<Issuer>>,
}

/// One configured token.
#[derive(Debug)]
pub struct Token {
    /// SHA-256 of the token's bytes.
    pub hash: [u8; 32],
    /// Who its holder is and what it may do.
    pub principal: Principal,
    /// The end of the last day it is good for, in seconds since 1970 UTC.
    pub not_after: Option<i64>,
}

/// An issuer whose JWTs are accepted.
#[derive(Debug)]
pub struct Issuer {
    /// The issuer, compared exactly with `iss`.
    pub issuer: String,
    /// Audiences beside those of the route.
    pub audiences: Vec<String>,
    /// Where its keys are.
    pub keys: KeySource,
    /// Accepted algorithms.
    pub algorithms: Vec<Algorithm>,
    /// The value that `typ` must have.
    pub require_typ: Option<String>,
    /// Tolerance for times.
    pub leeway: Duration,
    /// Claims that hold scopes.
    pub scope_claims: Vec<String>,
    /// Claims that hold groups.
    pub group_claims: Vec<String>,
}

/// Where an issuer's keys are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// Its metadata says it, and names one of these hosts.
    Discovery(Vec<String>),
    /// At this address.
    Url(String),
    /// In this file.
    File(PathBuf),
}

/// An algorithm of signatures (RFC 7518, section 3.1; RFC 8037). Never one with a shared secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the registry")]
pub enum Algorithm {
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    EdDsa,
}

impl Algorithm {
    /// All of them with their names.
    pub const NAMES: [(Self, &'static str); 9] = [
        (Self::Rs256, "RS256"),
        (Self::Rs384, "RS384"),
        (Self::Rs512, "RS512"),
        (Self::Ps256, "PS256"),
        (Self::Ps384, "PS384"),
        (Self::Ps512, "PS512"),
        (Self::Es256, "ES256"),
        (Self::Es384, "ES384"),
        (Self::EdDsa, "EdDSA"),
    ];

    /// The algorithm of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, known)| *known == name).map(|(algorithm, _)| *algorithm)
    }
}

/// How much harm an item can do. Greater ones come later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// It changes nothing. Prompts and resources always are.
    Read,
    /// It adds or changes.
    Write,
    /// It may destroy; also everything of which nothing better is known.
    Destructive,
}

impl Class {
    /// All classes, the most harmless first.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Destructive];

    /// The word for it in scopes, rules and output.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Destructive => "destructive",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What decides on one route: its own keys, and the global ones where it has none.
#[derive(Debug, Default, Clone)]
pub struct Policy {
    /// What decides where no rule does.
    pub default: DefaultDecision,
    /// The rules of the route, then the global ones.
    pub rules: Vec<Arc<Rule>>,
    /// What callers without a credential may do; `None`: there are none.
    pub anonymous: Option<BTreeSet<Scope>>,
    /// Audiences of tokens that are good here, compared exactly.
    pub audiences: Vec<String>,
    /// What scopes mean.
    pub words: Arc<ScopeWords>,
}

impl Policy {
    /// Whether a rule names this subject, so that it is decided about otherwise than others with the same scopes and
    /// groups.
    #[must_use]
    pub fn names(&self, subject: &Subject) -> bool {
        self.rules.iter().any(|rule| match &rule.effect {
            Effect::Deny => false,
            Effect::Require(require) => require.subjects.contains(subject),
        })
    }
}

/// What decides where no rule does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DefaultDecision {
    /// The class of the item and the scopes of that class.
    #[default]
    ByClass,
    /// Nothing is allowed.
    Deny,
}

/// A rule.
#[derive(Debug)]
pub struct Rule {
    /// Its name, or its place in the file.
    pub name: String,
    /// What it is about.
    pub matches: Match,
    /// What it says.
    pub effect: Effect,
}

/// What a rule says.
#[derive(Debug)]
pub enum Effect {
    /// What matches does not exist for anybody.
    Deny,
    /// What matches needs this.
    Require(Require),
}

/// What a caller must have; all of it.
#[derive(Debug, Default)]
pub struct Require {
    /// All of these scopes.
    pub scopes_all: Vec<Scope>,
    /// One of these scopes, where there are some.
    pub scopes_any: Vec<Scope>,
    /// One of these groups, where there are some.
    pub groups_any: Vec<Arc<str>>,
    /// One of these subjects, where there are some.
    pub subjects: Vec<Subject>,
    /// Whether the item does not exist for a caller who lacks a scope.
    pub hides: bool,
    /// What the operator says about it.
    pub message: Option<String>,
}

/// What a rule is about. What is `None` fits everything; the rest must all fit.
#[derive(Debug, Default)]
pub struct Match {
    /// Names of routes.
    pub routes: Option<Vec<RouteName>>,
    /// Globs on names of upstreams.
    pub upstream: Option<GlobSet>,
    /// Kinds of items.
    pub kinds: Option<Vec<ListKind>>,
    /// Globs on local names of tools, and so on for prompts and resources; what none of them names does not fit where
    /// one of them is there.
    pub names: Option<Vec<(ListKind, GlobSet)>>,
    /// Classes.
    pub classes: Option<Vec<Class>>,
}

impl Match {
    /// Whether it fits everything.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.routes.is_none()
            && self.upstream.is_none()
            && self.kinds.is_none()
            && self.names.is_none()
            && self.classes.is_none()
    }
}

/// What scopes mean.
#[derive(Debug, Default)]
pub struct ScopeWords {
    /// The scopes that a scope implies, those that they imply included.
    pub implies: BTreeMap<Scope, BTreeSet<Scope>>,
    /// What scopes of an issuer are called here.
    pub map: BTreeMap<Scope, Scope>,
}

impl ScopeWords {
    /// The scopes that a token's scopes come to.
    #[must_use]
    pub fn expanded(&self, scopes: &BTreeSet<Scope>) -> BTreeSet<Scope> {
        let mut all = BTreeSet::new();
        for scope in scopes {
            for known in [Some(scope), self.map.get(scope)].into_iter().flatten() {
                all.insert(known.clone());
                all.extend(self.implies.get(known).into_iter().flatten().cloned());
            }
        }
        all
    }

    /// What an issuer calls a scope: the first name in order, or the scope itself.
    #[must_use]
    pub fn outward<'s>(&'s self, scope: &'s Scope) -> &'s Scope {
        self.map.iter().find(|(_, own)| *own == scope).map_or(scope, |(name, _)| name)
    }
}
