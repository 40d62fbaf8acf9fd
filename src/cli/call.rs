//! `weir call`.

use std::path::Path;

use futures_util::StreamExt as _;
use serde_json::value::RawValue;

use super::client::connect;
use super::print::{err, out, plain};
use super::{CallArguments, Exit};
use crate::config;
use crate::exchange::{Call, Caller, Event, Failure, Reply};
use crate::jsonrpc::{Id, Object, Text, response_error, response_result};
use crate::principal::Principal;
use crate::protocol::Method;

const DEFAULT_URL: &str = "http://127.0.0.1:8080/mcp";

/// Calls a tool and prints its result.
pub(super) async fn run(arguments: &CallArguments) -> Exit {
    let params = match params(arguments) {
        Ok(params) => params,
        Err(text) => {
            err(&text);
            return Exit::Unusable;
        }
    };
    let token = match arguments.token.read() {
        Ok(token) => token,
        Err(exit) => return exit,
    };
    let url = arguments.url.clone().unwrap_or_else(own_url);
    let (core, snapshot) = match connect(&url, token).await {
        Ok(connected) => connected,
        Err(exit) => return exit,
    };
    let Some(route) = snapshot.config.routes.first().cloned() else { return Exit::Failure };
    let principal = Principal::open();
    let seat = core.relay.seat(snapshot, route, &principal);
    let call = Call {
        progress_token: Some("1".to_owned()),
        ..Call::plain(Method::ToolsCall, &arguments.name, params, Caller::local(principal))
    };
    let last = last_event(core.relay.call(&seat, call)).await;
    let exit = if arguments.json { whole(last) } else { print(last) };
    core.close().await;
    exit
}

fn params(arguments: &CallArguments) -> Result<String, String> {
    let mut params = Text::object();
    params.text("name", &arguments.name);
    if let Some(text) = &arguments.arguments {
        let raw: Box<RawValue> =
            serde_json::from_str(text).map_err(|error| format!("the arguments are not JSON: {error}"))?;
        if Object::open(raw.get()).is_none() {
            return Err("the arguments must be a JSON object whose keys occur once".to_owned());
        }
        params.member("arguments", raw.get());
    } else {
        params.member("arguments", "{}");
    }
    Ok(params.close())
}

/// The listener and first route of `./routes.yaml`, else the default address.
fn own_url() -> String {
    let path = Path::new("routes.yaml");
    let loaded = path.exists().then(|| config::load(path).ok()).flatten();
    let address = loaded.and_then(|loaded| {
        let mut address = loaded.config.listen.address;
        if address.ip().is_unspecified() {
            address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
        }
        let route = loaded.config.routes.first()?;
        Some(format!("http://{address}{}", route.path))
    });
    address.unwrap_or_else(|| DEFAULT_URL.to_owned())
}

async fn last_event(mut reply: Reply) -> Option<Event> {
    while let Some(event) = reply.next().await {
        match event {
            Event::Progress(params) => progress(&params),
            Event::Log(..) | Event::Paused(_) | Event::Task(_) | Event::Inquiry(_) => {}
            last @ (Event::Asks(_) | Event::Result(_) | Event::Error(_) | Event::Failed(_)) => {
                return Some(last);
            }
        }
    }
    None
}

fn progress(params: &str) {
    let Some(params) = Object::open(params) else { return };
    let number = |key: &str| params.get(key).unwrap_or("?").to_owned();
    let message = params.text("message").unwrap_or_default();
    err(&format!("progress {}/{} {}", number("progress"), number("total"), plain(&message)));
}

fn whole(last: Option<Event>) -> Exit {
    let id = Id::own(1);
    match last {
        Some(Event::Result(answer)) => {
            let text = String::from_utf8_lossy(&answer.result).into_owned();
            out(&response_result(&id, &text));
            if is_error(&text) { Exit::Failure } else { Exit::Success }
        }
        Some(Event::Error(error)) => {
            err("JSON-RPC error");
            out(&response_error(Some(&id), error.raw.get()));
            Exit::Failure
        }
        other => print(other),
    }
}

fn is_error(result: &str) -> bool {
    Object::open(result).is_some_and(|result| result.get("isError") == Some("true"))
}

fn print(last: Option<Event>) -> Exit {
    match last {
        Some(Event::Result(answer)) => {
            let text = String::from_utf8_lossy(&answer.result).into_owned();
            let failed = is_error(&text);
            if failed {
                err("isError: the tool says that it failed");
            }
            out(&readable(&text));
            if failed { Exit::Failure } else { Exit::Success }
        }
        Some(Event::Error(error)) => {
            err(&format!("JSON-RPC error {}: {}", error.code, plain(&error.message())));
            Exit::Failure
        }
        Some(Event::Failed(failure @ Failure::Unknown { .. })) => {
            err(&format!("{}; \"weir list --url\" shows what this token may call", failure.text()));
            Exit::Failure
        }
        Some(Event::Failed(failure)) => {
            err(&format!("{}: {}", failure.label(), failure.text()));
            Exit::Failure
        }
        Some(Event::Asks(_)) => {
            err("the tool asks something that cannot be answered here");
            Exit::Failure
        }
        Some(Event::Progress(_) | Event::Log(..) | Event::Paused(_) | Event::Task(_) | Event::Inquiry(_))
        | None => {
            err("no answer");
            Exit::Failure
        }
    }
}

/// Text blocks as they are, other blocks as a line of JSON; without text, the structured content.
fn readable(result: &str) -> String {
    let result = Object::open(result).unwrap_or_default();
    let content: Vec<&RawValue> =
        result.get("content").and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default();
    let texts = content.iter().filter_map(|block| {
        let block = Object::open(block.get())?;
        (block.text("type").as_deref() == Some("text")).then(|| block.text("text")).flatten()
    });
    match (texts.count(), result.get("structuredContent")) {
        (0, Some(structured)) => structured.to_owned(),
        _ => content.iter().map(|block| line(block.get())).collect::<Vec<String>>().join("\n"),
    }
}

fn line(block: &str) -> String {
    Object::open(block)
        .filter(|object| object.text("type").as_deref() == Some("text"))
        .and_then(|object| object.text("text"))
        .unwrap_or_else(|| block.to_owned())
}
