//! Further files, which hold upstreams only.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::check::unsupported;
use super::file::{At, Entries, Field, Upstream};
use super::problem::Findings;
use super::read::LIMIT;
use super::tree::{self, Source, quoted};

/// Most included files.
const MOST: usize = 1000;

/// What stands in an included file.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Included {
    upstreams: Field<Entries<Upstream>>,
}

/// One included file.
pub(crate) struct Part {
    /// Its upstreams.
    pub(crate) upstreams: Entries<Upstream>,
    /// Where relative paths in it begin.
    pub(crate) folder: PathBuf,
    /// What is wrong with it.
    pub(crate) findings: Findings,
}

/// Reads the files that these globs name, each once, in the order of the globs and of their paths. `findings` are those of
/// the file that the globs stand in.
pub(crate) fn parts(globs: &Field<Vec<At<String>>>, source: &Source<'_>, findings: &Findings) -> Vec<Part> {
    let mut files: Vec<PathBuf> = Vec::new();
    for at in globs.written().map(|at| at.value.iter()).into_iter().flatten() {
        let folder =
            Path::new(&at.value).parent().map(|folder| folder.display().to_string()).unwrap_or_default();
        if folder.contains(['*', '?', '[']) {
            findings.error(&at.place, &format!("{} has a wildcard before its last part", at.shown()));
            continue;
        }
        match source.environment.matches(source.folder, &at.value) {
            Ok(found) if found.is_empty() => {
                findings.warning(&at.place, &format!("no file matches {}", at.shown()));
            }
            Ok(found) => {
                let new: Vec<PathBuf> = found.into_iter().filter(|file| !files.contains(file)).collect();
                files.extend(new);
            }
            Err(reason) => findings.error(&at.place, &format!("{} is not a glob: {reason}", at.shown())),
        }
        if files.len() > MOST {
            findings.error(&at.place, "matches more than 1000 files");
            files.truncate(MOST);
        }
    }
    files.iter().map(|file| part(file, source)).collect()
}

fn part(path: &Path, source: &Source<'_>) -> Part {
    let findings = Findings::new(&Findings::name_of(path));
    let folder = path.parent().unwrap_or_else(|| Path::new("")).to_path_buf();
    let own = Source { environment: source.environment, folder: &folder };
    let upstreams = upstreams(path, &own, &findings).unwrap_or_default();
    Part { upstreams, folder, findings }
}

fn upstreams(path: &Path, source: &Source<'_>, findings: &Findings) -> Option<Entries<Upstream>> {
    let content = match source.environment.file(path, LIMIT) {
        Ok(content) if content.len() as u64 > LIMIT => Err("the file is larger than 4 MiB".to_owned()),
        Ok(content) => String::from_utf8(content).map_err(|_why| "the text is not UTF-8".to_owned()),
        Err(error) => Err(format!("the file cannot be read: {}", error.kind())),
    };
    let text = content.map_err(|reason| findings.error(&super::problem::Place::default(), &reason)).ok()?;
    let mut root = tree::parse(&text, findings)?;
    tree::substitute(&mut root, "", source, findings);
    unsupported(&root, findings);
    if root.is_empty() {
        findings.warning(&root.place(""), "the file holds nothing; upstreams may stand in it");
        return None;
    }
    if let tree::Value::Map(entries) = &root.value {
        for entry in entries.iter().filter(|entry| entry.key != "upstreams") {
            let text =
                format!("{} may not stand in an included file; only upstreams may", quoted(&entry.key));
            findings.error(&entry.place(""), &text);
        }
    }
    let only = tree::only(root, "upstreams");
    Some(tree::decode::<Included>(&only, findings)?.upstreams.or_default())
}
