//! What may be done: one pure decision on rights and item.
//!
//! It never awaits, never looks at a request, and gives the same answer to lists, calls and announcements.

mod decide;

pub use decide::{Class, Decision, classify, decide};

#[cfg(test)]
mod tests;
