//! `routes.yaml`: from text to a [`Config`], and every problem on the way.
//!
//! Three steps. `tree` reads the text into a tree with positions and puts in what `${…}` stands for; `file` is the
//! format as types, read from the tree by a reader that goes on after mistakes; `check` gives what it means
//! ([`Config`]), or all [`Problems`] at once. Nothing downstream of here sees a default, a text or a doubt.
//!
//! Invariant: no problem, and no `Debug` of anything public, shows a secret or the query of an address.

mod check;
mod diff;
mod environment;
mod file;
mod include;
mod model;
mod problem;
mod read;
mod tree;

pub use diff::follow;
pub use environment::{Environment, Process, Recorder};
pub use model::{
    Access, Admin, Algorithm, Allowed, Audit, Builtin, ChildCommand, Class, Classes, Concurrency, Config,
    Credential, DefaultDecision, Drain, Effect, Guard, Issuer, KeySource, Kind, Listen, ListenLimits,
    LogFormat, Match, Notify, PageSize, ParkLimits, Policy, Require, Route, Rule, ScopeWords, Sessions,
    Sharing, Telemetry, Timeouts, Token, ToolFilter, ToolTimeout, Transport, Upstream, UpstreamLimits,
};
pub use problem::{Problem, Problems, Severity};
pub use read::{Loaded, URL_NAME, demonstration, for_url, load, load_in, overridden, read_text, schema};

#[cfg(test)]
mod tests;
