//! Integration tests: the built binary over real sockets.

fn main() {}
