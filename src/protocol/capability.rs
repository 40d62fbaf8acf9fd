//! What a server says that it offers.

use std::collections::BTreeMap;

use crate::jsonrpc::{Object, Text};

use super::ListKind;

/// The identifier of the extension by which servers turn calls into tasks.
pub const TASKS: &str = "io.modelcontextprotocol/tasks";

/// How a call becomes a task. Neither way can be told in the words of the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tasking {
    /// The client asks for it with the call (2025-11-25, basic/utilities/tasks).
    Requested,
    /// The server decides (2026-07-28, extension `io.modelcontextprotocol/tasks`).
    Directed,
}

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
    /// How it turns calls into tasks, if it does.
    pub tasking: Option<Tasking>,
    /// It lists tasks (only where they are requested).
    pub tasks_list: bool,
    /// It lets tasks be given up (only where they are requested).
    pub tasks_cancel: bool,
    /// Its extensions, with their raw settings.
    pub extensions: BTreeMap<String, String>,
    /// Whether it has no sessions.
    pub stateless: bool,
}

impl Offer {
    /// Reads the raw `capabilities` of a server with sessions; what cannot be read counts as absent.
    #[must_use]
    pub fn of_sessions(capabilities: &str) -> Self {
        let all = Object::open(capabilities).unwrap_or_default();
        let tasks = all.object("tasks").unwrap_or_default();
        let calls = tasks.object("requests").and_then(|requests| requests.object("tools"));
        let is_taken = calls.is_some_and(|tools| tools.get("call").is_some_and(is_set));
        let has = |member: &str| is_taken && tasks.get(member).is_some_and(is_set);
        let mut extensions = extensions(&all);
        extensions.remove(TASKS);
        Self {
            tasking: is_taken.then_some(Tasking::Requested),
            tasks_list: has("list"),
            tasks_cancel: has("cancel"),
            extensions,
            ..Self::read(capabilities)
        }
    }

    /// Reads the raw `capabilities` of a stateless server; what cannot be read counts as absent.
    #[must_use]
    pub fn of_stateless(capabilities: &str) -> Self {
        let extensions = extensions(&Object::open(capabilities).unwrap_or_default());
        let tasking = extensions.contains_key(TASKS).then_some(Tasking::Directed);
        Self { tasking, extensions, stateless: true, ..Self::read(capabilities) }
    }

    fn read(capabilities: &str) -> Self {
        let Some(all) = Object::open(capabilities) else { return Self::default() };
        let flag = |member: &str, name: &str| {
            all.object(member).is_some_and(|object| object.get(name) == Some("true"))
        };
        let has = |member: &str| all.get(member).is_some_and(is_set);
        Self {
            tools: has("tools"),
            prompts: has("prompts"),
            resources: has("resources"),
            list_changed: ["tools", "prompts", "resources"].iter().any(|m| flag(m, "listChanged")),
            subscribe: flag("resources", "subscribe"),
            completions: has("completions"),
            logging: has("logging"),
            ..Self::default()
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
        if self.tasking == Some(Tasking::Requested) {
            text.member("tasks", &self.tasks());
        }
        if !self.extensions.is_empty() {
            let mut extensions = Text::object();
            self.extensions.iter().for_each(|(name, settings)| extensions.member(name, settings));
            text.member("extensions", &extensions.close());
        }
        text.close()
    }

    fn tasks(&self) -> String {
        let mut text = Text::object();
        for (_, name) in
            [(self.tasks_list, "list"), (self.tasks_cancel, "cancel")].iter().filter(|(has, _)| *has)
        {
            text.member(name, "{}");
        }
        text.member("requests", r#"{"tools":{"call":{}}}"#);
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

fn is_set(raw: &str) -> bool {
    raw != "null" && raw != "false"
}

/// Most extensions that are looked at, and the largest settings of one, in bytes. Larger ones count as none.
const MOST_EXTENSIONS: usize = 64;
const LARGEST_SETTINGS: usize = 4096;

/// The extensions of a raw `capabilities` object, with their raw settings.
pub(super) fn extensions(capabilities: &Object<'_>) -> BTreeMap<String, String> {
    let all = capabilities.object("extensions").unwrap_or_default();
    let settings = |raw: &str| {
        let is_usable = raw.len() <= LARGEST_SETTINGS && raw.starts_with('{');
        if is_usable { raw.to_owned() } else { "{}".to_owned() }
    };
    all.iter()
        .filter(|(_, raw)| is_set(raw))
        .take(MOST_EXTENSIONS)
        .map(|(name, raw)| (name.to_owned(), settings(raw)))
        .collect()
}
