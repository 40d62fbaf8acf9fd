//! Listeners, names, notifications, telemetry and what replicas share, as written.

use schemars::JsonSchema;
use serde::Deserialize;

use super::at::{At, Field};
use super::words::{DurationText, SecretText, SizeText};

/// The MCP listener.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Listen {
    /// IP address and port. Default: `127.0.0.1:8080`.
    pub(crate) address: Field<String>,
    /// Origin and optional path prefix as clients write them.
    pub(crate) public_url: Field<String>,
    /// TLS on the MCP listener.
    pub(crate) tls: Field<ListenTls>,
    /// Origins of browsers that may call. Default: loopback origins on a loopback listener, else none.
    pub(crate) allowed_origins: Field<Vec<At<String>>>,
    /// `Host` values that are served. Default: loopback names on a loopback listener, the host of `public_url`
    /// where set; neither: any.
    pub(crate) allowed_hosts: Field<Vec<At<String>>>,
    /// CIDR ranges; only from these is `X-Forwarded-For` believed. Default: none.
    pub(crate) trusted_proxies: Field<Vec<At<String>>>,
    /// Sizes, counts and times.
    pub(crate) limits: Field<ListenLimits>,
    /// Life and number of legacy sessions.
    pub(crate) sessions: Field<Sessions>,
    /// Size of list pages towards clients.
    pub(crate) page: Field<PageSize>,
    /// How the process ends.
    pub(crate) drain: Field<Drain>,
}

/// TLS on the MCP listener. Files are read again on change.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ListenTls {
    /// The certificate chain, PEM.
    cert: Field<String>,
    /// The private key, PEM.
    key: Field<String>,
    /// Authorities whose client certificates are accepted, PEM.
    client_ca: Field<String>,
    /// Whether clients must show a certificate. Default: `required`.
    client: Field<ClientCertificate>,
}

/// Whether clients must show a certificate.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ClientCertificate {
    /// Without one there is no connection.
    Required,
    /// It is looked at where it is shown.
    Optional,
}

/// Sizes, counts and times of the MCP listener.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ListenLimits {
    /// Largest request body. Default: `16MiB`.
    pub(crate) body: Field<SizeText>,
    /// Largest request head. Default: `32KiB`.
    pub(crate) header: Field<SizeText>,
    /// How long a head, and a pause within a body, may take. Default: `10s`.
    pub(crate) header_timeout: Field<DurationText>,
    /// Most connections at once. Default: 20000.
    pub(crate) connections: Field<u64>,
    /// Most parked calls. Default: 1000.
    pub(crate) parked: Field<u64>,
    /// Most parked calls of one principal. Default: 16.
    pub(crate) parked_per_principal: Field<u64>,
    /// How long a call is parked. Default: `5m`.
    pub(crate) parked_wait: Field<DurationText>,
}

/// Life and number of legacy sessions.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Sessions {
    /// Without a request or a standing stream for this long, a session ends. Default: `30m`.
    pub(crate) idle: Field<DurationText>,
    /// The longest life of a session. Default: `24h`.
    pub(crate) max_age: Field<DurationText>,
    /// How long a session may stay without `notifications/initialized`. Default: `30s`.
    pub(crate) initialize: Field<DurationText>,
    /// How long the messages of a broken stream are kept. Default: `60s`.
    pub(crate) resume: Field<DurationText>,
    /// Most sessions of one principal. Default: 20000.
    pub(crate) per_principal: Field<u64>,
    /// Most sessions in all. Default: 50000.
    pub(crate) total: Field<u64>,
}

/// Size of list pages towards clients.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PageSize {
    /// Most items of a page. Default: 2000.
    pub(crate) items: Field<u64>,
    /// Most bytes of a page. Default: `8MiB`.
    pub(crate) bytes: Field<SizeText>,
}

/// How the process ends after SIGTERM.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Drain {
    /// How long work is still taken. Default: `5s`.
    pub(crate) delay: Field<DurationText>,
    /// When calls in flight are cut, counted from SIGTERM. Default: `20s`.
    pub(crate) deadline: Field<DurationText>,
}

/// The admin listener: `/livez`, `/readyz`, `/metrics`; `/status` and `/api` only on loopback or with the token.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Admin {
    /// IP address and port. Default: `127.0.0.1:8090`.
    pub(crate) address: Field<String>,
    /// `sha256:` and the hash of the bearer token for `/status` and `/api`.
    pub(crate) token: Field<String>,
}

/// How published names are made.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Names {
    /// What joins namespace and local name: 1 to 4 of `[A-Za-z0-9_.-]`, `.` only with `spec` or `any`. Default:
    /// `__`.
    pub(crate) separator: Field<String>,
    /// Most characters of a published name. Default: 64.
    pub(crate) max_length: Field<u64>,
    /// Which characters may stand in a published name. Default: `strict`.
    pub(crate) characters: Field<Characters>,
}

/// Which characters may stand in a published name.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Characters {
    /// `[A-Za-z0-9_-]`: what every model API accepts.
    Strict,
    /// Also `.`.
    Spec,
    /// Whatever the upstream uses.
    Any,
}

/// How announcements of changes are held back and gathered.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Notify {
    /// The quiet time that an announcement waits for. Default: `200ms`.
    pub(crate) debounce: Field<DurationText>,
    /// The longest that it waits. Default: `1s`.
    pub(crate) max_wait: Field<DurationText>,
}

/// Comparing upstream definitions with a lock file.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Lock {
    /// What happens with a changed definition. Default: `off`.
    mode: Field<LockMode>,
    /// The lock file. Default: `weir.lock`.
    file: Field<String>,
}

/// What happens with a changed definition.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LockMode {
    /// Nothing is compared.
    Off,
    /// It is reported.
    Warn,
    /// It is unknown until the lock is renewed.
    Quarantine,
}

/// Prompts of Weir's own.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Prompts {
    /// The folder that holds them.
    directory: Field<String>,
}

/// Logs, audit and traces.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Telemetry {
    /// Logs.
    pub(crate) log: Field<TelemetryLog>,
    /// One line per decision about a call.
    pub(crate) audit: Field<Audit>,
    /// Traces.
    otlp: Field<Otlp>,
}

/// Logs.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TelemetryLog {
    /// How lines look. Default: `text`.
    pub(crate) format: Field<LogFormat>,
    /// The least severe level: `off`, `error`, `warn`, `info`, `debug`, `trace`, or `TARGET=LEVEL` entries with
    /// commas between. Default: `info`.
    pub(crate) level: Field<String>,
    /// Whether each exchange gets a line. Default: false.
    pub(crate) access: Field<bool>,
}

/// How log lines look.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// One line per decision about a call.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Audit {
    /// The file that lines are appended to.
    pub(crate) file: Field<String>,
    /// Whether calls are refused while lines cannot be written. Default: `best_effort`.
    pub(crate) mode: Field<AuditMode>,
    /// What is kept of arguments. Default: `digest`.
    pub(crate) arguments: Field<AuditArguments>,
    /// JSON pointers of arguments that are left out. Default: none.
    pub(crate) redact: Field<Vec<At<String>>>,
}

/// Whether calls are refused while audit lines cannot be written.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AuditMode {
    /// Lines are dropped and counted.
    BestEffort,
    /// Calls are refused.
    Required,
}

/// What an audit line keeps of arguments.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AuditArguments {
    /// A keyed hash.
    Digest,
    /// All but what `redact` names.
    Full,
}

/// Traces.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Otlp {
    /// Where they are sent.
    endpoint: Field<String>,
}

/// What replicas share.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Cluster {
    /// The first key seals, all open.
    keys: Field<Vec<At<SecretText>>>,
    /// Small records that replicas share.
    redis: Field<Redis>,
    /// Forwarding to the replica that holds a call.
    peer: Field<Peer>,
}

/// Small records that replicas share.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Redis {
    /// `redis://` or `rediss://` address.
    url: Field<SecretText>,
    /// Authorities to trust, PEM.
    ca: Field<String>,
    /// What keys begin with. Default: `weir:`.
    prefix: Field<String>,
}

/// Forwarding to the replica that holds a call.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Peer {
    /// IP address and port to bind.
    address: Field<String>,
    /// The address that other replicas use.
    advertise: Field<String>,
    /// TLS between replicas.
    tls: Field<PeerTls>,
}

/// TLS between replicas.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PeerTls {
    /// The certificate chain, PEM.
    cert: Field<String>,
    /// The private key, PEM.
    key: Field<String>,
    /// Authorities to trust, PEM.
    ca: Field<String>,
}
