//! One upstream, as written.

use schemars::JsonSchema;
use serde::Deserialize;

use super::at::{At, Entries, Field};
use super::words::{DurationText, SecretText, SizeText};

/// One upstream: exactly one of `url`, `command`, `plugin`, `builtin`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Upstream {
    /// False leaves the upstream out. Default: true.
    pub(crate) enabled: Field<bool>,
    /// The address of a server, or a list of addresses of the same server.
    pub(crate) url: Field<OneOrMore>,
    /// A server that is started as a child and spoken to on its standard streams.
    pub(crate) command: Field<Vec<At<String>>>,
    /// Tools that a manifest describes.
    pub(crate) plugin: Field<Plugin>,
    /// A demonstration upstream inside Weir.
    pub(crate) builtin: Field<Builtin>,
    /// How the server is spoken to. Default: `auto`.
    pub(crate) transport: Field<Transport>,
    /// Pins the protocol revision that is spoken to it: `auto` or a date. Default: `auto`.
    pub(crate) revision: Field<String>,
    /// The prefix of its names. Default: the upstream's name, every character outside `[A-Za-z0-9_-]` replaced by
    /// `_`; `""` publishes bare names.
    pub(crate) namespace: Field<String>,
    /// How legacy sessions are shared. Default: `client` for `url`, `shared` for `command`.
    pub(crate) sessions: Field<Sharing>,
    /// Whose lists are kept. Default: `shared`, or `per_principal` where the credential depends on the caller.
    pub(crate) inventory: Field<InventorySharing>,
    /// What Weir sends as its own credential. Default: nothing.
    pub(crate) credential: Field<Credential>,
    /// JSON-RPC codes by which this upstream refuses a credential. Default: none.
    pub(crate) credential_error_codes: Field<Vec<At<i64>>>,
    /// Names of request headers that pass from the client. Default: none.
    pub(crate) forward_headers: Field<Vec<At<String>>>,
    /// TLS towards the upstream.
    pub(crate) tls: Field<UpstreamTls>,
    /// An outbound proxy.
    pub(crate) proxy: Field<String>,
    /// `read-only` withdraws every tool that is not of class read. Default: `read-write`.
    pub(crate) mode: Field<Mode>,
    /// Which tools are published, and under which names.
    pub(crate) tools: Field<Tools>,
    /// Classes of tools, as globs on local names.
    pub(crate) classes: Field<Classes>,
    /// Categories for the manual: lists of globs on local names. Default: none.
    pub(crate) categories: Field<Entries<Vec<At<String>>>>,
    /// True: `readOnlyHint` and `destructiveHint` set the class. Default: false.
    pub(crate) trust_annotations: Field<bool>,
    /// Time limits.
    pub(crate) timeout: Field<Timeouts>,
    /// Calls at once.
    pub(crate) concurrency: Field<Concurrency>,
    /// Sizes.
    pub(crate) limits: Field<UpstreamLimits>,
    /// Resources.
    pub(crate) resources: Field<Resources>,
    /// How often to list again where the upstream cannot announce changes. Default: `60s`.
    pub(crate) refresh: Field<DurationText>,
    /// How long a lost upstream keeps its place in the lists. Default: `30s`.
    pub(crate) withdraw_after: Field<DurationText>,
    /// When unused upstream sessions and children end. Default: `5m`.
    pub(crate) idle: Field<DurationText>,
    /// True: readiness waits for it. Default: false.
    pub(crate) required: Field<bool>,
    /// The environment of the child. Default: empty.
    pub(crate) env: Field<Entries<SecretText>>,
    /// The working folder of the child. Default: `.`.
    pub(crate) cwd: Field<String>,
    /// Most children of this upstream. Default: 32.
    pub(crate) processes: Field<u64>,
}

/// One text or a list of texts.
#[derive(Deserialize, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum OneOrMore {
    /// One.
    #[serde(rename = "$text")]
    One(At<String>),
    /// A list.
    #[serde(rename = "$list")]
    More(Vec<At<String>>),
}

/// The demonstration upstreams.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Builtin {
    /// `now`, `convert`, `timer`.
    Clock,
    /// `add`, `list`, `remove` and a resource per note.
    Notes,
}

/// How a server is spoken to.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Transport {
    /// Found out.
    Auto,
    /// Streamable HTTP.
    StreamableHttp,
    /// HTTP+SSE of 2024-11-05.
    Sse,
}

/// How legacy sessions of an upstream are shared.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Sharing {
    /// One per client session.
    Client,
    /// One per principal.
    Principal,
    /// One for all.
    Shared,
}

/// Whose lists of an upstream are kept.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum InventorySharing {
    /// One for all.
    Shared,
    /// One per set of client capabilities.
    ByCapabilities,
    /// One per principal.
    PerPrincipal,
}

/// Whether what is not of class read is published.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Mode {
    /// It is.
    ReadWrite,
    /// It is not.
    ReadOnly,
}

/// Tools that a manifest describes: `manifest`, and one of `command` and `url`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Plugin {
    /// The manifest file.
    manifest: Field<String>,
    /// What is started for calls.
    command: Field<Vec<At<String>>>,
    /// Where calls are posted.
    url: Field<String>,
    /// Permissions of the manifest that are granted. Default: none.
    approve: Field<Vec<At<String>>>,
}

/// What Weir sends to an upstream as its own credential: one of `bearer`, `headers`, `client_credentials`,
/// `token_exchange`, `claim`, `per_principal`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Credential {
    /// `Authorization: Bearer` and this secret, for every caller.
    pub(crate) bearer: Field<SecretText>,
    /// Headers with these secrets, for every caller.
    pub(crate) headers: Field<Entries<SecretText>>,
    /// A token of Weir's own.
    pub(crate) client_credentials: Field<ClientCredentials>,
    /// A token in exchange for the caller's (RFC 8693).
    pub(crate) token_exchange: Field<TokenExchange>,
    /// The name of a claim of the caller's verified token.
    pub(crate) claim: Field<String>,
    /// The content of a file per caller.
    pub(crate) per_principal: Field<PerPrincipal>,
    /// With `claim`: the header that carries it.
    pub(crate) header: Field<String>,
    /// With `claim`: what is put before the value.
    pub(crate) prefix: Field<String>,
}

/// A token of Weir's own: `issuer` or `token_endpoint`, `id`, `secret`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ClientCredentials {
    /// The issuer, whose metadata names the token endpoint.
    issuer: Field<String>,
    /// The token endpoint.
    token_endpoint: Field<String>,
    /// The client id.
    id: Field<String>,
    /// The client secret.
    secret: Field<SecretText>,
    /// The scopes that are asked for.
    scopes: Field<Vec<At<String>>>,
    /// The resource. Default: `url`.
    resource: Field<String>,
}

/// A token in exchange for the caller's: `issuer` or `token_endpoint`, `id`, `secret`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TokenExchange {
    /// The issuer, whose metadata names the token endpoint.
    issuer: Field<String>,
    /// The token endpoint.
    token_endpoint: Field<String>,
    /// The client id.
    id: Field<String>,
    /// The client secret.
    secret: Field<SecretText>,
    /// The audience that is asked for.
    audience: Field<String>,
    /// The scopes that are asked for.
    scopes: Field<Vec<At<String>>>,
}

/// The content of a file per caller.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PerPrincipal {
    /// The file, with `{subject}` in its path.
    file: Field<String>,
    /// Callers of which issuer have one.
    issuer: Field<String>,
    /// The header that carries it. Default: `Authorization`, as bearer.
    header: Field<String>,
    /// What is put before the value.
    prefix: Field<String>,
}

/// TLS towards an upstream.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct UpstreamTls {
    /// Authorities to trust, PEM.
    ca: Field<String>,
    /// The client certificate, PEM.
    cert: Field<String>,
    /// Its private key, PEM.
    key: Field<String>,
    /// The name that the server's certificate must hold.
    server_name: Field<String>,
}

/// Which tools are published. Globs on local names as the upstream says them; `deny` wins.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Tools {
    /// Published ones. Default: all; an empty list: none.
    pub(crate) allow: Field<Vec<At<String>>>,
    /// Withheld ones. Default: none.
    pub(crate) deny: Field<Vec<At<String>>>,
    /// Other local names for publishing, old to new. Default: none.
    pub(crate) rename: Field<Entries<String>>,
}

/// Classes of tools, as globs on local names. What is in none is destructive.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Classes {
    /// Of class read. Default: none.
    pub(crate) read: Field<Vec<At<String>>>,
    /// Of class write. Default: none.
    pub(crate) write: Field<Vec<At<String>>>,
    /// Of class destructive. Default: none.
    pub(crate) destructive: Field<Vec<At<String>>>,
}

/// Time limits towards an upstream.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Timeouts {
    /// For a connection. Default: `5s`.
    pub(crate) connect: Field<DurationText>,
    /// For a call without progress. Default: `60s`.
    pub(crate) call: Field<DurationText>,
    /// For a call whose progress extends it. Default: `10m`.
    pub(crate) call_max: Field<DurationText>,
    /// Other values of `call`, by glob on local names. Default: none.
    pub(crate) tools: Field<Entries<DurationText>>,
}

/// Calls at once towards an upstream; 0: no limit.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Concurrency {
    /// Most calls at once. Default: 64.
    pub(crate) calls: Field<u64>,
    /// Most calls at once of tools that are not of class read. Default: 0.
    pub(crate) writes: Field<u64>,
    /// Most calls that wait. Default: 64.
    pub(crate) queue: Field<u64>,
}

/// Sizes that an upstream may use.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct UpstreamLimits {
    /// Largest answer. Default: `64MiB`.
    pub(crate) answer: Field<SizeText>,
    /// Most tools. Default: 5000.
    pub(crate) tools: Field<u64>,
    /// Most bytes of one list. Default: `16MiB`.
    pub(crate) list_bytes: Field<SizeText>,
    /// Most pages of one list. Default: 100.
    pub(crate) pages: Field<u64>,
}

/// Resources of an upstream.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Resources {
    /// Whether it is asked for URIs that no list or template holds. Default: true.
    pub(crate) probe: Field<bool>,
}
