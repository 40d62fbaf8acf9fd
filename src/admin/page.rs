//! `/status`: the same as `/api/status` and `/api/tools`, for people. One page, without a script or anything from outside.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;

const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:75em;padding:0 1em;color:#1c2126;\
background:#fff}table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;\
padding:.3em .8em .3em 0;border-bottom:1px solid #d8dde2}th{font-weight:600;color:#56606a}h1{font-size:1.4em}\
h2{font-size:1.1em;margin-top:2em}code{font:13px ui-monospace,monospace;overflow-wrap:anywhere}\
.up{color:#176b35}.down,.error{color:#b3261e}.degraded,.connecting,.warning{color:#8a5a00}.faint{color:#56606a}\
@media(prefers-color-scheme:dark){body{background:#16191c;color:#e3e6e8}th,td{border-color:#33393f}\
th,.faint{color:#9aa4ad}.up{color:#6fd08c}.down,.error{color:#ff8a80}.degraded,.connecting,.warning{color:#f0c060}}";

/// The page.
pub(super) fn page(status: &Value, tools: &Value) -> String {
    let config = &status["config"];
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                title { "Weir" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "Weir " (text(&status["version"])) }
                p.faint {
                    "up for " (duration(status["uptime_s"].as_u64())) " · generation " (text(&status["generation"]))
                    " · catalog " code { (text(&status["catalog_hash"])) } " · " (text(&status["sessions"]))
                    " sessions · " (text(&status["streams"])) " streams · " (text(&status["calls_in_flight"]))
                    " calls in flight · " (text(&status["parked"])) " parked"
                }
                p { "Configuration " code { (config["path"].as_str().unwrap_or("built in")) } ", read " (text(&config["loaded_at"])) }
                (problems(&config["problems"]))
                h2 { "Upstreams" }
                (upstreams(&status["upstreams"]))
                h2 { "Tools" }
                (tool_table(tools))
                h2 { "Recent changes" }
                (changes(&status["changes"]))
            }
        }
    };
    markup.into_string()
}

fn problems(all: &Value) -> Markup {
    let all = all.as_array().map(Vec::as_slice).unwrap_or_default();
    let failed = all.iter().any(|problem| problem["severity"] == "error");
    html! {
        @if failed { p.error { "The file has errors: an older configuration is in force." } }
        @if !all.is_empty() {
            ul {
                @for problem in all {
                    li class=(text(&problem["severity"])) {
                        code { (text(&problem["path"])) @if let Some(line) = problem["line"].as_u64() { ":" (line) } }
                        " " (text(&problem["severity"])) ": " (text(&problem["message"]))
                    }
                }
            }
        }
    }
}

fn upstreams(all: &Value) -> Markup {
    html! {
        table {
            tr {
                @for head in ["Upstream", "State", "Since", "Speaks", "Tools", "Prompts", "Resources", "p50 / p99", "Last error"] {
                    th { (head) }
                }
            }
            @for upstream in all.as_array().into_iter().flatten() {
                tr {
                    td { (text(&upstream["name"])) " " span.faint { (text(&upstream["kind"])) } }
                    td class=(text(&upstream["state"])) { (text(&upstream["state"])) }
                    td { (text(&upstream["since"])) }
                    td { (text(&upstream["revision"])) }
                    td { (text(&upstream["tools"])) (left_out(&upstream["left_out"])) }
                    td { (text(&upstream["prompts"])) }
                    td { (text(&upstream["resources"])) }
                    td { (latency(&upstream["latency_ms"])) }
                    td { (last_error(upstream)) @for warning in upstream["warnings"].as_array().into_iter().flatten() { div.warning { (text(warning)) } } }
                }
            }
        }
    }
}

fn left_out(all: &Value) -> Markup {
    html! {
        @for item in all.as_array().into_iter().flatten() {
            div.warning { "left out: " code { (text(&item["name"])) } ": " (text(&item["reason"])) }
        }
    }
}

fn latency(of: &Value) -> String {
    match (of["p50"].as_f64(), of["p99"].as_f64()) {
        (Some(p50), Some(p99)) => format!("{p50} / {p99} ms"),
        _ => String::new(),
    }
}

fn last_error(upstream: &Value) -> Markup {
    let error = &upstream["last_error"];
    html! {
        @if let Some(reason) = error["reason"].as_str() { (reason) ", " (text(&error["at"])) }
        @if let Some(next) = upstream["next_try_at"].as_str() { div.faint { "next try " (next) } }
    }
}

fn tool_table(tools: &Value) -> Markup {
    html! {
        table {
            tr { th { "Tool" } th { "Upstream" } th { "Class" } th { "Description" } }
            @for tool in tools.as_array().into_iter().flatten() {
                tr {
                    td { code { (text(&tool["name"])) } }
                    td { (text(&tool["upstream"])) }
                    td { (text(&tool["class"])) }
                    td { (first_line(&tool["description"])) }
                }
            }
        }
    }
}

fn changes(all: &Value) -> Markup {
    html! {
        table {
            @for change in all.as_array().into_iter().flatten() {
                tr {
                    td { (text(&change["at"])) }
                    td { (text(&change["upstream"])) }
                    td { (text(&change["what"])) }
                }
            }
        }
    }
}

/// A value without quotes; nothing for none.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn first_line(value: &Value) -> String {
    let line = value.as_str().and_then(|text| text.lines().next()).unwrap_or_default();
    line.chars().take(200).collect()
}

fn duration(seconds: Option<u64>) -> String {
    let seconds = seconds.unwrap_or_default();
    match (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}
