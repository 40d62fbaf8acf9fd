//! Values that know where they stand.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::config::problem::Place;
use crate::config::tree::{AT, quoted};

/// A value with its place.
pub(crate) struct At<T> {
    /// Where it stands.
    pub(crate) place: Place,
    /// As it stands in the file, where `${…}` was replaced in it.
    pub(crate) template: Option<String>,
    /// The value.
    pub(crate) value: T,
}

/// A key of a block.
pub(crate) enum Field<T> {
    /// It is not there.
    Absent,
    /// It is there and could not be read; the reason was noted.
    Bad,
    /// It is there.
    Written(At<T>),
}

/// A block whose keys are names of the user's choice, in file order.
pub(crate) struct Entries<T>(pub(crate) Vec<(At<String>, Field<T>)>);

impl<T> At<T> {
    /// A value that no text holds.
    pub(crate) fn made(key: &str, value: T) -> Self {
        Self { place: Place::nowhere(key), template: None, value }
    }
}

impl At<String> {
    /// The text for a message: what was written, never what was put in for `${…}`, and not too much of it.
    pub(crate) fn shown(&self) -> String {
        self.show(&self.value)
    }
}

impl<T> At<T> {
    /// As [`At::shown`], for a value that holds `text`.
    pub(crate) fn show(&self, text: &str) -> String {
        quoted(self.template.as_deref().unwrap_or(text))
    }
}

impl<T> Field<T> {
    /// The value, if it could be read.
    pub(crate) fn written(&self) -> Option<&At<T>> {
        match self {
            Self::Written(at) => Some(at),
            Self::Absent | Self::Bad => None,
        }
    }

    /// Where it stands, if it could be read.
    pub(crate) fn place(&self) -> Option<&Place> {
        self.written().map(|at| &at.place)
    }

    /// The value of a block, an empty one where there is none.
    pub(crate) fn or_default(self) -> T
    where
        T: Default,
    {
        match self {
            Self::Written(at) => at.value,
            Self::Absent | Self::Bad => T::default(),
        }
    }

    /// Whether nothing was written.
    pub(crate) fn is_absent(&self) -> bool {
        match self {
            Self::Absent => true,
            Self::Bad | Self::Written(_) => false,
        }
    }
}

#[expect(clippy::derivable_impls, reason = "deriving would ask T for a default")]
impl<T> Default for Field<T> {
    fn default() -> Self {
        Self::Absent
    }
}

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for At<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(AT, AtVisitor(PhantomData))
    }
}

struct AtVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for AtVisitor<T> {
    type Value = At<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value with its place")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<At<T>, A::Error> {
        let place = Place { line: part(&mut parts)?, column: part(&mut parts)?, key: part(&mut parts)? };
        let template = Some(part::<String, A>(&mut parts)?).filter(|text| !text.is_empty());
        Ok(At { place, template, value: part(&mut parts)? })
    }
}

fn part<'de, T: Deserialize<'de>, A: SeqAccess<'de>>(parts: &mut A) -> Result<T, A::Error> {
    parts.next_element()?.ok_or_else(|| de::Error::custom("a place has five parts"))
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Field<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_option(FieldVisitor(PhantomData))
    }
}

struct FieldVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for FieldVisitor<T> {
    type Value = Field<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Field<T>, D::Error> {
        At::deserialize(deserializer).map(Field::Written)
    }

    fn visit_none<E>(self) -> Result<Field<T>, E> {
        Ok(Field::Absent)
    }

    fn visit_unit<E>(self) -> Result<Field<T>, E> {
        Ok(Field::Bad)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Entries<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor(PhantomData))
    }
}

struct EntriesVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for EntriesVisitor<T> {
    type Value = Entries<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a block of keys")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Entries<T>, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = members.next_key()? {
            entries.push((key, members.next_value()?));
        }
        Ok(Entries(entries))
    }
}

macro_rules! schema_of_content {
    ($wrapper:ident) => {
        impl<T: JsonSchema> JsonSchema for $wrapper<T> {
            fn inline_schema() -> bool {
                T::inline_schema()
            }

            fn schema_name() -> Cow<'static, str> {
                T::schema_name()
            }

            fn schema_id() -> Cow<'static, str> {
                T::schema_id()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                T::json_schema(generator)
            }
        }
    };
}

schema_of_content!(At);
schema_of_content!(Field);

impl<T: JsonSchema> JsonSchema for Entries<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("EntriesOf{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let content = generator.subschema_for::<T>();
        schemars::json_schema!({ "type": "object", "additionalProperties": content })
    }
}
