//! URI templates (RFC 6570), read backwards: which template a URI may have come from.

/// Whether a URI is an expansion of a URI template (RFC 6570), and how many of its characters the template fixes.
/// Simple expressions match up to the next `/`, reserved ones (`{+x}`, `{#x}`, `{/x}`) and queries match anything.
/// Linear in the length of the URI for each expression.
pub(super) fn fits(template: &str, uri: &str) -> Option<usize> {
    let mut rest = uri;
    let mut literal = 0;
    let mut parts = template;
    loop {
        let Some((fixed, after)) = parts.split_once('{') else {
            return (rest == parts).then_some(literal + parts.len());
        };
        rest = rest.strip_prefix(fixed)?;
        literal += fixed.len();
        let (expression, after) = after.split_once('}')?;
        let wide = expression.starts_with(['+', '#', '/', '?', '&', '.', ';']);
        let next = after.split('{').next().unwrap_or_default();
        let taken =
            if next.is_empty() { if after.is_empty() { rest.len() } else { 0 } } else { rest.find(next)? };
        let (value, left) = rest.split_at_checked(taken)?;
        if !wide && value.contains('/') {
            return None;
        }
        rest = left;
        parts = after;
    }
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn templates_match_their_expansions() {
        let cases = [
            ("db://{table}/{id}", "db://users/7", Some(6)),
            ("db://{table}/{id}", "db://users", None),
            ("db://{table}/{id}", "db://users/7/8", None),
            ("file:///{+path}", "file:///a/b/c", Some(8)),
            ("x://{id}.txt", "x://a.txt", Some(8)),
            ("x://{id}.txt", "x://a.md", None),
            ("x://fixed", "x://fixed", Some(9)),
            ("x://{id", "x://a", None),
        ];
        for (template, uri, wanted) in cases {
            assert_eq!(fits(template, uri), wanted, "{template} {uri}");
        }
    }
}
