//! What `${env:NAME}` and `${file:PATH}` stand for.
//!
//! The only thing outside the text that a configuration depends on, and therefore handed in: tests need neither
//! variables nor files.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// Variables and files, as a configuration may ask for them.
pub trait Environment {
    /// The value of a variable; `None` where it is not set or is not Unicode.
    fn variable(&self, name: &str) -> Option<String>;

    /// The content of a file, at most `limit + 1` bytes of it.
    ///
    /// # Errors
    /// Whatever keeps the file from being read.
    fn file(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>>;
}

/// The environment of this process.
#[derive(Debug, Clone, Copy)]
pub struct Process;

impl Environment for Process {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn file(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        let file = File::open(path)?;
        if file.metadata()?.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let mut content = Vec::new();
        file.take(limit.saturating_add(1)).read_to_end(&mut content)?;
        Ok(content)
    }
}
