//! The integration tests: the built binary between fake servers and raw clients, over real sockets.
//!
//! Each module holds the tests of one promise; names begin with the row of the list of cases that they show.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]
#![expect(clippy::panic, clippy::indexing_slicing, reason = "a test that cannot go on fails")]

mod support;

mod access;
mod addresses;
mod availability;
mod bytes;
mod chaos;
mod cli;
mod demonstration;
mod doors;
mod drain;
mod failure;
mod fidelity;
mod fixtures;
mod hostile;
mod list_changed;
mod matrix;
mod message;
mod metrics;
mod modern;
mod naming;
mod paging;
mod prompts;
mod questions;
mod reload;
mod resources;
mod resume;
mod session;
mod status;
mod stdio;
mod stream;
mod tasks;
mod tidy;
mod tokens;
mod transport;
mod updates;
