//! Globs: `* ? [..] {a,b}` over the whole text, case-sensitive.

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

use crate::config::file::{At, Field};
use crate::config::problem::Findings;

type List = Field<Vec<At<String>>>;

/// An `allow` list: absent means all, an empty one none.
pub(super) fn allow(list: &List, findings: &Findings) -> GlobSet {
    if list.is_absent() { everything() } else { set(list, findings) }
}

/// Any other list: absent means none.
pub(super) fn set(list: &List, findings: &Findings) -> GlobSet {
    let globs = list.written().map(|at| at.value.iter()).into_iter().flatten();
    union(globs.filter_map(|at| one(at, findings)))
}

/// One glob as a set, `None` where it is none, which is noted.
pub(super) fn single(at: &At<String>, findings: &Findings) -> Option<GlobSet> {
    one(at, findings).map(|glob| union([glob].into_iter()))
}

fn one(at: &At<String>, findings: &Findings) -> Option<Glob> {
    match build(&at.value) {
        Ok(glob) => Some(glob),
        Err(error) => {
            findings.error(&at.place, &format!("{} is not a glob: {}", at.shown(), error.kind()));
            None
        }
    }
}

fn build(text: &str) -> Result<Glob, globset::Error> {
    GlobBuilder::new(text).literal_separator(false).backslash_escape(true).empty_alternates(true).build()
}

/// What lets everything in.
pub(super) fn everything() -> GlobSet {
    union(build("*").into_iter())
}

/// Globs that were accepted one by one make a set; should they not, the set is empty, which lets nothing in.
fn union(globs: impl Iterator<Item = Glob>) -> GlobSet {
    let mut builder = GlobSetBuilder::new();
    for glob in globs {
        builder.add(glob);
    }
    builder.build().unwrap_or_default()
}
