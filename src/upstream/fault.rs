//! Why one request to an upstream has no answer, and what would cure it.
//!
//! A [`Fault`] says what happened on the wire; a [`Miss`] adds what the side that knows the era learned from it.
//! Whether a call is then repeated is decided in one place, [`Miss::allows_repeat`], by the rules of "Repeating":
//! at most once per call, never after a time-out, and never where the call may have run unless it says that it may
//! run twice.

use crate::exchange::Reason;

/// What happened to one request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{}", reason.label(), if *may_have_run { " (the request was written)" } else { "" })]
pub(super) struct Fault {
    /// What happened.
    pub(super) reason: Reason,
    /// Whether the upstream may have executed the request.
    pub(super) may_have_run: bool,
}

impl Fault {
    /// The request was not executed: never written, or refused.
    pub(super) fn unsent(reason: Reason) -> Self {
        Self { reason, may_have_run: false }
    }

    /// The request was written, and nobody knows what became of it.
    pub(super) fn sent(reason: Reason) -> Self {
        Self { reason, may_have_run: true }
    }

    /// A status that is no answer of MCP. A refusal (3xx, 4xx) proves that nothing ran; a 5xx proves nothing.
    pub(super) fn status(status: u16) -> Self {
        match status {
            401 | 403 => Self::unsent(Reason::Credential),
            500.. => Self::sent(Reason::Status(status)),
            _ => Self::unsent(Reason::Status(status)),
        }
    }
}

/// What would cure a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cure {
    /// Nothing that Weir can do.
    Nothing,
    /// Sending it again: the answer proves that it was not executed.
    Resend,
    /// Listing again, since the upstream says that Weir's request does not fit its definitions, then sending again.
    Relist,
}

/// A call that has no answer yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Miss {
    /// What happened.
    pub(super) fault: Fault,
    /// What would cure it.
    pub(super) cure: Cure,
}

impl From<Fault> for Miss {
    fn from(fault: Fault) -> Self {
        let never_established = fault.reason == Reason::Unreachable && !fault.may_have_run;
        Self { fault, cure: if never_established { Cure::Resend } else { Cure::Nothing } }
    }
}

impl Miss {
    /// Whether a call that was sent once is sent again. `repeatable`: it may run twice.
    pub(super) fn allows_repeat(&self, repeatable: bool) -> bool {
        match self.cure {
            Cure::Resend | Cure::Relist => true,
            Cure::Nothing => repeatable && self.fault == Fault::sent(Reason::Ended),
        }
    }
}
