//! A scripted MCP server on standard input and output: what the tests start as a child of the gateway.
//!
//! Arguments say how it behaves: `modern` (2026-07-28 alone), `dies` (of the first question), `noise` (lines that are no
//! messages), `flood` (10 MiB of errors before each answer), `deaf` (to the end of its input and to SIGTERM), `gone` (it
//! exits at once), `choosy` (it refuses all but 2025-03-26), `strange` (it names a revision that nobody knows). Its tools say what a server sees.

#![expect(clippy::indexing_slicing, clippy::exit, reason = "a script, in its own process")]

use std::io::{BufRead, Write};

use serde_json::{Value, json};

const TOOLS: [&str; 10] = ["chat", "echo", "env", "fds", "pid", "crash", "hang", "ask", "lines", "grow"];

struct Server {
    modes: Vec<String>,
    tools: Vec<String>,
    /// The lines that came, as they came.
    lines: Vec<String>,
    /// The call that waits for the answer to a question.
    asking: Option<Value>,
}

fn main() {
    let modes: Vec<String> = std::env::args().skip(1).collect();
    if modes.iter().any(|mode| mode == "gone") {
        std::process::exit(3);
    }
    let tools = TOOLS.map(str::to_owned).to_vec();
    let mut server = Server { modes, tools, lines: Vec::new(), asking: None };
    if server.is("noise") {
        say("Server started!\n\n\u{1b}[32mgreen\u{1b}[0m\n{\"level\":\"info\"}\n[{\"a\":1}]");
    }
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        server.take(&line);
        server.lines.push(line);
    }
    while server.is("deaf") {
        std::thread::park();
    }
}

/// Writes a line.
fn say(text: &str) {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{text}").and_then(|()| stdout.flush()).unwrap_or_else(|_closed| std::process::exit(0));
}

/// Notes a call in the file that `EXECUTED` names, where it does.
fn note_executed(text: &str) {
    let Some(path) = std::env::var_os("EXECUTED") else { return };
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(format!("{text}\n").as_bytes())).unwrap_or_default();
}

fn flood() {
    let mut stderr = std::io::stderr().lock();
    let long = vec![b'x'; 5 * 1024 * 1024];
    for part in [&long[..], b"\n\xff\xfe\n", &long[..], b"\n"] {
        stderr.write_all(part).unwrap_or_default();
    }
}

impl Server {
    fn is(&self, mode: &str) -> bool {
        self.modes.iter().any(|known| known == mode)
    }

    fn take(&mut self, line: &str) {
        let Ok(message) = serde_json::from_str::<Value>(line) else { return };
        let (id, method) = (message["id"].clone(), message["method"].as_str().unwrap_or_default());
        if method.is_empty() {
            self.answered(&message);
            return;
        }
        if id.is_null() {
            return;
        }
        if self.is("flood") {
            flood();
        }
        if self.is("noise") {
            say("between two messages");
        }
        match self.answer(&id, method, &message["params"]) {
            Some(Ok(result)) => say(&json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()),
            Some(Err(error)) => say(&json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string()),
            None => {}
        }
    }

    fn answered(&mut self, message: &Value) {
        if let Some(call) = self.asking.take() {
            let told = message.get("result").or_else(|| message.get("error")).cloned().unwrap_or_default();
            let result = json!({ "content": [{ "type": "text", "text": told.to_string() }] });
            say(&json!({ "jsonrpc": "2.0", "id": call, "result": result }).to_string());
        }
    }

    fn answer(&mut self, id: &Value, method: &str, params: &Value) -> Option<Result<Value, Value>> {
        let mut result = match method {
            "server/discover" if self.is("modern") => json!({
                "supportedVersions": ["2026-07-28"],
                "capabilities": { "tools": { "listChanged": true } },
                "serverInfo": { "name": "child", "version": "1" },
            }),
            "server/discover" if self.is("dies") => std::process::exit(2),
            "initialize" if self.is("choosy") && params["protocolVersion"] != "2025-03-26" => {
                return Some(Err(json!({ "code": -32602, "message": "Unsupported protocol version" })));
            }
            "initialize" if !self.is("modern") => json!({
                "protocolVersion": if self.is("strange") { json!("1999-01-01") } else { params["protocolVersion"].clone() },
                "capabilities": { "tools": { "listChanged": true }, "logging": {} },
                "serverInfo": { "name": "child", "version": "1" },
            }),
            "ping" | "logging/setLevel" => json!({}),
            "tools/list" => json!({ "tools": self.tools.iter().map(|name| json!({
                "name": name, "inputSchema": { "type": "object" }
            })).collect::<Vec<_>>() }),
            "subscriptions/listen" => {
                let noted = json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {
                    "_meta": { "io.modelcontextprotocol/subscriptionId": id },
                    "notifications": params["notifications"],
                } });
                say(&noted.to_string());
                self.lines.push(format!("listen {id}"));
                return None;
            }
            "tools/call" => {
                let text = self.call(id, params)?;
                json!({ "content": [{ "type": "text", "text": text }] })
            }
            _ => return Some(Err(json!({ "code": -32601, "message": "Method not found" }))),
        };
        if self.is("modern") {
            result["resultType"] = "complete".into();
            result["ttlMs"] = 0.into();
            result["cacheScope"] = "private".into();
        }
        Some(Ok(result))
    }

    /// What a tool says; `None` where it says nothing, or later.
    fn call(&mut self, id: &Value, params: &Value) -> Option<String> {
        let arguments = &params["arguments"];
        match params["name"].as_str().unwrap_or_default() {
            "env" => {
                let mut names: Vec<String> =
                    std::env::vars().map(|(name, value)| format!("{name}={value}")).collect();
                names.sort();
                Some(format!(
                    "{}\n{}",
                    std::env::current_dir().unwrap_or_default().display(),
                    names.join("\n")
                ))
            }
            "fds" => {
                let own = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
                let mut all: Vec<String> = own
                    .filter_map(|entry| {
                        let to = std::fs::read_link(entry.path()).ok()?;
                        // The folder that is being read.
                        (!to.starts_with("/proc")).then(|| entry.file_name().to_string_lossy().into_owned())
                    })
                    .collect();
                all.sort();
                Some(all.join(" "))
            }
            "pid" => Some(std::process::id().to_string()),
            "crash" => std::process::exit(1),
            "hang" => None,
            "chat" => {
                let params = json!({ "level": "error", "data": arguments["text"] });
                say(&json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params })
                    .to_string());
                Some("said".to_owned())
            }
            "lines" => Some(self.lines.join("\n")),
            "grow" => {
                self.tools.push(format!("grown{}", self.tools.len()));
                self.announce();
                Some("grown".to_owned())
            }
            "ask" => {
                self.asking = Some(id.clone());
                let question = json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {
                    "message": arguments["message"], "requestedSchema": { "type": "object", "properties": {} },
                } });
                say(&question.to_string());
                None
            }
            _ => {
                let text = arguments["text"].as_str().unwrap_or_default().to_owned();
                note_executed(&text);
                Some(text)
            }
        }
    }

    fn announce(&self) {
        let listening = self.lines.iter().rev().find_map(|line| line.strip_prefix("listen "));
        let message = match listening.and_then(|id| serde_json::from_str::<Value>(id).ok()) {
            Some(id) => json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {
                "_meta": { "io.modelcontextprotocol/subscriptionId": id } } }),
            None => json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }),
        };
        say(&message.to_string());
    }
}
