//! `routes.yaml` as it is written: every key of the format, nothing resolved, no logic.
//!
//! Also the keys that this version does not carry out (`check/unsupported.rs` lists them), so that they are known,
//! described by `weir schema`, and refused with a reason. Defaults stand in the descriptions only; `check` applies
//! them. Nothing here prints: values may be secrets.

#![expect(dead_code, reason = "the format holds keys that are not carried out yet")]

mod access;
mod at;
mod listen;
mod route;
mod upstream;
mod words;

use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) use access::{
    Access, AccessBlock, Anonymous, ClassName, ClassNames, DefaultRule, ItemKind, Jwks, Jwt, Kinds, Match,
    OnDenied, Require, RouteAccess, Rule, Scopes, Texts, Token,
};
pub(crate) use at::{At, Entries, Field};
pub(crate) use listen::Telemetry;
pub(crate) use listen::{Admin, Audit, AuditArguments, AuditMode, Drain, Listen, Notify, PageSize, Sessions};
pub(crate) use listen::{Characters, ListenLimits, LogFormat, Names};
pub(crate) use route::{Route, RouteUpstreams};
pub(crate) use upstream::{
    Builtin, Classes, Concurrency, Credential, Mode, OneOrMore, Sharing, Timeouts, Tools, Transport,
    Upstream, UpstreamLimits,
};
pub(crate) use words::{DurationText, SecretText, SizeText};

use listen::{Cluster, Lock, Prompts};

/// The configuration of Weir.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(title = "routes.yaml", extend("required" = ["upstreams"]))]
pub(crate) struct File {
    /// Globs of further files that hold `upstreams` only. Default: none.
    pub(crate) include: Field<Vec<At<String>>>,
    /// The MCP listener.
    pub(crate) listen: Field<Listen>,
    /// The admin listener.
    pub(crate) admin: Field<Admin>,
    /// How published names are made.
    pub(crate) names: Field<Names>,
    /// How announcements of changes are held back and gathered.
    pub(crate) notify: Field<Notify>,
    /// Comparing upstream definitions with a lock file.
    pub(crate) lock: Field<Lock>,
    /// The upstreams by name, in the order in which clients see them.
    pub(crate) upstreams: Field<Entries<Upstream>>,
    /// The endpoints. Default: one route `default` at `/mcp` with all upstreams.
    pub(crate) routes: Field<Vec<At<Route>>>,
    /// Who may call: `open`, or a block with at least one source of credentials. Absent: open, on a loopback
    /// listener only.
    pub(crate) access: Field<Access>,
    /// Prompts of Weir's own.
    pub(crate) prompts: Field<Prompts>,
    /// Logs, audit and traces.
    pub(crate) telemetry: Field<Telemetry>,
    /// What replicas share.
    pub(crate) cluster: Field<Cluster>,
}
