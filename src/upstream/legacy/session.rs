//! One session with a legacy upstream.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::handshake::Carriage;
use super::line::Held;
use crate::protocol::{Revision, headers};
use crate::upstream::chores::{self, Chore};
use crate::upstream::http::Destination;
use crate::upstream::wire::Wire;

/// The longest session id that is taken.
const LONGEST_ID: usize = 4096;
/// How long a standing stream may hold something up.
const STREAM_FIRST: Duration = Duration::from_millis(500);

/// A session: the headers that stand for it, and what became of it.
#[derive(Debug)]
pub(in crate::upstream) struct Session {
    head: HeaderMap,
    has_id: bool,
    line: Option<Held>,
    worked: AtomicBool,
    streams_refused: AtomicBool,
    leases: AtomicUsize,
    /// The most verbose level that the upstream was asked for.
    log_level: AtomicU8,
    /// One turn: levels are asked for one after the other, so that the last one is the most verbose.
    lowering: Semaphore,
    used: Mutex<Instant>,
    ended: CancellationToken,
    /// Whether a standing stream of it was open or refused once.
    stream_settled: watch::Sender<bool>,
}

impl Session {
    /// A session as the answer to `initialize` made it.
    pub(super) fn new(id: Option<&HeaderValue>, line: Option<Held>, revision: Revision) -> Self {
        let id = id.filter(|id| is_visible(id));
        let mut head = HeaderMap::new();
        if let Some(id) = id {
            head.insert(headers::SESSION_ID, id.clone());
        }
        // The version header came with 2025-06-18; older servers do not know it.
        if revision >= Revision::V2025_06_18 {
            let version = HeaderValue::from_static(revision.as_str());
            head.insert(headers::PROTOCOL_VERSION, version);
        }
        Self {
            head,
            has_id: id.is_some(),
            ended: line.as_ref().map(Held::over).unwrap_or_default(),
            line,
            worked: AtomicBool::new(false),
            streams_refused: AtomicBool::new(false),
            leases: AtomicUsize::new(0),
            log_level: AtomicU8::new(u8::MAX),
            lowering: Semaphore::new(1),
            used: Mutex::new(Instant::now()),
            stream_settled: watch::Sender::new(false),
        }
    }

    /// Ends it, where another one is used instead.
    pub(in crate::upstream) async fn give_back(&self, wire: &Wire) {
        self.end();
        if self.has_id {
            chores::done(wire, Chore::Delete(self.head())).await;
        }
    }

    /// The headers of every request in it.
    pub(super) fn head(&self) -> HeaderMap {
        self.head.clone()
    }

    /// Where messages in it are posted to, with their headers.
    pub(super) fn destination(&self) -> Destination {
        let mut to = self.line.as_ref().map(|line| line.to().clone()).unwrap_or_default();
        to.head = self.head.clone();
        to
    }

    /// The connection that it is, where the upstream is spoken to over HTTP+SSE.
    pub(super) fn line(&self) -> Option<&Held> {
        self.line.as_ref()
    }

    /// How its messages travel.
    pub(in crate::upstream) fn carriage(&self) -> Carriage {
        if self.line.is_some() { Carriage::Line } else { Carriage::Posts }
    }

    /// Whether the upstream tells it from others. One that it does not cannot be lost, shared or ended.
    pub(super) fn is_distinct(&self) -> bool {
        self.has_id || self.line.is_some()
    }

    /// Whether the upstream gave it an id, by which it can be ended.
    pub(super) fn has_id(&self) -> bool {
        self.has_id
    }

    /// A request in it was answered.
    pub(super) fn has_worked(&self) {
        self.worked.store(true, Ordering::Relaxed);
    }

    /// Whether a refusal means that the upstream has forgotten it.
    pub(super) fn can_be_lost(&self) -> bool {
        self.is_distinct() && self.worked.load(Ordering::Relaxed)
    }

    /// It is forgotten by the upstream, or ended here.
    pub(super) fn end(&self) {
        self.ended.cancel();
    }

    /// Whether it has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// Waits until it has ended.
    pub(super) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// A standing stream has been opened in it, or there is none to wait for.
    pub(super) fn settle_stream(&self) {
        self.stream_settled.send_replace(true);
    }

    /// Its standing stream is let go: who needs it next waits for it again.
    pub(super) fn unsettle_stream(&self) {
        if !self.refuses_streams() {
            self.stream_settled.send_replace(false);
        }
    }

    /// Waits for a standing stream, so that what comes on it is not missed, but not for long.
    pub(super) async fn stream_settled(&self) {
        let mut settled = self.stream_settled.subscribe();
        let settled = settled.wait_for(|settled| *settled);
        if tokio::time::timeout(STREAM_FIRST, settled).await.is_err() {
            tracing::debug!("going on before the standing stream of a session is open");
        }
    }

    /// The upstream offers no standing stream in it.
    pub(super) fn refuse_streams(&self) {
        self.streams_refused.store(true, Ordering::Relaxed);
    }

    /// Whether a standing stream was refused in it.
    pub(in crate::upstream) fn refuses_streams(&self) -> bool {
        self.streams_refused.load(Ordering::Relaxed)
    }

    /// Takes the turn to ask for log messages from this level on. `None` where the session has them already, also
    /// because another call got there first.
    pub(super) async fn lower_log_level(&self, level: u8) -> Option<Lowering<'_>> {
        if self.log_level.load(Ordering::Acquire) <= level {
            return None;
        }
        let turn = self.lowering.acquire().await.ok()?;
        let is_wanted = self.log_level.load(Ordering::Acquire) > level;
        is_wanted.then_some(Lowering { session: self, level, _turn: turn })
    }

    /// Somebody uses it.
    pub(super) fn begin(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.leases.fetch_add(1, Ordering::Relaxed);
    }

    /// Somebody has finished with it.
    pub(super) fn finish(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.leases.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether somebody uses it now, and when it was used last.
    pub(super) fn used(&self) -> (bool, Instant) {
        let used = *self.used.lock().unwrap_or_else(PoisonError::into_inner);
        (self.leases.load(Ordering::Relaxed) > 0, used)
    }

    /// Whether nobody has used it for so long.
    pub(super) fn is_idle(&self, idle: Duration) -> bool {
        let (is_used, used) = self.used();
        !is_used && used.elapsed() >= idle
    }
}

/// A turn to ask for a log level.
#[derive(Debug)]
pub(super) struct Lowering<'s> {
    session: &'s Session,
    level: u8,
    _turn: SemaphorePermit<'s>,
}

impl Lowering<'_> {
    /// The upstream has been asked.
    pub(super) fn done(self) {
        self.session.log_level.store(self.level, Ordering::Release);
    }
}

/// Session ids hold visible ASCII only (2025-11-25, transports, "Session Management").
fn is_visible(id: &HeaderValue) -> bool {
    !id.is_empty() && id.len() <= LONGEST_ID && id.as_bytes().iter().all(|byte| (0x21..=0x7e).contains(byte))
}
