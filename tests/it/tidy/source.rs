//! Source files as text, and the same text without comments, strings and test modules.
#![expect(
    clippy::string_slice,
    clippy::indexing_slicing,
    reason = "the scan cuts at places it has just found"
)]

use std::path::Path;

/// One file.
#[derive(Debug)]
pub(super) struct Source {
    /// Its path below the package, with `/`.
    pub(super) path: String,
    /// What stands in it.
    pub(super) text: String,
    /// The same lines with comments and the insides of strings and character literals as spaces.
    pub(super) code: String,
}

/// All Rust files below a folder of the package, by path; none where there is no such folder.
pub(super) fn sources(folder: &str) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut open = vec![root.join(folder)];
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                let path = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
                found.push(Source::new(path, text));
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

impl Source {
    pub(super) fn new(path: String, text: String) -> Self {
        let code = strip(&text);
        Self { path, text, code }
    }

    /// Whether the whole file is test code.
    pub(super) fn is_test(&self) -> bool {
        self.path.split('/').any(|part| part == "tests" || part == "tests.rs")
    }

    /// The top-level module of `src` that it belongs to.
    pub(super) fn module(&self) -> &str {
        let below = self.path.strip_prefix("src/").unwrap_or(&self.path);
        below.split('/').next().unwrap_or_default().trim_end_matches(".rs")
    }

    /// The modules it reaches by `crate::…` outside of test modules, with their lines, in order.
    pub(super) fn crate_paths(&self) -> Vec<(String, usize)> {
        let code = without_tests(&self.code);
        let mut found = Vec::new();
        for (at, word) in words(&code) {
            let rest = code[at + word.len()..].trim_start();
            if word != "crate" || code[..at].ends_with('$') || !rest.starts_with("::") {
                continue;
            }
            let names = first_names(rest.trim_start_matches(':').trim_start());
            found.extend(names.into_iter().map(|name| (name, line_of(&code, at))));
        }
        found
    }

    /// The line of a place in its code.
    pub(super) fn line_of(&self, at: usize) -> usize {
        line_of(&self.code, at)
    }
}

fn line_of(code: &str, at: usize) -> usize {
    code[..at].matches('\n').count() + 1
}

/// The first names of a path or of a group of paths.
fn first_names(path: &str) -> Vec<String> {
    let Some(group) = path.strip_prefix('{') else {
        return words(path).next().into_iter().map(|(_, word)| word.to_owned()).collect();
    };
    let mut depth = 0_usize;
    let mut wants_name = true;
    let mut names = Vec::new();
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => wants_name = true,
            _ if wants_name && is_word_char(c) => {
                names.extend(words(&group[at..]).next().map(|(_, word)| word.to_owned()));
                wants_name = false;
            }
            _ => {}
        }
    }
    names
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The words of a text with their places.
pub(super) fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split(|c| !is_word_char(c))
        .filter(|word| !word.is_empty())
        .map(|word| (word.as_ptr() as usize - text.as_ptr() as usize, word))
}

/// Whether a text holds a word.
pub(super) fn is_word(wanted: &str, text: &str) -> bool {
    words(text).any(|(_, word)| word == wanted)
}

/// Code with the bodies of inline test modules as spaces.
fn without_tests(code: &str) -> String {
    const START: &str = "#[cfg(test)]";
    let mut out = String::new();
    let mut rest = code;
    while let Some(at) = rest.find(START) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let end = end_of_item(from);
        out.extend(from[..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        rest = &from[end..];
    }
    out.push_str(rest);
    out
}

/// Where the item that begins here ends: after its `;` or its closing brace.
fn end_of_item(code: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in code.char_indices() {
        match c {
            ';' if depth == 0 => return at + 1,
            '{' => depth += 1,
            '}' if depth <= 1 => return at + 1,
            '}' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}

/// Replaces comments and the insides of literals by spaces; line breaks stay.
fn strip(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let skipped = comment(rest).or_else(|| literal(rest, out.chars().next_back()));
        let end = skipped.unwrap_or(c.len_utf8());
        let (part, tail) = rest.split_at(end);
        if skipped.is_some() {
            out.extend(part.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        } else {
            out.push(c);
        }
        rest = tail;
    }
    out
}

/// The length of a comment that begins here.
fn comment(rest: &str) -> Option<usize> {
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    if !rest.starts_with("/*") {
        return None;
    }
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        let here = &rest.as_bytes()[at..];
        if here.starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if here.starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
        } else {
            at += 1;
        }
        if depth == 0 {
            return Some(at);
        }
    }
    Some(rest.len())
}

/// The length of a string or character literal that begins here.
fn literal(rest: &str, before: Option<char>) -> Option<usize> {
    if rest.starts_with('"') {
        return Some(quoted(rest, '"'));
    }
    if rest.starts_with('\'') {
        let inner: Vec<char> = rest.chars().skip(1).take(2).collect();
        // A lifetime has no quote behind its first character.
        return if inner.first() == Some(&'\\') || inner.get(1) == Some(&'\'') {
            Some(quoted(rest, '\''))
        } else {
            None
        };
    }
    if before.is_some_and(is_word_char) {
        return None;
    }
    let prefix = rest.find(|c| !matches!(c, 'b' | 'c' | 'r'))?;
    let raw = rest.get(..prefix)?;
    let marks = rest[prefix..].chars().take_while(|c| *c == '#').count();
    let body = rest[prefix + marks..].strip_prefix('"')?;
    if !raw.contains('r') {
        return None;
    }
    let end = format!("\"{}", "#".repeat(marks));
    let length = body.find(&end).map_or(body.len(), |at| at + end.len());
    Some(prefix + marks + 1 + length)
}

/// The length of a literal with escapes between quotes.
fn quoted(rest: &str, quote: char) -> usize {
    let mut characters = rest.char_indices().skip(1);
    while let Some((at, c)) = characters.next() {
        if c == '\\' {
            characters.next();
        } else if c == quote {
            return at + c.len_utf8();
        }
    }
    rest.len()
}
