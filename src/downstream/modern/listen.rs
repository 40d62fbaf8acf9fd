//! `subscriptions/listen` (2026-07-28, basic/patterns/subscriptions).

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, SelectAll};
use futures_util::{StreamExt as _, stream};
use http::{Response, StatusCode};
use serde_json::json;

use super::encode;
use crate::downstream::{Body, Footing, Inbound, Shared, render};
use crate::exchange::Failure;
use crate::jsonrpc::{Edit, Id, Object, Text, request, response_result};
use crate::notify::{Changes, Subscriber, Subscription};
use crate::protocol::{Abilities, Method, code, encode_event, meta, notification};
use crate::relay::{Seat, States, Updates};

/// Most resources of one stream, and most tasks.
const MOST_URIS: usize = 1000;

/// Opens the stream: the acknowledgement first, at once; then what was asked for and agreed to; at the end, when
/// Weir ends it, the completion result.
pub(super) fn open(
    shared: &Arc<Shared>,
    inbound: &Inbound,
    seat: &Seat,
    (id, params): (&Id, &Object<'_>),
    abilities: &Abilities,
) -> Response<Body> {
    let Some(filter) = params.object("notifications") else {
        return encode::error(
            id,
            StatusCode::OK,
            code::INVALID_PARAMS,
            "params.notifications must be an object",
        );
    };
    let wanted = wanted(&filter, seat);
    let watched = match watched(shared, inbound, seat, &filter) {
        Ok(watched) => watched,
        Err(text) => return encode::error(id, StatusCode::OK, code::INVALID_PARAMS, text),
    };
    let footing = Footing::new(shared, &inbound.principal, &seat.route);
    let followed = match task_ids(&filter) {
        Ok(ids) if ids.is_empty() => Vec::new(),
        Ok(_) if abilities.tasking().is_none() => {
            let lacking = Failure::NeedsAbilities(Abilities::of_tasks());
            return encode::failure(shared, inbound, (id, Method::Listen), &lacking);
        }
        Ok(ids) => shared.relay.follow(seat, &inbound.principal, (&ids, footing.seats())),
        Err(text) => return encode::error(id, StatusCode::OK, code::INVALID_PARAMS, text),
    };
    let subscriber =
        Subscriber::new(Arc::clone(&seat.route), inbound.principal.rights.clone(), wanted, seat.view.hashes);
    let subscription = shared.hub.subscribe(subscriber);
    let uris: Vec<&str> = watched.iter().map(|(uri, _)| uri.as_str()).collect();
    let tasks: Vec<&str> = followed.iter().flat_map(|(ids, _)| ids).map(String::as_str).collect();
    let acknowledged = encode_event(None, &acknowledgement(id, wanted, (&uris, &tasks)));
    let listening = Listening {
        subscription,
        updates: watched.into_iter().map(next_update).collect(),
        tasks: followed.into_iter().map(|(_, states)| states).collect(),
        id: id.clone(),
        shared: Arc::clone(shared),
        footing,
    };
    let changes = stream::unfold(Some(listening), Listening::next);
    render::events(render::with_comments(stream::iter([acknowledged]).chain(changes)))
}

/// The list kinds that were asked for and that this route serves.
fn wanted(filter: &Object<'_>, seat: &Seat) -> Changes {
    let asked = |key: &str| filter.get(key) == Some("true");
    let offer = &seat.view.offer;
    Changes {
        tools: asked("toolsListChanged") && offer.tools,
        prompts: asked("promptsListChanged") && offer.prompts,
        resources: asked("resourcesListChanged") && offer.resources,
    }
}

/// The resources that were asked for, as far as this caller can read them and their upstreams tell of updates.
fn watched(
    shared: &Shared,
    inbound: &Inbound,
    seat: &Seat,
    filter: &Object<'_>,
) -> Result<Vec<(String, Updates)>, &'static str> {
    let Some(raw) = filter.get("resourceSubscriptions").filter(|raw| *raw != "null") else {
        return Ok(Vec::new());
    };
    let uris: BTreeSet<String> =
        serde_json::from_str(raw).map_err(|_why| "resourceSubscriptions must be an array of strings")?;
    if uris.len() > MOST_URIS {
        return Err("at most 1000 resources can be listened to on one stream");
    }
    let caller = shared.caller(&inbound.principal, Abilities::default());
    let found = uris.into_iter().filter_map(|uri| {
        let watching = shared.relay.watch(seat, &uri, &caller).ok()?;
        Some((uri, watching))
    });
    Ok(found.collect())
}

/// The tasks that were asked for.
fn task_ids(filter: &Object<'_>) -> Result<Vec<String>, &'static str> {
    let Some(raw) = filter.get("taskIds").filter(|raw| *raw != "null") else { return Ok(Vec::new()) };
    let ids: BTreeSet<String> =
        serde_json::from_str(raw).map_err(|_why| "taskIds must be an array of strings")?;
    if ids.len() > MOST_URIS {
        return Err("at most 1000 tasks can be listened to on one stream");
    }
    Ok(ids.into_iter().collect())
}

/// `_meta` with the id of the listen request, same type.
fn subscription(id: &Id) -> String {
    let mut inner = Text::object();
    inner.member(meta::SUBSCRIPTION_ID, id.as_json());
    inner.close()
}

fn acknowledgement(id: &Id, agreed: Changes, (uris, tasks): (&[&str], &[&str])) -> String {
    let mut filter = serde_json::Map::new();
    let rows = [
        (agreed.tools, "toolsListChanged"),
        (agreed.prompts, "promptsListChanged"),
        (agreed.resources, "resourcesListChanged"),
    ];
    for (_, key) in rows.iter().filter(|(agreed, _)| *agreed) {
        filter.insert((*key).to_owned(), json!(true));
    }
    if !uris.is_empty() {
        filter.insert("resourceSubscriptions".to_owned(), json!(uris));
    }
    if !tasks.is_empty() {
        filter.insert("taskIds".to_owned(), json!(tasks));
    }
    let mut params = Text::object();
    params.member("_meta", &subscription(id));
    params.member("notifications", &serde_json::Value::Object(filter).to_string());
    request(None, notification::ACKNOWLEDGED, &params.close())
}

fn completion(id: &Id) -> String {
    let mut result = Text::object();
    result.text("resultType", "complete");
    result.member("_meta", &subscription(id));
    response_result(id, &result.close())
}

fn change(id: &Id, method: &str) -> String {
    let mut params = Text::object();
    params.member("_meta", &subscription(id));
    request(None, method, &params.close())
}

fn update(id: &Id, uri: &str) -> String {
    let mut params = Text::object();
    params.text("uri", uri);
    params.member("_meta", &subscription(id));
    request(None, notification::UPDATED, &params.close())
}

/// The state of a task, as a message of this stream.
fn state(id: &Id, params: &str) -> Option<String> {
    let params = Object::open(params)?;
    let inner = params.object("_meta").unwrap_or_default();
    let inner = Edit::new().set(meta::SUBSCRIPTION_ID, id.as_json()).apply(&inner);
    Some(request(None, notification::TASK, &Edit::new().set("_meta", inner).apply(&params)))
}

type Update = Pin<Box<dyn Future<Output = (String, Updates)> + Send>>;

/// Waits for the next update of one resource.
fn next_update((uri, mut watching): (String, Updates)) -> Update {
    Box::pin(async move {
        watching.next().await;
        (uri, watching)
    })
}

/// The stream after the acknowledgement.
struct Listening {
    shared: Arc<Shared>,
    subscription: Subscription,
    updates: FuturesUnordered<Update>,
    tasks: SelectAll<States>,
    id: Id,
    footing: Footing,
}

impl Listening {
    /// Waits for something to say; ends when Weir ends its streams, or the route or the token of the request ends.
    async fn next(this: Option<Self>) -> Option<(Bytes, Option<Self>)> {
        let mut this = this?;
        // Cancel-safe: no branch takes anything until it is ready.
        tokio::select! {
            turned = this.footing.turned() => match turned {
                Some(rights) => {
                    this.subscription.look_as(&rights);
                    Some((Bytes::new(), Some(this)))
                }
                None => Some((this.end(), None)),
            },
            (changes, _) = this.subscription.changed() => {
                let messages: Vec<Bytes> =
                    changes.kinds().map(|kind| encode_event(None, &change(&this.id, kind.changed()))).collect();
                Some((Bytes::from(messages.concat()), Some(this)))
            }
            Some((uri, watching)) = this.updates.next() => {
                let (seat, principal) = this.footing.seat();
                // Told as long as it may be read.
                let message = if this.shared.relay.may_hear_of(&seat, &uri, &principal) {
                    encode_event(None, &update(&this.id, &uri))
                } else {
                    Bytes::new()
                };
                this.updates.push(next_update((uri, watching)));
                Some((message, Some(this)))
            }
            Some(params) = this.tasks.next() => {
                let message = state(&this.id, &params).map_or_else(Bytes::new, |text| encode_event(None, &text));
                Some((message, Some(this)))
            }
        }
    }

    fn end(&self) -> Bytes {
        encode_event(None, &completion(&self.id))
    }
}
