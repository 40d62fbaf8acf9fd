//! `requestState` on both sides of Weir (2026-07-28, patterns/mrtr): the upstream's own state travels inside a sealed
//! one, bound to caller, route, method, name and arguments.

use bytes::Bytes;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use crate::downstream::{Inbound, Shared};
use crate::exchange::Call;
use crate::jsonrpc::{Object, canonical, quoted};
use crate::names::RouteName;
use crate::principal::Subject;
use crate::protocol::{Method, STATE};
use crate::seal::{Owner, StateSeal, Thread};

/// How long an upstream's state may be carried, in seconds.
const LIFE: i64 = 3600;
/// The longest state of an upstream, in bytes.
const LONGEST: usize = 64 * 1024;

/// What binds states to one call. It is reckoned where there is a state: most calls have none.
#[derive(Debug, Clone)]
pub(super) struct Binding {
    route: RouteName,
    subject: Subject,
    method: Method,
    /// The message as it came in, before any state of it was looked at.
    message: Bytes,
}

impl Binding {
    /// The binding of a call that came in so.
    pub(super) fn of(request: &Inbound, method: Method) -> Self {
        let (route, subject) = (request.route.name.clone(), request.principal.subject.clone());
        Self { route, subject, method, message: request.body.clone() }
    }

    /// Whose it is, and a digest of what is called.
    fn digests(&self) -> (Owner, [u8; 16]) {
        let message = std::str::from_utf8(&self.message).ok().and_then(Object::open).unwrap_or_default();
        let params = message.object("params").unwrap_or_default();
        let name = self.method.name_member().and_then(|member| params.text(member)).unwrap_or_default();
        let arguments = params.get("arguments").map(canonical).unwrap_or_default();
        let mut hash = Sha256::new();
        for part in [self.method.as_str(), name.as_str(), arguments.as_str()] {
            hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            hash.update(part.as_bytes());
        }
        let digest: [u8; 32] = hash.finalize().into();
        (Owner::new(&self.route, &self.subject), digest.first_chunk().copied().unwrap_or_default())
    }

    /// Seals a state for this call.
    pub(super) fn seal(&self, shared: &Shared, thread: Thread) -> String {
        let expires = Timestamp::now().as_second().saturating_add(LIFE);
        let (owner, call) = self.digests();
        StateSeal { owner, expires, call, thread }.seal(&shared.keyring)
    }

    /// Opens the state that a call carries. `Ok(None)` where it carries none.
    ///
    /// # Errors
    /// The words for the client when it does not open for this caller and this call.
    pub(super) fn open(&self, shared: &Shared, call: &Call) -> Result<Option<Thread>, &'static str> {
        // A key may be written with escapes; without one it stands there as it is.
        if !call.params.contains(STATE) && !call.params.contains('\\') {
            return Ok(None);
        }
        let params = Object::reopen(&call.params).unwrap_or_default();
        let Some(raw) = params.get(STATE) else { return Ok(None) };
        let refused = "requestState is not valid for this request";
        let text: String = serde_json::from_str(raw).map_err(|_why| refused)?;
        let now = Timestamp::now().as_second();
        StateSeal::open(&shared.keyring, &text, self.digests(), now)
            .map(|seal| Some(seal.thread))
            .map_err(|_why| refused)
    }

    /// A result that asks, with the upstream's state sealed into one of Weir's. `None` when the state is too large.
    pub(super) fn asks(&self, shared: &Shared, result: &str) -> Option<String> {
        let object = Object::open(result)?;
        let Some(state) = object.get(STATE) else { return Some(result.to_owned()) };
        if state.len() > LONGEST {
            return None;
        }
        let sealed = self.seal(shared, Thread::Upstream(state.to_owned()));
        let sealed = quoted(&sealed);
        Some(crate::jsonrpc::Edit::new().set(STATE, sealed).apply(&object))
    }
}

/// Puts the upstream's own state back into the params of a call.
pub(super) fn restore(call: &mut Call, state: &str) {
    if let Some(params) = Object::open(&call.params) {
        let restored = crate::jsonrpc::Edit::new().set(STATE, state).apply(&params);
        call.params = restored;
    }
}

/// The answers that a retry brings, by key.
pub(super) fn answers(params: &Object<'_>) -> Vec<(String, String)> {
    let responses = params.object(crate::protocol::RESPONSES).unwrap_or_default();
    responses.iter().map(|(key, raw)| (key.to_owned(), raw.to_owned())).collect()
}
