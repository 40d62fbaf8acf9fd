//! One pass over untrusted JSON for what the parser of raw values does not refuse.

use memchr::memchr2;

use super::Error;

/// Deepest nesting of arrays and objects that Weir reads or forwards.
pub const MAX_DEPTH: usize = 64;

/// Checks bytes before they are read: UTF-8, nesting, and escapes of lone surrogates.
///
/// Takes the body as it came; returns it as text.
///
/// # Errors
/// [`Error::Parse`] for bytes that are not UTF-8 or hold a lone surrogate escape, [`Error::Depth`] for nesting
/// deeper than [`MAX_DEPTH`]. Whether the text is JSON at all is for the parser to say.
pub fn scan(bytes: &[u8]) -> Result<&str, Error> {
    let text = std::str::from_utf8(bytes).map_err(|_why| Error::Parse)?;
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'[' | b'{' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Err(Error::Depth);
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' => at += string(bytes.get(at..).unwrap_or_default())?,
            _ => {}
        }
    }
    Ok(text)
}

/// Checks the surrogate escapes of a string, of which the first quote has been read; how long it is with the last one.
/// What stands between escapes is not looked at byte by byte: strings are most of what there is.
fn string(rest: &[u8]) -> Result<usize, Error> {
    let mut at = 0;
    // Where the escape of a high surrogate ended, if that is what came last: its other half stands there.
    let mut high = None;
    while let Some(found) = memchr2(b'"', b'\\', rest.get(at..).unwrap_or_default()) {
        at += found;
        let follows = high.take().map(|end: usize| end == at);
        let unit = match (rest.get(at), rest.get(at + 1)) {
            (Some(b'"'), _) => {
                return if follows.is_some() { Err(Error::Parse) } else { Ok(at + 1) };
            }
            (_, Some(b'u')) => Some(code_unit(rest.get(at + 2..).unwrap_or_default())?),
            _ => None,
        };
        at += if unit.is_some() { 6 } else { 2 };
        match (follows, unit) {
            (None, Some(0xD800..=0xDBFF)) => high = Some(at),
            (Some(true), Some(0xDC00..=0xDFFF)) => {}
            (Some(_), _) | (None, Some(0xDC00..=0xDFFF)) => return Err(Error::Parse),
            (None, _) => {}
        }
    }
    // The end of a string that is not closed is for the parser to see, half a pair is not.
    if high.is_some() { Err(Error::Parse) } else { Ok(rest.len()) }
}

fn code_unit(digits: &[u8]) -> Result<u32, Error> {
    let digits = digits.get(..4).ok_or(Error::Parse)?;
    digits.iter().try_fold(0, |unit, byte| {
        let digit = char::from(*byte).to_digit(16).ok_or(Error::Parse)?;
        Ok(unit * 16 + digit)
    })
}
