//! A request, freed of its era.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;

use crate::principal::Principal;
use crate::protocol::{Abilities, LogLevel, Method, Tasking};

/// The identity of one legacy client session, for keeping its upstream sessions apart. Never leaves the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey(pub [u8; 16]);

/// Who sent a call.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The principal of the request.
    pub principal: Principal,
    /// What its client says that it can be asked.
    pub abilities: Abilities,
    /// Whether this call can be asked nothing all the same, since its client takes no event stream.
    pub is_mute: bool,
    /// Name and version that its client gives itself.
    pub client: Option<Arc<str>>,
    /// How its client takes tasks, if it does.
    pub tasking: Option<Tasking>,
    /// The legacy client session it came in; `None` for stateless clients.
    pub session: Option<SessionKey>,
    /// Whether the listener is a loopback one, where callers without an identity share upstream sessions.
    pub on_loopback: bool,
}

impl Caller {
    /// This principal on this machine, without a session, whose client can be asked nothing.
    #[must_use]
    pub fn local(principal: Principal) -> Self {
        Self {
            principal,
            abilities: Abilities::default(),
            is_mute: false,
            client: None,
            tasking: None,
            session: None,
            on_loopback: true,
        }
    }

    /// What can be asked while this call runs.
    #[must_use]
    pub fn askable(&self) -> Option<&Abilities> {
        (!self.is_mute).then_some(&self.abilities)
    }
}

/// One request that goes to one upstream.
#[derive(Debug, Clone)]
pub struct Call {
    /// What is asked.
    pub method: Method,
    /// The tool, prompt or URI: published on the client's side of the relay, local on the upstream's side.
    pub name: String,
    /// The raw `params` object. On the upstream's side `name` is the local one already, and `_meta` holds neither a
    /// progress token nor the members that belong to one leg ([`crate::protocol::meta::PER_LEG`]); the upstream side
    /// adds its own.
    pub params: String,
    /// The client's progress token as raw JSON. The upstream side mints one of its own; the relay puts this back.
    pub progress_token: Option<String>,
    /// The least severe log message that the client wants; `None`: none at all.
    pub log_level: Option<LogLevel>,
    /// Whether the client asked for that level; else it takes what comes.
    pub log_asked: bool,
    /// Headers that mirror arguments, `Mcp-Param-*` as (name in lower case, encoded value). On the client's side as
    /// they came, on the upstream's side as they must go out.
    pub mirrored: Vec<(String, String)>,
    /// Whether the client is one that mirrors arguments itself, so that its headers are compared with the body.
    pub mirrors: bool,
    /// On the client's side all its headers that some upstream may be given, on the upstream's side those that pass.
    pub forwarded: HeaderMap,
    /// Whether the call may be repeated although it may have run: a read, or a tool that says so.
    pub repeatable: bool,
    /// A time limit for this call alone, instead of the upstream's.
    pub timeout: Option<Duration>,
    /// Who asks.
    pub caller: Caller,
}

impl Call {
    /// A call that wants nothing but its answer: no progress, no log messages, no headers, no repetition.
    #[must_use]
    pub fn plain(method: Method, name: &str, params: String, caller: Caller) -> Self {
        Self {
            method,
            name: name.to_owned(),
            params,
            progress_token: None,
            log_level: None,
            log_asked: false,
            mirrored: Vec::new(),
            mirrors: false,
            forwarded: HeaderMap::new(),
            repeatable: false,
            timeout: None,
            caller,
        }
    }
}
