//! What a client asks, before it is written in the way of an era.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::support::exchange::Exchange;
use crate::support::json;

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    /// Its method.
    pub(crate) method: String,
    /// Its id as raw JSON; `None`: the client counts.
    pub(crate) id: Option<String>,
    params: Option<String>,
    meta: Vec<(String, String)>,
    fields: Vec<(String, String)>,
    without: Vec<String>,
}

impl Ask {
    /// A request of this method.
    pub(crate) fn new(method: &str) -> Self {
        Self {
            method: method.to_owned(),
            id: None,
            params: None,
            meta: Vec::new(),
            fields: Vec::new(),
            without: Vec::new(),
        }
    }

    /// A call of this tool.
    pub(crate) fn call(name: &str, arguments: &str) -> Self {
        let name = json::quote(name);
        Self::new("tools/call").params(&format!("{{\"name\":{name},\"arguments\":{arguments}}}"))
    }

    /// Its params as a raw object without `_meta`.
    pub(crate) fn params(mut self, raw: &str) -> Self {
        self.params = Some(raw.to_owned());
        self
    }

    /// A member of its `_meta`.
    pub(crate) fn meta(mut self, key: &str, raw: &str) -> Self {
        self.meta.push((key.to_owned(), raw.to_owned()));
        self
    }

    /// The same once more, with the answers to questions and the state that came with them.
    pub(crate) fn again(mut self, responses: &str, state: Option<&str>) -> Self {
        let mut members = format!("\"inputResponses\":{responses}");
        if let Some(state) = state {
            members.push_str(&format!(",\"requestState\":{state}"));
        }
        let raw = self.params.take().unwrap_or_else(|| "{}".to_owned());
        let rest = raw.trim_start().strip_prefix('{').expect("params are an object").to_owned();
        let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
        self.params = Some(format!("{{{members}{comma}{rest}"));
        self
    }

    /// A progress token.
    pub(crate) fn progress(self, raw: &str) -> Self {
        self.meta("progressToken", raw)
    }

    /// Its id as raw JSON.
    pub(crate) fn id(mut self, raw: &str) -> Self {
        self.id = Some(raw.to_owned());
        self
    }

    /// Another or a further header field, in the place of those of this name.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Leaves a header field out.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.without.push(name.to_owned());
        self
    }

    /// The body, with `_meta` first in its params.
    pub(super) fn body(&self, id: &str, era: &[(String, String)]) -> String {
        let mut meta: Vec<&(String, String)> =
            era.iter().filter(|(key, _)| self.meta.iter().all(|(own, _)| own != key)).collect();
        meta.extend(self.meta.iter().filter(|(_, raw)| !raw.is_empty()));
        let members: Vec<String> =
            meta.iter().map(|(key, raw)| format!("{}:{raw}", json::quote(key))).collect();
        let params = match (&self.params, members.is_empty()) {
            (None, true) => String::new(),
            (Some(raw), true) => format!(",\"params\":{raw}"),
            (None, false) => format!(",\"params\":{{\"_meta\":{{{}}}}}", members.join(",")),
            (Some(raw), false) => {
                let rest = raw.trim_start().strip_prefix('{').expect("params are an object");
                let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
                format!(",\"params\":{{\"_meta\":{{{}}}{comma}{rest}", members.join(","))
            }
        };
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":{}{params}}}", json::quote(&self.method))
    }

    /// The header fields that mirror the body (2026-07-28).
    pub(super) fn mirror(&self, exchange: Exchange) -> Exchange {
        let exchange = exchange.header("Mcp-Method", &self.method);
        let params = self.params.as_deref().unwrap_or("{}");
        let name = match self.method.as_str() {
            "tools/call" | "prompts/get" => json::text(params, &["name"]),
            "resources/read" => json::text(params, &["uri"]),
            "tasks/get" | "tasks/update" | "tasks/cancel" => json::text(params, &["taskId"]),
            _ => None,
        };
        match name {
            Some(name) => exchange.header("Mcp-Name", &encode(&name)),
            None => exchange,
        }
    }

    /// The fields that the test wants otherwise.
    pub(super) fn adjust(&self, mut exchange: Exchange) -> Exchange {
        for name in &self.without {
            exchange = exchange.without(name);
        }
        for (name, value) in &self.fields {
            exchange = exchange.set(name, value);
        }
        exchange
    }
}

/// A value as a mirrored header holds it.
pub(crate) fn encode(value: &str) -> String {
    let plain = value.bytes().all(|byte| (0x20..0x7f).contains(&byte)) && value.trim() == value;
    if plain { value.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(value)) }
}
