//! Writing an object anew from raw members: what is not named stays byte for byte.

use std::borrow::Cow;

use super::Object;
use super::scan::special;

/// A change to one level of a JSON object. Members that no change names keep their place and their text.
#[derive(Debug, Default, Clone)]
pub struct Edit<'e> {
    first: Vec<(&'e str, Cow<'e, str>)>,
    set: Vec<(&'e str, Cow<'e, str>)>,
    removed: Vec<&'e str>,
}

impl<'e> Edit<'e> {
    /// No change.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives a member a new raw value in its place, or adds it at the end.
    #[must_use]
    pub fn set(mut self, key: &'e str, raw: impl Into<Cow<'e, str>>) -> Self {
        self.set.push((key, raw.into()));
        self
    }

    /// Adds a member in front; an older member of that name goes.
    #[must_use]
    pub fn first(mut self, key: &'e str, raw: impl Into<Cow<'e, str>>) -> Self {
        self.first.push((key, raw.into()));
        self
    }

    /// Takes a member out.
    #[must_use]
    pub fn remove(mut self, key: &'e str) -> Self {
        self.removed.push(key);
        self
    }

    /// Writes the object with the changes applied.
    #[must_use]
    pub fn apply(&self, object: &Object<'_>) -> String {
        let new: usize = self.first.iter().chain(&self.set).map(|(key, raw)| key.len() + raw.len() + 4).sum();
        let old: usize = object.iter().map(|(key, raw)| key.len() + raw.len() + 4).sum();
        let mut text = Text::sized(new + old + 2);
        for (key, raw) in &self.first {
            text.member(key, raw);
        }
        for (key, raw) in object.iter() {
            if self.removed.contains(&key) || self.first.iter().any(|(k, _)| *k == key) {
                continue;
            }
            let raw = self.set.iter().find(|(k, _)| *k == key).map_or(raw, |(_, new)| new.as_ref());
            text.member(key, raw);
        }
        for (key, raw) in &self.set {
            if object.get(key).is_none() {
                text.member(key, raw);
            }
        }
        text.close()
    }
}

/// A JSON object being written, member by member.
#[derive(Debug)]
pub struct Text {
    out: String,
}

impl Text {
    /// An empty object.
    #[must_use]
    pub fn object() -> Self {
        Self::sized(0)
    }

    /// An empty object that will have about so many bytes.
    #[must_use]
    pub fn sized(bytes: usize) -> Self {
        let mut out = String::with_capacity(bytes.max(64));
        out.push('{');
        Self { out }
    }

    /// Adds a member whose value is raw JSON.
    pub fn member(&mut self, key: &str, raw: &str) {
        if self.out.len() > 1 {
            self.out.push(',');
        }
        quote(&mut self.out, key);
        self.out.push(':');
        self.out.push_str(raw);
    }

    /// Adds a member whose value is a string.
    pub fn text(&mut self, key: &str, value: &str) {
        self.member(key, &quoted(value));
    }

    /// The finished object.
    #[must_use]
    pub fn close(mut self) -> String {
        self.out.push('}');
        self.out
    }
}

/// A string as JSON, with its quotes.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut raw = String::with_capacity(text.len() + 2);
    quote(&mut raw, text);
    raw
}

/// Writes a string as JSON.
fn quote(out: &mut String, text: &str) {
    if special(text.as_bytes()).is_none() {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&serde_json::Value::from(text).to_string());
    }
}
