//! What `${env:NAME}` and `${file:PATH}` stand for.
//!
//! The only thing outside the text that a configuration depends on, and therefore handed in: tests need neither
//! variables nor files.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use glob::MatchOptions;
use sha2::{Digest as _, Sha256};

/// Variables and files, as a configuration may ask for them.
pub trait Environment {
    /// The value of a variable; `None` where it is not set or is not Unicode.
    fn variable(&self, name: &str) -> Option<String>;

    /// The content of a file, at most `limit + 1` bytes of it.
    ///
    /// # Errors
    /// Whatever keeps the file from being read.
    fn file(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>>;

    /// The files whose path fits a glob that begins in a folder, in order. Names that begin with a dot fit only where the
    /// glob has it.
    ///
    /// # Errors
    /// What is wrong with the glob.
    fn matches(&self, folder: &Path, pattern: &str) -> Result<Vec<PathBuf>, String>;
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

    fn matches(&self, folder: &Path, pattern: &str) -> Result<Vec<PathBuf>, String> {
        let options = MatchOptions {
            case_sensitive: true,
            require_literal_separator: true,
            require_literal_leading_dot: true,
        };
        // The folder is meant as it stands.
        let folder = glob::Pattern::escape(folder.to_str().ok_or("its folder is not Unicode")?);
        let pattern = Path::new(&folder).join(pattern);
        let found =
            glob::glob_with(&pattern.to_string_lossy(), options).map_err(|error| error.msg.to_owned())?;
        // A folder that cannot be looked into holds nothing, and what is no file is not read.
        Ok(found.filter_map(Result::ok).filter(|path| path.is_file()).collect())
    }
}

/// The environment of this process, which remembers what was asked of it.
#[derive(Debug, Default)]
pub struct Recorder {
    files: RefCell<BTreeMap<PathBuf, [u8; 32]>>,
}

impl Recorder {
    /// Every file that was asked for, and a fingerprint of the content of all of them.
    #[must_use]
    pub fn close(self) -> (Vec<PathBuf>, [u8; 32]) {
        let mut hash = Sha256::new();
        let files = self.files.into_inner();
        for (path, content) in &files {
            let path = path.as_os_str().as_encoded_bytes();
            hash.update(path.len().to_be_bytes());
            hash.update(path);
            hash.update(content);
        }
        (files.into_keys().collect(), hash.finalize().into())
    }
}

impl Environment for Recorder {
    fn variable(&self, name: &str) -> Option<String> {
        Process.variable(name)
    }

    fn file(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        let content = Process.file(path, limit);
        let digest = match &content {
            Ok(content) => Sha256::digest(content),
            Err(error) => Sha256::digest(error.kind().to_string()),
        };
        self.files.borrow_mut().insert(path.to_path_buf(), digest.into());
        content
    }

    /// What fits is read anyway; the glob itself stands for the folder, in which another file may come.
    fn matches(&self, folder: &Path, pattern: &str) -> Result<Vec<PathBuf>, String> {
        self.files.borrow_mut().insert(folder.join(pattern), [0; 32]);
        Process.matches(folder, pattern)
    }
}
