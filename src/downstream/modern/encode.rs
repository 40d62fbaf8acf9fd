//! Answers in the words of 2026-07-28. The one place that turns a failure into bytes for modern clients.

use bytes::Bytes;
use futures_util::stream;
use http::{Response, StatusCode, header};
use serde_json::{Value, json};

use crate::downstream::accept::Accepts;
use crate::downstream::{Body, Inbound, Shared, internal_error, render};
use crate::exchange::{Answer, Event, Failure};
use crate::jsonrpc::{
    Edit, Id, Object, RpcError, Text, mentioning, request, response_error, response_result,
};
use crate::protocol::{Method, Revision, code, encode_event, meta, notification};
use crate::relay::{Listing, Seat};

use super::parking::Parked;
use super::rounds::{Outcome, Round};

/// The `_meta` of an answer that Weir writes itself.
fn own_meta(missing: Option<&str>) -> String {
    let mut text = Text::object();
    text.member(meta::SERVER_INFO, &render::server_info());
    if let Some(missing) = missing {
        text.member(meta::WEIR_MISSING, missing);
    }
    text.close()
}

fn cache_hints(text: &mut Text, seat: &Seat) {
    text.member("ttlMs", &seat.view.ttl_ms.to_string());
    text.text("cacheScope", if seat.view.public { "public" } else { "private" });
}

/// `server/discover` (2026-07-28, server/discover).
pub(super) fn discover(id: &Id, seat: &Seat, accepts: Accepts) -> Response<Body> {
    let mut text = Text::object();
    text.text("resultType", "complete");
    text.member("supportedVersions", &json!([Revision::NEWEST.as_str()]).to_string());
    text.member("capabilities", &seat.view.announced.to_stateless);
    if let Some(instructions) = &seat.view.instructions {
        text.text("instructions", instructions);
    }
    cache_hints(&mut text, seat);
    text.member("_meta", &own_meta(seat.view.missing.as_deref()));
    result(id, &text.close(), accepts)
}

/// One page of a list. The items are not copied.
pub(super) fn listing(id: &Id, seat: &Seat, listing: Listing, accepts: Accepts) -> Response<Body> {
    let mut tail = Text::object();
    if let Some(next) = &listing.next {
        tail.text("nextCursor", next);
    }
    tail.text("resultType", "complete");
    cache_hints(&mut tail, seat);
    tail.member("_meta", &own_meta(seat.view.missing.as_deref()));
    let tail = tail.close();
    let tail = tail.strip_prefix('{').unwrap_or_default();
    let head = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"{}":["#, id.as_json(), listing.kind.member());
    let pieces = vec![Bytes::from(head), listing.items, Bytes::from(format!("],{tail}}}"))];
    render::json_or_event(pieces, accepts)
}

/// A JSON-RPC error of Weir's own.
pub(super) fn error(id: &Id, status: StatusCode, code: i64, text: &str) -> Response<Body> {
    let own = RpcError::own(code, text, None);
    render::json(status, response_error(Some(id), own.raw.get()))
}

/// A request that HTTP itself refuses.
pub(super) fn refused(id: &Id, status: StatusCode, text: &str) -> Response<Body> {
    error(id, status, code::INVALID_REQUEST, text)
}

/// 404 and -32601 (2026-07-28, transports/streamable-http, "Protocol Version Header").
pub(super) fn unknown_method(id: &Id, method: &str) -> Response<Body> {
    let name: String = method.chars().take(128).collect();
    error(id, StatusCode::NOT_FOUND, code::METHOD_NOT_FOUND, &format!("Unknown method: {name}"))
}

/// -32022 with what Weir speaks to modern clients.
pub(super) fn unsupported(id: &Id, requested: &str) -> Response<Body> {
    let requested: String = requested.chars().take(128).collect();
    let data = json!({ "requested": requested, "supported": [Revision::NEWEST.as_str()] });
    let own = RpcError::own(code::UNSUPPORTED_REVISION, "Unsupported protocol version", Some(data));
    render::json(StatusCode::BAD_REQUEST, response_error(Some(id), own.raw.get()))
}

/// The HTTP status that 2026-07-28 fixes for a code.
fn status_of(code: i64) -> StatusCode {
    match code {
        code::HEADER_MISMATCH | code::MISSING_CAPABILITY | code::UNSUPPORTED_REVISION => {
            StatusCode::BAD_REQUEST
        }
        code::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}

/// An upstream's error, as far as it may pass as it is: -32002 became -32602 in this revision.
fn passed(error: &RpcError) -> RpcError {
    let replaced = match error.code {
        code::LEGACY_RESOURCE_NOT_FOUND => code::INVALID_PARAMS,
        code::LEGACY_URL_ELICITATION => code::INTERNAL,
        _ => return error.clone(),
    };
    let raw = Object::open(error.raw.get())
        .map(|object| Edit::new().set("code", replaced.to_string()).apply(&object))
        .and_then(|text| serde_json::value::RawValue::from_string(text).ok());
    raw.map_or_else(
        || RpcError::own(replaced, &error.message(), None),
        |raw| RpcError { code: replaced, raw },
    )
}

/// A failure as a JSON-RPC error object, or as a tool result where the contract wants that.
fn failed(failure: &Failure, tool: bool) -> Result<String, RpcError> {
    let text = failure.text();
    match failure {
        Failure::Upstream(_) if tool => Ok(json!({
            "resultType": "complete",
            "content": [{ "type": "text", "text": text }],
            "isError": true,
            "_meta": { meta::SERVER_INFO: { "name": "weir", "version": env!("CARGO_PKG_VERSION") } },
        })
        .to_string()),
        Failure::Upstream(lost) => {
            let data = json!({
                "upstream": lost.upstream.as_str(),
                "reason": lost.reason.label(),
                "retryable": failure.retry(),
            });
            Err(RpcError::own(code::INTERNAL, &text, Some(data)))
        }
        Failure::Unknown { kind, name } => {
            Err(RpcError::own(code::INVALID_PARAMS, &text, unknown_data(*kind, name)))
        }
        Failure::InvalidParams(_) => Err(RpcError::own(code::INVALID_PARAMS, &text, None)),
        Failure::HeaderMismatch(_) => Err(RpcError::own(code::HEADER_MISMATCH, &text, None)),
        Failure::NeedsScopes(_) => Err(RpcError::own(code::FORBIDDEN, &text, None)),
        Failure::NeedsAbilities(needed) => {
            let needed = serde_json::from_str(&needed.to_json()).unwrap_or(Value::Null);
            let data = json!({ "requiredCapabilities": needed });
            Err(RpcError::own(code::MISSING_CAPABILITY, &text, Some(data)))
        }
        Failure::NotOffered(_) => Err(RpcError::own(code::METHOD_NOT_FOUND, &text, None)),
        Failure::Refused(_) => Err(RpcError::own(code::INTERNAL, &text, None)),
        Failure::Unrecorded => Err(RpcError::own(code::UNAVAILABLE, &text, None)),
        Failure::Internal => Err(internal_error(&text)),
    }
}

fn unknown_data(kind: crate::protocol::ListKind, name: &str) -> Option<Value> {
    use crate::protocol::ListKind;
    match kind {
        ListKind::Tools | ListKind::Prompts => None,
        ListKind::Resources | ListKind::Templates => Some(json!({ "uri": name })),
    }
}

/// A failure as a whole response.
pub(super) fn failure(
    shared: &Shared,
    request: &Inbound,
    (id, method): (&Id, Method),
    failure: &Failure,
) -> Response<Body> {
    let error = match failed(failure, method == Method::ToolsCall) {
        Ok(result) => return render::json(StatusCode::OK, response_result(id, &result)),
        Err(error) => error,
    };
    let text = response_error(Some(id), error.raw.get());
    match failure {
        Failure::NeedsScopes(scopes) => {
            let challenge = shared.authenticators.newest().insufficient_scope(scopes, &request.route.path);
            let response = render::json(StatusCode::FORBIDDEN, text);
            render::with_header(response, header::WWW_AUTHENTICATE, &challenge)
        }
        Failure::Unrecorded => {
            let response = render::json(StatusCode::SERVICE_UNAVAILABLE, text);
            render::with_header(response, header::RETRY_AFTER, render::RETRY_AFTER)
        }
        Failure::Internal => render::json(StatusCode::INTERNAL_SERVER_ERROR, text),
        Failure::Upstream(_)
        | Failure::Unknown { .. }
        | Failure::InvalidParams(_)
        | Failure::HeaderMismatch(_)
        | Failure::Refused(_)
        | Failure::NeedsAbilities(_)
        | Failure::NotOffered(_) => render::json(status_of(error.code), text),
    }
}

/// The last event of an attempt as a whole response.
pub(super) fn response(request: &Inbound, round: &Round, event: Event) -> Response<Body> {
    let id = &round.id;
    match event {
        Event::Result(answer) => render::pieces(StatusCode::OK, result_pieces(id, round.method, &answer)),
        Event::Error(error) => {
            let error = passed(&error);
            render::json(status_of(error.code), response_error(Some(id), error.raw.get()))
        }
        Event::Failed(why) => failure(&round.shared, request, (id, round.method), &why),
        Event::Progress(_)
        | Event::Log(..)
        | Event::Paused(_)
        | Event::Task(_)
        | Event::Inquiry(_)
        | Event::Asks(_) => render::empty(StatusCode::ACCEPTED),
    }
}

/// A raw result as a whole response.
pub(super) fn result(id: &Id, result: &str, accepts: Accepts) -> Response<Body> {
    render::json_or_event(vec![Bytes::from(response_result(id, result))], accepts)
}

/// A result with its envelope, without copying it. A result of the legacy era gets `resultType` in front.
fn result_pieces(id: &Id, method: Method, answer: &Answer) -> Vec<Bytes> {
    let head = format!(r#"{{"jsonrpc":"2.0","id":{},"result":"#, id.as_json());
    let mut pieces = vec![Bytes::from(head)];
    pieces.extend(typed(method, answer));
    pieces.push(Bytes::from_static(b"}"));
    pieces
}

/// A read that must not be shared, whatever its upstream says.
fn private(result: &str) -> String {
    let Some(object) = Object::open(result) else { return result.to_owned() };
    let mut edit = Edit::new().set("cacheScope", "\"private\"");
    for (key, value) in [("resultType", "\"complete\""), ("ttlMs", "0")] {
        if object.get(key).is_none() {
            edit = edit.first(key, value);
        }
    }
    edit.apply(&object)
}

/// The result with the members that this revision demands and its upstream did not write. Reads get the hints that
/// keep them out of every cache (2026-07-28, server/utilities/caching).
fn typed(method: Method, answer: &Answer) -> Vec<Bytes> {
    let untouched = vec![answer.result.clone()];
    let reads = method == Method::ResourcesRead;
    if answer.stateless && !reads {
        return untouched;
    }
    let Some(open) = answer.result.iter().position(|byte| *byte == b'{') else { return untouched };
    let has = |key: &str| {
        let result = mentioning(&answer.result, key).and_then(Object::reopen);
        result.is_some_and(|object| object.get(key).is_some())
    };
    let wanted = [
        ("resultType", r#""resultType":"complete""#, true),
        ("ttlMs", r#""ttlMs":0"#, reads),
        ("cacheScope", r#""cacheScope":"private""#, reads),
    ];
    let is_private = reads && !answer.shareable;
    if let Some(result) = is_private.then(|| mentioning(&answer.result, "public")).flatten() {
        return vec![Bytes::from(private(result))];
    }
    let mut first = String::from("{");
    for (key, member, _) in wanted.iter().filter(|(_, _, wanted)| *wanted) {
        if has(key) {
            continue;
        }
        if first.len() > 1 {
            first.push(',');
        }
        first.push_str(member);
    }
    let inner = answer.result.slice(open + 1..);
    let more = inner.iter().find(|byte| !byte.is_ascii_whitespace()).is_some_and(|byte| *byte != b'}');
    if more && first.len() > 1 {
        first.push(',');
    }
    vec![Bytes::from(first), inner]
}

/// The event stream of an attempt: what came first, then the rest, with comments in the silences. The call lives in
/// the body, so a client that closes it cancels the call, unless it is parked by then.
pub(super) fn stream(round: Round, first: Option<Outcome>, call: Option<Parked>) -> Response<Body> {
    let rest = stream::unfold(Some((round, first, call)), |state| async move {
        let (round, first, mut slot) = state?;
        let outcome = match first {
            Some(outcome) => outcome,
            None => round.next(&mut slot).await,
        };
        let (text, ends) = match outcome {
            Outcome::Message(event) => (message(&round, event), false),
            Outcome::Last(event) => (message(&round, event), true),
            Outcome::Asked(result) => (Some(response_result(&round.id, &result)), true),
        };
        let event = text.map_or_else(Bytes::new, |text| encode_event(None, &text));
        Some((event, (!ends).then_some((round, None, slot))))
    });
    render::events(render::with_comments(rest))
}

/// One event as a message of the stream.
fn message(round: &Round, event: Event) -> Option<String> {
    let id = &round.id;
    let text = match event {
        Event::Progress(params) => request(None, notification::PROGRESS, &params),
        Event::Log(_, params) => request(None, notification::MESSAGE, &params),
        Event::Paused(_) | Event::Task(_) | Event::Inquiry(_) | Event::Asks(_) => return None,
        Event::Result(answer) => {
            let pieces = result_pieces(id, round.method, &answer).concat();
            String::from_utf8_lossy(&pieces).into_owned()
        }
        Event::Error(error) => response_error(Some(id), passed(&error).raw.get()),
        Event::Failed(failure) => match failed(&failure, round.method == Method::ToolsCall) {
            Ok(result) => response_result(id, &result),
            Err(error) => response_error(Some(id), error.raw.get()),
        },
    };
    Some(text)
}
