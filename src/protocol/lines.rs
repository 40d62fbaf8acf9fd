//! Messages on lines, in and out (2025-11-25 and 2026-07-28, transports, "stdio").
//!
//! [`LineDecoder`] is fed chunks as they come and gives whole lines; where a chunk is cut does not matter.

use bytes::{Bytes, BytesMut};

use super::sse::TooLong;

/// Turns the bytes of a pipe into lines.
#[derive(Debug)]
pub struct LineDecoder {
    largest: usize,
    /// The beginning of a line whose end has not come yet.
    begun: BytesMut,
}

impl LineDecoder {
    /// A decoder that refuses lines of more than this many bytes.
    #[must_use]
    pub fn new(largest: usize) -> Self {
        Self { largest, begun: BytesMut::new() }
    }

    /// Takes the next bytes; gives the lines that end in them, without their ends.
    ///
    /// # Errors
    /// [`TooLong`] for a line above the limit, whether or not its end has come. The pipe cannot be read any further.
    pub fn feed(&mut self, chunk: &[u8]) -> Result<Vec<Bytes>, TooLong> {
        let mut lines = Vec::new();
        let mut rest = chunk;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, after) = rest.split_at(end);
            self.take(line)?;
            lines.push(self.begun.split().freeze());
            rest = after.get(1..).unwrap_or_default();
        }
        self.take(rest)?;
        Ok(lines)
    }

    /// The line that the end of the pipe ended, if there is one.
    #[must_use]
    pub fn finish(self) -> Option<Bytes> {
        (!self.begun.is_empty()).then(|| self.begun.freeze())
    }

    fn take(&mut self, part: &[u8]) -> Result<(), TooLong> {
        if self.begun.len() + part.len() > self.largest {
            return Err(TooLong);
        }
        self.begun.extend_from_slice(part);
        Ok(())
    }
}

/// A message on one line, with its end, whatever it looked like. Within texts JSON has no raw line ends, so those that
/// there are stand between values.
#[must_use]
pub fn encode_line(message: String) -> String {
    let mut line = if message.contains(['\n', '\r']) { message.replace(['\n', '\r'], " ") } else { message };
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::{LineDecoder, encode_line};

    #[test]
    fn lines_are_whole_wherever_they_are_cut() {
        let text = b"one\n\ntwo \xff\r\nthree";
        let whole = LineDecoder::new(8).feed(text).unwrap();
        assert_eq!(whole, [&b"one"[..], b"", b"two \xff\r"]);
        let mut cut = LineDecoder::new(8);
        let pieces: Vec<_> = text.chunks(1).flat_map(|byte| cut.feed(byte).unwrap()).collect();
        assert_eq!(pieces, whole);
        assert_eq!(cut.finish().as_deref(), Some(&b"three"[..]));
        assert!(LineDecoder::new(2).feed(b"abc").is_err(), "before its end has come");
    }

    #[test]
    fn a_message_goes_out_on_one_line() {
        assert_eq!(encode_line("{\r\n\"a\":\n1}".to_owned()), "{  \"a\": 1}\n");
        assert_eq!(encode_line("{}".to_owned()), "{}\n");
    }
}
