//! Who a subject is: rules name people, and a name alone is not one.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::config::file::{self, At};
use crate::config::problem::Findings;
use crate::principal::{GENERATED, STATIC, Subject};

/// Who vouches for subjects.
#[derive(Default)]
pub(super) struct Vouchers {
    /// The names of static tokens.
    fixed: BTreeSet<String>,
    issuers: Vec<String>,
}

impl Vouchers {
    /// Those of an `access` block.
    pub(super) fn of(block: &file::AccessBlock) -> Self {
        let tokens = block.tokens.written().map(|at| at.value.as_slice()).unwrap_or_default();
        let named = tokens.iter().filter_map(|at| at.value.name.written()).map(|at| at.value.clone());
        let generated = (!block.generate.is_absent()).then(|| GENERATED.to_owned());
        let issuers = block.jwt.written().map(|at| at.value.as_slice()).unwrap_or_default();
        let issuers = issuers.iter().filter_map(|at| at.value.issuer.written());
        Self {
            fixed: named.chain(generated).collect(),
            issuers: issuers.map(|at| at.value.clone()).collect(),
        }
    }

    /// The subject that a rule means: `ISSUER SUBJECT`, or `SUBJECT` alone, which is a static token of that name
    /// where there is one, else a subject of the only issuer. The same text from anybody else is somebody else.
    pub(super) fn subject(&self, at: &At<String>, findings: &Findings) -> Option<Subject> {
        let of = |issuer: &str, subject: &str| Subject { issuer: issuer.into(), subject: Arc::from(subject) };
        if let Some((issuer, subject)) = at.value.split_once(' ')
            && (issuer == STATIC || self.issuers.iter().any(|known| known == issuer))
        {
            return Some(of(issuer, subject));
        }
        match self.issuers.as_slice() {
            _ if self.fixed.contains(&at.value) => Some(of(STATIC, &at.value)),
            [only] => Some(of(only, &at.value)),
            [] => {
                let text = format!("no token is called {}, so nobody is meant", at.shown());
                findings.warning(&at.place, &text);
                Some(of(STATIC, &at.value))
            }
            [first, ..] => {
                let text = format!(
                    "several issuers may have {}; write the issuer in front, as in \"{first} {}\"",
                    at.shown(),
                    at.value
                );
                findings.error(&at.place, &text);
                None
            }
        }
    }
}
