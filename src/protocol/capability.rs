//! What a server says that it offers.

use crate::jsonrpc::{Object, Text};

use super::ListKind;

/// The capabilities of one server that Weir acts on (2026-07-28, server/discover; 2025-11-25, lifecycle).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent capabilities, as the wire has them")]
pub struct Offer {
    /// It has tools.
    pub tools: bool,
    /// It has prompts.
    pub prompts: bool,
    /// It has resources and templates.
    pub resources: bool,
    /// It announces changes of its lists (any of them).
    pub list_changed: bool,
    /// It takes subscriptions to resources.
    pub subscribe: bool,
    /// It completes arguments.
    pub completions: bool,
    /// It sends log messages.
    pub logging: bool,
}

impl Offer {
    /// Reads a raw `capabilities` object; what cannot be read counts as absent.
    #[must_use]
    pub fn read(capabilities: &str) -> Self {
        let Some(all) = Object::open(capabilities) else { return Self::default() };
        let flag = |member: &str, name: &str| {
            all.object(member).is_some_and(|object| object.get(name) == Some("true"))
        };
        let has = |member: &str| all.get(member).is_some_and(|raw| raw != "null" && raw != "false");
        Self {
            tools: has("tools"),
            prompts: has("prompts"),
            resources: has("resources"),
            list_changed: ["tools", "prompts", "resources"].iter().any(|m| flag(m, "listChanged")),
            subscribe: flag("resources", "subscribe"),
            completions: has("completions"),
            logging: has("logging"),
        }
    }

    /// The capabilities that Weir announces for what it offers: each list kind with `listChanged`.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut text = Text::object();
        let lists = [(self.tools, "tools"), (self.prompts, "prompts")];
        for (_, name) in lists.iter().filter(|(has, _)| *has) {
            text.member(name, r#"{"listChanged":true}"#);
        }
        if self.resources {
            let subscribe = r#"{"listChanged":true,"subscribe":true}"#;
            text.member("resources", if self.subscribe { subscribe } else { r#"{"listChanged":true}"# });
        }
        for (_, name) in
            [(self.completions, "completions"), (self.logging, "logging")].iter().filter(|(has, _)| *has)
        {
            text.member(name, "{}");
        }
        text.close()
    }

    /// Whether the server has this list.
    #[must_use]
    pub fn lists(&self, kind: ListKind) -> bool {
        match kind {
            ListKind::Tools => self.tools,
            ListKind::Prompts => self.prompts,
            ListKind::Resources | ListKind::Templates => self.resources,
        }
    }
}
