//! Tasks pass among clients and upstreams of one kind, under ids that lead back to their owner, and to nobody else.

use std::time::Duration;

use crate::support::client::{Answer, Reaction};
use crate::support::{
    Ask, Client, Fake, Pair, Proxy, Side, Upstream, Weir, eras, eventually, json, pairs, tool,
};

eras! {
    a_task_is_reached_by_its_sealed_id, equal_ids_of_two_upstreams_lead_to_each_ones_own,
    c080_a_task_belongs_to_who_made_it, news_of_a_task_reach_who_made_it,
    the_decision_on_the_tool_counts_for_its_task,
}

pairs! { tasks_are_announced_where_client_and_upstream_have_the_same }

const DECLARED: &str = "{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}},\"elicitation\":{}}";
const RELATED: &str = "io.modelcontextprotocol/related-task";

fn fake(side: Side) -> Fake {
    Fake::of(side).with_tasks().with("tools", ["task", "other"].map(tool))
}

fn able(weir: &Weir, side: Side) -> Client {
    let client = Client::new(weir.address, side).capable(DECLARED).unchecked();
    if side == Side::Legacy { client.opened() } else { client }
}

/// Makes a task; the answer.
fn make(client: &Client, name: &str, arguments: &str) -> Answer {
    let more = if client.side() == Side::Legacy { ",\"task\":{\"ttl\":60000}" } else { "" };
    let params = format!("{{\"name\":{},\"arguments\":{arguments}{more}}}", json::quote(name));
    client.ask(Ask::new("tools/call").params(&params))
}

/// The raw id of the task in an answer.
fn id_in(answer: &Answer) -> String {
    let id = answer.raw(&["result", "task", "taskId"]).or_else(|| answer.raw(&["result", "taskId"]));
    id.unwrap_or_else(|| panic!("no task: {answer:?}")).to_owned()
}

fn about(client: &Client, method: &str, id: &str) -> Answer {
    client.ask(Ask::new(method).params(&format!("{{\"taskId\":{id}}}")))
}

fn set_up(side: Side) -> (Upstream, Weir, Client) {
    let alpha = fake(side).label("alpha").start();
    let weir = Proxy::before(&alpha).run();
    let client = able(&weir, side);
    (alpha, weir, client)
}

fn a_task_is_reached_by_its_sealed_id(side: Side) {
    let (alpha, _weir, client) = set_up(side);
    let made = make(&client, "alpha__task", "{\"n\":1.50}");
    let id = id_in(&made);
    assert!(id.starts_with("\"w1.") && !made.body().contains("t-1"), "{made:?}");
    for (method, status) in [("tasks/get", "\"working\""), ("tasks/cancel", "\"cancelled\"")] {
        let answer = about(&client, method, &id);
        if side == Side::Legacy || method == "tasks/get" {
            assert_eq!(answer.raw(&["result", "status"]), Some(status), "{answer:?}");
            assert_eq!(answer.raw(&["result", "taskId"]), Some(id.as_str()), "the same id as was asked for");
        }
        assert_eq!(answer.code(), 0, "{answer:?}");
        let seen =
            alpha.requests().into_iter().find(|request| request.method() == method).expect("it arrives");
        assert_eq!(seen.raw(&["params", "taskId"]), Some("\"t-1\""), "the upstream's own id");
    }
    for bad in ["\"w1.AAAA\"", "\"t-1\"", "\"\"", "5", "null"] {
        let answer = about(&client, "tasks/get", bad);
        assert_eq!(answer.code(), -32602, "{bad}: {answer:?}");
    }
    assert_eq!(alpha.violations(), Vec::<String>::new());
}

fn equal_ids_of_two_upstreams_lead_to_each_ones_own(side: Side) {
    let (alpha, beta) = (fake(side).label("alpha").start(), fake(side).label("beta").start());
    let weir = Proxy::new().upstream("alpha", &alpha).upstream("beta", &beta).run();
    let client = able(&weir, side);
    let ids = ["alpha__task", "beta__task"].map(|name| id_in(&make(&client, name, "{}")));
    assert_ne!(ids[0], ids[1]);
    beta.turn_task("t-1", "failed");
    let states = ids.each_ref().map(|id| about(&client, "tasks/get", id));
    assert_eq!(states[0].raw(&["result", "status"]), Some("\"working\""));
    assert_eq!(states[1].raw(&["result", "status"]), Some("\"failed\""));
    if side == Side::Legacy {
        let other = able(&weir, side);
        let foreign = id_in(&make(&other, "alpha__task", "{}"));
        let listed = client.ask(Ask::new("tasks/list")).result();
        let found: Vec<&str> =
            listed["tasks"].as_array().unwrap().iter().map(|task| task["taskId"].as_str().unwrap()).collect();
        assert_eq!(
            found,
            ids.each_ref().map(|id| id.trim_matches('"')),
            "those of this session, not {foreign}"
        );
        let none = able(&weir, side).ask(Ask::new("tasks/list")).result();
        assert_eq!(none["tasks"].as_array().map(Vec::len), Some(0));
    }
}

fn guarded(side: Side) -> (Upstream, Weir) {
    let alpha = fake(side).label("alpha").start();
    let weir = Proxy::new()
        .listen("public_url: https://gw.example")
        .listen("allowed_hosts: [127.0.0.1]")
        .upstream("alpha", &alpha)
        .token("one", "token-1", "\"alpha:tool:task\"")
        .token("one", "token-more", "\"mcp:admin\"")
        .token("one", "token-less", "\"alpha:tool:other\"")
        .token("two", "token-2", "\"mcp:admin\"")
        .run();
    (alpha, weir)
}

fn with_token(weir: &Weir, side: Side, token: &str) -> Client {
    let client = Client::new(weir.address, side).token(token).capable(DECLARED).unchecked();
    if side == Side::Legacy { client.opened() } else { client }
}

fn c080_a_task_belongs_to_who_made_it(side: Side) {
    let (alpha, weir) = guarded(side);
    let id = id_in(&make(&with_token(&weir, side, "token-1"), "alpha__task", "{}"));
    for method in ["tasks/get", "tasks/cancel"] {
        let answer = about(&with_token(&weir, side, "token-2"), method, &id);
        assert_eq!(answer.code(), -32602, "{answer:?}");
    }
    let seen = alpha.requests().into_iter().filter(|request| request.method().starts_with("tasks/"));
    assert_eq!(seen.count(), 0, "nothing of it reaches the upstream");
}

fn the_decision_on_the_tool_counts_for_its_task(side: Side) {
    let (_alpha, weir) = guarded(side);
    let id = id_in(&make(&with_token(&weir, side, "token-1"), "alpha__task", "{}"));
    let more = about(&with_token(&weir, side, "token-more"), "tasks/get", &id);
    assert_eq!(more.raw(&["result", "status"]), Some("\"working\""), "{more:?}");
    let less = about(&with_token(&weir, side, "token-less"), "tasks/get", &id);
    assert_eq!((less.status(), less.code()), (403, 403), "{less:?}");
}

fn news_of_a_task_reach_who_made_it(side: Side) {
    let (alpha, weir, client) = set_up(side);
    let other = able(&weir, side);
    let id = id_in(&make(&client, "alpha__task", "{}"));
    let foreign = id_in(&make(&other, "alpha__task", "{}"));
    let wish = |id: &str| format!("{{\"taskIds\":[{id},\"w1.nonsense\"]}}");
    let (mut own, mut others) = (client.listen_for(&wish(&id)), other.listen_for(&wish(&foreign)));
    eventually!(alpha.standing() >= 2, "{}", alpha.standing());
    // A stream that was opened for the call that made the task may just be closing, and what is said on it is lost.
    let mut told = None;
    eventually!({
        alpha.turn_task("t-1", "completed");
        told = own.next(Duration::from_millis(500));
        told.is_some()
    });
    let told = told.expect("news");
    let method = if side == Side::Legacy { "notifications/tasks/status" } else { "notifications/tasks" };
    assert_eq!(told.method(), method);
    assert_eq!(told.raw(&["params", "taskId"]), Some(id.as_str()));
    assert_eq!(told.raw(&["params", "status"]), Some("\"completed\""));
    assert!(!told.text.contains("\"t-1\""), "{}", told.text);
    if side == Side::Modern {
        assert!(told.raw(&["params", "_meta", "io.modelcontextprotocol/subscriptionId"]).is_some());
        let within = ["params", "result", "_meta", RELATED, "taskId"];
        assert_eq!(told.raw(&within), Some(id.as_str()), "{}", told.text);
    }
    assert!(others.until_quiet(Duration::from_millis(300)).is_empty(), "nobody else hears of it");
}

fn tasks_are_announced_where_client_and_upstream_have_the_same(pair: Pair) {
    let alpha = fake(pair.upstream).label("alpha").start();
    let weir = Proxy::before(&alpha).run();
    let client = able(&weir, pair.client);
    let capabilities = match pair.client {
        Side::Legacy => client.initialize().result()["capabilities"].clone(),
        Side::Modern => client.ask(Ask::new("server/discover")).result()["capabilities"].clone(),
    };
    let tasks = match pair.client {
        Side::Legacy => &capabilities["tasks"]["requests"]["tools"]["call"],
        Side::Modern => &capabilities["extensions"]["io.modelcontextprotocol/tasks"],
    };
    assert_eq!(tasks.is_object(), pair.client == pair.upstream, "{capabilities}");
    if pair.client != pair.upstream {
        // What asks for a task, or says that one would be taken, does not arrive: the call is an ordinary one.
        let answer = make(&client, "alpha__task", "{\"a\":1}");
        assert_eq!(answer.raw(&["result", "structuredContent"]), Some("{\"a\":1}"), "{answer:?}");
        assert_eq!(alpha.calls("task")[0].raw(&["params", "task"]), None);
    }
    assert_eq!(alpha.violations(), Vec::<String>::new());
}

#[test]
fn who_does_not_take_tasks_is_told_so() {
    let (alpha, weir, _) = set_up(Side::Modern);
    let client = Client::new(weir.address, Side::Modern).unchecked();
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let answer = about(&client, method, "\"w1.x\"");
        assert_eq!((answer.status(), answer.code()), (400, -32021), "{answer:?}");
        let needed = answer.raw(&["error", "data", "requiredCapabilities"]).expect("what is needed");
        assert_eq!(needed, "{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}");
    }
    let params = "{\"notifications\":{\"taskIds\":[\"w1.x\"]}}";
    let answer = client.ask(Ask::new("subscriptions/listen").params(params));
    assert_eq!((answer.status(), answer.code()), (400, -32021), "{answer:?}");
    let early = Client::new(weir.address, Side::Legacy).revision("2025-06-18").opened();
    assert_eq!(about(&early, "tasks/get", "\"w1.x\"").code(), -32601, "an older revision has no tasks");
    assert_eq!(alpha.violations(), Vec::<String>::new());
}

#[test]
fn a_task_is_answered_and_its_result_comes_with_it() {
    let (alpha, _weir, client) = set_up(Side::Modern);
    let id = id_in(&make(&client, "alpha__task", "{\"n\":1.50}"));
    alpha.turn_task("t-1", "input_required");
    let asked = about(&client, "tasks/get", &id);
    assert_eq!(asked.raw(&["result", "inputRequests", "k", "method"]), Some("\"elicitation/create\""));
    let answers = "{\"k\":{\"action\":\"accept\",\"content\":{\"name\":\"é\"}}}";
    let params = format!("{{\"taskId\":{id},\"inputResponses\":{answers}}}");
    assert_eq!(client.ask(Ask::new("tasks/update").params(&params)).code(), 0);
    let seen =
        alpha.requests().into_iter().find(|request| request.method() == "tasks/update").expect("it arrives");
    assert_eq!(seen.raw(&["params", "inputResponses"]), Some(answers));
    let done = about(&client, "tasks/get", &id);
    assert_eq!(done.raw(&["result", "status"]), Some("\"completed\""));
    assert_eq!(done.raw(&["result", "result", "_meta", RELATED, "taskId"]), Some(id.as_str()));
    assert_eq!(alpha.violations(), Vec::<String>::new());
}

#[test]
fn a_tasks_question_and_its_answer_are_marked_with_each_ones_id() {
    let (alpha, _weir, client) = set_up(Side::Legacy);
    let id = id_in(&make(&client, "alpha__echo", "{\"ask\":\"who\"}"));
    let mark = format!("{{\"{RELATED}\":{{\"taskId\":{id}}}}}");
    let talk =
        client.converse_with(Ask::new("tasks/result").params(&format!("{{\"taskId\":{id}}}")), |asked| {
            assert_eq!(json::raw(&asked.params, &["_meta"]), Some(mark.as_str()));
            Reaction::Result(format!("{{\"action\":\"accept\",\"content\":{{}},\"_meta\":{mark}}}"))
        });
    assert_eq!(talk.asked.len(), 1);
    assert_eq!(
        talk.answer.raw(&["result", "_meta", RELATED, "taskId"]),
        Some(id.as_str()),
        "{:?}",
        talk.answer
    );
    let own = format!("\"_meta\":{{\"{RELATED}\":{{\"taskId\":\"t-1\"}}}}");
    assert!(talk.answer.said().contains(&own), "the upstream got its own id: {}", talk.answer.said());
    assert_eq!(alpha.violations(), Vec::<String>::new());
}

#[test]
fn settings_of_an_extension_pass_among_one_kind_only() {
    for pair in [Side::Legacy, Side::Modern].map(|client| Pair { client, upstream: Side::Modern }) {
        let alpha =
            Fake::modern().extension("io.modelcontextprotocol/ui", "{\"own\":1}").label("alpha").start();
        let weir = Proxy::before(&alpha).run();
        let declared =
            "{\"extensions\":{\"io.modelcontextprotocol/ui\":{\"mimeTypes\":[\"a/b\"]},\"x/y\":{}}}";
        let client = Client::new(weir.address, pair.client).capable(declared);
        let client = if pair.client == Side::Legacy { client.opened() } else { client };
        client.call("alpha__echo", "{}");
        let seen = alpha.calls("echo")[0].meta("io.modelcontextprotocol/clientCapabilities").map(json::value);
        let passed = &seen.expect("capabilities")["extensions"];
        let settings = if pair.client == Side::Modern { "{\"mimeTypes\":[\"a/b\"]}" } else { "{}" };
        assert_eq!(*passed, json::value(&format!("{{\"io.modelcontextprotocol/ui\":{settings}}}")));
        let announced = match pair.client {
            Side::Legacy => client.initialize().result(),
            Side::Modern => client.ask(Ask::new("server/discover")).result(),
        };
        let own = if pair.client == Side::Modern { "{\"own\":1}" } else { "{}" };
        let ui = &announced["capabilities"]["extensions"]["io.modelcontextprotocol/ui"];
        assert_eq!(*ui, json::value(own));
        let listed =
            alpha.requests().into_iter().find(|request| request.method() == "tools/list").expect("a list");
        let said = listed.meta("io.modelcontextprotocol/clientCapabilities").unwrap_or_default();
        assert!(
            said.contains("text/html;profile=mcp-app"),
            "the list is asked for with the extension: {said}"
        );
    }
}
