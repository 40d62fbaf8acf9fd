//! One request as a fake server got it.

use tokio::time::Instant;

use crate::support::http::Head;
use crate::support::json;

/// A recorded request.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// The place in the record.
    pub(crate) number: usize,
    /// Which connection it came on.
    pub(crate) connection: usize,
    /// When its last byte had come.
    pub(crate) at: Instant,
    /// Its head.
    pub(crate) head: Head,
    /// Its body, byte for byte as text.
    pub(crate) body: String,
    /// The status it was answered with, once it was.
    pub(crate) status: Option<u16>,
}

impl Request {
    /// The HTTP method.
    pub(crate) fn verb(&self) -> &str {
        self.head.word(0)
    }

    /// A header field.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.get(name)
    }

    /// The path, without its query.
    pub(crate) fn place(&self) -> &str {
        self.head.word(1).split('?').next().unwrap_or_default()
    }

    /// The session id that came with it.
    pub(crate) fn session(&self) -> Option<&str> {
        self.header("mcp-session-id").or_else(|| Some(self.head.word(1).split_once("?session=")?.1))
    }

    /// The JSON-RPC method; empty where there is none.
    pub(crate) fn method(&self) -> String {
        json::text(&self.body, &["method"]).unwrap_or_default()
    }

    /// The tool, prompt, URI or task that it names.
    pub(crate) fn name(&self) -> String {
        let member = |name| json::text(&self.body, &["params", name]);
        member("name").or_else(|| member("uri")).or_else(|| member("taskId")).unwrap_or_default()
    }

    /// The exact text of a member.
    pub(crate) fn raw(&self, path: &[&str]) -> Option<&str> {
        json::raw(&self.body, path)
    }

    /// The exact text of its id.
    pub(crate) fn id(&self) -> Option<&str> {
        self.raw(&["id"])
    }

    /// The exact text of a call's arguments.
    pub(crate) fn arguments(&self) -> Option<&str> {
        self.raw(&["params", "arguments"])
    }

    /// The exact text of a `_meta` member.
    pub(crate) fn meta(&self, key: &str) -> Option<&str> {
        self.raw(&["params", "_meta", key])
    }
}
