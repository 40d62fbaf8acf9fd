//! The notes: a small board in memory that any caller may read and change. Each note is a resource, too.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::json;
use tokio::sync::watch;

use crate::catalog::Entry;
use crate::names::LocalName;

use super::{Arguments, Outcome, Said};

const MOST_NOTES: usize = 100;
const MOST_BYTES: usize = 4096;
const SCHEME: &str = "note://";

pub(super) const INSTRUCTIONS: &str =
    "Keeps up to 100 short notes until Weir ends. Each note is also a resource, note://ID.";

pub(super) const TOOLS: [&str; 3] = [
    r#"{
  "name": "add",
  "title": "Add a note",
  "description": "Keeps a note of at most 4 KiB and returns its id. There is room for 100 notes.",
  "inputSchema": {
    "type": "object",
    "properties": {
      "text": { "type": "string", "minLength": 1, "maxLength": 4096, "description": "The note" }
    },
    "required": ["text"],
    "additionalProperties": false
  },
  "outputSchema": {
    "type": "object",
    "properties": { "id": { "type": "string" }, "uri": { "type": "string", "format": "uri" } },
    "required": ["id", "uri"]
  },
  "annotations": { "readOnlyHint": false, "destructiveHint": false, "idempotentHint": false, "openWorldHint": false }
}"#,
    r#"{
  "name": "list",
  "title": "List notes",
  "description": "Lists all notes with their ids, oldest first.",
  "inputSchema": { "type": "object", "properties": {}, "additionalProperties": false },
  "outputSchema": {
    "type": "object",
    "properties": {
      "notes": {
        "type": "array",
        "items": {
          "type": "object",
          "properties": { "id": { "type": "string" }, "text": { "type": "string" } },
          "required": ["id", "text"]
        }
      }
    },
    "required": ["notes"]
  },
  "annotations": { "readOnlyHint": true, "openWorldHint": false }
}"#,
    r#"{
  "name": "remove",
  "title": "Remove a note",
  "description": "Removes the note with this id. It cannot be brought back.",
  "inputSchema": {
    "type": "object",
    "properties": { "id": { "type": "string", "description": "The id as add and list give it" } },
    "required": ["id"],
    "additionalProperties": false
  },
  "outputSchema": {
    "type": "object",
    "properties": { "id": { "type": "string" } },
    "required": ["id"]
  },
  "annotations": { "readOnlyHint": false, "destructiveHint": true, "idempotentHint": true, "openWorldHint": false }
}"#,
];

/// The board.
#[derive(Debug, Default)]
pub(super) struct Notes {
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    /// The number of the note that was added last; numbers are not used again.
    last: u64,
    notes: BTreeMap<u64, String>,
}

impl Notes {
    /// Calls one of the tools and counts a change of the board; `None` for a name that is none of them.
    pub(super) fn call(
        &self,
        name: &str,
        arguments: &Arguments,
        changes: &watch::Sender<u64>,
    ) -> Option<Outcome> {
        let (outcome, changed) = match name {
            "add" => (self.add(arguments), true),
            "list" => (self.list(arguments), false),
            "remove" => (self.remove(arguments), true),
            _ => return None,
        };
        if changed && outcome.is_ok() {
            changes.send_modify(|count| *count += 1);
        }
        Some(outcome)
    }

    /// A resource for each note.
    pub(super) fn resources(&self) -> Vec<Arc<Entry>> {
        self.held().notes.iter().map(|(id, text)| Arc::new(resource(*id, text))).collect()
    }

    /// The text behind a URI.
    pub(super) fn read(&self, uri: &str) -> Option<String> {
        let id = number(uri.strip_prefix(SCHEME)?)?;
        self.held().notes.get(&id).cloned()
    }

    fn add(&self, arguments: &Arguments) -> Outcome {
        arguments.only(&["text"])?;
        let text = arguments.required("text")?;
        if text.is_empty() || text.len() > MOST_BYTES {
            return Err(format!("text must hold 1 to {MOST_BYTES} bytes; it holds {}", text.len()));
        }
        let mut held = self.held();
        if held.notes.len() >= MOST_NOTES {
            return Err(format!("there are {MOST_NOTES} notes already; remove one first"));
        }
        held.last += 1;
        let id = held.last;
        held.notes.insert(id, text.to_owned());
        let uri = format!("{SCHEME}{id}");
        Ok(Said { text: format!("note {id} added"), structured: json!({ "id": id.to_string(), "uri": uri }) })
    }

    fn list(&self, arguments: &Arguments) -> Outcome {
        arguments.only(&[])?;
        let held = self.held();
        let lines: Vec<String> = held.notes.iter().map(|(id, text)| format!("{id}: {text}")).collect();
        let notes: Vec<_> =
            held.notes.iter().map(|(id, text)| json!({ "id": id.to_string(), "text": text })).collect();
        let text = if lines.is_empty() { "there are no notes".to_owned() } else { lines.join("\n") };
        Ok(Said { text, structured: json!({ "notes": notes }) })
    }

    fn remove(&self, arguments: &Arguments) -> Outcome {
        arguments.only(&["id"])?;
        let id = arguments.required("id")?;
        let gone = number(id).and_then(|id| self.held().notes.remove(&id));
        match gone {
            Some(_) => Ok(Said { text: format!("note {id} removed"), structured: json!({ "id": id }) }),
            None => Err(format!("there is no note with id {id:.64?}; call list to see the ids")),
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads an id, in the one way in which ids are written.
fn number(id: &str) -> Option<u64> {
    id.parse().ok().filter(|number: &u64| number.to_string() == id)
}

fn resource(id: u64, text: &str) -> Entry {
    let uri = format!("{SCHEME}{id}");
    let title: String = text.lines().next().unwrap_or_default().chars().take(60).collect();
    let raw = json!({
        "uri": uri,
        "name": format!("note-{id}"),
        "title": title,
        "mimeType": "text/plain",
        "size": text.len(),
    });
    Entry {
        local: LocalName::new(&uri),
        raw: raw.to_string().into(),
        mirrored: Vec::new(),
        read_only_hint: None,
        destructive_hint: None,
        idempotent_hint: None,
    }
}
