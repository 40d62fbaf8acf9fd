//! A file, and the options of the command line that override it.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::config::{self, Loaded, Problems, Recorder};

/// `routes.yaml`, and what the command line says in its place.
#[derive(Debug, Clone)]
pub struct FileSource {
    /// The file.
    pub path: PathBuf,
    /// In place of `listen.address`.
    pub listen: Option<SocketAddr>,
    /// In place of `admin.address`.
    pub admin: Option<SocketAddr>,
}

/// The files that were read for a configuration.
#[derive(Debug)]
pub struct Read {
    /// Every one of them, and those that should have been.
    pub(super) files: Vec<PathBuf>,
    /// Of the content of all of them: equal where nothing has changed.
    pub(super) fingerprint: [u8; 32],
}

impl FileSource {
    /// Reads the configuration; gives it, or all that is wrong with it, and what was read for it.
    pub fn load(&self) -> (Result<Loaded, Problems>, Read) {
        let recorder = Recorder::default();
        let outcome = config::load_in(&self.path, &recorder).and_then(|loaded| {
            let config = config::overridden(loaded.config, self.listen, self.admin)?;
            Ok(Loaded { config, ..loaded })
        });
        let (files, fingerprint) = recorder.close();
        (outcome, Read { files, fingerprint })
    }
}
