//! HTTP/1.1 as bytes, for both ends of a test.
//!
//! Heads and bodies are read by hand, so that a test sees exactly what was written and may write what no library
//! would. No client or server of the program under test is used here.

use std::io::{self, BufRead, Read};

/// A head: its first line and its fields in the order and spelling in which they came.
#[derive(Debug, Clone, Default)]
pub(crate) struct Head {
    /// Request line or status line.
    pub(crate) first: String,
    /// The fields.
    pub(crate) fields: Vec<(String, String)>,
}

impl Head {
    /// Reads a head; `None` when the peer closed before its first byte.
    pub(crate) fn read(from: &mut impl BufRead) -> io::Result<Option<Self>> {
        let Some(first) = line(from)? else { return Ok(None) };
        let mut fields = Vec::new();
        loop {
            let text = line(from)?.ok_or(io::ErrorKind::UnexpectedEof)?;
            if text.is_empty() {
                return Ok(Some(Self { first, fields }));
            }
            let (name, value) = text.split_once(':').ok_or(io::ErrorKind::InvalidData)?;
            fields.push((name.to_owned(), value.trim().to_owned()));
        }
    }

    /// The value of the first field of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// How many fields have this name.
    pub(crate) fn count(&self, name: &str) -> usize {
        self.fields.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name)).count()
    }

    /// The word of the first line at this place.
    pub(crate) fn word(&self, at: usize) -> &str {
        self.first.split(' ').nth(at).unwrap_or_default()
    }
}

fn line(from: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    if from.read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&bytes);
    Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
}

/// How a body ends.
#[derive(Debug, Clone, Copy)]
enum Left {
    /// After this many bytes.
    Length(usize),
    /// With an empty chunk; the number is what the present chunk still holds.
    Chunk(usize),
    /// With the connection.
    ToEnd,
    /// It has ended.
    Nothing,
}

/// A body behind a head, decoded while it is read.
#[derive(Debug)]
pub(crate) struct Body<R> {
    from: R,
    left: Left,
}

impl<R: BufRead> Body<R> {
    /// The body of a request: without a length it is empty.
    pub(crate) fn of_request(head: &Head, from: R) -> Self {
        Self { left: Self::framing(head).unwrap_or(Left::Nothing), from }
    }

    /// The body of an answer: without a length it ends with the connection.
    pub(crate) fn of_answer(head: &Head, from: R) -> Self {
        let none = matches!(head.word(1), "204" | "304");
        let left = if none { Left::Nothing } else { Self::framing(head).unwrap_or(Left::ToEnd) };
        Self { left, from }
    }

    fn framing(head: &Head) -> Option<Left> {
        if head.get("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
            return Some(Left::Chunk(0));
        }
        head.get("content-length").and_then(|value| value.parse().ok()).map(Left::Length)
    }

    fn next_chunk(&mut self) -> io::Result<usize> {
        let text = line(&mut self.from)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let size = text.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).map_err(io::Error::other)?;
        if size == 0 {
            while line(&mut self.from)?.is_some_and(|text| !text.is_empty()) {}
        }
        Ok(size)
    }

    fn take(&mut self, into: &mut [u8], most: usize) -> io::Result<usize> {
        let size = into.len().min(most);
        let read = self.from.read(into.get_mut(..size).unwrap_or_default())?;
        if read == 0 && size > 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(read) }
    }
}

impl<R: BufRead> Read for Body<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.left {
            Left::Nothing | Left::Length(0) => Ok(0),
            Left::ToEnd => self.from.read(into),
            Left::Length(left) => {
                let read = self.take(into, left)?;
                self.left = Left::Length(left - read);
                Ok(read)
            }
            Left::Chunk(0) => match self.next_chunk()? {
                0 => {
                    self.left = Left::Nothing;
                    Ok(0)
                }
                size => {
                    self.left = Left::Chunk(size);
                    self.read(into)
                }
            },
            Left::Chunk(left) => {
                let read = self.take(into, left)?;
                self.left = Left::Chunk(left - read);
                if left == read {
                    line(&mut self.from)?;
                }
                Ok(read)
            }
        }
    }
}
