//! Arguments of the demonstration tools, read with messages that say what to send instead.

use serde_json::{Map, Value};

use crate::jsonrpc::Object;

/// The arguments of one call.
#[derive(Debug)]
pub(super) struct Arguments(Map<String, Value>);

impl Arguments {
    /// Takes the arguments out of raw `params`; absent ones are none.
    pub(super) fn of(params: &str) -> Result<Self, String> {
        let raw = Object::open(params).and_then(|params| params.get("arguments"));
        match raw.map(serde_json::from_str::<Value>) {
            None | Some(Ok(Value::Null)) => Ok(Self(Map::new())),
            Some(Ok(Value::Object(map))) => Ok(Self(map)),
            Some(_) => Err("arguments must be an object".to_owned()),
        }
    }

    /// Refuses arguments of other names.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), String> {
        match self.0.keys().find(|key| !known.contains(&key.as_str())) {
            None => Ok(()),
            Some(key) if known.is_empty() => {
                Err(format!("this tool takes no arguments; leave out {key:.64?}"))
            }
            Some(key) => Err(format!("unknown argument {key:.64?}; known are: {}", known.join(", "))),
        }
    }

    /// A string that may be absent.
    pub(super) fn text(&self, key: &str) -> Result<Option<&str>, String> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(format!("{key} must be a string")),
        }
    }

    /// A string that must be there.
    pub(super) fn required(&self, key: &str) -> Result<&str, String> {
        self.text(key)?.ok_or_else(|| format!("{key} is required: give it as a string"))
    }

    /// A whole number within bounds that must be there.
    pub(super) fn number(&self, key: &str, least: u64, most: u64) -> Result<u64, String> {
        self.0
            .get(key)
            .and_then(whole)
            .filter(|number| (least..=most).contains(number))
            .ok_or_else(|| format!("{key} is required: give it as a whole number from {least} to {most}"))
    }
}

/// A whole number, also where it is written as `5.0`, which JSON Schema counts as an integer.
fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value.as_f64().filter(|number| number.fract() == 0.0)?;
        format!("{number:.0}").parse().ok()
    })
}
