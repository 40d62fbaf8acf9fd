//! One pass over untrusted JSON for what the parser of raw values does not refuse.

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
    let mut rest = bytes.iter().copied();
    while let Some(byte) = rest.next() {
        match byte {
            b'[' | b'{' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Err(Error::Depth);
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' => string(&mut rest)?,
            _ => {}
        }
    }
    Ok(text)
}

/// Walks to the end of a string and checks its surrogate escapes.
fn string(rest: &mut impl Iterator<Item = u8>) -> Result<(), Error> {
    let mut high = false;
    while let Some(byte) = rest.next() {
        let unit = match byte {
            b'"' => return if high { Err(Error::Parse) } else { Ok(()) },
            b'\\' => match rest.next() {
                Some(b'u') => Some(code_unit(rest)?),
                _ => None,
            },
            _ => None,
        };
        high = match (high, unit) {
            (false, Some(0xD800..=0xDBFF)) => true,
            (true, Some(0xDC00..=0xDFFF)) => false,
            (true, _) | (false, Some(0xDC00..=0xDFFF)) => return Err(Error::Parse),
            (false, _) => false,
        };
    }
    Ok(())
}

fn code_unit(rest: &mut impl Iterator<Item = u8>) -> Result<u32, Error> {
    let mut unit = 0;
    for _ in 0..4 {
        let digit = rest.next().and_then(|byte| char::from(byte).to_digit(16)).ok_or(Error::Parse)?;
        unit = unit * 16 + digit;
    }
    Ok(unit)
}
