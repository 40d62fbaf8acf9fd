//! Where an upstream stands, for people.

use std::time::Duration;

use jiff::Timestamp;

use crate::catalog::Presence;
use crate::names::UpstreamName;
use crate::protocol::Revision;

/// What went wrong last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastError {
    /// A closed label, as `exchange::Reason::label`.
    pub reason: &'static str,
    /// When.
    pub at: Timestamp,
}

/// One upstream as `/status` and `weir list` show it.
#[derive(Debug, Clone)]
pub struct Status {
    /// Its name.
    pub name: UpstreamName,
    /// `connecting`, `up`, `degraded` or `down`.
    pub state: &'static str,
    /// Since when.
    pub since: Timestamp,
    /// The revision that is spoken to it, once that is known; its era is the revision's.
    pub revision: Option<Revision>,
    /// What went wrong last.
    pub last_error: Option<LastError>,
    /// When the next attempt is due, while it is down.
    pub next_try_at: Option<Timestamp>,
    /// The median and the 99th percentile of its latest calls that were answered.
    pub latency: Option<(Duration, Duration)>,
    /// Its calls that run now.
    pub calls_in_flight: usize,
}

impl Status {
    /// What a presence says.
    pub(super) fn of(name: &UpstreamName, presence: &Presence) -> Self {
        let (state, since) = match presence {
            Presence::Connecting { since } => ("connecting", *since),
            Presence::Up { .. } => ("up", Timestamp::UNIX_EPOCH),
            Presence::Down { trouble, .. } => ("down", trouble.since),
        };
        let revision = presence.inventory().map(|inventory| inventory.revision);
        Self {
            name: name.clone(),
            state,
            since,
            revision,
            last_error: None,
            next_try_at: None,
            latency: None,
            calls_in_flight: 0,
        }
    }

    /// `legacy` or `modern`, once that is known.
    #[must_use]
    pub fn era(&self) -> Option<String> {
        self.revision.map(|revision| revision.era().to_string())
    }
}
