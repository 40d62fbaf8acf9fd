//! `weir explain`: which principal a token is, what it may see and call, and what decided.

use std::path::Path;
use std::sync::Arc;

use http::{HeaderMap, HeaderValue, header};
use jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};

use super::client::settle;
use super::print::{err, out, plain};
use super::{Exit, ExplainArguments};
use crate::app::Core;
use crate::auth::{Authenticator, on_route};
use crate::catalog::Snapshot;
use crate::config::{self, Route};
use crate::policy::Decision;
use crate::principal::{Principal, Rights, Scope};
use crate::protocol::ListKind;
use crate::view::{Explained, explain};

/// How often keys of issuers are looked for, and the pause between two looks.
const LOOKS: usize = 50;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(100);

/// Explains.
pub(super) async fn run(arguments: &ExplainArguments) -> Exit {
    let path = arguments.config.as_deref().unwrap_or(Path::new("routes.yaml"));
    let loaded = match config::load(path) {
        Ok(loaded) => loaded,
        Err(problems) => {
            err(problems.to_string().trim_end());
            return Exit::Unusable;
        }
    };
    let token = match arguments.token.read() {
        Ok(token) => token,
        Err(exit) => return exit,
    };
    let (core, snapshot) = match settle(loaded.config).await {
        Ok(connected) => connected,
        Err(exit) => return exit,
    };
    let exit = explained(arguments, token, &core, &snapshot).await;
    core.close().await;
    exit
}

async fn explained(
    arguments: &ExplainArguments,
    token: Option<SecretString>,
    core: &Core,
    snapshot: &Arc<Snapshot>,
) -> Exit {
    let routes = &snapshot.config.routes;
    let named = |name: &String| routes.iter().find(|route| route.name.as_str() == name);
    let Some(route) = arguments.route.as_ref().map_or_else(|| routes.first(), named) else {
        let names: Vec<&str> = routes.iter().map(|route| route.name.as_str()).collect();
        err(&format!("no such route; there are {}", names.join(", ")));
        return Exit::Unusable;
    };
    let authenticator = match Authenticator::new(&snapshot.config).and_then(|authenticator| {
        authenticator.keep_keys(core.tasks())?;
        Ok(authenticator)
    }) {
        Ok(authenticator) => authenticator,
        Err(why) => {
            err(&format!("weir: {why}"));
            return Exit::Failure;
        }
    };
    if arguments.matrix {
        return matrix(arguments, snapshot, route);
    }
    let principal = match recognised(&authenticator, token, route).await {
        Ok(principal) => principal,
        Err(text) => {
            err(&text);
            if arguments.json {
                out(&json!({ "principal": null, "items": [] }).to_string());
            }
            return Exit::Failure;
        }
    };
    let mut items = explain(snapshot, route, &principal.rights);
    if let Some(name) = &arguments.name {
        items.retain(|one| one.item.name == *name);
        if items.is_empty() {
            err(&format!("nothing is called {name} on the route {}", route.name));
            return Exit::Failure;
        }
    }
    if arguments.json {
        let rows: Vec<Value> = items.iter().map(row).collect();
        out(&json!({ "principal": who(&principal), "items": rows }).to_string());
    } else {
        text(&principal, &items);
    }
    Exit::Success
}

/// Who a token is; without one, who comes without a credential.
async fn recognised(
    authenticator: &Authenticator,
    token: Option<SecretString>,
    route: &Arc<Route>,
) -> Result<Principal, String> {
    let mut headers = HeaderMap::new();
    if let Some(token) = token {
        let value = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret()));
        headers.insert(header::AUTHORIZATION, value.map_err(|_why| "this is no token".to_owned())?);
        for _ in 0..LOOKS {
            if authenticator.issuers().iter().all(|(_, known)| *known) {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
    let found = authenticator.authenticate(&headers, route, Timestamp::now()).await;
    found.map_err(|refused| format!("refused: {} ({})", refused.event, refused.reason))
}

fn who(principal: &Principal) -> Value {
    let scopes: Vec<&str> = principal.scopes().map(Scope::as_str).collect();
    let groups: Vec<&str> = match &principal.rights {
        Rights::All => Vec::new(),
        Rights::Granted(grant) => grant.groups.iter().map(AsRef::as_ref).collect(),
    };
    json!({
        "issuer": &*principal.subject.issuer,
        "subject": &*principal.subject.subject,
        "scopes": scopes,
        "groups": groups,
    })
}

fn kind(one: &Explained) -> &'static str {
    match one.item.kind {
        ListKind::Tools => "tool",
        ListKind::Prompts => "prompt",
        ListKind::Resources => "resource",
        ListKind::Templates => "template",
    }
}

fn decision(one: &Explained) -> (&'static str, Vec<&str>) {
    match &one.decision {
        Decision::Allow => ("allow", Vec::new()),
        Decision::StepUp(scopes) => ("step_up", scopes.iter().map(Scope::as_str).collect()),
        Decision::Hide => ("hide", Vec::new()),
    }
}

fn row(one: &Explained) -> Value {
    let (word, missing) = decision(one);
    json!({
        "name": one.item.name,
        "upstream": one.item.upstream.as_str(),
        "kind": kind(one),
        "decision": word,
        "rule": one.by,
        "missing_scopes": missing,
    })
}

fn text(principal: &Principal, items: &[Explained]) {
    let scopes: Vec<&str> = principal.scopes().map(Scope::as_str).collect();
    let scopes = if scopes.is_empty() { "none".to_owned() } else { scopes.join(" ") };
    let subject = &principal.subject;
    out(&format!(
        "principal {} of {}, scopes: {}",
        plain(&subject.subject),
        plain(&subject.issuer),
        plain(&scopes)
    ));
    let width = items.iter().map(|one| one.item.name.chars().count()).max().unwrap_or_default();
    for one in items {
        let (word, missing) = decision(one);
        let missing =
            if missing.is_empty() { String::new() } else { format!(", needs {}", missing.join(" ")) };
        let (name, class) = (plain(&one.item.name), one.class);
        out(&format!("{name:width$}  {word:7}  {:8}  {class:11}  by {}{missing}", kind(one), one.by));
    }
}

/// Everybody whom the configuration names, and what each may call.
fn matrix(arguments: &ExplainArguments, snapshot: &Snapshot, route: &Arc<Route>) -> Exit {
    let callers = callers(snapshot, route);
    let tools: Vec<Vec<Explained>> = callers
        .iter()
        .map(|caller| {
            let mut all = explain(snapshot, route, &caller.rights);
            all.retain(|one| one.item.kind == ListKind::Tools);
            all
        })
        .collect();
    if arguments.json {
        let rows: Vec<Value> = callers
            .iter()
            .zip(&tools)
            .map(|(caller, items)| {
                json!({ "principal": who(caller), "items": items.iter().map(row).collect::<Vec<_>>() })
            })
            .collect();
        out(&json!({ "route": route.name.as_str(), "matrix": rows }).to_string());
        return Exit::Success;
    }
    let names: Vec<String> = callers.iter().map(|caller| plain(&caller.subject.subject)).collect();
    let first = tools.first().map_or(&[][..], Vec::as_slice);
    let width = first.iter().map(|one| one.item.name.chars().count()).max().unwrap_or_default();
    let columns: Vec<String> = names.iter().map(|name| format!("{name:9}")).collect();
    out(format!("{:width$}  {}", "", columns.join("  ")).trim_end());
    for (index, one) in first.iter().enumerate() {
        let cells: Vec<String> = tools
            .iter()
            .zip(&names)
            .map(|(items, name)| {
                let word = items.get(index).map_or("", |one| decision(one).0);
                format!("{word:0$}", name.chars().count().max(9))
            })
            .collect();
        out(format!("{:width$}  {}", plain(&one.item.name), cells.join("  ")).trim_end());
    }
    Exit::Success
}

/// The holders of static tokens, and callers without a credential where they are let in.
fn callers(snapshot: &Snapshot, route: &Arc<Route>) -> Vec<Principal> {
    let Some(guard) = snapshot.config.access.guard() else { return vec![Principal::open()] };
    let mut all: Vec<Principal> = Vec::new();
    for token in &guard.tokens {
        let principal = on_route(&token.principal, &route.policy);
        if !all.contains(&principal) {
            all.push(principal);
        }
    }
    let anybody = route.policy.anonymous.clone().map(Principal::anonymous);
    all.extend(anybody.map(|caller| on_route(&caller, &route.policy)));
    all
}
