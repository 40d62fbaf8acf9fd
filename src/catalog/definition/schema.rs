//! Whether a schema is one: it is compiled, after a look at how much work that would be.
//!
//! Compiling cannot be interrupted, so what it may cost is decided before: size, number of parts, references
//! (which `unevaluatedProperties` multiplies) and the size of regular expressions. The limits are measured ones;
//! within them a compilation takes a few milliseconds at most. What is beyond them is not judged at all.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, ValidationError};
use serde_json::Value;

const BYTES: usize = 64 * 1024;
const PARTS: usize = 1_500;
const REFERENCES: usize = 200;
const REFERENCES_UNEVALUATED: usize = 12;
const PATTERN_STATES: usize = 20_000;

/// What is to be said about a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It compiles.
    Good,
    /// It does not, for this reason.
    Bad(String),
    /// Nobody knows: it is too large, or uses regular expressions that only other engines know.
    Unchecked,
    /// It names a dialect that is not known here.
    UnknownDialect,
}

/// Has the schemas of the dialects compiled, which happens once in a process and takes longer than any tool may.
pub(super) fn warm() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for dialect in
            ["https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"]
        {
            let text = serde_json::json!({ "type": "string", "pattern": "^a$", "format": "uri" });
            let schema = serde_json::json!({ "$schema": dialect, "properties": { "a": text } });
            build(&schema, Draft::default());
        }
    });
}

/// Judges one schema.
pub(super) fn verdict(schema: &str) -> Verdict {
    if schema.len() > BYTES {
        return Verdict::Unchecked;
    }
    let Ok(schema) = serde_json::from_str::<Value>(schema) else {
        return Verdict::Bad("it is not JSON".to_owned());
    };
    if Draft::default().detect(&schema) == Draft::Unknown {
        return Verdict::UnknownDialect;
    }
    if !Work::of(&schema).is_bearable() {
        return Verdict::Unchecked;
    }
    match build(&schema, Draft::default()) {
        // Revisions before 2025-11-25 named no default dialect, and most schemas of that time are of draft 7.
        Verdict::Bad(reason) if schema.get("$schema").is_none() => match build(&schema, Draft::Draft7) {
            Verdict::Bad(_) => Verdict::Bad(reason),
            verdict => verdict,
        },
        verdict => verdict,
    }
}

fn build(schema: &Value, default: Draft) -> Verdict {
    let draft = default.detect(schema);
    let built = catch_unwind(AssertUnwindSafe(|| {
        jsonschema::options().offline().with_draft(draft).build(schema).map(|_| ())
    }));
    match built {
        Ok(Ok(())) => Verdict::Good,
        Ok(Err(error)) => judge(&error),
        // The crate's fault, not the schema's.
        Err(_) => Verdict::Unchecked,
    }
}

fn judge(error: &ValidationError<'_>) -> Verdict {
    let ValidationErrorKind::Format { format } = error.kind() else {
        let text: String = error.to_string().chars().take(200).collect();
        return Verdict::Bad(format!("{text} (at {:?})", error.instance_path().as_str()));
    };
    let text = error.instance().as_str().unwrap_or_default().to_owned();
    if format == "regex" && !is_broken(&text) {
        Verdict::Unchecked
    } else {
        Verdict::Bad(format!("{text:?} is no {format}"))
    }
}

/// How much there is to do.
#[derive(Debug, Default)]
struct Work {
    parts: usize,
    references: usize,
    unevaluated: bool,
    states: usize,
}

impl Work {
    fn of(schema: &Value) -> Self {
        let mut work = Self::default();
        work.count(schema);
        work
    }

    fn is_bearable(&self) -> bool {
        let references = if self.unevaluated { REFERENCES_UNEVALUATED } else { REFERENCES };
        self.parts <= PARTS && self.references <= references && self.states <= PATTERN_STATES
    }

    fn count(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                self.parts += 1;
                members.iter().for_each(|(key, value)| self.member(key, value));
            }
            Value::Array(items) => {
                self.parts += 1;
                items.iter().for_each(|item| self.count(item));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn member(&mut self, key: &str, value: &Value) {
        match (key, value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(_)) => self.references += 1,
            ("unevaluatedProperties" | "unevaluatedItems", _) => self.unevaluated = true,
            ("pattern", Value::String(pattern)) => self.states = self.states.saturating_add(states(pattern)),
            ("patternProperties", Value::Object(map)) => {
                let all = map.keys().map(|pattern| states(pattern)).fold(0, usize::saturating_add);
                self.states = self.states.saturating_add(all);
            }
            _ => {}
        }
        self.count(value);
    }
}

/// An upper estimate of how large a regular expression becomes: its length, more for classes of Unicode, times all
/// its counts.
fn states(pattern: &str) -> usize {
    let classes = pattern.matches("\\p").count() + pattern.matches("\\P").count();
    let counts = pattern.split('{').skip(1).filter_map(|rest| {
        let inner = rest.split('}').next()?;
        inner.split(',').filter_map(|number| number.trim().parse::<usize>().ok()).max()
    });
    let size = pattern.len().saturating_add(classes.saturating_mul(100));
    counts.fold(size, |size, count| size.saturating_mul(count.max(1)))
}

/// Whether a regular expression is broken in any dialect: brackets that do not match, nothing before a quantifier,
/// a backslash at the end. Engines differ in what else they know, so their refusal alone proves nothing.
fn is_broken(pattern: &str) -> bool {
    let mut depth = 0_usize;
    let mut in_class = false;
    let mut repeatable = false;
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        let before = std::mem::replace(&mut repeatable, true);
        match c {
            '\\' if rest.next().is_none() => return true,
            '\\' => {}
            ']' => in_class = false,
            _ if in_class => {}
            '[' => in_class = true,
            '(' => {
                depth += 1;
                repeatable = false;
                if rest.as_str().starts_with('?') {
                    rest.next();
                }
            }
            ')' if depth == 0 => return true,
            ')' => depth -= 1,
            '|' | '^' => repeatable = false,
            '*' | '+' | '?' if !before => return true,
            _ => {}
        }
    }
    depth > 0 || in_class
}

#[cfg(test)]
mod tests {
    use super::{is_broken, states};

    #[test]
    fn only_what_no_engine_reads_is_broken() {
        for pattern in ["(", ")", "[a", "a\\", "*a", "(|+)", "a(b", "(a))"] {
            assert!(is_broken(pattern), "{pattern}");
        }
        for pattern in ["", "^(?=.*a)(?!b)[^]*$", "\\(", "(?<n>a)+?", "[a\\]]", "a{2}", "(?:a|b)*", "a++"] {
            assert!(!is_broken(pattern), "{pattern}");
        }
    }

    #[test]
    fn t083_counts_are_multiplied() {
        assert_eq!(states("abc"), 3);
        assert_eq!(states("(x{1,1000}){1,1000}"), 19_000_000);
        assert_eq!(states("a{999999999999}{999999999999}"), usize::MAX);
        assert!(states("\\p{L}{1,1000}") > 100_000);
    }
}
