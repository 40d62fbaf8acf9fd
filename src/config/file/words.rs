//! Texts with a form of their own, as written; the pattern is for editors, `check` reads them.

use schemars::JsonSchema;
use serde::Deserialize;

/// A duration such as `250ms`, `30s`, `5m` or `24h`.
#[derive(Deserialize, JsonSchema)]
#[schemars(extend("pattern" = r"^([0-9]+(ms|s|m|h)|.*\$\{.*)$"))]
pub(crate) struct DurationText(pub(crate) String);

/// A size such as `64KiB` or `16MiB`.
#[derive(Deserialize, JsonSchema)]
#[schemars(extend("pattern" = r"^([0-9]+([KMG]i)?B|.*\$\{.*)$"))]
pub(crate) struct SizeText(pub(crate) String);

/// A rate such as `20/s`, `100/m` or `1000/h`.
#[derive(Deserialize, JsonSchema)]
#[schemars(extend("pattern" = r"^([0-9]+/[smh]|.*\$\{.*)$"))]
pub(crate) struct RateText(pub(crate) String);

/// A secret: `${env:NAME}` or `${file:PATH}`; written inline it is accepted with a warning.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct SecretText(pub(crate) String);
