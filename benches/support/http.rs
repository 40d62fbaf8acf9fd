//! As much HTTP as a benchmark needs.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpStream;

/// A request of a client that takes both forms of answers; `head` are further lines of its head.
pub(crate) fn request(verb: &str, path: &str, head: &str, body: &str) -> String {
    format!(
        "{verb} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\n{head}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// The head of a message, as it came, with the empty line that ends it; `None` at the end of the connection.
pub(crate) fn read_head(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut head = String::new();
    loop {
        let read = stream.read_line(&mut head).ok()?;
        if read == 0 {
            return None;
        }
        if head.ends_with("\r\n\r\n") {
            return Some(head);
        }
    }
}

/// The value of a header.
pub(crate) fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// The body that the head announces, by its length or in chunks.
pub(crate) fn read_body(stream: &mut BufReader<TcpStream>, head: &str) -> String {
    if let Some(length) = header(head, "content-length") {
        return read_text(stream, length.parse().expect("a number"));
    }
    let mut body = String::new();
    if header(head, "transfer-encoding").is_none() {
        return body;
    }
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).expect("the length of a chunk");
        let length = usize::from_str_radix(line.trim(), 16).expect("a hexadecimal number");
        body.push_str(&read_text(stream, length));
        read_text(stream, 2);
        if length == 0 {
            return body;
        }
    }
}

fn read_text(stream: &mut BufReader<TcpStream>, length: usize) -> String {
    let mut body = vec![0; length];
    stream.read_exact(&mut body).expect("a body");
    String::from_utf8(body).expect("text")
}

/// What stands between a text and the first of some characters.
pub(crate) fn between<'t>(text: &'t str, open: &str, close: &[char]) -> Option<&'t str> {
    let (_, rest) = text.split_once(open)?;
    rest.split(close).next()
}
