//! Tasks of a fake server, as far as a test of their passage needs: a call becomes a task, which has a state.

use super::{Request, Wire};
use crate::support::{Side, json};

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// Answers what makes a task or asks for one; whether it was that.
pub(super) fn serve(request: &Request, wire: &mut Wire<'_>) -> bool {
    if !wire.shared.state().goods.tasks {
        return false;
    }
    let modern = wire.shared.fake.side == Side::Modern;
    let state = "\"taskId\":\"t-1\",\"status\":\"working\",\"createdAt\":\"2026-01-01T00:00:00Z\",\
        \"lastUpdatedAt\":\"2026-01-01T00:00:00Z\"";
    match request.method().as_str() {
        "tools/call" if modern => {
            let capabilities = request.meta("io.modelcontextprotocol/clientCapabilities").unwrap_or("{}");
            let declared = json::raw(capabilities, &["extensions", EXTENSION]).is_some();
            if !declared || request.name() != "task" {
                return false;
            }
            wire.result(&format!("{{\"resultType\":\"task\",{state},\"ttlMs\":60000}}"));
        }
        "tools/call" if request.raw(&["params", "task"]).is_some() => {
            wire.result(&format!("{{\"task\":{{{state},\"ttl\":60000}}}}"));
        }
        "tasks/get" => {
            let ttl = if modern { "ttlMs" } else { "ttl" };
            wire.result(&format!("{{{state},\"{ttl}\":60000}}"));
        }
        _ => return false,
    }
    true
}
