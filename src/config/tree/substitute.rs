//! `${env:NAME}`, `${file:PATH}` and `$${` in every text value of a tree.
//!
//! What cannot be replaced is noted and marked as lost, so that nobody complains about it a second time. What was
//! put in is never part of a message.

use std::path::Path;

use super::{Node, Text, Value, join};
use crate::config::environment::Environment;
use crate::config::problem::Findings;

/// Most bytes of a file that is put in.
const FILE_LIMIT: u64 = 64 * 1024;

/// Where values come from.
pub(crate) struct Source<'a> {
    /// Variables and files.
    pub(crate) environment: &'a dyn Environment,
    /// The folder that relative paths begin in.
    pub(crate) folder: &'a Path,
}

/// Replaces in the whole tree.
pub(crate) fn substitute(node: &mut Node, key: &str, source: &Source<'_>, findings: &Findings) {
    let place = node.place(key);
    match &mut node.value {
        Value::Text(text) if text.value.contains("${") => match expand(&text.value, source) {
            Ok(value) => *text = replaced(text, value),
            Err(reason) => {
                findings.error(&place, &reason);
                node.value = Value::Lost;
            }
        },
        Value::List(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                substitute(item, &format!("{key}[{index}]"), source, findings);
            }
        }
        Value::Map(entries) => {
            for entry in entries {
                substitute(&mut entry.node, &join(key, &entry.key), source, findings);
            }
        }
        Value::Null | Value::Flag(_) | Value::Whole(_) | Value::Float | Value::Text(_) | Value::Lost => {}
    }
}

/// A text that only had `$${` in it is as good as written out; one that had `${…}` keeps its template.
fn replaced(text: &mut Text, (value, foreign): (String, bool)) -> Text {
    let template = foreign.then(|| std::mem::take(&mut text.value));
    Text { value, template }
}

/// The text with everything put in, and whether anything was.
fn expand(text: &str, source: &Source<'_>) -> Result<(String, bool), String> {
    let mut out = String::with_capacity(text.len());
    let mut foreign = false;
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(literal) = before.strip_suffix('$') {
            out.push_str(literal);
            out.push_str("${");
            rest = after;
            continue;
        }
        let Some((name, tail)) = after.split_once('}') else {
            return Err("\"${\" without \"}\"; write $${ for a literal ${".to_owned());
        };
        out.push_str(before);
        out.push_str(&look_up(name, source)?);
        foreign = true;
        rest = tail;
    }
    out.push_str(rest);
    Ok((out, foreign))
}

fn look_up(name: &str, source: &Source<'_>) -> Result<String, String> {
    match name.split_once(':') {
        Some(("env", variable)) => source
            .environment
            .variable(variable)
            .ok_or_else(|| format!("the environment variable {variable} is not set")),
        Some(("file", path)) => read(path, source),
        _ => Err("an unknown ${…}; accepted: ${env:NAME}, ${file:PATH}, and $${ for a literal ${".to_owned()),
    }
}

fn read(path: &str, source: &Source<'_>) -> Result<String, String> {
    let content = source
        .environment
        .file(&source.folder.join(path), FILE_LIMIT)
        .map_err(|error| format!("the file {path} cannot be read: {}", error.kind()))?;
    if content.len() as u64 > FILE_LIMIT {
        return Err(format!("the file {path} is larger than 64 KiB"));
    }
    let mut text = String::from_utf8(content).map_err(|error| {
        format!("the file {path} is not UTF-8 from byte {} on", error.utf8_error().valid_up_to())
    })?;
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(text)
}
