//! Every file of `tests/fixtures/routes`, read with a known environment.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::config::{Environment, Problems, read_text};

/// Variables and files that fixtures may ask for. What is a secret holds the word `canary`.
pub(super) struct Known {
    variables: BTreeMap<&'static str, &'static str>,
    files: BTreeMap<&'static str, &'static str>,
}

impl Known {
    pub(super) fn new() -> Self {
        Self {
            variables: BTreeMap::from([
                ("TOKEN", "canary-from-env"),
                ("EMPTY", ""),
                ("SPACED", "canary with spaces"),
                ("LEVEL", "debug"),
                ("PORT", "9001"),
            ]),
            files: BTreeMap::from([
                ("fixtures/secret", "canary-from-file\n"),
                ("fixtures/empty", "\n"),
                ("fixtures/more/one.yaml", "upstreams:\n  one: { url: http://one.example/mcp }\n"),
                ("fixtures/more/two.yaml", "upstreams:\n  two: { command: [two], cwd: here }\n"),
                (
                    "fixtures/worse/bad.yaml",
                    "listen: {}\nupstreams:\n  main: { builtin: notes }\n  three: { urll: x }\n",
                ),
                ("fixtures/worse/yaml.yaml", "upstreams: ["),
            ]),
        }
    }
}

impl Environment for Known {
    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).map(|value| (*value).to_owned())
    }

    fn file(&self, path: &Path, _limit: u64) -> io::Result<Vec<u8>> {
        let path = path.to_str().unwrap();
        let content = if path == "fixtures/large" { Some(vec![b'x'; 65_537]) } else { None };
        content
            .or_else(|| self.files.get(path).map(|text| text.as_bytes().to_vec()))
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn matches(&self, folder: &Path, pattern: &str) -> Result<Vec<PathBuf>, String> {
        let pattern =
            globset::Glob::new(folder.join(pattern).to_str().unwrap()).map_err(|error| error.to_string())?;
        let pattern = pattern.compile_matcher();
        Ok(self.files.keys().filter(|path| pattern.is_match(path)).map(PathBuf::from).collect())
    }
}

fn folder(name: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/routes").join(name);
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

/// The text of a fixture and how it is called in problems.
fn read(path: &Path) -> (String, PathBuf) {
    (std::fs::read_to_string(path).unwrap(), Path::new("fixtures").join(path.file_name().unwrap()))
}

fn compare(path: &Path, problems: &Problems) {
    let text = problems.to_string();
    assert!(!text.contains("canary"), "{}: a secret is printed", path.display());
    assert!(!format!("{problems:?}").contains("canary"), "{}: a secret is printed", path.display());
    expect_test::expect_file![path.with_extension("problems")].assert_eq(&text);
}

#[test]
fn good_files_have_warnings_at_most() {
    for path in folder("good") {
        let (text, name) = read(&path);
        let loaded =
            read_text(&text, Some(&name), &Known::new()).unwrap_or_else(|problems| panic!("{problems}"));
        assert!(!format!("{loaded:?}").contains("canary"), "{}: a secret is printed", path.display());
        compare(&path, &loaded.warnings);
    }
}

#[test]
fn bad_files_show_all_their_problems() {
    for path in folder("bad") {
        let (text, name) = read(&path);
        let problems = read_text(&text, Some(&name), &Known::new()).expect_err(&path.display().to_string());
        assert!(problems.has_errors());
        compare(&path, &problems);
    }
}
