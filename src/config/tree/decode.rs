//! Reads a tree into types and goes on after mistakes.
//!
//! A serde reader with three habits of its own. Unknown keys are noted with their position and skipped. A member
//! that cannot be read is noted, and then read again from nothing, which a `Field` understands as "written but bad".
//! An `At` gets the position, the dotted key and the template of what it holds. An enum whose variants are called
//! `$text`, `$flag`, `$list` and `$map` is read by the kind of the node.

mod access;
mod fault;
mod nearest;

use serde::Deserialize;
use serde::de::value::StrDeserializer;
use serde::de::{Deserializer, IntoDeserializer as _, Visitor};

use self::access::{Items, Members, Placed, Variant};
use self::fault::Fault;
use self::nearest::nearest;
use super::{Entry, Node, Value, quoted};
use crate::config::problem::Findings;

/// The newtype name by which an `At` asks for its place.
pub(crate) const AT: &str = "$at";

/// Texts with a form of their own, by the name of their type, in words for a message.
const FORMS: &[(&str, &str)] = &[
    ("DurationText", "a duration such as 30s"),
    ("SizeText", "a size such as 16MiB"),
    ("RateText", "a rate such as 20/s"),
];

/// Reads a whole tree. `None` when nothing of it could be read; the reasons were noted.
pub(crate) fn decode<T: for<'de> Deserialize<'de>>(node: &Node, findings: &Findings) -> Option<T> {
    let decoder = Decoder { node, key: String::new(), findings };
    match T::deserialize(decoder.clone()) {
        Ok(value) => Some(value),
        Err(fault) => {
            decoder.note(fault);
            None
        }
    }
}

/// One node, about to be read.
#[derive(Clone)]
struct Decoder<'a> {
    node: &'a Node,
    key: String,
    findings: &'a Findings,
}

impl<'a> Decoder<'a> {
    fn note(&self, fault: Fault) {
        if let Fault::Said(text) = fault {
            self.findings.error(&self.node.place(&self.key), &text);
        }
    }

    fn expected(&self, what: &str) -> Fault {
        match self.node.value {
            Value::Lost => Fault::Noted,
            Value::Null => Fault::Said(format!("has no value; write {what} or take the key away")),
            Value::Flag(_)
            | Value::Whole(_)
            | Value::Float
            | Value::Text(_)
            | Value::List(_)
            | Value::Map(_) => Fault::Said(format!("expected {what}, found {}", self.node.kind())),
        }
    }

    fn text(&self) -> Result<&'a str, Fault> {
        match &self.node.value {
            Value::Text(text) => Ok(&text.value),
            Value::Flag(_) | Value::Whole(_) | Value::Float => {
                let found = self.node.kind();
                Err(Fault::Said(format!("expected a text, found {found}; put it in quotes")))
            }
            Value::Null | Value::List(_) | Value::Map(_) | Value::Lost => Err(self.expected("a text")),
        }
    }

    fn whole(&self) -> Result<i128, Fault> {
        let Value::Whole(number) = self.node.value else { return Err(self.expected("a whole number")) };
        Ok(number)
    }

    fn entries(&self) -> Result<&'a [Entry], Fault> {
        let Value::Map(entries) = &self.node.value else { return Err(self.expected("a block of keys")) };
        Ok(entries)
    }

    fn known(&self, entry: &Entry, fields: &'static [&'static str]) -> bool {
        if fields.contains(&entry.key.as_str()) {
            return true;
        }
        let place = entry.place(&self.key);
        let advice = match nearest(&entry.key, fields) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => format!("accepted here: {}", fields.join(", ")),
        };
        self.findings.error(&place, &format!("unknown key \"{}\"; {advice}", entry.key));
        false
    }

    fn variant(&self, variants: &'static [&'static str]) -> Result<&'static str, Fault> {
        if variants.iter().any(|variant| variant.starts_with('$')) {
            return self.kind_variant(variants);
        }
        let Value::Text(text) = &self.node.value else {
            return Err(self.expected(&format!("one of {}", variants.join(", "))));
        };
        variants.iter().copied().find(|variant| *variant == text.value).ok_or_else(|| {
            let shown = quoted(text.template.as_ref().unwrap_or(&text.value));
            let advice = nearest(&text.value, variants)
                .map_or_else(String::new, |near| format!("did you mean \"{near}\"? "));
            Fault::Said(format!("{shown} is not known; {advice}accepted: {}", variants.join(", ")))
        })
    }

    fn kind_variant(&self, variants: &'static [&'static str]) -> Result<&'static str, Fault> {
        let wanted = match self.node.value {
            Value::Null | Value::Lost | Value::Whole(_) | Value::Float => "",
            Value::Flag(_) => "$flag",
            Value::Text(_) => "$text",
            Value::List(_) => "$list",
            Value::Map(_) => "$map",
        };
        variants.iter().copied().find(|variant| *variant == wanted).ok_or_else(|| {
            let accepted: Vec<_> = variants.iter().map(|variant| words(variant)).collect();
            self.expected(&accepted.join(" or "))
        })
    }
}

fn words(variant: &str) -> &'static str {
    match variant {
        "$flag" => "true or false",
        "$text" => "a text",
        "$list" => "a list",
        _ => "a block of keys",
    }
}

impl<'de> Deserializer<'de> for Decoder<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.node.value {
            Value::Null | Value::Float | Value::Lost => Err(self.expected("a value")),
            Value::Flag(flag) => visitor.visit_bool(*flag),
            Value::Whole(_) => self.deserialize_i64(visitor),
            Value::Text(text) => visitor.visit_str(&text.value),
            Value::List(_) => self.deserialize_seq(visitor),
            Value::Map(_) => self.deserialize_map(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let Value::Flag(flag) = self.node.value else { return Err(self.expected("true or false")) };
        visitor.visit_bool(flag)
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let number =
            i64::try_from(self.whole()?).map_err(|_out_of_range| Fault::said("the number is too large"))?;
        visitor.visit_i64(number)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let number = self.whole()?;
        if number < 0 {
            return Err(Fault::said("expected a whole number from 0 on, found a negative one"));
        }
        let number = u64::try_from(number).map_err(|_out_of_range| Fault::said("the number is too large"))?;
        visitor.visit_u64(number)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_str(self.text()?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_str(self.text()?)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        if name == AT {
            return visitor.visit_seq(Placed::new(self));
        }
        match (FORMS.iter().find(|(form, _)| *form == name), &self.node.value) {
            (None, _) | (Some(_), Value::Text(_)) => visitor.visit_newtype_struct(self),
            (Some((_, words)), _) => Err(self.expected(words)),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let Value::List(items) = &self.node.value else { return Err(self.expected("a list")) };
        visitor.visit_seq(Items::new(&self, items))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let entries = self.entries()?.iter().collect();
        visitor.visit_map(Members::new(&self, entries))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let entries = self.entries()?.iter().filter(|entry| self.known(entry, fields)).collect();
        visitor.visit_map(Members::new(&self, entries))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let name = self.variant(variants)?;
        visitor.visit_enum(Variant::new(name, self))
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i32 i128 u8 u16 u32 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct identifier
        ignored_any
    }
}

/// A name for a visitor.
fn named(name: &str) -> StrDeserializer<'_, Fault> {
    name.into_deserializer()
}
