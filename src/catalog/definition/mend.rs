//! Mending of tools whose input schema stands in another member.
//!
//! Servers written after the tool formats of model APIs say `input_schema` or `parameters`, and some put a bare map
//! of properties there. What such a schema means is clear, so it is moved to where clients look for it.

use crate::jsonrpc::{Edit, Object, Text};

/// A tool that was mended.
#[derive(Debug)]
pub(super) struct Mended {
    /// The member that held the schema.
    pub(super) member: &'static str,
    /// The schema.
    pub(super) schema: String,
    /// The whole definition with the schema in its place.
    pub(super) raw: String,
}

/// Mends a tool without `inputSchema`; `None` where it has one, or nothing that could be taken for it.
pub(super) fn input_schema(tool: &Object<'_>) -> Option<Mended> {
    if tool.get("inputSchema").is_some() {
        return None;
    }
    let taken =
        ["input_schema", "parameters"].into_iter().find_map(|member| Some((member, tool.get(member)?)));
    let (member, raw) = taken?;
    let schema = from_properties(raw).unwrap_or_else(|| raw.to_owned());
    let raw = Edit::new().remove(member).set("inputSchema", schema.as_str()).apply(tool);
    Some(Mended { member, schema, raw })
}

/// A schema made of a bare map of properties: no `type` that is a string, and every member an object.
fn from_properties(raw: &str) -> Option<String> {
    let map = Object::open(raw)?;
    if map.text("type").is_some() || !map.iter().all(|(_, value)| value.starts_with('{')) {
        return None;
    }
    let mut schema = Text::object();
    schema.text("type", "object");
    schema.member("properties", raw);
    Some(schema.close())
}
