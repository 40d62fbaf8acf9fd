//! `routes.yaml`: from text to a [`Config`], and every problem on the way.

mod model;

pub use model::{
    Access, Admin, Allowed, Builtin, Classes, Concurrency, Config, Credential, Drain, Kind, Listen,
    ListenLimits, LogFormat, Notify, PageSize, Route, Sessions, Sharing, Telemetry, Timeouts, Token,
    ToolFilter, Upstream, UpstreamLimits,
};
