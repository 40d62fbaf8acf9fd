//! Why a node could not be read.

use std::fmt;

use serde::de;

/// Why a node could not be read.
#[derive(Debug)]
pub(super) enum Fault {
    /// For this reason, which is still to be noted at the node.
    Said(String),
    /// The reason was noted already.
    Noted,
}

impl Fault {
    /// A reason that is still to be noted.
    pub(super) fn said(text: &str) -> Self {
        Self::Said(text.to_owned())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Said(text) => f.write_str(text),
            Self::Noted => f.write_str("noted already"),
        }
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Self::Said(text.to_string())
    }

    /// The value is left out: it may be a secret.
    fn invalid_value(_found: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::Said(format!("expected {expected}"))
    }

    /// The value is left out: it may be a secret.
    fn invalid_type(_found: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        Self::Said(format!("expected {expected}"))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::Said(format!("the key \"{field}\" is missing"))
    }
}
