//! The audit log: one JSON line per decision about a call and per refused authentication.
//!
//! One task writes, from a bounded queue. With `best_effort` a line that finds no room, or cannot be written, is counted
//! and gone. With `required` a call reserves its place before anything happens, and is refused while there is none or
//! the file cannot be written; a line that was promised is kept until it can be.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use serde::Serialize;
use tokio::sync::mpsc::{self, OwnedPermit};
use tokio_util::sync::CancellationToken;

use crate::config::Audit;
use crate::task::{TaskGroup, blocking};

/// Lines that wait to be written.
const QUEUE: usize = 8192;
/// Between two attempts at a file that cannot be written.
const RETRY: Duration = Duration::from_millis(500);
/// How long the last lines may take at the end.
const LAST: Duration = Duration::from_secs(2);
/// Lines that are written together.
const BATCH: usize = 256;
/// How long lines are gathered after some were written: what comes close together is written in one go.
const GATHER: Duration = Duration::from_millis(2);

/// A line. The fields are described in `docs/operations.md`; later versions add some and rename none.
#[derive(Debug, Default, Serialize)]
pub struct AuditLine {
    /// The version of the form: 1.
    pub v: u8,
    /// When it began, RFC 3339 with milliseconds, UTC.
    pub time: String,
    /// `call` or `auth`.
    pub event: &'static str,
    /// A random number of the call; none for a refused authentication.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub request_id: String,
    /// The trace that the client named (W3C Trace Context).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// Who called; `None` where nobody was recognised.
    pub principal: Option<AuditPrincipal>,
    /// Name and version that the client gives itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The route.
    pub route: String,
    /// The method; none for a refused authentication.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub method: &'static str,
    /// The upstream that has the item.
    pub upstream: Option<String>,
    /// What was asked for, as the client wrote it, cut after 256 characters.
    pub name: Option<String>,
    /// What its upstream calls it.
    pub local_name: Option<String>,
    /// Its class.
    pub class: Option<&'static str>,
    /// `allow`, `step_up`, `hide`, `unknown`, or `refused` where nobody was recognised.
    pub decision: &'static str,
    /// The rule that decided; `class`, `default` or `open` where none did.
    pub rule: Option<String>,
    /// The scopes that the caller lacks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing_scopes: Vec<String>,
    /// How it ended; the words of the metrics.
    pub outcome: &'static str,
    /// The HTTP status that goes with the outcome.
    pub status: u16,
    /// From its beginning to its end, in milliseconds.
    pub duration_ms: u64,
    /// The size of the result, in bytes.
    pub bytes: u64,
    /// A keyed hash of the arguments, 64 hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments_digest: Option<String>,
    /// The arguments themselves, where the operator wants them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Box<serde_json::value::RawValue>>,
}

/// Who called.
#[derive(Debug, Serialize)]
pub struct AuditPrincipal {
    /// Who vouches for the subject.
    pub issuer: String,
    /// The identifier there.
    pub subject: String,
}

/// There is no place for a line, and calls need one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the audit log cannot be written")]
pub struct Unwritable;

/// A place for one line.
#[derive(Debug)]
pub struct Slot {
    /// Reserved where lines are required; else there is room at the end, or there is none.
    permit: Option<OwnedPermit<String>>,
    log: Arc<AuditLog>,
}

/// The audit log.
#[derive(Debug)]
pub struct AuditLog {
    settings: Audit,
    queue: mpsc::Sender<String>,
    is_failing: AtomicBool,
    lost: Counter,
    tasks: TaskGroup,
}

impl AuditLog {
    /// Starts the writer.
    #[must_use]
    pub fn start(settings: &Audit, registry: &mut Registry) -> Arc<Self> {
        let (queue, lines) = mpsc::channel(QUEUE);
        let lost = Counter::default();
        registry.register("weir_audit_lost", "Audit lines that could not be kept", lost.clone());
        // A group of its own: the last lines are written when all others have ended.
        let tasks = TaskGroup::new("audit");
        let log = Arc::new(Self {
            settings: settings.clone(),
            queue,
            is_failing: AtomicBool::new(false),
            lost,
            tasks: tasks.clone(),
        });
        tasks.spawn("audit", Arc::clone(&log).run(lines, tasks.token()));
        log
    }

    /// What the operator wants of it.
    #[must_use]
    pub fn settings(&self) -> &Audit {
        &self.settings
    }

    /// A place for a line of a call that begins.
    ///
    /// # Errors
    /// [`Unwritable`] where lines are required and there is no place, or the file cannot be written.
    pub fn reserve(self: &Arc<Self>) -> Result<Slot, Unwritable> {
        let log = Arc::clone(self);
        if !self.settings.required {
            return Ok(Slot { permit: None, log });
        }
        match self.queue.clone().try_reserve_owned() {
            Ok(permit) if !self.is_failing.load(Ordering::Relaxed) => Ok(Slot { permit: Some(permit), log }),
            Ok(_) | Err(_) => Err(Unwritable),
        }
    }

    /// Writes the last lines, for two seconds at most.
    pub async fn close(&self) {
        self.tasks.cancel();
        if tokio::time::timeout(LAST, self.tasks.drained()).await.is_err() {
            tracing::error!(event = "audit.lost", "the last audit lines were not written");
        }
    }

    async fn run(self: Arc<Self>, mut lines: mpsc::Receiver<String>, ending: CancellationToken) {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            // Cancel-safe: what was not received stays in the queue.
            tokio::select! {
                received = lines.recv_many(&mut batch, BATCH) => if received == 0 { return },
                () = ending.cancelled() => {
                    lines.close();
                    while lines.recv_many(&mut batch, QUEUE).await > 0 {
                        self.write(&mut batch, &ending).await;
                    }
                    return;
                }
            }
            self.write(&mut batch, &ending).await;
            if self.queue.capacity() > QUEUE / 2 {
                ending.run_until_cancelled(tokio::time::sleep(GATHER)).await;
            }
        }
    }

    /// Writes lines. What cannot be written is tried again where lines are required, unless it is the end.
    async fn write(&self, batch: &mut Vec<String>, ending: &CancellationToken) {
        let text: Arc<str> = batch.drain(..).collect::<String>().into();
        let lines = u64::try_from(text.matches('\n').count()).unwrap_or(u64::MAX);
        while let Err(why) = self.append(Arc::clone(&text)).await {
            if !self.is_failing.swap(true, Ordering::Relaxed) {
                tracing::error!(event = "audit.lost", reason = %why, "the audit log cannot be written");
            }
            if !self.settings.required || ending.is_cancelled() {
                self.lost.inc_by(lines);
                return;
            }
            ending.run_until_cancelled(tokio::time::sleep(RETRY)).await;
        }
        if self.is_failing.swap(false, Ordering::Relaxed) {
            tracing::info!(event = "audit.back", "the audit log can be written again");
        }
    }

    async fn append(&self, text: Arc<str>) -> std::io::Result<()> {
        let file = self.settings.file.clone();
        blocking("audit", move || append(&file, &text))
            .await
            .unwrap_or_else(|| Err(std::io::ErrorKind::Other.into()))
    }
}

/// Opened each time: whoever rotates the file has only to move it away. What was written of lines that could not all be
/// written is taken back, so that no line stands there twice or in part.
fn append(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    let before = file.metadata()?;
    let written = file.write_all(text.as_bytes());
    if written.is_err() && before.is_file() {
        file.set_len(before.len())?;
    }
    written
}

impl Slot {
    /// Writes the line.
    pub fn write(self, line: &AuditLine) {
        let Ok(mut text) = serde_json::to_string(line) else { return };
        text.push('\n');
        match self.permit {
            Some(permit) => drop(permit.send(text)),
            None if self.log.queue.try_send(text).is_ok() => {}
            None => drop(self.log.lost.inc()),
        }
    }
}
