//! The plan from local to published names (design contract, section 4).
//!
//! Pure. Characters outside the permitted set become `_`, ambiguous ones get a hash, over-long ones are cut and get
//! a hash. Collisions between upstreams are settled where the catalog is built, since only that knows file order.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use super::{LocalName, NameError, Namespace, QualifiedName, UpstreamName, mark_uri};

/// What stands between namespace and local name: 1 to 4 of `[A-Za-z0-9_.-]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Separator(Arc<str>);

impl Separator {
    /// The separator as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Separator {
    fn default() -> Self {
        Self("__".into())
    }
}

impl fmt::Display for Separator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Separator {
    type Err = NameError;

    /// Takes a separator as the configuration writes it.
    ///
    /// # Errors
    /// [`NameError::Separator`] when it is empty, longer than 4, or holds other characters.
    fn from_str(text: &str) -> Result<Self, NameError> {
        let legal = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'.' | b'-');
        if (1..=4).contains(&text.len()) && text.bytes().all(legal) {
            Ok(Self(text.into()))
        } else {
            Err(NameError::Separator)
        }
    }
}

/// Which characters a published name may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Characters {
    /// `[A-Za-z0-9_-]`: what every model API accepts.
    Strict,
    /// Also `.`, as the specification recommends (2026-07-28, server/tools, "Tool Names").
    Spec,
    /// Whatever the upstream uses.
    Any,
}

impl Characters {
    fn keeps(self, c: char) -> bool {
        match self {
            Self::Strict => c.is_ascii_alphanumeric() || matches!(c, '_' | '-'),
            Self::Spec => c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'),
            Self::Any => true,
        }
    }
}

/// The naming rules of one configuration (`names:`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameRules {
    /// What joins namespace and local name.
    pub separator: Separator,
    /// Most characters of a published name.
    pub max_length: usize,
    /// Which characters may stand in it.
    pub characters: Characters,
}

/// One published name and, where it had to be shortened, the full one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// What clients see.
    pub name: QualifiedName,
    /// The full name, present when `name` is a shortened form of it (goes to `_meta` as `dev.weir/name`).
    pub full: Option<String>,
}

/// The first 8 hexadecimal digits of the SHA-256 of `text`.
fn short_hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    HEXLOWER.encode(digest.get(..4).unwrap_or_default())
}

impl NameRules {
    /// Publishes the local names of one upstream.
    ///
    /// Takes the upstream's namespace and its local names (each once); returns one published name for each, in the
    /// same order. The result depends on the set of names only. Never fails: what cannot stand in a name is
    /// replaced, and where that is ambiguous a hash of the local name is added.
    #[must_use]
    pub fn publish(&self, namespace: &Namespace, locals: &[LocalName]) -> Vec<Published> {
        let replaced: Vec<String> = locals.iter().map(|local| self.replace(local.as_str())).collect();
        let mut uses: HashMap<&str, usize> = HashMap::new();
        for text in &replaced {
            *uses.entry(text.as_str()).or_default() += 1;
        }
        locals
            .iter()
            .zip(&replaced)
            .map(|(local, text)| {
                let changed = text != local.as_str();
                let ambiguous = changed && uses.get(text.as_str()).copied().unwrap_or_default() > 1;
                if ambiguous {
                    self.join(namespace, &format!("{text}_{}", short_hash(local.as_str())))
                } else {
                    self.join(namespace, text)
                }
            })
            .collect()
    }

    fn replace(&self, local: &str) -> String {
        local.chars().map(|c| if self.characters.keeps(c) { c } else { '_' }).collect()
    }

    fn join(&self, namespace: &Namespace, local: &str) -> Published {
        let full = if namespace.is_empty() {
            local.to_owned()
        } else {
            format!("{namespace}{}{local}", self.separator)
        };
        if full.chars().count() <= self.max_length {
            return Published { name: QualifiedName(full.into()), full: None };
        }
        let hash = short_hash(&full);
        let kept: String = full.chars().take(self.max_length.saturating_sub(hash.len() + 1)).collect();
        Published { name: QualifiedName(format!("{kept}_{hash}").into()), full: Some(full) }
    }
}

impl Published {
    /// A name that is published as it is (URIs and URI templates).
    #[must_use]
    pub fn unchanged(local: &LocalName) -> Self {
        Self { name: QualifiedName(local.as_str().into()), full: None }
    }

    /// A URI or URI template with the label of its upstream.
    #[must_use]
    pub fn marked(local: &LocalName, upstream: &UpstreamName) -> Self {
        Self { name: QualifiedName(mark_uri(local.as_str(), upstream).into()), full: None }
    }
}
