//! One pass over untrusted JSON: its syntax, and what a parser does not refuse.

use memchr::memchr2;

use super::Error;

/// Deepest nesting of arrays and objects that Weir reads or forwards.
pub const MAX_DEPTH: usize = 64;

/// So much of a string is looked at in one go, in bytes: it stays in the nearest cache for the second look.
const BLOCK: usize = 4096;

/// Checks bytes before they are read: UTF-8, the syntax of one JSON document (RFC 8259), nesting, and escapes of lone
/// surrogates. What passes is taken apart afterwards without another look at its syntax.
///
/// Takes the body as it came; returns it as text.
///
/// # Errors
/// [`Error::Parse`] for bytes that are not UTF-8 or not one JSON document, or hold a lone surrogate escape;
/// [`Error::Depth`] for nesting deeper than [`MAX_DEPTH`].
pub fn scan(bytes: &[u8]) -> Result<&str, Error> {
    let text = std::str::from_utf8(bytes).map_err(|_why| Error::Parse)?;
    Scanner { bytes, at: 0, open: Open::default() }.document()?;
    Ok(text)
}

/// The brackets that are open.
#[derive(Default)]
struct Open {
    depth: usize,
    /// One bit for each, the innermost the lowest: set for an object.
    kinds: u64,
}

impl Open {
    fn enter(&mut self, is_object: bool) -> Result<(), Error> {
        if self.depth == MAX_DEPTH {
            return Err(Error::Depth);
        }
        self.depth += 1;
        self.kinds = self.kinds << 1 | u64::from(is_object);
        Ok(())
    }

    fn leave(&mut self) {
        self.depth -= 1;
        self.kinds >>= 1;
    }

    fn is_object(&self) -> bool {
        self.kinds & 1 == 1
    }
}

struct Scanner<'b> {
    bytes: &'b [u8],
    at: usize,
    open: Open,
}

impl Scanner<'_> {
    fn document(mut self) -> Result<(), Error> {
        loop {
            if !self.begins_value()? && self.ends()? {
                return Ok(());
            }
        }
    }

    /// Passes over what may follow a value: true at the end of the document, false where another value must follow.
    fn ends(&mut self) -> Result<bool, Error> {
        loop {
            let next = self.sign();
            match (next, self.open.depth, self.open.is_object()) {
                (None, 0, _) => return Ok(true),
                (_, 0, _) => return Err(Error::Parse),
                (Some(b','), _, true) => {
                    self.at += 1;
                    return self.key().map(|()| false);
                }
                (Some(b','), _, false) => {
                    self.at += 1;
                    return Ok(false);
                }
                (Some(b'}'), _, true) | (Some(b']'), _, false) => {
                    self.at += 1;
                    self.open.leave();
                }
                _ => return Err(Error::Parse),
            }
        }
    }

    /// Passes over a value, or over the beginning of one: true where a value must follow that stands in it.
    fn begins_value(&mut self) -> Result<bool, Error> {
        let first = self.sign().ok_or(Error::Parse)?;
        self.at += 1;
        match first {
            b'"' => self.string()?,
            b'{' => {
                self.open.enter(true)?;
                if self.sign() != Some(b'}') {
                    self.key()?;
                    return Ok(true);
                }
                self.at += 1;
                self.open.leave();
            }
            b'[' => {
                self.open.enter(false)?;
                if self.sign() != Some(b']') {
                    return Ok(true);
                }
                self.at += 1;
                self.open.leave();
            }
            b't' => self.word(b"rue")?,
            b'f' => self.word(b"alse")?,
            b'n' => self.word(b"ull")?,
            b'-' | b'0'..=b'9' => self.number(first)?,
            _ => return Err(Error::Parse),
        }
        Ok(false)
    }

    /// The next byte that is no white space; it is not passed over.
    fn sign(&mut self) -> Option<u8> {
        loop {
            match self.bytes.get(self.at)? {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                sign => return Some(*sign),
            }
        }
    }

    fn byte(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// The name of a member, and the colon behind it.
    fn key(&mut self) -> Result<(), Error> {
        if self.sign() != Some(b'"') {
            return Err(Error::Parse);
        }
        self.at += 1;
        self.string()?;
        if self.sign() != Some(b':') {
            return Err(Error::Parse);
        }
        self.at += 1;
        Ok(())
    }

    fn word(&mut self, rest: &[u8]) -> Result<(), Error> {
        let is_there = self.bytes.get(self.at..).is_some_and(|bytes| bytes.starts_with(rest));
        self.at += rest.len();
        if is_there { Ok(()) } else { Err(Error::Parse) }
    }

    fn number(&mut self, first: u8) -> Result<(), Error> {
        let first = if first == b'-' {
            self.at += 1;
            self.bytes.get(self.at - 1).copied()
        } else {
            Some(first)
        };
        match first {
            Some(b'0') => {}
            Some(b'1'..=b'9') => self.digits(),
            _ => return Err(Error::Parse),
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.some_digits()?;
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.byte(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.some_digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) {
        while self.byte().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
    }

    fn some_digits(&mut self) -> Result<(), Error> {
        let begin = self.at;
        self.digits();
        if self.at > begin { Ok(()) } else { Err(Error::Parse) }
    }

    /// A string, of which the first quote has been passed over. What stands between escapes is not looked at byte by byte:
    /// strings are most of what there is.
    fn string(&mut self) -> Result<(), Error> {
        // Where the escape of a high surrogate ended, if that is what came last: its other half stands there.
        let mut high = None;
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let block = rest.get(..BLOCK).unwrap_or(rest);
            let found = memchr2(b'"', b'\\', block);
            let plain = block.get(..found.unwrap_or(block.len())).unwrap_or_default();
            // Without a way out in the middle, so that many bytes are looked at at once.
            if plain.iter().fold(false, |found, byte| found | (*byte < b' ')) || block.is_empty() {
                return Err(Error::Parse);
            }
            self.at += plain.len();
            let Some(found) = found else { continue };
            let follows = high.take().map(|end: usize| end == self.at);
            self.at += 1;
            let is_end = block.get(found) == Some(&b'"');
            match (follows, if is_end { None } else { self.escape()? }) {
                (None, _) if is_end => return Ok(()),
                (None, Some(0xD800..=0xDBFF)) => high = Some(self.at),
                (Some(true), Some(0xDC00..=0xDFFF)) => {}
                (Some(_), _) | (None, Some(0xDC00..=0xDFFF)) => return Err(Error::Parse),
                (None, _) => {}
            }
        }
    }

    /// An escape behind its backslash; the code unit that it gives by number.
    fn escape(&mut self) -> Result<Option<u32>, Error> {
        let kind = self.byte();
        self.at += 1;
        match kind {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(None),
            Some(b'u') => {
                let digits = self.bytes.get(self.at..self.at + 4).ok_or(Error::Parse)?;
                self.at += 4;
                let unit = digits.iter().try_fold(0, |unit, byte| {
                    let digit = char::from(*byte).to_digit(16).ok_or(Error::Parse)?;
                    Ok(unit * 16 + digit)
                });
                unit.map(Some)
            }
            _ => Err(Error::Parse),
        }
    }
}
