//! Answers in the words of the legacy revisions. The one place that turns a failure into bytes for legacy clients.

use bytes::Bytes;
use http::{Response, StatusCode, header};
use serde_json::{Value, json};

use super::line::{Ending, Sent};
use crate::downstream::accept::Accepts;
use crate::downstream::{Body, Inbound, Shared, internal_error, render};
use crate::exchange::{Answer, Event, Failure};
use crate::jsonrpc::{Edit, Id, Object, RpcError, Text, quoted, request, response_error, response_result};
use crate::protocol::{ListKind, Question, Revision, code, meta, notification};
use crate::relay::{Listing, Seat};

/// A result of Weir's own.
pub(super) fn result(id: &Id, result: &str, accepts: Accepts) -> Response<Body> {
    render::json_or_event(vec![Bytes::from(response_result(id, result))], accepts)
}

/// The answer to `initialize` (2025-11-25, basic/lifecycle).
pub(super) fn initialized(id: &Id, revision: Revision, seat: &Seat, accepts: Accepts) -> Response<Body> {
    let mut text = Text::object();
    text.text("protocolVersion", revision.as_str());
    text.member("capabilities", &seat.view.announced.to_sessions);
    text.member("serverInfo", &render::server_info());
    if let Some(instructions) = &seat.view.instructions {
        text.text("instructions", instructions);
    }
    result(id, &text.close(), accepts)
}

/// One page of a list. The items are not copied.
pub(super) fn listing(id: &Id, seat: &Seat, listing: Listing, accepts: Accepts) -> Response<Body> {
    let head = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"{}":["#, id.as_json(), listing.kind.member());
    let mut tail = String::from("]");
    if let Some(next) = &listing.next {
        tail.push_str(&format!(",\"nextCursor\":{}", Value::from(next.as_str())));
    }
    if let Some(missing) = &seat.view.missing {
        tail.push_str(&format!(",\"_meta\":{{\"{}\":{missing}}}", meta::WEIR_MISSING));
    }
    tail.push_str("}}");
    render::json_or_event(vec![Bytes::from(head), listing.items, Bytes::from(tail)], accepts)
}

fn error(status: StatusCode, id: Option<&Id>, code: i64, text: &str) -> Response<Body> {
    let own = RpcError::own(code, text, None);
    render::json(status, response_error(id, own.raw.get()))
}

/// A request that HTTP itself refuses.
pub(super) fn refused(status: StatusCode, text: &str) -> Response<Body> {
    error(status, None, code::INVALID_REQUEST, text)
}

/// 404: whatever the reason is.
pub(super) fn no_such_session() -> Response<Body> {
    refused(StatusCode::NOT_FOUND, "no such session: send initialize again")
}

/// -32602.
pub(super) fn invalid_params(id: &Id, status: StatusCode, text: &str) -> Response<Body> {
    error(status, Some(id), code::INVALID_PARAMS, text)
}

/// -32601 with HTTP 200.
pub(super) fn unknown_method(id: &Id, method: &str) -> Response<Body> {
    let name: String = method.chars().take(128).collect();
    error(StatusCode::OK, Some(id), code::METHOD_NOT_FOUND, &format!("Unknown method: {name}"))
}

/// As many sessions as there may be.
pub(super) fn busy(id: &Id, status: StatusCode) -> Response<Body> {
    let code = if status == StatusCode::TOO_MANY_REQUESTS { code::TOO_MANY } else { code::UNAVAILABLE };
    let response = error(status, Some(id), code, "too many sessions; end one, or try again later");
    render::with_header(response, header::RETRY_AFTER, "10")
}

/// A failure that is known before a call begins.
pub(super) fn failure(
    shared: &Shared,
    inbound: &Inbound,
    (id, tool): (&Id, bool),
    failure: &Failure,
) -> Response<Body> {
    let encoder = Encoder { shared, revision: Revision::NEWEST_LEGACY, path: &inbound.route.path };
    let (pieces, ending) = encoder.failed(id, failure, tool);
    whole(Sent { number: 0, pieces, ending: Some(ending) })
}

/// The last message as a whole response.
pub(super) fn whole(last: Sent) -> Response<Body> {
    let ending = last.ending.unwrap_or(Ending { status: StatusCode::OK, challenge: None });
    let mut response = render::pieces(ending.status, last.pieces);
    if ending.status == StatusCode::SERVICE_UNAVAILABLE {
        response = render::with_header(response, header::RETRY_AFTER, render::RETRY_AFTER);
    }
    match ending.challenge {
        Some(challenge) => render::with_header(response, header::WWW_AUTHENTICATE, &challenge),
        None => response,
    }
}

/// Writes the events of a call.
pub(super) struct Encoder<'e> {
    pub(super) shared: &'e Shared,
    pub(super) revision: Revision,
    pub(super) path: &'e str,
}

const DONE: Ending = Ending { status: StatusCode::OK, challenge: None };

impl Encoder<'_> {
    /// One event as a message; `None` for those that are no message.
    pub(super) fn message(&self, id: &Id, event: Event, tool: bool) -> Option<(Vec<Bytes>, Option<Ending>)> {
        match event {
            Event::Progress(params) => Some((one(request(None, notification::PROGRESS, &params)), None)),
            Event::Log(_, params) => Some((one(request(None, notification::MESSAGE, &params)), None)),
            Event::Task(params) => Some((one(request(None, notification::TASK_STATUS, &params)), None)),
            Event::Paused(_) | Event::Inquiry(_) => None,
            Event::Asks(_) => {
                let (pieces, ending) = self.failed(id, &Failure::Internal, tool);
                Some((pieces, Some(ending)))
            }
            Event::Result(answer) => Some((self.result(id, &answer), Some(DONE))),
            Event::Error(error) => Some((one(passed(id, &error, tool)), Some(DONE))),
            Event::Failed(failure) => {
                let (pieces, ending) = self.failed(id, &failure, tool);
                Some((pieces, Some(ending)))
            }
        }
    }

    fn result(&self, id: &Id, answer: &Answer) -> Vec<Bytes> {
        let head = Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{},"result":"#, id.as_json()));
        let knows_objects_only = self.revision >= Revision::V2025_06_18;
        let mended =
            (answer.free_output && knows_objects_only).then(|| object_content(&answer.result)).flatten();
        let result = mended.map_or_else(|| answer.result.clone(), Bytes::from);
        vec![head, result, Bytes::from_static(b"}")]
    }

    /// A failure as a message (design contract, section 6).
    fn failed(&self, id: &Id, failure: &Failure, tool: bool) -> (Vec<Bytes>, Ending) {
        let text = failure.text();
        let error = match failure {
            Failure::Upstream(_) | Failure::Refused(_) | Failure::NeedsAbilities(_) if tool => {
                return (one(response_result(id, &tool_error(&text))), DONE);
            }
            Failure::Upstream(lost) => {
                let data = json!({
                    "upstream": lost.upstream.as_str(),
                    "reason": lost.reason.label(),
                    "retryable": failure.retry(),
                });
                RpcError::own(code::INTERNAL, &text, Some(data))
            }
            Failure::Unknown { kind: ListKind::Resources | ListKind::Templates, name } => {
                RpcError::own(code::LEGACY_RESOURCE_NOT_FOUND, &text, Some(json!({ "uri": name })))
            }
            Failure::Unknown { .. } | Failure::InvalidParams(_) | Failure::HeaderMismatch(_) => {
                RpcError::own(code::INVALID_PARAMS, &text, None)
            }
            Failure::NeedsScopes(_) => RpcError::own(code::FORBIDDEN, &text, None),
            Failure::NeedsAbilities(needed) => {
                let needed = serde_json::from_str(&needed.to_json()).unwrap_or(Value::Null);
                RpcError::own(code::INTERNAL, &text, Some(json!({ "requiredCapabilities": needed })))
            }
            Failure::Refused(_) => RpcError::own(code::INTERNAL, &text, None),
            Failure::NotOffered(_) => RpcError::own(code::METHOD_NOT_FOUND, &text, None),
            Failure::Unrecorded => RpcError::own(code::UNAVAILABLE, &text, None),
            Failure::Internal => internal_error(&text),
        };
        (one(response_error(Some(id), error.raw.get())), self.ending(failure))
    }

    fn ending(&self, failure: &Failure) -> Ending {
        match failure {
            Failure::NeedsScopes(scopes) => Ending {
                status: StatusCode::FORBIDDEN,
                challenge: Some(self.shared.authenticators.newest().insufficient_scope(scopes, self.path)),
            },
            Failure::Unrecorded => Ending { status: StatusCode::SERVICE_UNAVAILABLE, challenge: None },
            Failure::Internal => Ending { status: StatusCode::INTERNAL_SERVER_ERROR, challenge: None },
            Failure::Upstream(_)
            | Failure::Unknown { .. }
            | Failure::InvalidParams(_)
            | Failure::HeaderMismatch(_)
            | Failure::Refused(_)
            | Failure::NeedsAbilities(_)
            | Failure::NotOffered(_) => DONE,
        }
    }
}

/// An upstream's error. One that only the stateless era has says the same in the words of this one.
fn passed(id: &Id, error: &RpcError, tool: bool) -> String {
    if error.code != code::MISSING_CAPABILITY {
        return response_error(Some(id), error.raw.get());
    }
    if tool {
        return response_result(id, &tool_error(&error.message()));
    }
    let data = Object::open(error.raw.get())
        .and_then(|object| object.get("data"))
        .and_then(|data| serde_json::from_str(data).ok());
    response_error(Some(id), RpcError::own(code::INTERNAL, &error.message(), data).raw.get())
}

/// A question as a request to the client (2025-11-25, client/elicitation, client/sampling, client/roots). An
/// elicitation of URL mode gets the id that this era wants, where its upstream gave none.
pub(super) fn question(id: &str, revision: Revision, question: Question, params: &str) -> String {
    let id = quoted(id);
    let object = Object::open(params).unwrap_or_default();
    let is_url = question == Question::Elicitation && object.text("mode").as_deref() == Some("url");
    let params = if is_url && revision == Revision::V2025_11_25 && object.get("elicitationId").is_none() {
        Edit::new().set("elicitationId", id.clone()).apply(&object)
    } else {
        params.to_owned()
    };
    let mut text = Text::object();
    text.member("jsonrpc", "\"2.0\"");
    text.member("id", &id);
    text.text("method", question.as_str());
    if params != "{}" {
        text.member("params", &params);
    }
    text.close()
}

/// The answer in place of one that was too large to be kept.
pub(super) fn lost(id: &Id, tool: bool) -> Bytes {
    let text = "the result was too large to be kept while the stream was broken; the call has run";
    let message = if tool {
        response_result(id, &tool_error(text))
    } else {
        response_error(Some(id), RpcError::own(code::INTERNAL, text, None).raw.get())
    };
    Bytes::from(message)
}

fn one(text: String) -> Vec<Bytes> {
    vec![Bytes::from(text)]
}

fn tool_error(text: &str) -> String {
    json!({ "content": [{ "type": "text", "text": text }], "isError": true }).to_string()
}

/// The result without a `structuredContent` that is not an object; its JSON text becomes a text block where there is
/// none. `None` where nothing has to change.
fn object_content(result: &Bytes) -> Option<String> {
    let result = Object::open(std::str::from_utf8(result).ok()?)?;
    let structured = result.get("structuredContent").filter(|raw| !raw.starts_with('{'))?;
    let content: Vec<&serde_json::value::RawValue> =
        result.get("content").and_then(|raw| serde_json::from_str(raw).ok()).unwrap_or_default();
    let has_text = content.iter().any(|block| {
        Object::open(block.get()).is_some_and(|block| block.text("type").as_deref() == Some("text"))
    });
    let mut edit = Edit::new().remove("structuredContent");
    if !has_text {
        let mut blocks: Vec<String> = content.iter().map(|block| block.get().to_owned()).collect();
        blocks.push(json!({ "type": "text", "text": structured }).to_string());
        edit = edit.set("content", format!("[{}]", blocks.join(",")));
    }
    Some(edit.apply(&result))
}
