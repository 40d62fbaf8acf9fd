//! Headers that mirror arguments (2026-07-28, transports/streamable-http, "Custom Headers from Tool Parameters").

use crate::catalog::ParamHeader;
use crate::exchange::{Call, Failure};
use crate::protocol::headers;

/// Most headers that no annotation names which pass through, and the largest one, in bytes.
const MOST_UNKNOWN: usize = 16;
const LARGEST_UNKNOWN: usize = 4096;

/// The mirrored headers as they must go to the upstream: computed from the arguments where an annotation names them,
/// otherwise as the client sent them.
///
/// # Errors
/// [`Failure::HeaderMismatch`] when the client is one that mirrors arguments itself and a header differs from the
/// body, is missing, or has no value in the body.
pub(super) fn outgoing(
    annotations: &[ParamHeader],
    arguments: Option<&str>,
    call: &Call,
) -> Result<Vec<(String, String)>, Failure> {
    let mut out = Vec::new();
    for annotation in annotations {
        let value = arguments.and_then(|raw| annotation.value(raw));
        if call.mirrors {
            compare(annotation, value.as_deref(), &call.mirrored)?;
        }
        if let Some(value) = value {
            out.push((annotation.header.clone(), headers::encode(&value)));
        }
    }
    let unknown = call.mirrored.iter().filter(|(name, value)| {
        value.len() <= LARGEST_UNKNOWN && !annotations.iter().any(|known| known.header == *name)
    });
    out.extend(unknown.take(MOST_UNKNOWN).cloned());
    Ok(out)
}

fn compare(annotation: &ParamHeader, value: Option<&str>, sent: &[(String, String)]) -> Result<(), Failure> {
    let mut values = sent.iter().filter(|(name, _)| *name == annotation.header).map(|(_, value)| value);
    let header = values.next();
    if values.next().is_some() {
        return Err(Failure::HeaderMismatch(format!("{} occurs twice", annotation.header)));
    }
    match (header, value) {
        (None, None) => Ok(()),
        (None, Some(_)) => Err(Failure::HeaderMismatch(format!("{} is missing", annotation.header))),
        (Some(header), Some(value)) => {
            let decoded = headers::decode(header.as_bytes());
            if decoded.as_deref().is_some_and(|text| equal(text, value, annotation.integer)) {
                Ok(())
            } else {
                Err(Failure::HeaderMismatch(format!("{} does not match the body", annotation.header)))
            }
        }
        (Some(_), None) => {
            Err(Failure::HeaderMismatch(format!("{} has no value in the body", annotation.header)))
        }
    }
}

/// Integers are compared as numbers: `42.0` and `42` are equal.
fn equal(header: &str, body: &str, integer: bool) -> bool {
    if header == body {
        return true;
    }
    let number = |text: &str| text.parse::<f64>().ok().filter(|n| n.is_finite());
    integer && number(header).is_some_and(|a| number(body).is_some_and(|b| a.total_cmp(&b).is_eq()))
}
