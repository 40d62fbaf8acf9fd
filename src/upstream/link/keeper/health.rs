//! Whether an upstream counts as lost, and when it is tried again.

use std::time::Duration;

use tokio::time::Instant;

use crate::exchange::Reason;
use crate::upstream::backoff;

/// An upstream that was up for so long starts its back-off anew.
const STEADY: Duration = Duration::from_secs(30);

/// What a failure changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// It stays up, for this once.
    Shaken,
    /// It is lost from now on.
    Lost,
    /// It was lost already.
    StillLost,
}

/// The health of one upstream.
#[derive(Debug)]
pub(super) struct Health {
    state: State,
    failures: u32,
    next_try: Instant,
    withdraw_after: Duration,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Never { has_place: bool },
    Up { since: Instant, is_shaken: bool },
    Lost { since: Instant, has_place: bool },
}

impl Health {
    /// Of an upstream that was not reached yet, and `has_place` or not: something of it is shown already.
    pub(super) fn new(withdraw_after: Duration, has_place: bool) -> Self {
        Self { state: State::Never { has_place }, failures: 0, next_try: Instant::now(), withdraw_after }
    }

    /// A listing succeeded. True where the upstream was not up before.
    pub(super) fn succeeded(&mut self) -> bool {
        let (since, was_down) = match self.state {
            State::Up { since, .. } => (since, false),
            State::Never { .. } | State::Lost { .. } => (Instant::now(), true),
        };
        self.state = State::Up { since, is_shaken: false };
        was_down
    }

    /// An attempt failed.
    pub(super) fn failed(&mut self, reason: &Reason) -> Turn {
        let now = Instant::now();
        let (state, turn) = match self.state {
            State::Up { since, is_shaken: false }
                if matches!(reason, Reason::TimedOut | Reason::Status(429)) =>
            {
                (State::Up { since, is_shaken: true }, Turn::Shaken)
            }
            State::Up { since, .. } => {
                if now.duration_since(since) >= STEADY {
                    self.failures = 0;
                }
                (State::Lost { since: now, has_place: true }, Turn::Lost)
            }
            State::Never { has_place } => (State::Lost { since: now, has_place }, Turn::Lost),
            lost @ State::Lost { .. } => (lost, Turn::StillLost),
        };
        self.state = state;
        self.failures = self.failures.saturating_add(1);
        self.next_try = now + backoff::pause(self.failures, backoff::jitter());
        turn
    }

    /// The next attempt is due then.
    pub(super) fn try_at(&mut self, at: Instant) {
        self.next_try = at;
    }

    /// When the next attempt is due.
    pub(super) fn next_try(&self) -> Instant {
        self.next_try
    }

    /// Whether the last inventory still has its place.
    pub(super) fn keeps_place(&self) -> bool {
        match self.state {
            State::Up { .. } => true,
            State::Never { has_place } | State::Lost { has_place, .. } => has_place,
        }
    }

    /// When the place is to be given up, while it is kept by a lost upstream.
    pub(super) fn withdraw_at(&self) -> Option<Instant> {
        match self.state {
            State::Lost { since, has_place: true } => Some(since + self.withdraw_after),
            State::Never { .. } | State::Up { .. } | State::Lost { .. } => None,
        }
    }

    /// The place is given up.
    pub(super) fn withdraw(&mut self) {
        if let State::Lost { has_place, .. } = &mut self.state {
            *has_place = false;
        }
    }
}
