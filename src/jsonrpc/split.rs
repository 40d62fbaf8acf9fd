//! Taking an object apart whose text has been read as JSON before.
//!
//! A message is read with all its syntax once, when it comes. What lies inside it is opened many times on its way, and
//! then only where a member begins and ends has to be found.

use std::borrow::Cow;

use super::scan::{MOST_MEMBERS, special};

/// The members of an object, keys without their quotes, values as raw text. `None` where the reader has to look: for what
/// is no object, for keys with escapes, equal keys and many keys.
pub(super) fn split(text: &str) -> Option<Vec<(Cow<'_, str>, &str)>> {
    let bytes = text.as_bytes();
    let mut members: Vec<(Cow<'_, str>, &str)> = Vec::with_capacity(8);
    let mut at = sign(bytes, 0, b'{')?;
    if sign(bytes, at, b'}').is_none() {
        loop {
            let begin = space(bytes, at);
            let end = string(bytes, begin)?;
            let key = text.get(begin + 1..end - 1).filter(|key| !key.contains('\\'))?;
            let begin = space(bytes, sign(bytes, end, b':')?);
            let end = value(bytes, begin)?;
            if members.len() == MOST_MEMBERS || members.iter().any(|(known, _)| known == key) {
                return None;
            }
            members.push((Cow::Borrowed(key), text.get(begin..end)?));
            match sign(bytes, end, b',') {
                Some(next) => at = next,
                None => {
                    at = end;
                    break;
                }
            }
        }
    }
    let end = sign(bytes, at, b'}')?;
    (space(bytes, end) == bytes.len()).then_some(members)
}

/// Where white space ends.
fn space(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

/// Behind a sign that comes next.
fn sign(bytes: &[u8], at: usize, sign: u8) -> Option<usize> {
    let at = space(bytes, at);
    (bytes.get(at) == Some(&sign)).then_some(at + 1)
}

/// Behind a string.
fn string(bytes: &[u8], begin: usize) -> Option<usize> {
    bytes.get(begin).filter(|byte| **byte == b'"')?;
    let mut at = begin + 1;
    loop {
        at += special(bytes.get(at..)?)?;
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => return None,
        }
    }
}

/// Behind a value.
fn value(bytes: &[u8], begin: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = begin;
    loop {
        match bytes.get(at)? {
            b'"' => at = string(bytes, at)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' if depth > 0 => {
                depth -= 1;
                at += 1;
            }
            b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r' if depth == 0 => {
                return (at > begin).then_some(at);
            }
            _ => at += 1,
        }
        // The end of a string or a bracket is the end of a value; that of a number is seen by what follows.
        let is_closed = matches!(bytes.get(at - 1), Some(b'"' | b'}' | b']'));
        if depth == 0 && is_closed {
            return Some(at);
        }
    }
}
