//! One pass over untrusted JSON: its syntax, and what a parser does not refuse.

use std::ops::Range;

use memchr::{memchr2, memmem};

use super::Error;

/// Deepest nesting of arrays and objects that Weir reads or forwards.
pub const MAX_DEPTH: usize = 64;

/// Where an object has so many members, or more, the places that are noted are not all.
pub(super) const MOST_MEMBERS: usize = 12;

/// So much of a string is looked at word by word: most are shorter.
const SHORT: usize = 64;
/// So much of a longer one is looked at in one go, in bytes: it stays in the nearest cache for the second look.
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
    scan_members(bytes).map(|(text, _members)| text)
}

/// A text that holds a word. What does not is not opened to look for a member of that name; only who writes it with an
/// escape, which no program does, is missed. `None` also for bytes that are not UTF-8.
#[must_use]
pub fn mentioning<'t>(bytes: &'t [u8], word: &str) -> Option<&'t str> {
    memmem::find(bytes, word.as_bytes())?;
    std::str::from_utf8(bytes).ok()
}

/// Where the members of an object stand that is the whole text: each key without its quotes, and each value.
pub(super) type Members = Vec<(Range<usize>, Range<usize>)>;

/// As [`scan`], and where the members are of a document that is an object; of more than [`MOST_MEMBERS`] the first ones.
///
/// # Errors
/// As [`scan`].
pub(super) fn scan_members(bytes: &[u8]) -> Result<(&str, Members), Error> {
    let text = std::str::from_utf8(bytes).map_err(|_why| Error::Parse)?;
    let mut scanner = Scanner::of(bytes);
    scanner.document()?;
    Ok((text, scanner.members))
}

/// Where the first quote, backslash or control character stands that ends or breaks a string, if it has one.
pub(super) fn special(text: &[u8]) -> Option<usize> {
    let short = text.get(..SHORT).unwrap_or(text);
    if let found @ Some(_) = among_words(short) {
        return found;
    }
    let mut at = short.len();
    while let rest @ [_, ..] = text.get(at..).unwrap_or_default() {
        let block = rest.get(..BLOCK).unwrap_or(rest);
        let found = memchr2(b'"', b'\\', block);
        let plain = block.get(..found.unwrap_or(block.len())).unwrap_or_default();
        // Without a way out in the middle, so that many bytes are looked at at once.
        if plain.iter().fold(false, |found, byte| found | (*byte < b' ')) {
            return plain.iter().position(|byte| *byte < b' ').map(|control| at + control);
        }
        if let Some(found) = found {
            return Some(at + found);
        }
        at += block.len();
    }
    None
}

/// As [`special`], eight bytes at a time.
fn among_words(text: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    const HIGHEST: u64 = ONES << 7;
    let (words, rest) = text.as_chunks::<8>();
    for (number, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let is = |byte: u8| word ^ (ONES * u64::from(byte));
        // The highest bit of the first byte that is zero, or below a space, and of no byte before it.
        let zero = |word: u64| word.wrapping_sub(ONES) & !word;
        let control = word.wrapping_sub(ONES * u64::from(b' ')) & !word;
        let found = (zero(is(b'"')) | zero(is(b'\\')) | control) & HIGHEST;
        if found != 0 {
            return usize::try_from(found.trailing_zeros() / 8).ok().map(|byte| number * 8 + byte);
        }
    }
    let found = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | ..b' '));
    found.map(|found| words.len() * 8 + found)
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
    members: Members,
}

impl<'b> Scanner<'b> {
    fn of(bytes: &'b [u8]) -> Self {
        Self { bytes, at: 0, open: Open::default(), members: Members::with_capacity(6) }
    }
}

impl Scanner<'_> {
    fn document(&mut self) -> Result<(), Error> {
        loop {
            if !self.begins_value()? && self.ends()? {
                return Ok(());
            }
        }
    }

    /// Passes over what may follow a value: true at the end of the document, false where another value must follow.
    fn ends(&mut self) -> Result<bool, Error> {
        loop {
            self.note_end();
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
        self.note_begin();
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
        let begin = self.at;
        self.string()?;
        self.note_key(begin..self.at - 1);
        if self.sign() != Some(b':') {
            return Err(Error::Parse);
        }
        self.at += 1;
        Ok(())
    }

    /// Whether what is passed over is a member of the document itself, and one of those that are noted.
    fn is_outermost(&self) -> bool {
        self.open.depth == 1 && self.open.is_object() && self.members.len() < MOST_MEMBERS
    }

    fn note_key(&mut self, key: Range<usize>) {
        if self.is_outermost() {
            self.members.push((key, 0..0));
        }
    }

    fn note_begin(&mut self) {
        if self.is_outermost()
            && let Some((_, value)) = self.members.last_mut()
        {
            *value = self.at..self.at;
        }
    }

    fn note_end(&mut self) {
        if self.is_outermost()
            && let Some((_, value)) = self.members.last_mut()
        {
            value.end = self.at;
        }
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
            let found = special(rest).ok_or(Error::Parse)?;
            self.at += found;
            let follows = high.take().map(|end: usize| end == self.at);
            self.at += 1;
            let is_end = match rest.get(found) {
                Some(b'"') => true,
                Some(b'\\') => false,
                _ => return Err(Error::Parse),
            };
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
