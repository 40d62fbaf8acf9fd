//! What serde's visitors walk: members, items, variants, and the place of a value.

use serde::Deserialize;
use serde::de::value::{StringDeserializer, U32Deserializer};
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer as _, MapAccess, SeqAccess, VariantAccess,
    Visitor,
};

use super::fault::Fault;
use super::{Decoder, named};
use crate::config::problem::{Findings, Place};
use crate::config::tree::{Entry, Node, Value, join};

/// Nothing, where something was written that could not be read.
pub(super) struct Lost;

impl<'de> Deserializer<'de> for Lost {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Fault> {
        Err(Fault::Noted)
    }

    /// A `Field` takes the unit for "written but bad".
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// Reads a member or an item. What cannot be read is noted and read again from nothing.
fn read<'de, T: Deserialize<'de>>(decoder: &Decoder<'_>) -> Result<T, Fault> {
    T::deserialize(decoder.clone()).or_else(|fault| {
        decoder.note(fault);
        T::deserialize(Lost)
    })
}

/// The members of a block.
pub(super) struct Members<'a> {
    parent: String,
    findings: &'a Findings,
    entries: std::vec::IntoIter<&'a Entry>,
    /// The key was given out; its value comes next.
    open: Option<&'a Entry>,
}

impl<'a> Members<'a> {
    pub(super) fn new(decoder: &Decoder<'a>, entries: Vec<&'a Entry>) -> Self {
        Self {
            parent: decoder.key.clone(),
            findings: decoder.findings,
            entries: entries.into_iter(),
            open: None,
        }
    }

    fn value(&mut self) -> Result<Decoder<'a>, Fault> {
        let entry = self.open.take().ok_or(Fault::Noted)?;
        Ok(Decoder { node: &entry.node, key: join(&self.parent, &entry.key), findings: self.findings })
    }
}

impl<'de> MapAccess<'de> for Members<'_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        self.open = self.entries.next();
        self.open.map(|entry| seed.deserialize(Key { entry, parent: &self.parent })).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        seed.deserialize(self.value()?)
    }

    fn next_value<V: Deserialize<'de>>(&mut self) -> Result<V, Fault> {
        read(&self.value()?)
    }
}

/// A key: a name for a field, or a text with a place.
struct Key<'a> {
    entry: &'a Entry,
    parent: &'a str,
}

impl<'de> Deserializer<'de> for Key<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_str(&self.entry.key)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let place = self.entry.place(self.parent);
        let content = Content::Key(&self.entry.key);
        visitor.visit_seq(Placed { step: 0, place, template: String::new(), content })
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// The items of a list. What cannot be read is noted and left out.
pub(super) struct Items<'a> {
    parent: String,
    findings: &'a Findings,
    items: std::iter::Enumerate<std::slice::Iter<'a, Node>>,
}

impl<'a> Items<'a> {
    pub(super) fn new(decoder: &Decoder<'a>, items: &'a [Node]) -> Self {
        Self { parent: decoder.key.clone(), findings: decoder.findings, items: items.iter().enumerate() }
    }

    fn item(&mut self) -> Option<Decoder<'a>> {
        let (index, node) = self.items.next()?;
        Some(Decoder { node, key: format!("{}[{index}]", self.parent), findings: self.findings })
    }
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        self.item().map(|item| seed.deserialize(item)).transpose()
    }

    fn next_element<T: Deserialize<'de>>(&mut self) -> Result<Option<T>, Fault> {
        while let Some(item) = self.item() {
            match T::deserialize(item.clone()) {
                Ok(value) => return Ok(Some(value)),
                Err(fault) => item.note(fault),
            }
        }
        Ok(None)
    }
}

/// Line, column, key, template and content of a value, in this order: what an `At` is made of.
pub(super) struct Placed<'a> {
    step: u8,
    place: Place,
    template: String,
    content: Content<'a>,
}

enum Content<'a> {
    Node(Decoder<'a>),
    Key(&'a str),
}

impl<'a> Placed<'a> {
    pub(super) fn new(decoder: Decoder<'a>) -> Self {
        let place = decoder.node.place(&decoder.key);
        let template = if let Value::Text(text) = &decoder.node.value { text.template.clone() } else { None };
        Self { step: 0, place, template: template.unwrap_or_default(), content: Content::Node(decoder) }
    }
}

impl<'de> SeqAccess<'de> for Placed<'_> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        let number = |value: u32| -> U32Deserializer<Fault> { value.into_deserializer() };
        let text =
            |value: &mut String| -> StringDeserializer<Fault> { std::mem::take(value).into_deserializer() };
        self.step = self.step.saturating_add(1);
        match self.step {
            1 => seed.deserialize(number(self.place.line)),
            2 => seed.deserialize(number(self.place.column)),
            3 => seed.deserialize(text(&mut self.place.key)),
            4 => seed.deserialize(text(&mut self.template)),
            5 => match &self.content {
                Content::Node(decoder) => seed.deserialize(decoder.clone()),
                Content::Key(key) => seed.deserialize(named(key)),
            },
            _ => return Ok(None),
        }
        .map(Some)
    }
}

/// A variant of an enum, by name; its content is the node itself.
pub(super) struct Variant<'a> {
    name: &'static str,
    decoder: Decoder<'a>,
}

impl<'a> Variant<'a> {
    pub(super) fn new(name: &'static str, decoder: Decoder<'a>) -> Self {
        Self { name, decoder }
    }
}

impl<'de> EnumAccess<'de> for Variant<'_> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Fault> {
        Ok((seed.deserialize(named(self.name))?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Fault> {
        seed.deserialize(self.decoder)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, Fault> {
        self.decoder.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.decoder.deserialize_struct("", fields, visitor)
    }
}
