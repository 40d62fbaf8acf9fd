//! Who calls, without how we know.
//!
//! A principal is `(issuer, subject)` with scopes and groups. That pair, never a token's bytes, owns sessions and
//! audit lines; what depends on rights is keyed by [`Principal::rights`].

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
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

/// Who vouches for configured tokens.
pub const STATIC: &str = "static";
/// What the holder of the token is called that Weir makes for itself.
pub const GENERATED: &str = "generated";

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
    /// What it rests on.
    pub voucher: Voucher,
}

/// What a principal rests on, so that what outlives a request can be asked for it again.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Voucher {
    /// Access is open.
    Open,
    /// Callers without a credential may come.
    Anonymous,
    /// A configured token, by the SHA-256 of its bytes.
    Token([u8; 32]),
    /// A token of an issuer.
    Issued {
        /// What it grants.
        grant: Arc<Grant>,
        /// Stand for how tokens of its issuer are verified and read: where they are others, it may not be accepted, or
        /// grant the same, any more.
        terms: [u8; 32],
    },
}

/// Whom limits count for: a principal, and callers without a credential per address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Holder {
    subject: Subject,
    address: Option<IpAddr>,
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
            voucher: Voucher::Open,
        }
    }

    /// A caller without a credential, who may have these scopes. All of them are one principal.
    #[must_use]
    pub fn anonymous(scopes: BTreeSet<Scope>) -> Self {
        let grant = Grant { scopes, is_anonymous: true, ..Grant::default() };
        let subject = Subject { issuer: "anonymous".into(), subject: "anyone".into() };
        Self { voucher: Voucher::Anonymous, ..Self::granted(subject, grant, None) }
    }

    /// The principal of a configured token.
    #[must_use]
    pub fn fixed(name: &str, scopes: BTreeSet<Scope>, groups: BTreeSet<Arc<str>>) -> Self {
        let grant = Grant { scopes, groups, ..Grant::default() };
        Self::granted(Subject { issuer: STATIC.into(), subject: name.into() }, grant, None)
    }

    /// The principal of a credential that ends at `until`, in seconds since 1970 UTC.
    #[must_use]
    pub fn granted(subject: Subject, grant: Grant, until: Option<i64>) -> Self {
        let grant = Arc::new(grant);
        Self {
            subject,
            rights: Rights::Granted(Arc::clone(&grant)),
            until,
            voucher: Voucher::Issued { grant, terms: [0; 32] },
        }
    }

    /// The same, where its token was verified under these terms.
    #[must_use]
    pub fn under(mut self, now: [u8; 32]) -> Self {
        if let Voucher::Issued { terms, .. } = &mut self.voucher {
            *terms = now;
        }
        self
    }

    /// The scopes of its credential.
    pub fn scopes(&self) -> impl Iterator<Item = &Scope> {
        let grant = match &self.rights {
            Rights::All => None,
            Rights::Granted(grant) => Some(grant),
        };
        grant.into_iter().flat_map(|grant| &grant.scopes)
    }

    /// Whom its limits count for. `address` is where its connection comes from; of IPv6 the network of 64 bits counts.
    #[must_use]
    pub fn holder(&self, address: Option<IpAddr>) -> Holder {
        let network = |address: IpAddr| match address.to_canonical() {
            IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() & (u128::MAX << 64)).into()),
            v4 @ IpAddr::V4(_) => v4,
        };
        let address = if self.is_named() { None } else { address.map(network) };
        Holder { subject: self.subject.clone(), address }
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::net::IpAddr;

    use super::Principal;

    #[test]
    fn limits_of_callers_without_a_credential_count_per_address() {
        let address = |text: &str| text.parse::<IpAddr>().ok();
        let [one, two] = ["10.0.0.1", "10.0.0.2"].map(address);
        for anybody in [Principal::open(), Principal::anonymous(BTreeSet::new())] {
            assert_ne!(anybody.holder(one), anybody.holder(two));
            assert_eq!(anybody.holder(one), anybody.holder(address("::ffff:10.0.0.1")));
            assert_eq!(anybody.holder(address("2001:db8::1")), anybody.holder(address("2001:db8::2:1")));
            assert_ne!(anybody.holder(address("2001:db8::1")), anybody.holder(address("2001:db8:0:1::1")));
        }
        let named = Principal::fixed("kim", BTreeSet::new(), BTreeSet::new());
        assert_eq!(named.holder(one), named.holder(two));
    }
}
