//! stand-in
use std::sync::Arc;

use super::{Entry, LeftOut};
use crate::jsonrpc::Object;
use crate::names::LocalName;
use crate::protocol::ListKind;

/// stand-in
#[derive(Debug, Default)]
pub struct Checker;

impl Checker {
    /// stand-in
    #[must_use]
    pub fn new() -> Self {
        Self
    }
    /// stand-in
    /// # Errors
    /// stand-in
    pub fn tool(&mut self, raw: &str) -> Result<Entry, LeftOut> {
        plain(ListKind::Tools, raw)
    }
    /// stand-in
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

/// stand-in
/// # Errors
/// stand-in
pub fn plain(kind: ListKind, raw: &str) -> Result<Entry, LeftOut> {
    let name = Object::open(raw).and_then(|object| object.text(kind.key()));
    let Some(name) = name else { return Err(LeftOut { name: String::new(), reason: "no name".to_owned() }) };
    Ok(Entry {
        local: LocalName::new(&name),
        raw: Arc::from(raw),
        mirrored: Vec::new(),
        read_only_hint: None,
        destructive_hint: None,
        idempotent_hint: None,
    })
}
