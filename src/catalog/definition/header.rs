//! `x-mcp-header` annotations (2026-07-28, transports/streamable-http, "Custom Headers from Tool Parameters").

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::catalog::ParamHeader;
use crate::protocol::headers;

const ANNOTATION: &str = "x-mcp-header";

/// Members of a schema that map names to schemas.
const MAPS: [&str; 5] = ["patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];
/// Members of a schema that hold data, where the annotation's name means nothing.
const DATA: [&str; 4] = ["default", "const", "enum", "examples"];

/// Reads the annotations of an input schema; `Err` with the reason where one breaks the rules.
pub(super) fn mirrored(schema: &str) -> Result<Vec<ParamHeader>, String> {
    if !schema.contains(ANNOTATION) && !schema.contains('\\') {
        return Ok(Vec::new());
    }
    let Ok(schema) = serde_json::from_str::<Value>(schema) else {
        return Err("the schema is not JSON".to_owned());
    };
    let mut search = Search::default();
    search.schema(&schema, Some(&[]))?;
    Ok(search.found)
}

#[derive(Default)]
struct Search {
    found: Vec<ParamHeader>,
    names: HashSet<String>,
}

impl Search {
    /// Looks at one schema. `path` is the chain of `properties` keys that leads here; `None` where there is no such
    /// chain.
    fn schema(&mut self, schema: &Value, path: Option<&[String]>) -> Result<(), String> {
        let members = match schema {
            Value::Object(members) => members,
            Value::Array(items) => return items.iter().try_for_each(|item| self.schema(item, None)),
            _ => return Ok(()),
        };
        if let Some(annotation) = members.get(ANNOTATION) {
            self.annotation(annotation, members, path)?;
        }
        for (key, value) in members {
            match value {
                Value::Object(properties) if key == "properties" => self.properties(properties, path)?,
                Value::Object(map) if MAPS.contains(&key.as_str()) => {
                    map.values().try_for_each(|schema| self.schema(schema, None))?;
                }
                _ if DATA.contains(&key.as_str()) => {}
                _ => self.schema(value, None)?,
            }
        }
        Ok(())
    }

    fn properties(&mut self, properties: &Map<String, Value>, path: Option<&[String]>) -> Result<(), String> {
        for (name, schema) in properties {
            let path = path.map(|path| path.iter().chain([name]).cloned().collect::<Vec<_>>());
            self.schema(schema, path.as_deref())?;
        }
        Ok(())
    }

    fn annotation(
        &mut self,
        annotation: &Value,
        schema: &Map<String, Value>,
        path: Option<&[String]>,
    ) -> Result<(), String> {
        let Some(path) = path.filter(|path| !path.is_empty()) else {
            return Err("one stands where no chain of properties leads".to_owned());
        };
        let Some(name) = annotation.as_str().filter(|name| is_token(name)) else {
            return Err(format!("{annotation:.80} is not a header name"));
        };
        let Some(integer) = is_integer(schema.get("type")) else {
            return Err(format!("{name:?} is not of type string, integer or boolean"));
        };
        let header = format!("{}{}", headers::PARAM_PREFIX, name.to_ascii_lowercase());
        if !self.names.insert(header.clone()) {
            return Err(format!("{name:?} occurs twice"));
        }
        self.found.push(ParamHeader { header, path: path.to_vec(), integer });
        Ok(())
    }
}

/// Whether a permitted type is the integer type; `None` for a type that is not permitted. A value that may be null
/// is permitted, since null has no header.
fn is_integer(kind: Option<&Value>) -> Option<bool> {
    let of_text = |kind: &Value| match kind.as_str() {
        Some("integer") => Some(true),
        Some("string" | "boolean") => Some(false),
        _ => None,
    };
    match kind? {
        Value::Array(kinds) => {
            match kinds.iter().filter(|kind| *kind != "null").collect::<Vec<_>>().as_slice() {
                [kind] => of_text(kind),
                _ => None,
            }
        }
        kind => of_text(kind),
    }
}

/// RFC 9110, section 5.6.2, `token`, of a sensible length.
fn is_token(name: &str) -> bool {
    let legal = |c: u8| c.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&c);
    (1..=128).contains(&name.len()) && name.bytes().all(legal)
}
