//! Why an exchange failed.
//!
//! One taxonomy for everything that crosses the program. A variant exists because an answer differs. The texts are
//! written for agents and people: which upstream, what happened, what to do; never an address, a credential or the
//! text of a foreign error. The two functions that turn a failure into bytes live in the `encode` files of the two
//! eras; nothing else does.

use std::time::Duration;

use crate::names::UpstreamName;
use crate::principal::Scope;
use crate::protocol::{Abilities, ListKind, Question};

/// What happened between Weir and an upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// It has not been reached yet since Weir started.
    Connecting,
    /// Its address could not be resolved or connected to, or TLS failed.
    Unreachable,
    /// The connection broke, or a stream ended without the answer.
    Ended,
    /// No answer within the time limit.
    TimedOut,
    /// An HTTP status that is no answer of MCP.
    Status(u16),
    /// A body that is not MCP.
    NotMcp,
    /// An answer above `limits.answer`.
    TooLarge,
    /// It refused Weir's credential (401, 403, or one of `credential_error_codes`).
    Credential,
    /// `concurrency.calls` and `queue` are full.
    Busy,
    /// It asks something that the client cannot be asked.
    NeedsClient,
    /// The upstream was taken out of the configuration.
    Removed,
}

impl Reason {
    /// A short label for logs, metrics and `data.reason`.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Unreachable => "unreachable",
            Self::Ended => "ended",
            Self::TimedOut => "timeout",
            Self::Status(_) => "status",
            Self::NotMcp => "protocol",
            Self::TooLarge => "too_large",
            Self::Credential => "credential",
            Self::Busy => "busy",
            Self::NeedsClient => "needs_client",
            Self::Removed => "removed",
        }
    }

    fn happened(&self, upstream: &UpstreamName) -> String {
        match self {
            Self::Connecting => format!("upstream {upstream} has not been reached yet"),
            Self::Unreachable => format!("upstream {upstream} cannot be reached"),
            Self::Ended => format!("upstream {upstream} ended the connection before it answered"),
            Self::TimedOut => format!("upstream {upstream} did not answer in time"),
            Self::Status(status) => format!("upstream {upstream} answered with HTTP status {status}"),
            Self::NotMcp => format!("upstream {upstream} answered with something that is not MCP"),
            Self::TooLarge => format!("the answer of upstream {upstream} is larger than its limit"),
            Self::Credential => {
                format!("the gateway's credential for {upstream} was refused; tell its operator")
            }
            Self::Busy => format!("upstream {upstream} has as many calls as it may have"),
            Self::NeedsClient => {
                format!("upstream {upstream} wants to ask the client something that cannot be asked here")
            }
            Self::Removed => format!("upstream {upstream} was taken out of the configuration"),
        }
    }

    fn advice(&self) -> &'static str {
        match self {
            Self::Connecting | Self::Busy => "try again in a few seconds",
            Self::Unreachable | Self::Ended | Self::Status(_) => {
                "try again later, or tell the operator if it stays so"
            }
            Self::TimedOut => "ask for less, or try again later",
            Self::TooLarge => "ask for less",
            Self::NotMcp | Self::Credential | Self::NeedsClient => "tell the operator of the gateway",
            Self::Removed => "list the tools again",
        }
    }
}

/// A call that an upstream did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// Which upstream.
    pub upstream: UpstreamName,
    /// What happened.
    pub reason: Reason,
    /// How long it has been so, where it was so before this call.
    pub since: Option<Duration>,
    /// Whether the call may have been executed all the same.
    pub may_have_run: bool,
}

/// Why a call has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// The upstream is at fault.
    Upstream(Lost),
    /// No such tool, prompt or resource for this caller.
    Unknown {
        /// Of which list.
        kind: ListKind,
        /// The name or URI as asked.
        name: String,
    },
    /// The params cannot be used.
    InvalidParams(String),
    /// A mirrored header and the body differ (modern).
    HeaderMismatch(String),
    /// The token lacks scopes: all that are needed.
    NeedsScopes(Vec<Scope>),
    /// The client answered a question with an error, and there is no way to tell the upstream so.
    Refused(Question),
    /// The upstream needs something of the client that it did not declare: the missing capabilities.
    NeedsAbilities(Abilities),
    /// Weir serves nothing of this kind, or the upstream does not have it.
    NotOffered(&'static str),
    /// The audit log, without which nothing may be done, cannot be written.
    Unrecorded,
    /// A fault in Weir.
    Internal,
}

impl Failure {
    /// An upstream failure without a history.
    #[must_use]
    pub fn upstream(upstream: &UpstreamName, reason: Reason, may_have_run: bool) -> Self {
        Self::Upstream(Lost { upstream: upstream.clone(), reason, since: None, may_have_run })
    }

    /// Whether the same call makes sense again, unchanged, a little later.
    #[must_use]
    pub fn retry(&self) -> bool {
        match self {
            Self::Upstream(lost) => match lost.reason {
                Reason::Connecting
                | Reason::Unreachable
                | Reason::Ended
                | Reason::TimedOut
                | Reason::Status(_)
                | Reason::Busy => true,
                Reason::NotMcp
                | Reason::TooLarge
                | Reason::Credential
                | Reason::NeedsClient
                | Reason::Removed => false,
            },
            Self::Unknown { .. }
            | Self::InvalidParams(_)
            | Self::HeaderMismatch(_)
            | Self::NeedsScopes(_)
            | Self::Refused(_)
            | Self::NeedsAbilities(_)
            | Self::NotOffered(_)
            | Self::Unrecorded
            | Self::Internal => false,
        }
    }

    /// A closed label for metrics.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            Self::Upstream(lost) => lost.reason.label(),
            Self::Unknown { .. } => "unknown",
            Self::InvalidParams(_) => "invalid_params",
            Self::HeaderMismatch(_) => "header_mismatch",
            Self::NeedsScopes(_) => "denied",
            Self::Refused(_) => "client_refused",
            Self::NeedsAbilities(_) => "needs_capability",
            Self::NotOffered(_) => "not_offered",
            Self::Unrecorded => "unrecorded",
            Self::Internal => "internal",
        }
    }

    /// The text for the client.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Upstream(lost) => lost.text(),
            Self::Unknown { kind, name } => unknown(*kind, name),
            Self::InvalidParams(text) => text.clone(),
            Self::HeaderMismatch(text) => format!("Header mismatch: {text}"),
            Self::NeedsScopes(_) => "Insufficient scope".to_owned(),
            Self::Refused(question) => {
                format!("the client answered {} with an error, so the call cannot go on", question.as_str())
            }
            Self::NeedsAbilities(needed) => {
                format!("this needs a capability that the client did not declare: {}", needed.to_json())
            }
            Self::NotOffered(what) => format!("{what} is not offered here"),
            Self::Unrecorded => "calls cannot be recorded at the moment; try again later".to_owned(),
            Self::Internal => "internal error".to_owned(),
        }
    }
}

impl Lost {
    fn text(&self) -> String {
        let mut text = self.reason.happened(&self.upstream);
        if let Some(since) = self.since {
            text.push_str(&format!(" (for {} s)", since.as_secs()));
        }
        if self.may_have_run {
            text.push_str("; outcome unknown: the call may have run");
        }
        if self.reason != Reason::Credential {
            text.push_str("; ");
            text.push_str(self.reason.advice());
        }
        text
    }
}

fn unknown(kind: ListKind, name: &str) -> String {
    const LONGEST: usize = 128;
    let name: String = name.chars().take(LONGEST).collect();
    match kind {
        ListKind::Tools => format!("Unknown tool: {name}"),
        ListKind::Prompts => format!("Unknown prompt: {name}"),
        ListKind::Resources | ListKind::Templates => "Resource not found".to_owned(),
    }
}
