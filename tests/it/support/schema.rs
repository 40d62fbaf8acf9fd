//! Every message that a test's client receives is held against the official schema of its revision.
//!
//! The schemas stand beside the repository (`../shared/spec/schema/REVISION/schema.json`); where they are missing
//! nothing is checked. A message that does not fit fails the test that received it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use jsonschema::Validator;
use serde_json::{Value, json};

type Cache = HashMap<(String, String), Option<Arc<Validator>>>;

static COMPILED: LazyLock<Mutex<Cache>> = LazyLock::new(Mutex::default);

/// Holds one message against the schema of `revision`. `method` is the request that it may answer.
pub(crate) fn check(revision: &str, method: &str, message: &str) {
    let Ok(value) = serde_json::from_str::<Value>(message) else {
        panic!("not JSON, as the answer to {method}: {message}");
    };
    assert_eq!(value["jsonrpc"], "2.0", "answer to {method}: {message}");
    if let Some(told) = value["method"].as_str() {
        against(revision, notification(told), &value, message);
    } else if let Some(result) = value.get("result") {
        assert!(value["id"].is_string() || value["id"].is_number(), "a result without an id: {message}");
        against(revision, &kind_of_result(method, result), result, message);
    } else {
        let error = &value["error"];
        assert!(
            error["code"].is_i64() && error["message"].is_string(),
            "neither result nor error: {message}"
        );
    }
}

fn kind_of_result(method: &str, result: &Value) -> String {
    if result["resultType"] == "input_required" {
        return "InputRequiredResult".to_owned();
    }
    let kind = match method {
        "initialize" => "InitializeResult",
        "server/discover" => "DiscoverResult",
        "tools/list" => "ListToolsResult",
        "tools/call" => "CallToolResult",
        "prompts/list" => "ListPromptsResult",
        "prompts/get" => "GetPromptResult",
        "resources/list" => "ListResourcesResult",
        "resources/templates/list" => "ListResourceTemplatesResult",
        "resources/read" => "ReadResourceResult",
        "completion/complete" => "CompleteResult",
        "subscriptions/listen" => "SubscriptionsListenResult",
        _ => "Result",
    };
    kind.to_owned()
}

fn notification(method: &str) -> &'static str {
    match method {
        "notifications/progress" => "ProgressNotification",
        "notifications/message" => "LoggingMessageNotification",
        "notifications/cancelled" => "CancelledNotification",
        "notifications/tools/list_changed" => "ToolListChangedNotification",
        "notifications/prompts/list_changed" => "PromptListChangedNotification",
        "notifications/resources/list_changed" => "ResourceListChangedNotification",
        "notifications/resources/updated" => "ResourceUpdatedNotification",
        "notifications/subscriptions/acknowledged" => "SubscriptionsAcknowledgedNotification",
        "notifications/elicitation/complete" => "ElicitationCompleteNotification",
        "elicitation/create" => "ElicitRequest",
        "sampling/createMessage" => "CreateMessageRequest",
        "roots/list" => "ListRootsRequest",
        "ping" => "PingRequest",
        other => panic!("no revision has a message {other} towards clients"),
    }
}

fn against(revision: &str, kind: &str, value: &Value, message: &str) {
    let Some(validator) = compiled(revision, kind) else { return };
    let faults: Vec<String> =
        validator.iter_errors(value).map(|fault| format!("{} at {}", fault, fault.instance_path())).collect();
    assert!(faults.is_empty(), "not a {kind} of {revision}: {faults:?}\n{message}");
}

fn compiled(revision: &str, kind: &str) -> Option<Arc<Validator>> {
    let mut cache = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (revision.to_owned(), kind.to_owned());
    cache.entry(key).or_insert_with(|| compile(revision, kind).map(Arc::new)).clone()
}

fn compile(revision: &str, kind: &str) -> Option<Validator> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let beside = ["..", "../.."].iter().map(|up| root.join(up).join("shared/spec/schema").join(revision));
    let text = beside.filter_map(|folder| std::fs::read_to_string(folder.join("schema.json")).ok()).next()?;
    let schema: Value = serde_json::from_str(&text).expect("the official schema is JSON");
    let place = if schema.get("$defs").is_some() { "$defs" } else { "definitions" };
    assert!(
        schema[place].get(kind).is_some(),
        "{revision} has no {kind}, so it may not be sent to its clients"
    );
    let pointed = json!({
        "$schema": schema["$schema"], "$ref": format!("#/{place}/{kind}"), place: schema[place],
    });
    let built = jsonschema::options().should_validate_formats(false).build(&pointed);
    Some(built.expect("the official schema compiles"))
}
