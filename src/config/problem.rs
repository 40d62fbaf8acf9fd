//! One defect of a configuration, and all of them.
//!
//! A problem says where it is, what was found and what is accepted. It never holds the value of a secret, nor what a
//! `${…}` stood for, nor the query of an address: whoever prints a problem need not think about that.

use std::cell::RefCell;
use std::fmt;
use std::path::Path;

use serde::Serialize;

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The configuration cannot be used.
    Error,
    /// It can be used; the operator may want to know.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

/// One defect of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The file, or the command-line option, that it stands in.
    pub path: String,
    /// The line, from 1; `None` where there is no text to point at.
    pub line: Option<u32>,
    /// The column in characters, from 1.
    pub column: Option<u32>,
    /// How bad it is.
    pub severity: Severity,
    /// The key, dotted; empty for the whole file.
    pub key: String,
    /// What was found and what is accepted; begins with the key.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}: {}", self.severity, self.message)
    }
}

/// All problems of one configuration, in the order of the file. As text one a line, as JSON what `weir check --json`
/// prints.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Problems {
    problems: Vec<Problem>,
}

impl Problems {
    /// Whether one of them keeps the configuration from being used.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.problems.iter().any(|problem| problem.severity == Severity::Error)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }

    /// All of them, in the order of the file.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.problems.iter()
    }

    /// One error about a whole file.
    #[must_use]
    pub fn about(path: &Path, text: &str) -> Self {
        Self::single(&Findings::name_of(path), "", text)
    }

    /// One error that has no position in a text.
    pub(crate) fn single(path: &str, key: &str, text: &str) -> Self {
        let findings = Findings::new(path);
        findings.error(&Place::nowhere(key), text);
        findings.close()
    }
}

impl Extend<Problem> for Problems {
    fn extend<I: IntoIterator<Item = Problem>>(&mut self, more: I) {
        self.problems.extend(more);
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = std::slice::Iter<'a, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problems.iter().try_for_each(|problem| writeln!(f, "{problem}"))
    }
}

impl std::error::Error for Problems {}

/// Where something stands: its position in the text and its dotted key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// The line, from 1; 0 for what stands in no text.
    pub(crate) line: u32,
    /// The column in characters, from 1.
    pub(crate) column: u32,
    /// The dotted key.
    pub(crate) key: String,
}

impl Place {
    /// The place of something that no text holds.
    pub(crate) fn nowhere(key: &str) -> Self {
        Self { line: 0, column: 0, key: key.to_owned() }
    }

    /// The same position, with a member's key.
    pub(crate) fn member(&self, name: &str) -> Self {
        Self { key: format!("{}.{name}", self.key), ..*self }
    }
}

/// Gathers problems while a configuration is read.
#[derive(Debug)]
pub(crate) struct Findings {
    path: String,
    found: RefCell<Vec<Problem>>,
}

impl Findings {
    /// Nothing found yet in the file at `path`.
    pub(crate) fn new(path: &str) -> Self {
        Self { path: path.to_owned(), found: RefCell::default() }
    }

    /// The name of a path in problems.
    pub(crate) fn name_of(path: &Path) -> String {
        path.display().to_string()
    }

    /// Notes something that keeps the configuration from being used.
    pub(crate) fn error(&self, place: &Place, text: &str) {
        self.note(Severity::Error, place, text);
    }

    /// Notes something that the operator may want to know.
    pub(crate) fn warning(&self, place: &Place, text: &str) {
        self.note(Severity::Warning, place, text);
    }

    /// Whether an error was noted so far.
    pub(crate) fn has_errors(&self) -> bool {
        self.found.borrow().iter().any(|problem| problem.severity == Severity::Error)
    }

    /// Everything noted, in the order of the file.
    pub(crate) fn close(self) -> Problems {
        let mut problems = self.found.into_inner();
        problems.sort_by_key(|problem| (problem.line, problem.column));
        problems.dedup();
        Problems { problems }
    }

    fn note(&self, severity: Severity, place: &Place, text: &str) {
        let message = if place.key.is_empty() { text.to_owned() } else { format!("{}: {text}", place.key) };
        let position = (place.line > 0).then_some((place.line, place.column));
        self.found.borrow_mut().push(Problem {
            path: self.path.clone(),
            line: position.map(|(line, _)| line),
            column: position.map(|(_, column)| column),
            severity,
            key: place.key.clone(),
            message,
        });
    }
}
