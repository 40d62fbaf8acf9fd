//! Telling equal URIs of two upstreams apart (design contract, section 4).
//!
//! The scheme stays, so that a client still knows what it reads; a label and `+` stand in front of the rest.

use super::UpstreamName;

/// The label of an upstream in URIs: its name, other characters than `[A-Za-z0-9.-]` as `-`.
fn label(upstream: &UpstreamName) -> String {
    upstream
        .as_str()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') { c } else { '-' })
        .collect()
}

/// Where the rest of a URI or URI template begins: after `scheme://`, or after `scheme:`.
fn rest_of(uri: &str) -> Option<usize> {
    let colon = uri.find(':')?;
    let after = uri.get(colon + 1..)?;
    Some(if after.starts_with("//") { colon + 3 } else { colon + 1 })
}

/// A URI or URI template with the label of its upstream: `scheme://LABEL+rest`. Text without a scheme stays as it is.
#[must_use]
pub fn mark_uri(uri: &str, upstream: &UpstreamName) -> String {
    match rest_of(uri).and_then(|at| uri.split_at_checked(at)) {
        Some((scheme, rest)) => format!("{scheme}{}+{rest}", label(upstream)),
        None => uri.to_owned(),
    }
}

/// The upstream's own URI of a marked one; `None` where it does not carry the label of this upstream.
#[must_use]
pub fn unmark_uri(uri: &str, upstream: &UpstreamName) -> Option<String> {
    let (scheme, rest) = rest_of(uri).and_then(|at| uri.split_at_checked(at))?;
    let rest = rest.strip_prefix(&label(upstream))?.strip_prefix('+')?;
    Some(format!("{scheme}{rest}"))
}
