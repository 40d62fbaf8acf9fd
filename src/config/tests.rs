//! Tests of the configuration: fixture files with their golden problems, and what good ones mean.
//!
//! `UPDATE_EXPECT=1 cargo test config::` writes the golden texts anew.

mod documents;
mod entries;
mod fixtures;
mod meaning;
mod succession;
