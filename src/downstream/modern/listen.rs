//! `subscriptions/listen` (2026-07-28, basic/patterns/subscriptions).

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::{Response, StatusCode};
use serde_json::json;

use super::encode;
use crate::downstream::{Body, Inbound, Shared, render, until};
use crate::jsonrpc::{Id, Object, Text, request, response_result};
use crate::notify::{Changes, Subscriber, Subscription};
use crate::protocol::{code, encode_event, meta, notification};
use crate::relay::Seat;

/// Opens the stream: the acknowledgement first, at once; then what was asked for and agreed to; at the end, when
/// Weir ends it, the completion result.
pub(super) fn open(
    shared: &Arc<Shared>,
    inbound: &Inbound,
    seat: &Seat,
    id: &Id,
    params: &Object<'_>,
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
    let subscriber =
        Subscriber::new(Arc::clone(&seat.route), inbound.principal.rights.clone(), wanted, seat.view.hashes);
    let subscription = shared.hub.subscribe(subscriber);
    let acknowledged = encode_event(None, &acknowledgement(id, wanted));
    let changes = changes(Arc::clone(shared), subscription, id.clone(), inbound.principal.until);
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

/// `_meta` with the id of the listen request, same type.
fn subscription(id: &Id) -> String {
    let mut inner = Text::object();
    inner.member(meta::SUBSCRIPTION_ID, id.as_json());
    inner.close()
}

fn acknowledgement(id: &Id, agreed: Changes) -> String {
    let mut filter = serde_json::Map::new();
    let rows = [
        (agreed.tools, "toolsListChanged"),
        (agreed.prompts, "promptsListChanged"),
        (agreed.resources, "resourcesListChanged"),
    ];
    for (_, key) in rows.iter().filter(|(agreed, _)| *agreed) {
        filter.insert((*key).to_owned(), json!(true));
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

/// What happens on the stream after the acknowledgement.
fn changes(
    shared: Arc<Shared>,
    subscription: Subscription,
    id: Id,
    end: Option<i64>,
) -> impl futures_util::Stream<Item = Bytes> + Send + 'static {
    stream::unfold(Some((shared, subscription, id)), move |state| async move {
        let (shared, subscription, id) = state?;
        // Cancel-safe: both branches take nothing until they are ready.
        tokio::select! {
            () = shared.ending.cancelled() => Some((encode_event(None, &completion(&id)), None)),
            () = until(end) => Some((encode_event(None, &completion(&id)), None)),
            (changes, _) = subscription.changed() => {
                let messages: Vec<Bytes> =
                    changes.kinds().map(|kind| encode_event(None, &change(&id, kind.changed()))).collect();
                Some((Bytes::from(messages.concat()), Some((shared, subscription, id))))
            }
        }
    })
}
