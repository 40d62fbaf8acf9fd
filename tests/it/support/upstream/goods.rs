//! What a fake server has besides its tools: prompts, resources, templates, completion; and how it serves them.

use super::{Request, Wire};
use crate::support::{Side, json};

/// What a fake server offers.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "independent capabilities, as the wire has them")]
pub(super) struct Goods {
    pub(super) tools: Vec<String>,
    pub(super) prompts: Vec<String>,
    pub(super) resources: Vec<String>,
    pub(super) templates: Vec<String>,
    pub(super) completes: bool,
    pub(super) subscribes: bool,
    pub(super) logs: bool,
    pub(super) tasks: bool,
    /// Identifier and raw settings.
    pub(super) extension: Option<(String, String)>,
}

/// The definition of a prompt with two optional arguments.
pub(crate) fn prompt(name: &str) -> String {
    let quoted = json::quote(name);
    format!("{{\"name\":{quoted},\"arguments\":[{{\"name\":\"ask\"}},{{\"name\":\"marker\"}}]}}")
}

/// The definition of a resource.
pub(crate) fn resource(uri: &str) -> String {
    let (name, quoted) = (json::quote(&format!("The resource {uri}")), json::quote(uri));
    format!("{{\"uri\":{quoted},\"name\":{name}}}")
}

/// The definition of a resource template.
pub(crate) fn template(pattern: &str) -> String {
    let (name, quoted) = (json::quote(&format!("The template {pattern}")), json::quote(pattern));
    format!("{{\"uriTemplate\":{quoted},\"name\":{name}}}")
}

impl Goods {
    /// Tools and log messages.
    pub(super) fn tools(tools: Vec<String>) -> Self {
        Self {
            tools,
            prompts: Vec::new(),
            resources: Vec::new(),
            templates: Vec::new(),
            completes: false,
            subscribes: false,
            logs: true,
            tasks: false,
            extension: None,
        }
    }

    /// The raw capabilities, in the words of a revision.
    pub(super) fn capabilities(&self, revision: &str, announces: bool) -> String {
        let changed = format!("\"listChanged\":{announces}");
        let mut members = vec![format!("\"tools\":{{{changed}}}")];
        if self.logs {
            members.push("\"logging\":{}".to_owned());
        }
        if !self.prompts.is_empty() {
            members.push(format!("\"prompts\":{{{changed}}}"));
        }
        if !self.resources.is_empty() || !self.templates.is_empty() {
            let subscribe = if self.subscribes { ",\"subscribe\":true" } else { "" };
            members.push(format!("\"resources\":{{{changed}{subscribe}}}"));
        }
        // The capability came with 2025-03-26, the method is older.
        if self.completes && revision > "2024-11-05" {
            members.push("\"completions\":{}".to_owned());
        }
        let mut extensions: Vec<String> = Vec::new();
        if self.tasks {
            match revision {
                "2025-11-25" => members.push(
                    "\"tasks\":{\"list\":{},\"cancel\":{},\"requests\":{\"tools\":{\"call\":{}}}}".to_owned(),
                ),
                _ => extensions.push("\"io.modelcontextprotocol/tasks\":{}".to_owned()),
            }
        }
        if let Some((name, settings)) = &self.extension {
            extensions.push(format!("{}:{settings}", json::quote(name)));
        }
        if !extensions.is_empty() {
            members.push(format!("\"extensions\":{{{}}}", extensions.join(",")));
        }
        format!("{{{}}}", members.join(","))
    }

    /// The list that a method asks for, and the member it stands in.
    fn list(&self, method: &str) -> Option<(&'static str, &Vec<String>)> {
        match method {
            "tools/list" => Some(("tools", &self.tools)),
            "prompts/list" => Some(("prompts", &self.prompts)),
            "resources/list" => Some(("resources", &self.resources)),
            "resources/templates/list" => Some(("resourceTemplates", &self.templates)),
            _ => None,
        }
    }

    /// The place where the items of a kind are kept.
    pub(super) fn place(&mut self, kind: &str) -> &mut Vec<String> {
        match kind {
            "prompts" => &mut self.prompts,
            "resources" => &mut self.resources,
            "templates" => &mut self.templates,
            _ => &mut self.tools,
        }
    }

    fn has_prompt(&self, name: &str) -> bool {
        self.prompts.iter().any(|raw| json::text(raw, &["name"]).as_deref() == Some(name))
    }

    fn has_uri(&self, uri: &str) -> bool {
        let same = |raw: &String| json::text(raw, &["uri"]).as_deref() == Some(uri);
        let fits = |raw: &String| {
            let pattern = json::text(raw, &["uriTemplate"]).unwrap_or_default();
            pattern.split('{').next().is_some_and(|fixed| !fixed.is_empty() && uri.starts_with(fixed))
        };
        self.resources.iter().any(same) || self.templates.iter().any(fits)
    }
}

/// One page of a list; `None` where the method asks for none.
pub(super) fn page(request: &Request, wire: &Wire<'_>) -> Option<String> {
    let goods = wire.shared.state().goods.clone();
    let (member, items) = goods.list(&request.method())?;
    let cursor = request.raw(&["params", "cursor"]).and_then(|raw| raw.trim_matches('"').parse().ok());
    let from: usize = cursor.unwrap_or_default();
    let to = from.saturating_add(wire.shared.fake.page).min(items.len());
    let next = if to < items.len() { format!(",\"nextCursor\":\"{to}\"") } else { String::new() };
    let hints = wire.hints();
    Some(format!("{{\"{member}\":[{}]{next}{hints}}}", items[from.min(to)..to].join(",")))
}

/// Answers what is asked of prompts, resources and completion; whether it was that.
pub(super) fn serve(request: &Request, wire: &mut Wire<'_>) -> bool {
    let goods = wire.shared.state().goods.clone();
    match request.method().as_str() {
        "prompts/get" if goods.prompts.is_empty() => return false,
        "prompts/get" if !goods.has_prompt(&request.name()) => {
            wire.refuse(200, -32602, &format!("Unknown prompt: {}", request.name()));
        }
        "resources/read" if goods.resources.is_empty() && goods.templates.is_empty() => return false,
        "resources/read" if !goods.has_uri(&request.name()) => {
            let code = if wire.shared.fake.side == Side::Modern { -32602 } else { -32002 };
            wire.refuse(200, code, "Resource not found");
        }
        "prompts/get" | "resources/read" => {
            let label = &wire.shared.fake.label;
            let said = match request.arguments() {
                Some(raw) => format!("{} at {label} with {raw}", request.name()),
                None => format!("{} at {label}", request.name()),
            };
            wire.say(request, &said);
        }
        "completion/complete" if goods.completes => complete(request, wire),
        _ => return false,
    }
    true
}

/// The reference as it came, and the value, as the two values.
fn complete(request: &Request, wire: &mut Wire<'_>) {
    let reference = request.raw(&["params", "ref"]).unwrap_or("{}");
    let named = json::text(reference, &["name"]).or_else(|| json::text(reference, &["uri"]));
    let value = json::text(&request.body, &["params", "argument", "value"]).unwrap_or_default();
    if value == "fail" {
        return wire.error("{\"code\":-31999,\"message\":\"no completion today\",\"data\":[1]}");
    }
    let named = json::quote(&named.unwrap_or_default());
    wire.result(&format!(
        "{{\"completion\":{{\"values\":[{named},{}],\"total\":2,\"hasMore\":false}}}}",
        json::quote(&value)
    ));
}

impl Wire<'_> {
    /// `ttlMs` and `cacheScope` as further members, where the era has them.
    pub(super) fn hints(&self) -> String {
        let (ttl, scope) = self.shared.fake.hints;
        match self.shared.fake.side {
            Side::Modern => format!(",\"ttlMs\":{ttl},\"cacheScope\":\"{scope}\""),
            Side::Legacy => String::new(),
        }
    }

    /// The result of a call, a prompt or a read that holds this text.
    pub(crate) fn say(&mut self, request: &Request, text: &str) {
        let text = json::quote(text);
        let block = format!("{{\"type\":\"text\",\"text\":{text}}}");
        let result = match request.method().as_str() {
            "prompts/get" => format!("{{\"messages\":[{{\"role\":\"user\",\"content\":{block}}}]}}"),
            "resources/read" => {
                let (uri, hints) = (json::quote(&request.name()), self.hints());
                format!(
                    "{{\"contents\":[{{\"uri\":{uri},\"mimeType\":\"text/plain\",\"text\":{text}}}]{hints}}}"
                )
            }
            _ => format!("{{\"content\":[{block}]}}"),
        };
        self.result(&result);
    }
}
