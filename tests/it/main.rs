//! The integration tests.

mod tidy;
