//! `tasks/list` of a session: the upstreams are asked where it made tasks, and of what they say its own is given.

use std::collections::HashMap;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::{ID, Known, Pair, state};
use crate::exchange::{Answer, Call, Caller, Event, Reply, reply};
use crate::jsonrpc::{Object, Text};
use crate::names::UpstreamName;
use crate::protocol::Method;
use crate::relay::execute;
use crate::upstream::Link;

/// Most pages of one upstream.
const MOST_PAGES: usize = 32;

/// The list. An upstream that does not answer is left out, unless none does: then its failure is the answer.
pub(in crate::relay) fn listed(
    upstreams: Vec<(UpstreamName, Link)>,
    known: Vec<Known>,
    caller: Caller,
) -> Reply {
    reply(move |_emitter| async move {
        let mut tasks = Vec::new();
        let mut failure = None;
        let mut is_answered = upstreams.is_empty();
        for (upstream, link) in upstreams {
            let own: HashMap<&str, &Pair> = known
                .iter()
                .filter(|task| task.upstream == upstream)
                .map(|task| (task.ids.local.as_str(), &task.ids))
                .collect();
            match at(&link, &own, &caller).await {
                Ok(mut found) => {
                    is_answered = true;
                    tasks.append(&mut found);
                }
                Err(last) => failure = Some(last),
            }
        }
        match failure {
            Some(failure) if !is_answered => failure,
            Some(_) | None => Event::Result(result(&tasks)),
        }
    })
}

fn result(tasks: &[String]) -> Answer {
    let mut text = Text::object();
    text.member("tasks", &format!("[{}]", tasks.join(",")));
    Answer { result: Bytes::from(text.close()), stateless: false, shareable: false, free_output: false }
}

/// The session's tasks at one upstream, as they stand.
async fn at(link: &Link, own: &HashMap<&str, &Pair>, caller: &Caller) -> Result<Vec<String>, Event> {
    let mut found = Vec::new();
    let mut params = "{}".to_owned();
    for _ in 0..MOST_PAGES {
        let call = Call { repeatable: true, ..Call::plain(Method::TasksList, "", params, caller.clone()) };
        let answer = match execute::last(link.call(call)).await {
            Event::Result(answer) => answer,
            other => return Err(other),
        };
        let page = std::str::from_utf8(&answer.result).ok().and_then(Object::open).unwrap_or_default();
        let tasks: Vec<&RawValue> =
            page.get("tasks").and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default();
        found.extend(tasks.into_iter().filter_map(|task| {
            let task = Object::open(task.get())?;
            state(&task, own.get(task.text(ID)?.as_str())?)
        }));
        let Some(cursor) = page.get("nextCursor").filter(|raw| raw.starts_with('"')) else { break };
        let mut next = Text::object();
        next.member("cursor", cursor);
        params = next.close();
    }
    Ok(found)
}
