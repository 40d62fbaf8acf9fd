//! The one task that reads the configuration again.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};

use super::file::{FileSource, Read};
use super::metrics::Metrics;
use super::stamp::Stamp;
use super::watch::Watcher;
use crate::config::{Config, Problem, Problems, Severity, follow};
use crate::task::blocking;

/// How long files must be left alone before they are read, and how long that is waited for at most.
const SETTLE: Duration = Duration::from_millis(100);
const MOST_SETTLE: Duration = Duration::from_secs(2);
/// How often files are looked at that nobody reported as changed.
const LOOK: Duration = Duration::from_secs(10);

/// The configuration in force, and what is wrong with a newer one.
#[derive(Debug, Clone)]
pub struct Loading {
    /// The file; `None` for the built-in demonstration.
    pub path: Option<PathBuf>,
    /// When the configuration in force was read.
    pub loaded_at: Timestamp,
    /// The problems of the configuration as it was last read. With an error among them an older one is in force.
    pub problems: Problems,
}

impl Loading {
    /// A configuration that was just read, with its warnings.
    #[must_use]
    pub fn now(path: Option<PathBuf>, problems: Problems) -> Self {
        Self { path, loaded_at: Timestamp::now(), problems }
    }
}

/// Why the configuration is looked at.
enum Asked {
    /// The operator said so.
    Hangup,
    /// Something happened near its files.
    Stirred,
    /// It is time to look.
    Time,
}

/// Reads the configuration again while Weir runs.
pub struct Reload {
    source: FileSource,
    loading: watch::Sender<Arc<Loading>>,
    metrics: Metrics,
    watcher: Watcher,
    files: Vec<PathBuf>,
    stamp: Stamp,
    fingerprint: [u8; 32],
}

impl std::fmt::Debug for Reload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reload").field("source", &self.source).finish_non_exhaustive()
    }
}

impl Reload {
    /// Takes where the configuration in force came from, and where its state is shown.
    #[must_use]
    pub fn new(
        (source, read): (FileSource, Read),
        loading: watch::Sender<Arc<Loading>>,
        metrics: Metrics,
    ) -> Self {
        let Read { files, fingerprint } = read;
        // What changed since they were read is found by the first look.
        let stamp = Stamp::of(&[]);
        Self { source, loading, metrics, watcher: Watcher::new(), files, stamp, fingerprint }
    }

    /// Reads on every change and every item of `hangups`, until it is dropped. `current` is the configuration in force;
    /// `apply` puts another one there, as a whole or, with an error in words, not at all.
    pub async fn run<A, H>(mut self, mut current: Arc<Config>, mut hangups: H, mut apply: A)
    where
        A: AsyncFnMut(Arc<Config>) -> Result<(), String>,
        H: AsyncFnMut(),
    {
        let mut asked = Asked::Time;
        loop {
            if let Some((config, warnings)) = self.look(&asked, &current).await {
                let applied = apply(Arc::clone(&config)).await;
                current = self.report(applied, (config, warnings), current);
            }
            if self.is_stale().await {
                self.settle().await;
                asked = Asked::Time;
                continue;
            }
            // Cancel-safe: signals and changes that were not reported are reported the next time.
            asked = tokio::select! {
                () = hangups() => Asked::Hangup,
                () = self.watcher.stirred() => Asked::Stirred,
                () = sleep(LOOK) => Asked::Time,
            };
            if matches!(asked, Asked::Stirred) {
                self.settle().await;
            }
        }
    }

    /// Waits until nothing happens any more.
    async fn settle(&mut self) {
        let latest = Instant::now() + MOST_SETTLE;
        while timeout_at(latest.min(Instant::now() + SETTLE), self.watcher.stirred()).await.is_ok() {}
    }

    /// What the file system says of the files now. Links may lead to slow places.
    async fn stamp(&self) -> Option<Stamp> {
        let files = self.files.clone();
        blocking("look at files", move || Stamp::of(&files)).await
    }

    /// Whether files have changed since the last look.
    async fn is_stale(&self) -> bool {
        self.stamp().await.is_some_and(|now| now != self.stamp)
    }

    /// The configuration that is to be put in force, if there is another one, with its warnings.
    async fn look(&mut self, asked: &Asked, current: &Config) -> Option<(Arc<Config>, Problems)> {
        // Taken before the files are read: what is written meanwhile is found by the next look.
        let stamp = self.stamp().await?;
        if stamp == self.stamp && !matches!(asked, Asked::Hangup) {
            return None;
        }
        let source = self.source.clone();
        let (outcome, read) = blocking("read the configuration", move || source.load()).await?;
        let Read { files, fingerprint } = read;
        self.watcher.follow(&files);
        self.stamp = if files == self.files { stamp } else { Stamp::of(&[]) };
        self.files = files;
        let is_known = std::mem::replace(&mut self.fingerprint, fingerprint) == fingerprint;
        if is_known && !matches!(asked, Asked::Hangup) {
            return None;
        }
        match outcome.and_then(|loaded| Ok((follow(current, loaded.config)?, loaded.warnings))) {
            Ok((config, warnings)) => Some((Arc::new(config), warnings)),
            Err(problems) => {
                self.refused(problems);
                None
            }
        }
    }

    /// Says what became of a configuration; gives the one that is in force.
    fn report(
        &self,
        applied: Result<(), String>,
        (next, warnings): (Arc<Config>, Problems),
        current: Arc<Config>,
    ) -> Arc<Config> {
        match applied {
            Ok(()) => {
                self.applied(warnings);
                next
            }
            Err(text) => {
                self.refused(Problems::about(&self.source.path, &text));
                current
            }
        }
    }

    fn applied(&self, warnings: Problems) {
        for warning in &warnings {
            tracing::warn!(event = "config.warning", "{warning}");
        }
        self.metrics.applied();
        self.loading.send_modify(|loading| {
            *loading = Arc::new(Loading::now(loading.path.clone(), warnings));
        });
        let path = self.source.path.display();
        tracing::info!(event = "config.applied", %path, "the configuration was read again and is in force");
    }

    fn refused(&self, problems: Problems) {
        let is_error = |problem: &&Problem| problem.severity == Severity::Error;
        for problem in problems.iter().filter(is_error) {
            tracing::error!(event = "config.rejected", "{problem}");
        }
        self.metrics.refused(problems.iter().filter(is_error).count());
        self.loading
            .send_modify(|loading| *loading = Arc::new(Loading { problems, ..Loading::clone(loading) }));
    }
}
