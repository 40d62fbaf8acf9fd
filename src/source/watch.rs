//! Hears of changes in the folders of some files.
//!
//! Folders, since editors and Kubernetes replace a file instead of writing into it; those that links lead to as well.
//! What is missed (network file systems, too many watches) is found by looking now and then.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::mpsc;

/// Hears of changes.
pub(super) struct Watcher {
    inner: Option<RecommendedWatcher>,
    folders: BTreeSet<PathBuf>,
    stirred: mpsc::Receiver<()>,
}

impl Watcher {
    /// One that watches nothing yet.
    pub(super) fn new() -> Self {
        let (stir, stirred) = mpsc::channel(1);
        let heard = move |event: notify::Result<Event>| {
            // That files are read, by Weir among others, is no news; one that waits already says it all.
            if event.is_ok_and(|event| !event.kind.is_access()) && stir.try_send(()).is_err() {
                tracing::trace!("a change of files while another one waits");
            }
        };
        let inner = notify::recommended_watcher(heard)
            .inspect_err(|error| tracing::warn!(%error, "changes of files are found by looking only"))
            .ok();
        Self { inner, folders: BTreeSet::new(), stirred }
    }

    /// Watches the folders of these files, and no others.
    pub(super) fn follow(&mut self, files: &[PathBuf]) {
        let wanted: BTreeSet<PathBuf> = files.iter().flat_map(|file| folders(file)).collect();
        let Some(inner) = &mut self.inner else { return };
        for gone in self.folders.difference(&wanted) {
            if let Err(error) = inner.unwatch(gone) {
                tracing::trace!(%error, "a folder is not watched any more");
            }
        }
        let mut watched: BTreeSet<PathBuf> = self.folders.intersection(&wanted).cloned().collect();
        for new in wanted.difference(&self.folders) {
            match inner.watch(new, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    watched.insert(new.clone());
                }
                Err(error) => tracing::debug!(%error, folder = %new.display(), "a folder cannot be watched"),
            }
        }
        self.folders = watched;
    }

    /// Waits for something to change. Never ends where nothing can be heard.
    ///
    /// # Cancel safety
    /// A change that was not reported is reported the next time.
    pub(super) async fn stirred(&mut self) {
        if self.stirred.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

/// Where a file stands, and where the file is that it leads to.
fn folders(file: &Path) -> impl Iterator<Item = PathBuf> {
    let real = file.canonicalize().ok();
    [Some(folder(file)), real.as_deref().map(folder)].into_iter().flatten()
}

/// The folder of a file.
pub(super) fn folder(file: &Path) -> PathBuf {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new(".")).to_path_buf()
}
