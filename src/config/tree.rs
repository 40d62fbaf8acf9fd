//! A YAML text as a tree in which everything has a position.
//!
//! Typed reading stops at the first mistake; an operator with four mistakes wants to see four. So the text becomes
//! this tree first, `${…}` is replaced in it (`substitute`), keys that are not supported yet are looked for
//! (`check/unsupported`), and only then is it read into types by a reader that notes what is wrong and goes on
//! (`decode`). Nothing here prints: a tree holds secrets.

mod decode;
mod substitute;

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::options::DuplicateKeyPolicy;
use serde_saphyr::{Error, Location, Spanned};

use super::problem::{Findings, Place};

pub(crate) use decode::{AT, decode};
pub(crate) use substitute::{Source, substitute};

/// One node of a text.
pub(crate) struct Node {
    /// Its line, from 1.
    pub(crate) line: u32,
    /// Its column in characters, from 1.
    pub(crate) column: u32,
    /// What it is.
    pub(crate) value: Value,
}

/// What a node is.
pub(crate) enum Value {
    /// A key without a value, or `null`.
    Null,
    /// `true` or `false`.
    Flag(bool),
    /// A whole number.
    Whole(i128),
    /// Another number.
    Float,
    /// A text.
    Text(Text),
    /// A list.
    List(Vec<Node>),
    /// Keys and values, in file order.
    Map(Vec<Entry>),
    /// A text whose `${…}` could not be replaced; the reason was noted.
    Lost,
}

/// A text in a tree.
pub(crate) struct Text {
    /// Its value.
    pub(crate) value: String,
    /// As it stands in the file, where `${…}` was replaced in it.
    pub(crate) template: Option<String>,
}

/// One key with its value.
pub(crate) struct Entry {
    /// The key.
    pub(crate) key: String,
    /// Where the key stands.
    pub(crate) line: u32,
    /// Where the key stands.
    pub(crate) column: u32,
    /// The value.
    pub(crate) node: Node,
}

impl Node {
    /// Its place, under a key.
    pub(crate) fn place(&self, key: &str) -> Place {
        Place { line: self.line, column: self.column, key: key.to_owned() }
    }

    /// Whether there is nothing.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    /// What it is, in words for a message; never its content.
    pub(crate) fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Flag(_) => "true or false",
            Value::Whole(_) => "a number",
            Value::Float => "a number that is not whole or too large",
            Value::Text(_) | Value::Lost => "a text",
            Value::List(_) => "a list",
            Value::Map(_) => "a block of keys",
        }
    }
}

impl Entry {
    /// The place of the key, as a member of `parent`.
    pub(crate) fn place(&self, parent: &str) -> Place {
        Place { line: self.line, column: self.column, key: join(parent, &self.key) }
    }
}

/// A block without any key but this one.
pub(crate) fn only(mut node: Node, key: &str) -> Node {
    if let Value::Map(entries) = &mut node.value {
        entries.retain(|entry| entry.key == key);
    }
    node
}

/// The dotted key of a member.
pub(crate) fn join(parent: &str, member: &str) -> String {
    if parent.is_empty() { member.to_owned() } else { format!("{parent}.{member}") }
}

/// A text in quotes for a message, and not too much of it.
pub(crate) fn quoted(text: &str) -> String {
    let cut: String = text.chars().take(60).collect();
    let dots = if cut.len() < text.len() { "…" } else { "" };
    format!("{:?}", format!("{cut}{dots}"))
}

/// Reads a text. `None` when it is no YAML, or not one that is accepted here; the reason is noted then. Keys that
/// occur twice are noted too; the later one is left out.
pub(crate) fn parse(text: &str, findings: &Findings) -> Option<Node> {
    match serde_saphyr::from_str_with_options::<Spanned<Raw>>(text, options()) {
        Ok(raw) => Some(settle(raw, "", findings)),
        Err(error) => {
            let place = error.location().map_or_else(Place::default, |at| spot(&at));
            findings.error(&place, &sentence(&error));
            None
        }
    }
}

/// Strict YAML 1.2, and small limits on what aliases may blow up: a configuration needs few of them.
fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: 32,
            max_documents: 1,
            max_nodes: 100_000,
            max_aliases: 1_000,
            max_recorded_anchor_bytes: 16 * 1024,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 10_000,
        },
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        strict_booleans: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    }
}

/// The parser's message, without the excerpt of the text (it may hold secrets) and without the position.
fn sentence(error: &Error) -> String {
    let mut bare = error.without_snippet();
    while let Error::AliasError { error, .. } = bare {
        bare = error.without_snippet();
    }
    if let Error::Budget { breach, .. } = bare {
        return too_much(breach).to_owned();
    }
    if matches!(bare, Error::AliasReplayLimitExceeded { .. } | Error::AliasReplayStackDepthExceeded { .. }) {
        return "aliases make the file larger than a configuration may be".to_owned();
    }
    let whole = bare.to_string();
    let first = whole.lines().next().unwrap_or_default();
    let bare = first.split_once(" at line ").map_or(first, |(bare, _)| bare);
    format!("not valid YAML: {}", bare.trim_start_matches("error: ").trim_end_matches([':', ',', ' ']))
}

fn too_much(breach: &BudgetBreach) -> &'static str {
    match breach {
        BudgetBreach::Depth { .. } => "nested deeper than 32 levels",
        BudgetBreach::Documents { .. } => "more than one YAML document; exactly one is accepted",
        _ => "larger than a configuration may be",
    }
}

fn spot(at: &Location) -> Place {
    let number = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    Place { line: number(at.line()), column: number(at.column()), key: String::new() }
}

/// What the YAML reader yields; becomes a [`Node`].
enum Raw {
    Scalar(Value),
    List(Vec<Spanned<Self>>),
    Map(Vec<(Spanned<Self>, Spanned<Self>)>),
}

fn settle(raw: Spanned<Raw>, key: &str, findings: &Findings) -> Node {
    let at = spot(&raw.referenced);
    let value = match raw.value {
        Raw::Scalar(value) => value,
        Raw::List(items) => Value::List(
            items
                .into_iter()
                .enumerate()
                .map(|(index, item)| settle(item, &format!("{key}[{index}]"), findings))
                .collect(),
        ),
        Raw::Map(members) => Value::Map(settle_map(members, key, findings)),
    };
    Node { line: at.line, column: at.column, value }
}

fn settle_map(members: Vec<(Spanned<Raw>, Spanned<Raw>)>, parent: &str, findings: &Findings) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::with_capacity(members.len());
    let mut lines: HashMap<String, u32> = HashMap::new();
    for (raw_key, raw_value) in members {
        let at = spot(&raw_key.referenced);
        let Raw::Scalar(Value::Text(Text { value: key, .. })) = raw_key.value else {
            let place = Place { key: parent.to_owned(), ..at };
            findings.error(&place, "a key must be a text; put numbers, true, false and null in quotes");
            continue;
        };
        let node = settle(raw_value, &join(parent, &key), findings);
        let entry = Entry { key, line: at.line, column: at.column, node };
        match lines.entry(entry.key.clone()) {
            Slot::Occupied(first) => {
                let text = format!("the key stands here twice, first in line {}", first.get());
                findings.error(&entry.place(parent), &text);
            }
            Slot::Vacant(slot) => {
                slot.insert(entry.line);
                entries.push(entry);
            }
        }
    }
    entries
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("YAML")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Flag(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Whole(value.into())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Whole(value.into())))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Whole(value)))
    }

    fn visit_u128<E>(self, _value: u128) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Float))
    }

    fn visit_f64<E>(self, _value: f64) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Float))
    }

    fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Text(Text { value: value.to_owned(), template: None })))
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Raw, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Raw::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Raw, A::Error> {
        let mut map = Vec::new();
        while let Some(member) = members.next_entry()? {
            map.push(member);
        }
        Ok(Raw::Map(map))
    }
}
