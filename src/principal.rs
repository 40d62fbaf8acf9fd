//! Who calls, without how we know.
//!
//! A principal is `(issuer, subject)` with scopes and groups. That pair, never a token's bytes, owns sessions and
//! audit lines; what depends on rights is keyed by [`Principal::rights`].

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// One scope of a token, exactly as it was granted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope(Arc<str>);

impl Scope {
    /// Takes a scope token. Comparison is exact: no prefix, no case folding.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// The scope as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The pair that identifies a principal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Subject {
    /// Who vouches for it: an issuer's URL, `static` for configured tokens, `open` where access is open.
    pub issuer: Arc<str>,
    /// Its identifier there.
    pub subject: Arc<str>,
}

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Principal {
    /// Its identity.
    pub subject: Subject,
    /// What it may do.
    pub rights: Rights,
    /// When its token ends, in seconds since 1970 UTC; `None`: never.
    pub until: Option<i64>,
}

/// What a principal may do. Views are keyed by this, so equal rights share one view.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rights {
    /// Access is open: everything.
    All,
    /// These scopes and groups.
    Granted {
        /// The scopes of its token.
        scopes: Arc<BTreeSet<Scope>>,
        /// The groups of its token.
        groups: Arc<BTreeSet<Arc<str>>>,
    },
}

impl Principal {
    /// The caller of a listener whose access is open. All of them are one principal.
    #[must_use]
    pub fn open() -> Self {
        Self {
            subject: Subject { issuer: "open".into(), subject: "anyone".into() },
            rights: Rights::All,
            until: None,
        }
    }

    /// The principal of a configured token.
    #[must_use]
    pub fn fixed(name: &str, scopes: BTreeSet<Scope>, groups: BTreeSet<Arc<str>>) -> Self {
        Self {
            subject: Subject { issuer: "static".into(), subject: name.into() },
            rights: Rights::Granted { scopes: Arc::new(scopes), groups: Arc::new(groups) },
            until: None,
        }
    }

    /// Whether this caller has an identity of its own, so that state may be kept for it.
    #[must_use]
    pub fn is_named(&self) -> bool {
        match self.rights {
            Rights::All => false,
            Rights::Granted { .. } => true,
        }
    }
}
