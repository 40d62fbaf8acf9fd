//! A cheap look at files: whether reading them again may show anything new.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::watch::folder;

/// What the file system says about some files. Equal stamps: none of them was written, replaced, or led elsewhere by a
/// link.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stamp(Vec<Option<One>>);

#[derive(Debug, PartialEq, Eq)]
struct One {
    real: PathBuf,
    number: u64,
    size: u64,
    written: (i64, i64),
}

impl Stamp {
    pub(super) fn of(files: &[PathBuf]) -> Self {
        Self(files.iter().map(|file| one(file)).collect())
    }
}

fn one(file: &Path) -> Option<One> {
    // What is not there, or is a glob, may come: its folder tells.
    let real = file.canonicalize().or_else(|_why| folder(file).canonicalize()).ok()?;
    let data = real.metadata().ok()?;
    let written = (data.mtime(), data.mtime_nsec());
    Some(One { number: data.ino(), size: data.size(), written, real })
}
