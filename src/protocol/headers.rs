//! HTTP header names of MCP and the value encoding of mirrored headers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderName;

/// The revision of the request, on every modern POST and on legacy requests from 2025-06-18 on.
pub const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The method of the body (modern).
pub const METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// `params.name` or `params.uri` of the body (modern).
pub const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// The session (legacy).
pub const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// Where to resume a stream (legacy).
pub const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// What begins the headers that mirror arguments (modern).
pub const PARAM_PREFIX: &str = "mcp-param-";

const OPEN: &str = "=?base64?";
const CLOSE: &str = "?=";

/// Encodes a value for a mirrored header (2026-07-28, transports/streamable-http, "Value Encoding"): plain where it
/// is printable ASCII without space at its ends and does not look encoded, else in the Base64 sentinel.
#[must_use]
pub fn encode(value: &str) -> String {
    let looks_encoded = value.starts_with(OPEN) && value.ends_with(CLOSE);
    let plain = value.bytes().all(|c| matches!(c, 0x20..=0x7e | b'\t'))
        && !value.starts_with([' ', '\t'])
        && !value.ends_with([' ', '\t'])
        && !looks_encoded;
    if plain { value.to_owned() } else { format!("{OPEN}{}{CLOSE}", STANDARD.encode(value)) }
}

/// Decodes the value of a mirrored header. `None` when the sentinel holds no Base64 of UTF-8, or when the value
/// holds characters that no header value may hold.
#[must_use]
pub fn decode(value: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(value).ok()?.trim_matches([' ', '\t']);
    if !text.bytes().all(|c| matches!(c, 0x20..=0x7e | b'\t')) {
        return None;
    }
    match text.strip_prefix(OPEN).and_then(|inner| inner.strip_suffix(CLOSE)) {
        Some(inner) => String::from_utf8(STANDARD.decode(inner).ok()?).ok(),
        None => Some(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    #[test]
    fn the_specifications_examples_hold() {
        let examples = [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ];
        for (value, header) in examples {
            assert_eq!(encode(value), header);
            assert_eq!(decode(header.as_bytes()).as_deref(), Some(value));
        }
    }

    #[test]
    fn t059_a_bad_sentinel_is_refused() {
        for bad in ["=?base64?%%%?=", "=?base64?/w==?=", "caf\u{e9}"] {
            assert_eq!(decode(bad.as_bytes()), None, "{bad}");
        }
    }
}
