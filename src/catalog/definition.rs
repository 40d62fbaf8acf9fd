//! Whether one item of an upstream's list can be published, and what is known about it.
//!
//! A definition that breaks the specification is left out alone, with a reason; the others stay. What can be
//! published keeps its text byte for byte, except where a known slip of older servers is mended (`mend`). Schemas
//! are compiled to see whether they are any good and are never used to validate arguments: that is the upstream's
//! affair. Nothing is fetched, and the work that a hostile schema can cause is bounded (`schema`).

mod header;
mod mend;
mod schema;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::{Entry, LeftOut, ParamHeader};
use crate::jsonrpc::Object;
use crate::names::LocalName;
use crate::protocol::ListKind;

use schema::Verdict;

const NAME_BYTES: usize = 1024;
const URI_BYTES: usize = 64 * 1024;
const PER_TOOL: Duration = Duration::from_millis(5);
const PER_UPSTREAM: Duration = Duration::from_millis(200);

/// Checks the items of one upstream. Kept from one listing to the next, it compiles only schemas that changed.
#[derive(Debug, Default)]
pub struct Checker {
    spent: Duration,
    names: HashSet<(ListKind, LocalName)>,
    /// Verdicts of this listing and of the one before, by the hash of the schema's text.
    verdicts: HashMap<[u8; 32], Verdict>,
    earlier: HashMap<[u8; 32], Verdict>,
    mended: Option<&'static str>,
    unchecked: Vec<String>,
    dialects: Vec<String>,
}

/// Time that one tool has left.
struct Budget {
    start: Instant,
    allowed: Duration,
}

impl Checker {
    /// A checker for a first listing.
    #[must_use]
    pub fn new() -> Self {
        schema::warm();
        Self::default()
    }

    /// Begins another listing of the same upstream: names, warnings and time start anew, verdicts are kept.
    pub fn renew(&mut self) {
        let verdicts = std::mem::take(&mut self.verdicts);
        *self = Self { earlier: verdicts, ..Self::default() };
    }

    /// Checks a tool.
    ///
    /// # Errors
    /// [`LeftOut`] with the reason when it cannot be published.
    pub fn tool(&mut self, raw: &str) -> Result<Entry, LeftOut> {
        let object = open(raw)?;
        let name = self.name(ListKind::Tools, &object)?;
        let refuse = |reason: String| left_out(name.as_str(), reason);
        let mended = mend::input_schema(&object);
        let input = match &mended {
            Some(mended) => mended.schema.as_str(),
            None => object.get("inputSchema").ok_or_else(|| refuse("it has no inputSchema".to_owned()))?,
        };
        if Object::open(input).and_then(|schema| schema.text("type")).as_deref() != Some("object") {
            return Err(refuse("its inputSchema is not an object with \"type\": \"object\"".to_owned()));
        }
        self.schemas(name.as_str(), input, object.get("outputSchema")).map_err(refuse)?;
        let mirrored = header::mirrored(input)
            .map_err(|reason| refuse(format!("its x-mcp-header annotations are invalid: {reason}")))?;
        if let Some(mended) = &mended {
            self.mended = Some(mended.member);
        }
        let raw = mended.map_or_else(|| Arc::from(raw), |mended| mended.raw.into());
        Ok(entry(name, raw, mirrored, &object))
    }

    /// Checks an item of one of the other lists.
    ///
    /// # Errors
    /// [`LeftOut`] with the reason when it cannot be published.
    pub fn plain(&mut self, kind: ListKind, raw: &str) -> Result<Entry, LeftOut> {
        let object = open(raw)?;
        let name = self.name(kind, &object)?;
        Ok(entry(name, raw.into(), Vec::new(), &object))
    }

    /// What the operator should know of the items that were checked since the listing began.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mended = self.mended.map(|member| {
            format!("tools without inputSchema are published with what they hold in its place (\"{member}\")")
        });
        let unchecked =
            gathered("not checked, because their schemas are too large or took too long", &self.unchecked);
        let dialects =
            gathered("published unchecked, because their schema dialect is unknown", &self.dialects);
        mended.into_iter().chain(unchecked).chain(dialects).collect()
    }

    /// Reads the name of an item, which may occur once.
    fn name(&mut self, kind: ListKind, object: &Object<'_>) -> Result<LocalName, LeftOut> {
        let key = kind.key();
        let longest = match kind {
            ListKind::Tools | ListKind::Prompts => NAME_BYTES,
            ListKind::Resources | ListKind::Templates => URI_BYTES,
        };
        let Some(name) = object.text(key) else {
            return Err(left_out("", format!("it has no {key}, or one that is not a string")));
        };
        if name.is_empty() {
            return Err(left_out("", format!("its {key} is empty")));
        }
        if name.len() > longest {
            return Err(left_out(&name, format!("its {key} is longer than {longest} bytes")));
        }
        let local = LocalName::new(&name);
        if !self.names.insert((kind, local.clone())) {
            return Err(left_out(&name, format!("its {key} occurs twice")));
        }
        Ok(local)
    }

    /// Checks both schemas of a tool within its time.
    fn schemas(&mut self, name: &str, input: &str, output: Option<&str>) -> Result<(), String> {
        let budget =
            Budget { start: Instant::now(), allowed: PER_TOOL.min(PER_UPSTREAM.saturating_sub(self.spent)) };
        let outcome = self.both(name, input, output, &budget);
        self.spent += budget.start.elapsed();
        outcome
    }

    fn both(&mut self, name: &str, input: &str, output: Option<&str>, budget: &Budget) -> Result<(), String> {
        let schemas = [("inputSchema", Some(input)), ("outputSchema", output)];
        for (member, schema) in schemas.into_iter().filter_map(|(member, raw)| Some((member, raw?))) {
            match self.verdict(schema, budget) {
                Verdict::Good => {}
                Verdict::Bad(reason) => return Err(format!("its {member} does not compile: {reason}")),
                Verdict::Unchecked => remember(&mut self.unchecked, name),
                Verdict::UnknownDialect => remember(&mut self.dialects, name),
            }
        }
        Ok(())
    }

    /// The verdict on one schema, from memory where it was given before.
    fn verdict(&mut self, schema: &str, budget: &Budget) -> Verdict {
        let hash: [u8; 32] = Sha256::digest(schema.as_bytes()).into();
        let known = self.verdicts.get(&hash).or_else(|| self.earlier.get(&hash)).cloned();
        let verdict = match known {
            Some(verdict) => verdict,
            None if budget.is_spent() => return Verdict::Unchecked,
            None => schema::verdict(schema),
        };
        self.verdicts.insert(hash, verdict.clone());
        verdict
    }
}

impl Budget {
    fn is_spent(&self) -> bool {
        self.allowed.is_zero() || self.start.elapsed() >= self.allowed
    }
}

fn open(raw: &str) -> Result<Object<'_>, LeftOut> {
    Object::open(raw).ok_or_else(|| left_out("", "it is not an object, or holds a member twice".to_owned()))
}

fn entry(local: LocalName, raw: Arc<str>, mirrored: Vec<ParamHeader>, object: &Object<'_>) -> Entry {
    let annotations = object.object("annotations").unwrap_or_default();
    let hint = |key: &str| match annotations.get(key) {
        Some("true") => Some(true),
        Some("false") => Some(false),
        _ => None,
    };
    Entry {
        local,
        raw,
        mirrored,
        read_only_hint: hint("readOnlyHint"),
        destructive_hint: hint("destructiveHint"),
        idempotent_hint: hint("idempotentHint"),
    }
}

fn left_out(name: &str, reason: String) -> LeftOut {
    LeftOut { name: cut(name), reason }
}

fn cut(name: &str) -> String {
    name.chars().take(128).collect()
}

fn remember(names: &mut Vec<String>, name: &str) {
    if names.last().is_none_or(|last| *last != cut(name)) {
        names.push(cut(name));
    }
}

/// One warning for many tools.
fn gathered(what: &str, names: &[String]) -> Option<String> {
    const SHOWN: usize = 10;
    if names.is_empty() {
        return None;
    }
    let mut shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("{name:?}")).collect();
    if names.len() > SHOWN {
        shown.push(format!("and {} more", names.len() - SHOWN));
    }
    Some(format!("tools {what}: {}", shown.join(", ")))
}

#[cfg(test)]
mod tests;
