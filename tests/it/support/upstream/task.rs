//! Tasks of a fake server, as far as a test of their passage needs: a call becomes a task, which has a state until it
//! is told another one.
//!
//! Its ids are `t-1`, `t-2` and so on. A stateless server makes tasks of calls of tools whose names begin with `task`.
//! Where the arguments of the call have an `ask`, `tasks/result` asks the client for a form first.

use serde_json::json;

use super::server::Shared;
use super::standing::Order;
use super::{Request, Wire, asking};
use crate::support::{Side, json};

const EXTENSION: &str = "io.modelcontextprotocol/tasks";
const RELATED: &str = "io.modelcontextprotocol/related-task";

/// A task.
#[derive(Debug, Clone)]
pub(super) struct Task {
    session: String,
    status: String,
    arguments: String,
}

/// Answers what makes a task or asks for one; whether it was that.
pub(super) fn serve(request: &Request, wire: &mut Wire<'_>) -> bool {
    if !wire.shared.state().goods.tasks {
        return false;
    }
    let side = wire.shared.fake.side;
    let method = request.method();
    let capabilities = request.meta("io.modelcontextprotocol/clientCapabilities").unwrap_or("{}");
    let declared = side == Side::Legacy || json::raw(capabilities, &["extensions", EXTENSION]).is_some();
    match (method.as_str(), side) {
        ("tools/call", Side::Modern) if declared && request.name().starts_with("task") => {}
        ("tools/call", Side::Legacy) if request.raw(&["params", "task"]).is_some() => {}
        ("tasks/list", Side::Legacy) => {
            wire.result(&list(wire.shared, request));
            return true;
        }
        (of_task, _) if of_task.starts_with("tasks/") => {
            if declared {
                about(request, wire);
            } else {
                wire.refuse(400, -32021, "Missing required client capability");
            }
            return true;
        }
        _ => return false,
    }
    let id = wire.shared.new_task(request);
    let state = state(wire.shared, &id).unwrap_or_default();
    match side {
        Side::Modern => wire.result(&state.replacen('{', "{\"resultType\":\"task\",", 1)),
        Side::Legacy => wire.result(&format!("{{\"task\":{state}}}")),
    }
    true
}

/// Answers a request about one task.
fn about(request: &Request, wire: &mut Wire<'_>) {
    let id = request.name();
    let Some(task) = wire.shared.state().tasks.get(&id).cloned() else {
        return wire.refuse(200, -32602, "Failed to retrieve task: Task not found");
    };
    let modern = wire.shared.fake.side == Side::Modern;
    match request.method().as_str() {
        "tasks/get" => {}
        "tasks/cancel" => wire.shared.set_status(&id, "cancelled"),
        "tasks/update" if modern => wire.shared.set_status(&id, "completed"),
        "tasks/result" if !modern => return result(&id, &task, request, wire),
        _ => return wire.refuse(if modern { 404 } else { 200 }, -32601, "Method not found"),
    }
    if modern && request.method() != "tasks/get" {
        wire.result("{}");
    } else {
        wire.result(&state(wire.shared, &id).unwrap_or_default());
    }
}

/// The result of a task of a server with sessions, once the client has said what it was asked.
fn result(id: &str, task: &Task, request: &Request, wire: &mut Wire<'_>) {
    let mark = format!("\"_meta\":{{\"{RELATED}\":{{\"taskId\":{}}}}}", json::quote(id));
    let mut said = task.arguments.clone();
    if let Some(marker) = json::text(&task.arguments, &["ask"]) {
        let key = request.session().unwrap_or_default().to_owned();
        let question = wire.shared.next_question(&key);
        let (marker, schema) = (json::quote(&marker), "{\"type\":\"object\",\"properties\":{}}");
        wire.event(&format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{question},\"method\":\"elicitation/create\",\"params\":\
             {{\"message\":{marker},\"requestedSchema\":{schema},{mark}}}}}"
        ));
        match asking::answer(&key, question, request, wire) {
            Some(answer) => said = answer,
            None => return,
        }
    }
    let text = json::quote(&said);
    wire.result(&format!("{{\"content\":[{{\"type\":\"text\",\"text\":{text}}}],{mark}}}"));
}

/// All tasks of the server, whoever made them, two on a page.
fn list(shared: &Shared, request: &Request) -> String {
    let from = request.raw(&["params", "cursor"]).and_then(|raw| raw.trim_matches('"').parse().ok());
    let from: usize = from.unwrap_or_default();
    let all: Vec<String> = shared.state().tasks.keys().cloned().collect();
    let page: Vec<String> = all.iter().skip(from).take(2).filter_map(|id| state(shared, id)).collect();
    let next = if from + 2 < all.len() { format!(",\"nextCursor\":\"{}\"", from + 2) } else { String::new() };
    format!("{{\"tasks\":[{}]{next}}}", page.join(","))
}

/// The raw state of a task.
fn state(shared: &Shared, id: &str) -> Option<String> {
    let task = shared.state().tasks.get(id).cloned()?;
    let modern = shared.fake.side == Side::Modern;
    let ttl = if modern { "ttlMs" } else { "ttl" };
    let more = match (task.status.as_str(), modern) {
        ("completed", true) => {
            let mark = json!({ RELATED: { "taskId": id } });
            let text = json::quote(&task.arguments);
            let content = format!("[{{\"type\":\"text\",\"text\":{text}}}]");
            format!(",\"result\":{{\"content\":{content},\"isError\":false,\"_meta\":{mark}}}")
        }
        ("input_required", true) => {
            let form = "{\"message\":\"who?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}";
            let question = format!("{{\"method\":\"elicitation/create\",\"params\":{form}}}");
            format!(",\"inputRequests\":{{\"k\":{question}}}")
        }
        _ => String::new(),
    };
    Some(format!(
        "{{\"taskId\":{},\"status\":\"{}\",\"createdAt\":\"2026-01-01T00:00:00Z\",\
         \"lastUpdatedAt\":\"2026-01-01T00:00:00Z\",\"{ttl}\":60000{more}}}",
        json::quote(id),
        task.status
    ))
}

impl Shared {
    fn new_task(&self, request: &Request) -> String {
        let mut state = self.state();
        let id = format!("t-{}", state.tasks.len() + 1);
        let task = Task {
            session: request.session().unwrap_or_default().to_owned(),
            status: "working".to_owned(),
            arguments: request.arguments().unwrap_or("{}").to_owned(),
        };
        state.tasks.insert(id.clone(), task);
        id
    }

    fn set_status(&self, id: &str, status: &str) {
        if let Some(task) = self.state().tasks.get_mut(id) {
            status.clone_into(&mut task.status);
        }
    }

    /// A task stands differently, and those who listen are told.
    pub(super) fn turn(&self, id: &str, status: &str) {
        self.set_status(id, status);
        let Some(members) = state(self, id) else { return };
        let members = members.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
        let members = members.unwrap_or_default().to_owned();
        let state = self.state();
        let session = state.tasks.get(id).map(|task| task.session.clone()).unwrap_or_default();
        let method = match self.fake.side {
            Side::Modern => "notifications/tasks",
            Side::Legacy => "notifications/tasks/status",
        };
        for stream in &state.standing {
            if stream.wants_task(id).unwrap_or(stream.session == session) {
                stream.tell(Order::Notify(method.to_owned(), members.clone()));
            }
        }
    }
}
