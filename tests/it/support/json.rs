//! JSON as text: reaching into a message without changing a character of what is found.

use std::collections::HashMap;

use serde_json::Value;
use serde_json::value::RawValue;

/// The exact text of the member at this path; `None` where there is none.
pub(crate) fn raw<'a>(text: &'a str, path: &[&str]) -> Option<&'a str> {
    let Some((first, rest)) = path.split_first() else { return Some(text) };
    let members: HashMap<String, &'a RawValue> = serde_json::from_str(text).ok()?;
    raw(members.get(*first)?.get(), rest)
}

/// The member at this path as a text.
pub(crate) fn text(message: &str, path: &[&str]) -> Option<String> {
    serde_json::from_str(raw(message, path)?).ok()
}

/// A whole text as a value; `Null` where it is no JSON.
pub(crate) fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

/// A text as a JSON string.
pub(crate) fn quote(text: &str) -> String {
    Value::from(text).to_string()
}
