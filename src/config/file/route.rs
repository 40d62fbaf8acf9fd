//! One endpoint, as written.

use schemars::JsonSchema;
use serde::Deserialize;

use super::access::RouteAccess;
use super::at::{At, Field};
use super::upstream::Mode;

/// One endpoint.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["name"]))]
pub(crate) struct Route {
    /// Its name.
    pub(crate) name: Field<String>,
    /// Its path. Default: `/` and the name.
    pub(crate) path: Field<String>,
    /// The upstreams it shows: `all` or a list of names. Default: `all`.
    pub(crate) upstreams: Field<RouteUpstreams>,
    /// `read-only` hides every tool that is not of class read. Default: `read-write`.
    pub(crate) mode: Field<Mode>,
    /// Which tools it shows.
    pub(crate) tools: Field<ToolLists>,
    /// Put before the upstreams' own instructions. Default: nothing.
    pub(crate) instructions: Field<String>,
    /// How tools are listed. Default: `full`.
    pub(crate) definitions: Field<Definitions>,
    /// With `definitions: search`: globs of published names that stay listed. Default: none.
    pub(crate) always: Field<Vec<At<String>>>,
    /// True: the tool `weir__man`. Default: false.
    pub(crate) manual: Field<bool>,
    /// Replaces keys of the global block.
    pub(crate) access: Field<RouteAccess>,
}

/// The upstreams that a route shows.
#[derive(Deserialize, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum RouteUpstreams {
    /// All of them.
    #[serde(rename = "$text")]
    All(AllWord),
    /// These.
    #[serde(rename = "$list")]
    Some(Vec<At<String>>),
}

/// The word for all upstreams.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AllWord {
    /// All of them.
    All,
}

/// Globs on published names; `deny` wins.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ToolLists {
    /// Shown ones. Default: all; an empty list: none.
    pub(crate) allow: Field<Vec<At<String>>>,
    /// Hidden ones. Default: none.
    pub(crate) deny: Field<Vec<At<String>>>,
}

/// How tools are listed.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Definitions {
    /// As the upstreams say.
    Full,
    /// With descriptions cut to a summary.
    Lean,
    /// Not at all but for `always`; found and called through two tools of Weir's own.
    Search,
}
