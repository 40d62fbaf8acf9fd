//! A fake server that asks its client: on the stream of the call, or by a result that wants the call made again.
//!
//! What is asked stands in the call: `form,roots;sampling` is a form and the roots at once, then a sampling. A tool or
//! a prompt named `ask` takes it as its argument `ask`, a resource `ask://WHAT/MARKER` in its URI. The result is the
//! list of the raw answers in the order of the questions. What the client did not declare, or what the revision does
//! not know, is not asked, unless the argument `force` is given; the result then is `cannot ask`. Where there is a
//! progress token the marker is sent as progress first.

use std::time::Duration;

use serde_json::Value;

use super::{Gone, Request, Wire};
use crate::support::{Side, json};

/// What the result says where nothing was asked.
pub(crate) const CANNOT: &str = "cannot ask";

/// A call that asks.
struct Plan {
    rounds: Vec<Vec<String>>,
    marker: String,
    forced: bool,
}

impl Plan {
    fn of(request: &Request) -> Option<Self> {
        let argument = |name: &str| json::text(&request.body, &["params", "arguments", name]);
        let name = request.name();
        let (what, marker) = match name.strip_prefix("ask://") {
            Some(rest) => {
                let (what, marker) = rest.split_once('/').unwrap_or((rest, ""));
                (what.to_owned(), marker.to_owned())
            }
            None if name == "ask" => (argument("ask")?, argument("marker").unwrap_or_default()),
            None => return None,
        };
        let rounds = what.split(';').map(|round| round.split(',').map(str::to_owned).collect()).collect();
        Some(Self { rounds, marker, forced: argument("force").is_some() })
    }

    fn questions(&self) -> impl Iterator<Item = &String> {
        self.rounds.iter().flatten()
    }
}

/// Method and raw params of a question. A form carries the marker in its message, so do the others where they can.
fn question(kind: &str, marker: &str, side: Side) -> (&'static str, String) {
    let marked = json::quote(marker);
    match kind {
        "form" => {
            let schema = "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}}}";
            ("elicitation/create", format!("{{\"message\":{marked},\"requestedSchema\":{schema}}}"))
        }
        "url" => {
            let id = if side == Side::Legacy { ",\"elicitationId\":\"e-1\"" } else { "" };
            let url = "https://example.com/consent";
            let text = format!("{{\"mode\":\"url\",\"message\":{marked},\"url\":\"{url}\"{id}}}");
            ("elicitation/create", text)
        }
        "sampling" => {
            let block = format!("{{\"type\":\"text\",\"text\":{marked}}}");
            let message = format!("{{\"role\":\"user\",\"content\":{block}}}");
            ("sampling/createMessage", format!("{{\"messages\":[{message}],\"maxTokens\":9}}"))
        }
        _ => ("roots/list", "{}".to_owned()),
    }
}

/// Whether a client with these capabilities can be asked this in this revision.
fn possible(kind: &str, revision: &str, capabilities: &Value) -> bool {
    let elicitation = &capabilities["elicitation"];
    match kind {
        "form" => {
            let form = elicitation["url"].is_null() || !elicitation["form"].is_null();
            revision >= "2025-06-18" && elicitation.is_object() && form
        }
        "url" => revision >= "2025-11-25" && elicitation["url"].is_object(),
        "sampling" => capabilities["sampling"].is_object(),
        _ => capabilities["roots"].is_object(),
    }
}

/// Answers a request that asks; whether it was one.
pub(super) fn serve(request: &Request, wire: &mut Wire<'_>) -> bool {
    let Some(plan) = Plan::of(request) else { return false };
    let (revision, capabilities) = wire.shared.counterpart(request);
    if !plan.forced && !plan.questions().all(|kind| possible(kind, &revision, &capabilities)) {
        wire.say(request, CANNOT);
        return true;
    }
    if let Some(token) = request.meta("progressToken").map(str::to_owned) {
        let marker = json::quote(&plan.marker);
        let params = format!("{{\"progressToken\":{token},\"progress\":1,\"message\":{marker}}}");
        wire.notify("notifications/progress", &params);
    }
    match wire.shared.fake.side {
        Side::Legacy => on_stream(&plan, request, wire),
        Side::Modern => by_result(&plan, request, wire),
    }
    true
}

fn on_stream(plan: &Plan, request: &Request, wire: &mut Wire<'_>) {
    let mut said = Vec::new();
    let key = request.session().unwrap_or_default().to_owned();
    for round in &plan.rounds {
        let mut ids = Vec::new();
        for kind in round {
            let id = wire.shared.next_question(&key);
            let (method, params) = question(kind, &plan.marker, Side::Legacy);
            wire.event(&format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}"
            ));
            ids.push(id);
        }
        for id in ids {
            let Some(answer) = answer(&key, id, request, wire) else { return };
            said.push(answer);
        }
    }
    wire.say(request, &format!("[{}]", said.join(",")));
}

impl Wire<'_> {
    /// Asks on the standing stream of the session and waits for the answer; where there is no such stream nobody hears
    /// the question. `None` where the call is given up before.
    pub(crate) fn ask_beside(&mut self, request: &Request, method: &str, params: &str) -> Option<String> {
        let key = request.session().unwrap_or_default().to_owned();
        let id = self.shared.next_question(&key);
        let message =
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}");
        self.shared.tell(request, &message);
        answer(&key, id, request, self)
    }
}

/// Waits for the answer to a question; `None` where the call is given up before.
pub(super) fn answer(key: &str, id: u64, request: &Request, wire: &mut Wire<'_>) -> Option<String> {
    loop {
        if let Some(answer) = wire.shared.take_answer(key, id) {
            return Some(answer);
        }
        let gone = wire.pause(Duration::from_millis(5));
        if gone != Gone::No {
            wire.shared.note_gone(request.number, gone);
            wire.abort();
            return None;
        }
    }
}

/// The state of the rounds so far travels with the client: the number of the round and the answers.
fn by_result(plan: &Plan, request: &Request, wire: &mut Wire<'_>) {
    let (mut round, mut said) = match json::text(&request.body, &["params", "requestState"]) {
        None => (0, Vec::new()),
        Some(text) => match state(&text, &wire.shared.fake.label) {
            Some(state) => state,
            None => {
                wire.shared.violation(format!("a state that is not its own: {text}"));
                return wire.refuse(400, -32602, "requestState is not mine");
            }
        },
    };
    let given = |key: &str| request.raw(&["params", "inputResponses", key]).map(str::to_owned);
    let mut open: Vec<usize> = (0..plan.rounds[round].len()).collect();
    if request.raw(&["params", "requestState"]).is_some() {
        open.retain(|at| given(&format!("k{at}")).is_none());
    }
    let asks_first = request.raw(&["params", "requestState"]).is_none();
    if !asks_first && open.is_empty() {
        said.extend((0..plan.rounds[round].len()).filter_map(|at| given(&format!("k{at}"))));
        round += 1;
        let Some(next) = plan.rounds.get(round) else {
            return wire.say(request, &format!("[{}]", said.join(",")));
        };
        open = (0..next.len()).collect();
    }
    let asked: Vec<String> = open
        .into_iter()
        .map(|at| {
            let (method, params) = question(&plan.rounds[round][at], &plan.marker, Side::Modern);
            format!("\"k{at}\":{{\"method\":\"{method}\",\"params\":{params}}}")
        })
        .collect();
    let kept: String = said.iter().map(|raw| format!(",{raw}")).collect();
    let state = json::quote(&format!("[{},{round}{kept}]", json::quote(&wire.shared.fake.label)));
    wire.result(&format!(
        "{{\"resultType\":\"input_required\",\"inputRequests\":{{{}}},\"requestState\":{state}}}",
        asked.join(",")
    ));
}

fn state(text: &str, label: &str) -> Option<(usize, Vec<String>)> {
    let parts: Vec<Box<serde_json::value::RawValue>> = serde_json::from_str(text).ok()?;
    let own: String = serde_json::from_str(parts.first()?.get()).ok()?;
    let round = parts.get(1)?.get().parse().ok()?;
    (own == label).then(|| (round, parts[2..].iter().map(|raw| raw.get().to_owned()).collect()))
}
