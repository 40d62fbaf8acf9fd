//! Other spellings of a URI that a server may take for the same resource (RFC 3986, section 6; WHATWG URL).
//!
//! A rule compares text, and the client writes the text. Servers read it as a URL: scheme in any case, dot segments,
//! percent-encoding. What no list holds is decided about in every spelling, so that none evades a rule.

use std::collections::BTreeSet;

use percent_encoding::percent_decode_str;
use url::Url;

/// The other spellings of a URI: normalised, decoded, and both. `None` for text that is not passed on at all, since
/// readers differ in what they drop of it: control characters anywhere, white space at an end.
pub(super) fn others(uri: &str) -> Option<BTreeSet<String>> {
    if uri.chars().any(char::is_control) || uri.trim() != uri {
        return None;
    }
    let decoded = percent_decode_str(uri).decode_utf8_lossy().into_owned();
    let normal = |text: &str| Url::parse(text).ok().map(String::from);
    let mut all: BTreeSet<String> =
        [normal(uri), normal(&decoded), Some(decoded)].into_iter().flatten().collect();
    all.remove(uri);
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::others;

    #[test]
    fn every_spelling_that_a_server_may_mean_is_known() {
        for (uri, meant) in [
            ("NOTES://private/a", "notes://private/a"),
            ("notes://%70rivate/a", "notes://private/a"),
            ("notes://a/public/../private/a", "notes://a/private/a"),
            ("file:///public/../secret/k", "file:///secret/k"),
            ("file:///public/%2e%2E/secret/k", "file:///secret/k"),
            ("file:///public/./k", "file:///public/k"),
            ("https://EXAMPLE.com:443/k", "https://example.com/k"),
        ] {
            let all = others(uri).unwrap();
            assert!(all.contains(meant), "{uri}: {all:?}");
        }
        assert!(others("seen:7").unwrap().is_empty());
        for bad in ["a:b\nc", " a:b", "a:b\u{0}", "a:b ", "a\t:b"] {
            assert_eq!(others(bad), None, "{bad:?}");
        }
    }
}
