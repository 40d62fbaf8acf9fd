//! What the audit log says of a call: filled in along the way, written once, when it has ended for whatever reason.

use std::sync::Arc;

use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use serde_json::value::RawValue;
use sha2::Sha256;

use super::Seat;
use crate::exchange::{Call, Event, Failure};
use crate::jsonrpc::{Edit, Object, canonical};
use crate::policy::Decision;
use crate::protocol::{ListKind, Method};
use crate::seal::random_bytes;
use crate::telemetry::{AuditLine, AuditLog, AuditPrincipal, Slot, Unwritable};
use crate::view::explain_named;

/// The longest name that is written whole, in characters.
const LONGEST_NAME: usize = 256;
/// So much of the arguments is hashed, and so much is written.
const MOST_ARGUMENTS: usize = 64 * 1024;

/// Where lines go, and how arguments are hashed.
#[derive(Debug)]
pub(super) struct Auditor {
    log: Arc<AuditLog>,
    key: [u8; 32],
}

/// The line of one call.
#[derive(Debug)]
pub(super) struct Draft {
    slot: Option<Slot>,
    line: AuditLine,
}

impl Auditor {
    pub(super) fn new(log: Arc<AuditLog>) -> Self {
        Self { log, key: random_bytes() }
    }

    /// Begins the line of a call.
    ///
    /// # Errors
    /// [`Unwritable`] where the call may not go on without one.
    pub(super) fn begin(&self, seat: &Seat, call: &Call) -> Result<Draft, Unwritable> {
        let slot = self.log.reserve()?;
        let subject = &call.caller.principal.subject;
        let params = Object::reopen(&call.params).unwrap_or_default();
        let mut line = AuditLine {
            v: 1,
            time: now(),
            event: "call",
            request_id: HEXLOWER.encode(&random_bytes::<8>()),
            trace_id: trace(&params),
            principal: Some(AuditPrincipal {
                issuer: subject.issuer.to_string(),
                subject: subject.subject.to_string(),
            }),
            client: call.caller.client.as_ref().map(ToString::to_string),
            route: seat.route.name.to_string(),
            method: call.method.as_str(),
            name: (!call.name.is_empty()).then(|| call.name.chars().take(LONGEST_NAME).collect()),
            decision: "unknown",
            outcome: "cancelled",
            status: 200,
            ..AuditLine::default()
        };
        if let Some(arguments) = params.get("arguments") {
            self.arguments(&mut line, arguments);
        }
        decided(&mut line, seat, call);
        Ok(Draft { slot: Some(slot), line })
    }

    fn arguments(&self, line: &mut AuditLine, arguments: &str) {
        let text = canonical(arguments);
        let bytes = text.as_bytes();
        let hashed = bytes.get(..MOST_ARGUMENTS).unwrap_or(bytes);
        // A key of any length is good.
        if let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.key) {
            mac.update(hashed);
            mac.update(&u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_be_bytes());
            let digest = mac.finalize().into_bytes();
            line.arguments_digest = Some(HEXLOWER.encode(&digest));
        }
        let settings = self.log.settings();
        if settings.full && arguments.len() <= MOST_ARGUMENTS {
            let redacted =
                settings.redact.iter().try_fold(arguments.to_owned(), |raw, path| redacted(&raw, path));
            line.arguments = redacted.and_then(|text| RawValue::from_string(text).ok());
        }
    }
}

fn now() -> String {
    let now = Timestamp::now();
    now.round(jiff::Unit::Millisecond).unwrap_or(now).to_string()
}

/// The trace id of a `traceparent` in `_meta`.
fn trace(params: &Object<'_>) -> Option<String> {
    let parent = params.object("_meta")?.text("traceparent")?;
    let id = parent.split('-').nth(1)?;
    (id.len() == 32 && id.bytes().all(|c| c.is_ascii_hexdigit())).then(|| id.to_owned())
}

/// What was decided about the item that a call names, and by what.
fn decided(line: &mut AuditLine, seat: &Seat, call: &Call) {
    let kind = match call.method {
        Method::ToolsCall => ListKind::Tools,
        Method::PromptsGet => ListKind::Prompts,
        Method::ResourcesRead | Method::ResourcesSubscribe | Method::Listen => ListKind::Resources,
        _ => return,
    };
    let rights = &call.caller.principal.rights;
    let Some(explained) = explain_named(&seat.view, &seat.route, rights, (kind, &call.name)) else { return };
    let item = &explained.item;
    line.upstream = Some(item.upstream.to_string());
    line.local_name = Some(item.local().to_owned());
    line.class = Some(explained.class.as_str());
    line.rule = Some(explained.by);
    line.decision = match explained.decision {
        Decision::Allow => "allow",
        Decision::Hide => "hide",
        Decision::StepUp(scopes) => {
            line.missing_scopes = scopes.iter().map(ToString::to_string).collect();
            "step_up"
        }
    };
}

/// Raw JSON without what a JSON pointer (RFC 6901, in its parts) leads to; as it was where that leads nowhere. `None`
/// where the way cannot be followed, since an object names something twice: the secret may be in either.
fn redacted(raw: &str, path: &[String]) -> Option<String> {
    const GONE: &str = "\"***\"";
    let Some((first, rest)) = path.split_first() else { return Some(GONE.to_owned()) };
    match raw.trim_start().as_bytes().first() {
        Some(b'{') => {
            let object = Object::open(raw)?;
            let Some(inner) = object.get(first) else { return Some(raw.to_owned()) };
            Some(Edit::new().set(first, redacted(inner, rest)?).apply(&object))
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(raw).ok()?;
            let at = first.parse::<usize>().ok().filter(|at| *at < items.len());
            let Some(at) = at else { return Some(raw.to_owned()) };
            let all: Option<Vec<String>> = items
                .iter()
                .enumerate()
                .map(
                    |(index, item)| {
                        if index == at { redacted(item.get(), rest) } else { Some(item.get().to_owned()) }
                    },
                )
                .collect();
            Some(format!("[{}]", all?.join(",")))
        }
        Some(_) | None => Some(raw.to_owned()),
    }
}

impl Draft {
    /// It goes to an upstream.
    pub(super) fn goes_to(&mut self, upstream: &str) {
        if self.line.decision == "unknown" {
            // By a template, an earlier result or a task: what is not listed was decided about all the same.
            self.line.decision = "allow";
        }
        self.line.upstream = Some(upstream.to_owned());
    }

    /// Something of it comes back.
    pub(super) fn hears(&mut self, event: &Event) {
        match event {
            Event::Result(answer) => {
                self.line.bytes = u64::try_from(answer.result.len()).unwrap_or(u64::MAX);
            }
            Event::Failed(failure) => self.has_failed(failure),
            Event::Progress(_)
            | Event::Log(..)
            | Event::Paused(_)
            | Event::Task(_)
            | Event::Inquiry(_)
            | Event::Asks(_)
            | Event::Error(_) => {}
        }
    }

    /// It fails.
    pub(super) fn has_failed(&mut self, failure: &Failure) {
        self.line.status = match failure {
            Failure::NeedsScopes(scopes) => {
                self.line.decision = "step_up";
                self.line.missing_scopes = scopes.iter().map(ToString::to_string).collect();
                403
            }
            Failure::Unrecorded => 503,
            Failure::Internal => 500,
            Failure::Upstream(_)
            | Failure::Unknown { .. }
            | Failure::InvalidParams(_)
            | Failure::HeaderMismatch(_)
            | Failure::Refused(_)
            | Failure::NeedsAbilities(_)
            | Failure::NotOffered(_) => 200,
        };
    }

    /// Writes the line.
    pub(super) fn write(&mut self, outcome: &'static str, took: std::time::Duration) {
        self.line.outcome = outcome;
        self.line.duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        if let Some(slot) = self.slot.take() {
            slot.write(&self.line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::redacted;

    #[test]
    fn pointers_lead_into_objects_and_lists_and_the_rest_stays() {
        let path = |text: &str| text.split('/').skip(1).map(str::to_owned).collect::<Vec<_>>();
        let raw = r#"{"a":{"b":[1.0,{"c":"secret"}]},"n":1e5}"#;
        assert_eq!(
            redacted(raw, &path("/a/b/1/c")).as_deref(),
            Some(r#"{"a":{"b":[1.0,{"c":"***"}]},"n":1e5}"#)
        );
        assert_eq!(redacted(raw, &path("/a")).as_deref(), Some(r#"{"a":"***","n":1e5}"#));
        for nowhere in ["/x", "/a/b/7", "/a/b/x", "/n/y"] {
            assert_eq!(redacted(raw, &path(nowhere)).as_deref(), Some(raw), "{nowhere}");
        }
        let twice = r#"{"password":"s","x":1,"x":{"y":2,"y":3}}"#;
        assert_eq!(redacted(twice, &path("/password")), None, "what cannot be read is not written");
        assert_eq!(redacted(r#"{"a":{"y":2,"y":3}}"#, &path("/a/y")), None);
    }
}
