//! One level of a JSON object: keys read, values left as text.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::scan::{MOST_MEMBERS, Members as Places};
use super::split::split;

/// The members of one JSON object in the order they came, values as raw text. Keys occur once.
#[derive(Debug, Clone, Default)]
pub struct Object<'a> {
    text: &'a str,
    /// A member that is opened again and again.
    opened: Option<(&'static str, Arc<Self>)>,
    members: Vec<(Cow<'a, str>, &'a str)>,
}

/// Why a text is not a usable object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ObjectError {
    NotAnObject,
    Duplicate(String),
}

impl<'a> Object<'a> {
    /// Reads one level of a JSON object.
    pub(crate) fn read(text: &'a str) -> Result<Self, ObjectError> {
        let read: Read<'a> = serde_json::from_str(text).map_err(|_why| ObjectError::NotAnObject)?;
        match read.duplicate {
            Some(key) => Err(ObjectError::Duplicate(key.chars().take(64).collect())),
            None => Ok(Self { text, opened: None, members: read.members }),
        }
    }

    /// Reads one level of a text that was read before, or that Weir wrote of what was: its syntax is not looked at again.
    pub(crate) fn reread(text: &'a str) -> Result<Self, ObjectError> {
        split(text).map_or_else(|| Self::read(text), |members| Ok(Self { text, opened: None, members }))
    }

    /// The object that a text is, from where its members stand.
    pub(crate) fn of_members(text: &'a str, members: &Places) -> Result<Self, ObjectError> {
        let key = |range: &Range<usize>| text.get(range.clone()).filter(|key| !key.contains('\\'));
        let mut found: Vec<(Cow<'a, str>, &'a str)> = Vec::with_capacity(members.len());
        for (name, value) in members {
            let known = key(name).filter(|key| found.iter().all(|(known, _)| known != key));
            let (Some(key), Some(value)) = (known, text.get(value.clone())) else { return Self::read(text) };
            found.push((Cow::Borrowed(key), value));
        }
        // No object at all, or one of which not all are noted.
        if members.is_empty() || members.len() == MOST_MEMBERS {
            return Self::read(text);
        }
        Ok(Self { text, opened: None, members: found })
    }

    /// Reads one level of a JSON object; `None` for anything else and for an object with a duplicate key.
    #[must_use]
    pub fn open(text: &'a str) -> Option<Self> {
        Self::read(text).ok()
    }

    /// Opens a text that was read before, or that Weir wrote of what was: its syntax is not looked at again. `None` as
    /// [`Object::open`].
    #[must_use]
    pub fn reopen(text: &'a str) -> Option<Self> {
        Self::reread(text).ok()
    }

    /// The whole object as it was written; `{}` for one that never was.
    #[must_use]
    pub fn as_json(&self) -> &'a str {
        if self.text.is_empty() { "{}" } else { self.text }
    }

    /// The raw text of a member.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&'a str> {
        self.members.iter().find(|(k, _)| k == key).map(|(_, value)| *value)
    }

    /// A member that is a JSON string, decoded.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<String> {
        let raw = self.get(key)?;
        let plain = raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        match plain.filter(|text| !text.contains(['\\', '"'])) {
            Some(text) => Some(text.to_owned()),
            None => serde_json::from_str(raw).ok(),
        }
    }

    /// A member that is an object, opened.
    #[must_use]
    pub fn object(&self, key: &str) -> Option<Self> {
        if let Some((known, object)) = &self.opened
            && *known == key
        {
            return Some(Self::clone(object));
        }
        self.get(key).and_then(Self::reopen)
    }

    /// The same, with a member that has been opened kept for the next one who asks for it.
    pub(crate) fn with_opened(self, key: &'static str, object: Self) -> Self {
        Self { opened: Some((key, Arc::new(object))), ..self }
    }

    /// All members in the order they came.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.members.iter().map(|(key, value)| (key.as_ref(), *value))
    }

    /// A key that is not `wanted` but becomes it when case is ignored.
    pub(crate) fn variant_of(&self, wanted: &[&str]) -> Option<&str> {
        self.members.iter().map(|(key, _)| key.as_ref()).find(|key| {
            !wanted.contains(key) && wanted.iter().any(|w| key.eq_ignore_ascii_case(w) || folds_to(key, w))
        })
    }
}

/// Whether `key` becomes `wanted` when case is ignored and letters that fold to ASCII ones (`ſ`, the Kelvin sign) are
/// replaced.
fn folds_to(key: &str, wanted: &str) -> bool {
    if key.is_ascii() {
        return false;
    }
    let wanted = wanted.to_lowercase();
    key.to_lowercase() == wanted || key.to_uppercase().to_lowercase() == wanted
}

struct Read<'a> {
    members: Vec<(Cow<'a, str>, &'a str)>,
    duplicate: Option<String>,
}

impl<'de> Deserialize<'de> for Read<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members)
    }
}

/// A key, borrowed where it holds no escape.
struct Key<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Read<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        /// Up to here a scan of the keys is cheaper than a set.
        const SMALL: usize = 12;
        let mut members: Vec<(Cow<'de, str>, &'de str)> = Vec::with_capacity(6);
        let mut seen: HashSet<String> = HashSet::new();
        let mut duplicate = None;
        while let Some(Key(key)) = map.next_key()? {
            let value: &'de RawValue = map.next_value()?;
            if members.len() == SMALL && seen.is_empty() {
                seen.extend(members.iter().map(|(k, _)| k.to_string()));
            }
            let known = if members.len() < SMALL {
                members.iter().any(|(k, _)| *k == key)
            } else {
                !seen.insert(key.to_string())
            };
            if known {
                duplicate.get_or_insert_with(|| key.to_string());
            } else {
                members.push((key, value.get()));
            }
        }
        Ok(Read { members, duplicate })
    }
}
