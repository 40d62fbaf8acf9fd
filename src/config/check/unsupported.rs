//! The one list of keys and values that the format has and this version does not carry out.
//!
//! They are errors: a rule that is read and not obeyed is worse than none. Work that adds one takes its line away.
//! Keys that only tune what does not exist yet (`categories`, `always`, `trusted_proxies`,
//! `lock.file`) are accepted silently.

use crate::config::problem::{Findings, Place};
use crate::config::tree::{Node, Value};

/// When a key is refused.
enum When {
    /// Whenever it is there.
    Written,
    /// When it holds more than an empty list or block.
    Filled,
    /// When it is true.
    True,
    /// When it is one of these texts.
    Is(&'static [&'static str]),
}

/// Keys with `*` for any name and `[]` for any item.
const UNSUPPORTED: &[(&str, When)] = &[
    ("listen.tls", When::Written),
    ("lock.mode", When::Is(&["warn", "quarantine"])),
    ("upstreams.*.plugin", When::Written),
    ("upstreams.*.inventory", When::Is(&["by_capabilities", "per_principal"])),
    ("upstreams.*.credential.client_credentials", When::Written),
    ("upstreams.*.credential.token_exchange", When::Written),
    ("upstreams.*.credential.claim", When::Written),
    ("upstreams.*.credential.per_principal", When::Written),
    ("upstreams.*.tls", When::Written),
    ("upstreams.*.proxy", When::Written),
    ("routes.[].definitions", When::Is(&["lean", "search"])),
    ("routes.[].manual", When::True),
    ("routes.[].access.limits", When::Filled),
    ("routes.[].access.rules.[].when", When::Written),
    ("access.introspection", When::Filled),
    ("access.mtls", When::Written),
    ("access.limits", When::Filled),
    ("access.rules.[].when", When::Written),
    ("prompts", When::Written),
    ("telemetry.otlp", When::Written),
    ("cluster", When::Written),
];

/// Notes everything in a tree that is not supported.
pub(crate) fn unsupported(root: &Node, findings: &Findings) {
    for (pattern, when) in UNSUPPORTED {
        walk(root, &root.place(""), pattern, &mut |node, place| {
            if let Some(reason) = when.refuses(node) {
                findings.error(place, &format!("{reason} not supported in this version"));
            }
        });
    }
}

/// Calls `found` for each node whose key fits the pattern.
fn walk(node: &Node, place: &Place, pattern: &str, found: &mut dyn FnMut(&Node, &Place)) {
    let (step, rest) = pattern.split_once('.').unwrap_or((pattern, ""));
    let mut enter = |node: &Node, place: Place| {
        if rest.is_empty() { found(node, &place) } else { walk(node, &place, rest, found) }
    };
    match (&node.value, step) {
        (Value::List(items), "[]") => {
            for (index, item) in items.iter().enumerate() {
                enter(item, item.place(&format!("{}[{index}]", place.key)));
            }
        }
        (Value::Map(entries), _) => {
            for entry in entries.iter().filter(|entry| step == "*" || step == entry.key) {
                enter(&entry.node, entry.place(&place.key));
            }
        }
        _ => {}
    }
}

impl When {
    /// Why this node is refused, if it is.
    fn refuses(&self, node: &Node) -> Option<String> {
        let this_key = || Some("this key is".to_owned());
        match (self, &node.value) {
            (Self::Written, _) => this_key(),
            (Self::Filled, Value::List(items)) if items.is_empty() => None,
            (Self::Filled, Value::Map(entries)) if entries.is_empty() => None,
            (Self::Filled, _) => this_key(),
            (Self::True, Value::Flag(true)) => Some("true is".to_owned()),
            (Self::Is(values), Value::Text(text)) if values.contains(&text.value.as_str()) => {
                Some(format!("\"{}\" is", text.value))
            }
            (Self::True | Self::Is(_), _) => None,
        }
    }
}
