//! What a configuration means: no default, no text and no doubt left.
//!
//! Only `config/check.rs` builds these. Every value is in force as it stands here; a key that this version of Weir
//! does not carry out yet never gets this far, it is a problem.

mod access;

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use globset::GlobSet;
use http::uri::Authority;
use http::{HeaderName, Uri};
use secrecy::SecretString;

use crate::names::{LocalName, NameRules, Namespace, RouteName, UpstreamName};
use crate::protocol::Revision;

pub use access::{
    Access, Algorithm, Class, DefaultDecision, Effect, Guard, Issuer, KeySource, Match, Policy, Require,
    Rule, ScopeWords, Token,
};

/// One whole configuration.
#[derive(Debug)]
pub struct Config {
    /// The file it came from; `None` for the built-in demonstration.
    pub path: Option<PathBuf>,
    /// The MCP listener.
    pub listen: Listen,
    /// The admin listener.
    pub admin: Admin,
    /// How published names are made.
    pub names: NameRules,
    /// How announcements are held back and gathered.
    pub notify: Notify,
    /// The upstreams in file order; disabled ones are left out.
    pub upstreams: Vec<Arc<Upstream>>,
    /// Those that are written down and not enabled.
    pub disabled: Vec<UpstreamName>,
    /// The routes in file order, at least one.
    pub routes: Vec<Arc<Route>>,
    /// Who may call.
    pub access: Access,
    /// Whether `access: open` was written out, so that the listener may stand off loopback.
    pub open_anywhere: bool,
    /// Logs.
    pub telemetry: Telemetry,
}

/// The MCP listener.
#[derive(Debug, Clone)]
pub struct Listen {
    /// Where it binds.
    pub address: SocketAddr,
    /// Origin and optional path prefix as clients write them, without a slash at its end.
    pub public_url: Option<String>,
    /// Browsers' origins that may call.
    pub allowed_origins: Allowed,
    /// `Host` values that are served.
    pub allowed_hosts: Allowed,
    /// Sizes, counts and times.
    pub limits: ListenLimits,
    /// Life and number of legacy sessions.
    pub sessions: Sessions,
    /// Size of list pages towards clients.
    pub page: PageSize,
    /// How the process ends.
    pub drain: Drain,
}

impl Config {
    /// The route of this name.
    #[must_use]
    pub fn route(&self, name: &RouteName) -> Option<&Arc<Route>> {
        self.routes.iter().find(|route| route.name == *name)
    }

    /// A route as it is here. One that was taken away stays what it was, until what stands on it ends.
    #[must_use]
    pub fn now<'r>(&'r self, route: &'r Arc<Route>) -> &'r Arc<Route> {
        self.route(&route.name).unwrap_or(route)
    }
}

impl Listen {
    /// The path prefix under which clients reach this gateway; empty without one.
    #[must_use]
    pub fn public_path(&self) -> &str {
        let url = self.public_url.as_deref().unwrap_or_default();
        let host = url.find("://").map_or(0, |at| at + 3);
        url.get(host..).and_then(|rest| rest.find('/').and_then(|at| rest.get(at..))).unwrap_or_default()
    }
}

/// Which origins or hosts are let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allowed {
    /// `localhost`, `127.0.0.1`, `[::1]` with any port (a loopback listener without a list).
    Loopback,
    /// Any (hosts of a listener off loopback without `public_url`).
    Any,
    /// These, compared exactly, in lower case; a host that stands here without a port fits any port.
    These(Vec<String>),
}

/// `listen.limits`.
#[derive(Debug, Clone, Copy)]
pub struct ListenLimits {
    /// Largest request body, in bytes.
    pub body: usize,
    /// Largest request head, in bytes.
    pub header: usize,
    /// How long a head, and a pause within a body, may take.
    pub header_timeout: Duration,
    /// Most connections at once.
    pub connections: usize,
    /// Calls that wait for a client's answers between two attempts.
    pub parked: ParkLimits,
}

/// How many calls may wait for answers, and how long.
#[derive(Debug, Clone, Copy)]
pub struct ParkLimits {
    /// Most in all.
    pub total: usize,
    /// Most of one principal.
    pub per_principal: usize,
    /// The longest wait.
    pub wait: Duration,
}

/// `listen.sessions`.
#[derive(Debug, Clone, Copy)]
pub struct Sessions {
    /// Without a request or a standing stream for this long, a session ends.
    pub idle: Duration,
    /// The longest life of a session.
    pub max_age: Duration,
    /// How long a session may stay without `notifications/initialized`.
    pub initialize: Duration,
    /// How long the messages of a broken stream are kept.
    pub resume: Duration,
    /// Most sessions of one principal.
    pub per_principal: usize,
    /// Most sessions in all.
    pub total: usize,
}

/// `listen.page`.
#[derive(Debug, Clone, Copy)]
pub struct PageSize {
    /// Most items of a page.
    pub items: usize,
    /// Most bytes of a page.
    pub bytes: usize,
}

/// `listen.drain`.
#[derive(Debug, Clone, Copy)]
pub struct Drain {
    /// How long work is still taken after SIGTERM.
    pub delay: Duration,
    /// When calls in flight are cut, counted from SIGTERM.
    pub deadline: Duration,
}

/// The admin listener.
#[derive(Debug, Clone)]
pub struct Admin {
    /// Where it binds.
    pub address: SocketAddr,
    /// The SHA-256 of the token for what is shown on loopback only otherwise.
    pub token: Option<[u8; 32]>,
}

/// `notify`.
#[derive(Debug, Clone, Copy)]
pub struct Notify {
    /// The quiet time that an announcement waits for.
    pub debounce: Duration,
    /// The longest that it waits.
    pub max_wait: Duration,
}

/// One upstream.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches, as the file has them")]
pub struct Upstream {
    /// Its name.
    pub name: UpstreamName,
    /// The prefix of its names; may be empty.
    pub namespace: Namespace,
    /// What it is.
    pub kind: Kind,
    /// How it is spoken to.
    pub transport: Transport,
    /// The revision that is spoken to it; `None`: found out.
    pub revision: Option<Revision>,
    /// How legacy sessions of it are shared.
    pub sessions: Sharing,
    /// What Weir sends along as its own credential.
    pub credential: Credential,
    /// JSON-RPC codes by which it refuses a credential.
    pub credential_error_codes: Vec<i64>,
    /// Request headers of the client that pass to it.
    pub forward_headers: Vec<HeaderName>,
    /// Whether only tools of class read are published.
    pub read_only: bool,
    /// Which tools are published, and under which local names.
    pub tools: ToolFilter,
    /// Classes that the operator gave.
    pub classes: Classes,
    /// Whether annotations set the class.
    pub trust_annotations: bool,
    /// Time limits.
    pub timeout: Timeouts,
    /// Calls at once.
    pub concurrency: Concurrency,
    /// Sizes.
    pub limits: UpstreamLimits,
    /// Whether it is asked for URIs that no list or template holds.
    pub probe: bool,
    /// How often it is listed again where it cannot announce changes.
    pub refresh: Duration,
    /// How long a lost upstream keeps its place in the lists.
    pub withdraw_after: Duration,
    /// When unused upstream sessions end.
    pub idle: Duration,
    /// Whether readiness waits for it.
    pub required: bool,
}

/// What an upstream is.
#[derive(Clone)]
pub enum Kind {
    /// A server that is reached over Streamable HTTP.
    Http {
        /// Its endpoint; several where any of them will do.
        urls: Vec<Uri>,
    },
    /// A server that is started as a child process.
    Child(ChildCommand),
    /// A demonstration upstream inside Weir.
    Builtin(Builtin),
}

/// How a child process is started.
#[derive(Clone)]
pub struct ChildCommand {
    /// The program and its arguments.
    pub words: Vec<String>,
    /// Its environment, beside what every child has.
    pub environment: Vec<(String, SecretString)>,
    /// Its working folder.
    pub folder: PathBuf,
    /// Most of them at once.
    pub processes: usize,
}

/// The program alone: an argument may be a secret.
impl fmt::Debug for ChildCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ChildCommand").field(&self.words.first()).finish()
    }
}

/// Without the query of the address, which may be a secret.
impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http { urls } => {
                let bare = |url: &Uri| {
                    let authority = url.authority().map(Authority::as_str).unwrap_or_default();
                    format!("{}://{authority}{}", url.scheme_str().unwrap_or_default(), url.path())
                };
                write!(f, "Http({})", urls.iter().map(bare).collect::<Vec<_>>().join(", "))
            }
            Self::Child(command) => f.debug_tuple("Child").field(command).finish(),
            Self::Builtin(builtin) => f.debug_tuple("Builtin").field(builtin).finish(),
        }
    }
}

/// How a server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Found out.
    Auto,
    /// Streamable HTTP.
    StreamableHttp,
    /// HTTP+SSE of 2024-11-05.
    Sse,
}

/// The demonstration upstreams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Builtin {
    /// `now`, `convert`, `timer`.
    Clock,
    /// `add`, `list`, `remove` and a resource per note.
    Notes,
}

/// How sessions of a legacy upstream are shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// One per client session.
    Client,
    /// One per principal.
    Principal,
    /// One for all.
    Shared,
}

/// What Weir sends to an upstream as its own credential.
#[derive(Debug, Clone)]
pub enum Credential {
    /// Nothing.
    None,
    /// `Authorization: Bearer …`.
    Bearer(SecretString),
    /// These headers.
    Headers(Vec<(HeaderName, SecretString)>),
}

/// Which tools are published. Globs on local names as the upstream says them; deny wins.
#[derive(Debug, Clone)]
pub struct ToolFilter {
    /// Absent in the file: everything.
    pub allow: GlobSet,
    /// Wins over `allow`.
    pub deny: GlobSet,
    /// Other local names for publishing.
    pub rename: BTreeMap<LocalName, LocalName>,
}

impl ToolFilter {
    /// Whether a tool of this name passes the lists.
    #[must_use]
    pub fn admits(&self, name: &str) -> bool {
        self.allow.is_match(name) && !self.deny.is_match(name)
    }
}

/// Classes that the operator gave, as globs on local names.
#[derive(Debug, Clone)]
pub struct Classes {
    /// Of class read.
    pub read: GlobSet,
    /// Of class write.
    pub write: GlobSet,
    /// Of class destructive.
    pub destructive: GlobSet,
}

/// Time limits towards an upstream.
#[derive(Debug, Clone)]
pub struct Timeouts {
    /// For a connection.
    pub connect: Duration,
    /// For a call without progress.
    pub call: Duration,
    /// For a call whose progress extends it.
    pub call_max: Duration,
    /// Other values of `call` for tools whose local name matches, first match first.
    pub tools: Vec<ToolTimeout>,
}

/// Another value of `call` for some tools.
#[derive(Debug, Clone)]
pub struct ToolTimeout {
    /// The glob as it was written.
    pub glob: String,
    /// What it fits: local names.
    pub tools: GlobSet,
    /// The limit.
    pub limit: Duration,
}

/// Calls at once towards an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Concurrency {
    /// Most calls at once; `None`: no limit.
    pub calls: Option<usize>,
    /// Most calls at once of tools that are not of class read; `None`: no limit.
    pub writes: Option<usize>,
    /// Most calls that wait.
    pub queue: usize,
}

/// Sizes that an upstream may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpstreamLimits {
    /// Largest answer, in bytes.
    pub answer: usize,
    /// Most tools (and as many of each other list).
    pub tools: usize,
    /// Most bytes of one list.
    pub list_bytes: usize,
    /// Most pages of one list.
    pub pages: usize,
}

/// One endpoint.
#[derive(Debug)]
pub struct Route {
    /// Its name.
    pub name: RouteName,
    /// Its path, beginning with `/`, without one at its end (the root is `/`).
    pub path: String,
    /// The upstreams it shows, in file order.
    pub upstreams: Vec<UpstreamName>,
    /// Whether only tools of class read are shown.
    pub read_only: bool,
    /// Globs on published names: shown ones.
    pub allow: GlobSet,
    /// Globs on published names: hidden ones; wins.
    pub deny: GlobSet,
    /// Put before the upstreams' own instructions.
    pub instructions: String,
    /// Who may do what here.
    pub policy: Policy,
}

/// `telemetry`.
#[derive(Debug, Clone)]
pub struct Telemetry {
    /// How log lines look.
    pub format: LogFormat,
    /// The least severe level, as a filter directive of `tracing`.
    pub level: String,
    /// Whether each exchange gets an info line.
    pub access: bool,
    /// The audit log, where there is one.
    pub audit: Option<Audit>,
}

/// `telemetry.audit`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audit {
    /// The file that lines are appended to.
    pub file: PathBuf,
    /// Whether calls are refused while lines cannot be written.
    pub required: bool,
    /// Whether arguments are written, not only hashed.
    pub full: bool,
    /// JSON pointers of arguments that are left out, in their parts.
    pub redact: Vec<Vec<String>>,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}
