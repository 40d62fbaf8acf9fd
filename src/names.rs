//! Every name that Weir handles, and the only place where names are joined.
//!
//! Owns the newtypes for upstreams, routes, namespaces, local and published names, and the plan that turns the
//! local names of one upstream into published ones (`publish`). Names are parsed once, at the border; later
//! readers trust them. Nothing in Weir ever splits a published name: it is looked up in the catalog's index.
//!
//! Invariant: for one upstream the plan is injective and depends on the *set* of its names only, never on order.

mod publish;
mod uri;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

pub use publish::{Characters, NameRules, Published, Separator};
pub use uri::{mark_uri, unmark_uri};

/// Why a text is not the name that was wanted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// Upstream and route names: `[A-Za-z0-9][A-Za-z0-9._-]{0,62}`.
    #[error("must be 1 to 63 of A-Z a-z 0-9 . _ - and begin with a letter or digit")]
    Shape,
    /// A namespace holds something outside `[A-Za-z0-9_-]`.
    #[error("a namespace holds A-Z a-z 0-9 _ - only")]
    NamespaceCharacters,
    /// The separator would occur twice in `namespace + separator`, so that two upstreams could claim one name.
    #[error("the separator may not occur in the namespace, nor may the namespace end in its beginning")]
    NamespaceSeparator,
    /// `weir` is Weir's own.
    #[error("the namespace \"weir\" is reserved")]
    NamespaceReserved,
    /// Separators: 1 to 4 of `[A-Za-z0-9_.-]`.
    #[error("must be 1 to 4 of A-Z a-z 0-9 _ . -")]
    Separator,
}

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The name as text, for comparison and encoding.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

name_type! {
    /// The name of an upstream, as the configuration writes it (a key of `upstreams`).
    UpstreamName
}
name_type! {
    /// The name of a route, as the configuration writes it.
    RouteName
}
name_type! {
    /// The prefix that keeps two upstreams' names apart; may be empty.
    Namespace
}
name_type! {
    /// A name as the upstream says it. What may stand in it is the upstream's business.
    LocalName
}
name_type! {
    /// A published name, as clients see and send it.
    QualifiedName
}

fn is_config_name(text: &str) -> bool {
    let plain = |c: u8| c.is_ascii_alphanumeric();
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && bytes.first().copied().is_some_and(plain)
        && bytes.iter().all(|&c| plain(c) || matches!(c, b'.' | b'_' | b'-'))
}

impl FromStr for UpstreamName {
    type Err = NameError;

    /// Takes a text as the configuration holds it.
    ///
    /// # Errors
    /// [`NameError::Shape`] when it is not `[A-Za-z0-9][A-Za-z0-9._-]{0,62}`.
    fn from_str(text: &str) -> Result<Self, NameError> {
        if is_config_name(text) { Ok(Self(text.into())) } else { Err(NameError::Shape) }
    }
}

impl FromStr for RouteName {
    type Err = NameError;

    /// Takes a text as the configuration holds it.
    ///
    /// # Errors
    /// [`NameError::Shape`] when it is not `[A-Za-z0-9][A-Za-z0-9._-]{0,62}`.
    fn from_str(text: &str) -> Result<Self, NameError> {
        if is_config_name(text) { Ok(Self(text.into())) } else { Err(NameError::Shape) }
    }
}

impl LocalName {
    /// Takes any text that an upstream used as a name.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }
}

impl QualifiedName {
    /// Takes a name as a client sent it; whether it exists is for the catalog to say.
    #[must_use]
    pub fn asked(text: &str) -> Self {
        Self(text.into())
    }
}

impl Namespace {
    /// Takes a namespace as the configuration writes it and the separator in use.
    ///
    /// # Errors
    /// [`NameError`] when it holds other characters than `[A-Za-z0-9_-]`, is `weir`, contains the separator, or
    /// ends in the separator's beginning (the separator must occur once in `namespace + separator`, at the end).
    pub fn new(text: &str, separator: &Separator) -> Result<Self, NameError> {
        if !text.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-')) {
            return Err(NameError::NamespaceCharacters);
        }
        if text == Self::OWN {
            return Err(NameError::NamespaceReserved);
        }
        let joined = format!("{text}{separator}");
        if joined.find(separator.as_str()) != Some(text.len()) {
            return Err(NameError::NamespaceSeparator);
        }
        Ok(Self(text.into()))
    }

    /// The namespace that an upstream gets when the configuration names none.
    ///
    /// # Errors
    /// As [`Namespace::new`].
    pub fn default_for(upstream: &UpstreamName, separator: &Separator) -> Result<Self, NameError> {
        let text: String = upstream
            .as_str()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' })
            .collect();
        Self::new(&text, separator)
    }

    /// Weir's own namespace, which no upstream may take.
    pub const OWN: &'static str = "weir";

    /// Whether names are published bare.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests;
