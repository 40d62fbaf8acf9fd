//! Writing to the two standard streams. A reader that went away is no error of ours.

use std::io::Write as _;

/// Writes a line of the result and flushes it.
pub(super) fn out(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let written = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
    // A pipe that was closed (`weir list | head`) ends the output, not the command.
    drop(written);
}

/// Writes a line of diagnostics.
pub(super) fn err(text: &str) {
    let written = writeln!(std::io::stderr().lock(), "{text}");
    drop(written);
}

/// A text of somebody else on one line, without control characters.
pub(super) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
