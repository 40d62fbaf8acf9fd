//! Who may call and what, as written.

use schemars::JsonSchema;
use serde::Deserialize;

use super::at::{At, Entries, Field};
use super::words::{DurationText, RateText, SecretText};

/// Who may call.
#[derive(Deserialize, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum Access {
    /// Anybody.
    #[serde(rename = "$text")]
    Word(OpenWord),
    /// Whoever one of its sources recognises.
    #[serde(rename = "$map")]
    Block(Box<AccessBlock>),
}

/// The word for open access.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OpenWord {
    /// Anybody may call.
    Open,
}

/// Sources of credentials (`tokens`, `generate`, `jwt`, `introspection`, `mtls`, `anonymous`) and what they allow.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AccessBlock {
    /// Static tokens, by hash.
    pub(crate) tokens: Field<Vec<At<Token>>>,
    /// A file that a token is written to at the first start.
    pub(crate) generate: Field<String>,
    /// True: legacy clients may send a static token as `params.token`. Default: false.
    pub(crate) initialize_token: Field<bool>,
    /// Issuers whose JWTs are accepted.
    pub(crate) jwt: Field<Vec<At<Jwt>>>,
    /// Endpoints that are asked about opaque tokens (RFC 7662).
    pub(crate) introspection: Field<Vec<At<Introspection>>>,
    /// Client certificates.
    pub(crate) mtls: Field<Mtls>,
    /// Callers without a credential.
    pub(crate) anonymous: Field<Anonymous>,
    /// What scopes mean.
    pub(crate) scopes: Field<Scopes>,
    /// What decides where no rule does. Default: `by_class`.
    pub(crate) default: Field<DefaultRule>,
    /// Limits per principal. Default: none.
    pub(crate) limits: Field<AccessLimits>,
    /// Rules; the first that matches decides.
    pub(crate) rules: Field<Vec<At<Rule>>>,
}

/// Keys of the global block that a route replaces.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RouteAccess {
    /// What decides where no rule does.
    pub(crate) default: Field<DefaultRule>,
    /// Rules that come before the global ones.
    pub(crate) rules: Field<Vec<At<Rule>>>,
    /// Limits per principal.
    pub(crate) limits: Field<AccessLimits>,
    /// Callers without a credential.
    pub(crate) anonymous: Field<Anonymous>,
    /// Audiences of tokens. Default: `public_url` and the path of the route.
    pub(crate) audiences: Field<Vec<At<String>>>,
    /// What scopes mean.
    pub(crate) scopes: Field<Scopes>,
}

/// A static token. Two entries with one name are one principal.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["name", "hash"]))]
pub(crate) struct Token {
    /// The subject of its principal.
    pub(crate) name: Field<String>,
    /// `sha256:` and 64 lower-case hexadecimal digits over the token's bytes; `weir token` makes both.
    pub(crate) hash: Field<String>,
    /// What it may do. Default: nothing.
    pub(crate) scopes: Field<Vec<At<String>>>,
    /// Groups of its holder. Default: none.
    pub(crate) groups: Field<Vec<At<String>>>,
    /// The last day that it is good for, in UTC. Default: no end.
    #[schemars(extend("format" = "date"))]
    pub(crate) not_after: Field<String>,
}

/// An issuer whose JWTs are accepted.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Jwt {
    /// The issuer.
    pub(crate) issuer: Field<String>,
    /// Audiences beside `public_url` and path. Default: none.
    pub(crate) audiences: Field<Vec<At<String>>>,
    /// Where its keys are.
    pub(crate) jwks: Field<Jwks>,
    /// Accepted algorithms. Default: `RS256`, `ES256`, `EdDSA`.
    pub(crate) algorithms: Field<Vec<At<String>>>,
    /// The value that `typ` must have.
    pub(crate) require_typ: Field<String>,
    /// Tolerance for times. Default: `30s`.
    pub(crate) leeway: Field<DurationText>,
    /// Claims that hold scopes. Default: `scope`, `scp`.
    pub(crate) scope_claims: Field<Vec<At<String>>>,
    /// Claims that hold groups. Default: `groups`.
    pub(crate) group_claims: Field<Vec<At<String>>>,
}

/// Where an issuer's keys are.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Jwks {
    /// Whether the issuer's metadata says it. Default: true.
    pub(crate) discovery: Field<bool>,
    /// Where `jwks_uri` may point. Default: the issuer's host.
    pub(crate) hosts: Field<Vec<At<String>>>,
    /// The address of the key set.
    pub(crate) url: Field<String>,
    /// A file with the key set.
    pub(crate) file: Field<String>,
}

/// An endpoint that is asked about opaque tokens.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Introspection {
    /// Its address.
    pub(crate) endpoint: Field<String>,
    /// Weir's own credential there.
    pub(crate) client: Field<IntrospectionClient>,
    /// Asked only for tokens that begin with this. Default: all.
    pub(crate) prefix: Field<String>,
    /// Audiences beside `public_url` and path. Default: none.
    pub(crate) audiences: Field<Vec<At<String>>>,
    /// How long answers are remembered. Default: `30s`.
    pub(crate) cache: Field<DurationText>,
}

/// Weir's own credential at an introspection endpoint.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct IntrospectionClient {
    /// The client id.
    pub(crate) id: Field<String>,
    /// The client secret.
    pub(crate) secret: Field<SecretText>,
}

/// Client certificates.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Mtls {
    /// Which are accepted; the first that matches decides.
    pub(crate) subjects: Field<Vec<At<MtlsSubject>>>,
}

/// Client certificates of one kind.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct MtlsSubject {
    /// A glob on the name in the certificate.
    #[serde(rename = "match")]
    pub(crate) matches: Field<String>,
    /// What its holder may do.
    pub(crate) scopes: Field<Vec<At<String>>>,
    /// Groups of its holder.
    pub(crate) groups: Field<Vec<At<String>>>,
}

/// Callers without a credential.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Anonymous {
    /// What they may do.
    pub(crate) scopes: Field<Vec<At<String>>>,
}

/// What scopes mean.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Scopes {
    /// Scopes that a scope implies.
    pub(crate) implies: Field<Entries<Vec<At<String>>>>,
    /// Other names of scopes.
    pub(crate) map: Field<Entries<String>>,
}

/// What decides where no rule does.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DefaultRule {
    /// The tool's class and the scopes `mcp:read`, `mcp:write`, `mcp:destructive`.
    ByClass,
    /// Nothing is allowed.
    Deny,
}

/// Limits per principal; what is absent is not limited.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AccessLimits {
    /// Rate of calls.
    pub(crate) calls: Field<RateText>,
    /// Calls above the rate at once.
    pub(crate) burst: Field<u64>,
    /// Calls in flight.
    pub(crate) concurrent: Field<u64>,
    /// Standing streams.
    pub(crate) streams: Field<u64>,
}

/// A rule.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Rule {
    /// Its name.
    pub(crate) name: Field<String>,
    /// What it is about; all keys must fit.
    #[serde(rename = "match")]
    pub(crate) matches: Field<Match>,
    /// True: what matches is refused. Default: false.
    pub(crate) deny: Field<bool>,
    /// What a caller must have. Default: nothing.
    pub(crate) require: Field<Require>,
    /// A CEL expression that must hold.
    pub(crate) when: Field<String>,
    /// What a caller gets who may not. Default: `step_up`.
    pub(crate) on_denied: Field<OnDenied>,
    /// The text of the refusal.
    pub(crate) message: Field<String>,
}

/// What a rule is about.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Match {
    /// Names of routes.
    pub(crate) route: Field<Texts>,
    /// Names of upstreams.
    pub(crate) upstream: Field<Texts>,
    /// Kinds of items.
    pub(crate) kind: Field<Kinds>,
    /// Globs on tools' local names.
    pub(crate) tool: Field<Texts>,
    /// Globs on prompts' local names.
    pub(crate) prompt: Field<Texts>,
    /// Globs on the upstream's URIs.
    pub(crate) resource: Field<Texts>,
    /// Classes of tools.
    pub(crate) class: Field<ClassNames>,
}

/// One text or a list that means any of them.
#[derive(Deserialize, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum Texts {
    /// One.
    #[serde(rename = "$text")]
    One(String),
    /// Any of these.
    #[serde(rename = "$list")]
    Any(Vec<At<String>>),
}

/// One kind of item or a list that means any of them.
#[derive(Deserialize, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum Kinds {
    /// One.
    #[serde(rename = "$text")]
    One(ItemKind),
    /// Any of these.
    #[serde(rename = "$list")]
    Any(Vec<ItemKind>),
}

/// A kind of item.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ItemKind {
    /// A tool.
    Tool,
    /// A prompt.
    Prompt,
    /// A resource.
    Resource,
    /// A template of resources.
    Template,
}

/// One class or a list that means any of them.
#[derive(Deserialize, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum ClassNames {
    /// One.
    #[serde(rename = "$text")]
    One(ClassName),
    /// Any of these.
    #[serde(rename = "$list")]
    Any(Vec<ClassName>),
}

/// The class of a tool.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ClassName {
    /// It changes nothing.
    Read,
    /// It changes something.
    Write,
    /// It may destroy something.
    Destructive,
}

/// What a caller must have; all keys must hold.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Require {
    /// All of these scopes.
    pub(crate) scopes_all: Field<Vec<At<String>>>,
    /// One of these scopes.
    pub(crate) scopes_any: Field<Vec<At<String>>>,
    /// One of these groups.
    pub(crate) groups_any: Field<Vec<At<String>>>,
    /// One of these subjects.
    pub(crate) subjects: Field<Vec<At<String>>>,
}

/// What a caller gets who may not.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnDenied {
    /// 403 with the scopes that are needed, where scopes would do.
    StepUp,
    /// The answer of something that does not exist.
    Hide,
}
