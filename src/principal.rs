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
    /// What its credential grants.
    Granted(Arc<Grant>),
}

/// What a credential grants.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Grant {
    /// The scopes, those that they imply included once the route is known.
    pub scopes: BTreeSet<Scope>,
    /// The groups of its holder.
    pub groups: BTreeSet<Arc<str>>,
    /// Who its holder is, where decisions ask for that.
    pub holder: Option<Subject>,
    /// Whether there was no credential at all.
    pub is_anonymous: bool,
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

    /// A caller without a credential, who may have these scopes. All of them are one principal.
    #[must_use]
    pub fn anonymous(scopes: BTreeSet<Scope>) -> Self {
        let grant = Grant { scopes, is_anonymous: true, ..Grant::default() };
        Self::granted(Subject { issuer: "anonymous".into(), subject: "anyone".into() }, grant, None)
    }

    /// The principal of a configured token.
    #[must_use]
    pub fn fixed(name: &str, scopes: BTreeSet<Scope>, groups: BTreeSet<Arc<str>>) -> Self {
        let grant = Grant { scopes, groups, ..Grant::default() };
        Self::granted(Subject { issuer: "static".into(), subject: name.into() }, grant, None)
    }

    /// The principal of a credential that ends at `until`, in seconds since 1970 UTC.
    #[must_use]
    pub fn granted(subject: Subject, grant: Grant, until: Option<i64>) -> Self {
        Self { subject, rights: Rights::Granted(Arc::new(grant)), until }
    }

    /// The scopes of its credential.
    pub fn scopes(&self) -> impl Iterator<Item = &Scope> {
        let grant = match &self.rights {
            Rights::All => None,
            Rights::Granted(grant) => Some(grant),
        };
        grant.into_iter().flat_map(|grant| &grant.scopes)
    }

    /// Whether this caller has an identity of its own, so that state may be kept for it.
    #[must_use]
    pub fn is_named(&self) -> bool {
        match &self.rights {
            Rights::All => false,
            Rights::Granted(grant) => !grant.is_anonymous,
        }
    }
}
