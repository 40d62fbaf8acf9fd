//! Bearer tokens: how they stand in a request (RFC 6750, section 2.1), and the configured ones.

use http::{HeaderMap, header};
use jiff::Timestamp;
use subtle::ConstantTimeEq;

use super::sha256;
use crate::config::Token;
use crate::principal::{Principal, Voucher};

const LONGEST: usize = 16 * 1024;

/// What a request presents.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Presented<'a> {
    /// No credential.
    Nothing,
    /// More than one.
    Twice,
    /// Something that is no bearer token.
    Malformed,
    /// A bearer token.
    Token(&'a str),
}

/// Reads the `Authorization` header.
pub(super) fn presented(headers: &HeaderMap) -> Presented<'_> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = match (values.next(), values.next()) {
        (None, _) => return Presented::Nothing,
        (Some(_), Some(_)) => return Presented::Twice,
        (Some(value), None) => value,
    };
    let token = value.to_str().ok().and_then(|text| {
        let (scheme, token) = text.split_once(' ')?;
        Some(token.trim_matches(' ')).filter(|token| scheme.eq_ignore_ascii_case("bearer") && is_token(token))
    });
    token.map_or(Presented::Malformed, Presented::Token)
}

/// `b64token` of RFC 6750, of a sensible length.
fn is_token(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let legal = |c: u8| c.is_ascii_alphanumeric() || b"-._~+/".contains(&c);
    !body.is_empty() && text.len() <= LONGEST && body.bytes().all(legal)
}

/// Whether a request presents the token with this SHA-256, compared in constant time.
pub(super) fn presents(headers: &HeaderMap, hash: &[u8; 32]) -> bool {
    let Presented::Token(token) = presented(headers) else { return false };
    sha256(token).ct_eq(hash).into()
}

/// The configured tokens.
#[derive(Debug)]
pub(super) struct Tokens(Vec<Entry>);

#[derive(Debug)]
struct Entry {
    hash: [u8; 32],
    principal: Principal,
    not_after: Option<i64>,
}

impl Entry {
    fn is_good(&self, now: Timestamp) -> bool {
        self.not_after.is_none_or(|end| now.as_second() < end)
    }

    fn principal(&self) -> Principal {
        Principal { until: self.not_after, voucher: Voucher::Token(self.hash), ..self.principal.clone() }
    }
}

impl Tokens {
    pub(super) fn new<'t>(tokens: impl IntoIterator<Item = &'t Token>) -> Self {
        let entry = |token: &Token| Entry {
            hash: token.hash,
            principal: token.principal.clone(),
            not_after: token.not_after,
        };
        Self(tokens.into_iter().map(entry).collect())
    }

    /// The principal of a token that is good now. All entries are compared, each in constant time.
    pub(super) fn find(&self, token: &str, now: Timestamp) -> Option<Principal> {
        let hash = sha256(token);
        let mut found = None;
        for entry in &self.0 {
            let equal = bool::from(entry.hash.ct_eq(&hash));
            if equal && entry.is_good(now) {
                found = Some(entry);
            }
        }
        found.map(Entry::principal)
    }

    /// The principal of the token with this hash, which is compared in public.
    pub(super) fn with_hash(&self, hash: &[u8; 32], now: Timestamp) -> Option<Principal> {
        let is_it = |entry: &&Entry| entry.hash == *hash && entry.is_good(now);
        self.0.iter().rev().find(is_it).map(Entry::principal)
    }
}
