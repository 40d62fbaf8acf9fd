//! As much HTTP as a benchmark needs.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpStream;

/// The head of a message, in lower case, with the empty line that ends it; `None` at the end of the connection.
pub(crate) fn read_head(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut head = String::new();
    loop {
        let read = stream.read_line(&mut head).ok()?;
        if read == 0 {
            return None;
        }
        if head.ends_with("\r\n\r\n") {
            return Some(head.to_ascii_lowercase());
        }
    }
}

/// The body that the head announces.
pub(crate) fn read_body(stream: &mut BufReader<TcpStream>, head: &str) -> String {
    let length =
        head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a content length");
    let mut body = vec![0; length.trim().parse().expect("a number")];
    stream.read_exact(&mut body).expect("a body");
    String::from_utf8(body).expect("text")
}

/// What stands between a text and the first of some characters.
pub(crate) fn between<'t>(text: &'t str, open: &str, close: &[char]) -> Option<&'t str> {
    let (_, rest) = text.split_once(open)?;
    rest.split(close).next()
}
