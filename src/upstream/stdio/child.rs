//! One child process: started in a group of its own with an environment that is written out, read line by line, and
//! ended in order: its input is closed, then SIGTERM to the group, then SIGKILL (2025-11-25, basic/lifecycle,
//! "Shutdown").

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use rustix::process::{Pid, Signal, kill_process_group};
use secrecy::ExposeSecret as _;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::desk::{Desk, GivenUp, Lines};
use crate::config::{ChildCommand, Upstream};
use crate::exchange::Reason;
use crate::jsonrpc::Id;
use crate::names::UpstreamName;
use crate::protocol::{LineDecoder, TooLong, encode_line};
use crate::task::TaskGroup;
use crate::upstream::fault::Fault;
use crate::upstream::quota::Quota;

/// What a child has of Weir's own environment.
const INHERITED: [&str; 4] = ["PATH", "HOME", "TMPDIR", "LANG"];
/// Messages that wait to be written.
const QUEUE: usize = 256;
/// How long a child may take to end once its input is closed, and once it was told to.
const AFTER_CLOSE: Duration = Duration::from_secs(1);
const AFTER_TERM: Duration = Duration::from_millis(500);
/// Of what a child writes beside messages so much of a line is logged.
const LOGGED: usize = 1024;
/// In bytes.
const SHORTEST_SECRET: usize = 7;
/// So much is read at once.
const CHUNK: usize = 64 * 1024;

/// How long a child lived, and whether it ended by itself or for a fault of its own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lived {
    pub(super) time: Duration,
    pub(super) by_itself: bool,
}

/// A child.
#[derive(Debug)]
pub(super) struct Process {
    /// Its number, among those of its upstream.
    pub(super) number: u64,
    desk: Arc<Desk>,
    /// It has closed its output.
    closed: CancellationToken,
    gone: CancellationToken,
}

impl Process {
    /// Starts a child. `ended` is told when it is gone.
    pub(super) fn start(
        number: u64,
        (command, upstream): (&ChildCommand, &Arc<Upstream>),
        tasks: &TaskGroup,
        ended: impl FnOnce(&Self, Lived) + Send + 'static,
    ) -> std::io::Result<Arc<Self>> {
        let mut child = spawn(command)?;
        let (to, queue) = mpsc::channel(QUEUE);
        let desk = Desk::new(to);
        let process =
            Arc::new(Self { number, desk, closed: CancellationToken::new(), gone: CancellationToken::new() });
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(std::io::Error::other("a pipe is missing"));
        };
        let (name, stop) = (upstream.name.clone(), process.desk.stop.clone());
        let (name_of_log, secrets) = (name.clone(), secrets(command));
        tasks.spawn_until_cancelled(
            "write to a child",
            write(stdin, queue, (Arc::clone(&process.desk), stop)),
        );
        let reading = read(
            stdout,
            (Arc::clone(&process), Arc::clone(&secrets)),
            (name.clone(), upstream.limits.answer),
        );
        let gone = process.gone.clone();
        tasks.spawn_until_cancelled("read from a child", async move {
            gone.run_until_cancelled(Box::pin(reading)).await;
        });
        let gone = process.gone.clone();
        tasks.spawn_until_cancelled("errors of a child", async move {
            // Somebody whom it started may hold the pipe open after its end.
            gone.run_until_cancelled(log(stderr, &name_of_log, &secrets)).await;
        });
        tasks.spawn("child", attend(Arc::clone(&process), child, (name, tasks.token()), ended));
        Ok(process)
    }

    /// Begins to wait for the answer to a request.
    pub(super) fn wait(&self, id: &Id, given_up: GivenUp) -> Lines {
        self.desk.wait(id, given_up)
    }

    /// What it says beside the calls; `None` where it is gone.
    pub(super) fn beside(&self) -> Option<Lines> {
        self.desk.beside()
    }

    /// Writes a message.
    pub(super) async fn write(&self, message: String) -> Result<(), Fault> {
        self.desk.to.send(message).await.map_err(|_gone| Fault::unsent(Reason::Unreachable))
    }

    /// It belongs to one client or principal from now on.
    pub(super) fn make_private(&self) {
        self.desk.make_private();
    }

    /// Whether it has answered anything.
    pub(super) fn has_answered(&self) -> bool {
        self.desk.has_answered()
    }

    /// Whether it has answered a stateless request with a result.
    pub(super) fn is_stateless(&self) -> bool {
        self.desk.is_stateless()
    }

    /// Has it end.
    pub(super) fn stop(&self) {
        self.desk.stop.cancel();
    }

    /// Whether it has ended, or is about to.
    pub(super) fn is_over(&self) -> bool {
        self.desk.stop.is_cancelled() || self.closed.is_cancelled() || self.gone.is_cancelled()
    }

    /// Waits until it is gone.
    pub(super) async fn gone(&self) {
        self.gone.cancelled().await;
    }
}

fn spawn(command: &ChildCommand) -> std::io::Result<Child> {
    let mut words = command.words.iter();
    let program = words.next().ok_or_else(|| std::io::Error::other("the command is empty"))?;
    let inherited = INHERITED.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
    Command::new(program)
        .args(words)
        .current_dir(&command.folder)
        .env_clear()
        .envs(inherited)
        .envs(command.environment.iter().map(|(name, value)| (name, value.expose_secret())))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // The whole group can be ended, and a signal of a terminal to Weir is none to the child.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
}

/// Waits for the end of a child, and brings it about in order where it has to end.
async fn attend(
    process: Arc<Process>,
    mut child: Child,
    (upstream, hurry): (UpstreamName, CancellationToken),
    ended: impl FnOnce(&Process, Lived),
) {
    let since = Instant::now();
    let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let signal = |signal: Signal| {
        // A group that is gone needs none.
        group.map_or(Ok(()), |group| kill_process_group(group, signal)).unwrap_or_default();
    };
    tracing::info!(event = "stdio.started", %upstream, number = process.number, "a child runs");
    let status = tokio::select! {
        status = child.wait() => status.ok(),
        () = process.closed.cancelled() => timeout(AFTER_TERM, child.wait()).await.ok().and_then(Result::ok),
        () = process.desk.stop.cancelled() => None,
        () = hurry.cancelled() => None,
    };
    let was_told = process.desk.stop.is_cancelled() || hurry.is_cancelled();
    if status.is_some() {
        // What it said last is still in the pipe.
        drop(timeout(AFTER_TERM, process.closed.cancelled()).await);
    }
    process.stop();
    process.desk.close();
    if let Some(status) = status {
        tracing::warn!(event = "stdio.exit", %upstream, number = process.number, %status, "a child ended");
    } else {
        let stages = [(AFTER_CLOSE, Signal::TERM), (AFTER_TERM, Signal::KILL)];
        for (longest, next) in stages {
            let waiting = hurry.run_until_cancelled(timeout(longest, child.wait()));
            if matches!(waiting.await, Some(Ok(_))) {
                break;
            }
            signal(next);
        }
        let status = child.wait().await.ok();
        tracing::info!(event = "stdio.stopped", %upstream, number = process.number, ?status, "a child was ended");
    }
    // What it started itself ends with it.
    signal(Signal::KILL);
    let by_itself = !was_told || process.desk.is_faulty();
    ended(&process, Lived { time: since.elapsed(), by_itself });
    process.gone.cancel();
}

async fn write(
    mut stdin: ChildStdin,
    mut queue: mpsc::Receiver<String>,
    (desk, stop): (Arc<Desk>, CancellationToken),
) {
    let writing = async {
        while let Some(message) = queue.recv().await {
            let line = encode_line(message);
            if stdin.write_all(line.as_bytes()).await.is_err() || stdin.flush().await.is_err() {
                return desk.fail();
            }
        }
    };
    // A line that was begun is the last thing that the child gets anyway.
    stop.run_until_cancelled(writing).await;
}

async fn read(
    mut stdout: ChildStdout,
    (process, secrets): (Arc<Process>, Arc<[String]>),
    (upstream, largest): (UpstreamName, usize),
) {
    let mut lines = LineDecoder::new(largest);
    let quota = Quota::default();
    let mut sort = |line: Bytes| {
        let is_noise = !line.trim_ascii().is_empty() && !process.desk.sort(line.clone());
        if is_noise && quota.allows() {
            let text = shown(&line, &secrets);
            tracing::warn!(event = "stdio.noise", %upstream, ?text, "a line that is no message");
        }
    };
    let mut chunk = BytesMut::with_capacity(CHUNK);
    // A pipe that breaks has ended.
    let last = loop {
        let Ok(1..) = stdout.read_buf(&mut chunk).await else { break lines.finish() };
        match lines.feed(&chunk) {
            Ok(lines) => lines.into_iter().for_each(&mut sort),
            Err(TooLong) => {
                let reason = "a line is longer than limits.answer";
                tracing::error!(event = "stdio.broken", %upstream, reason, "a child is ended");
                process.desk.fail();
                break None;
            }
        }
        chunk.clear();
    };
    last.into_iter().for_each(sort);
    process.closed.cancel();
    process.desk.close();
}

/// What a child says for people, as far as that goes into a log.
async fn log(stderr: ChildStderr, upstream: &UpstreamName, secrets: &[String]) {
    let mut from = BufReader::with_capacity(CHUNK, stderr);
    let quota = Quota::default();
    let mut text = BytesMut::new();
    loop {
        let Ok(chunk) = from.fill_buf().await else { return };
        let is_over = chunk.is_empty();
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(chunk.len());
        let room = LOGGED.saturating_sub(text.len()).min(taken);
        text.extend_from_slice(chunk.get(..room).unwrap_or_default());
        from.consume(end.map_or(taken, |at| at + 1));
        if (end.is_some() || is_over) && !text.is_empty() && quota.allows() {
            let text = shown(&text, secrets);
            tracing::info!(event = "stdio.stderr", %upstream, ?text, "a child says");
        }
        if is_over {
            return;
        }
        if end.is_some() {
            text.clear();
        }
    }
}

/// The start of a line, without the values of the configured environment.
fn shown(line: &[u8], secrets: &[String]) -> String {
    let text = String::from_utf8_lossy(line.get(..LOGGED).unwrap_or(line)).trim_end().to_owned();
    secrets.iter().fold(text, |text, secret| text.replace(secret.as_str(), "***"))
}

/// What of its configuration a child must not say in a log. Short values are found in innocent words.
fn secrets(command: &ChildCommand) -> Arc<[String]> {
    let values = command.environment.iter().map(|(_, value)| value.expose_secret().to_owned());
    values.filter(|value| value.len() >= SHORTEST_SECRET).collect()
}
