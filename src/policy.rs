//! What may be seen and done: the class of each item, and one decision for lists, calls and reads alike.
//!
//! Pure, and asked for every item: an item is listed if and only if it can be called. What is refused by no scope
//! that could cure it is hidden, and then looks like something that does not exist.

mod decide;

pub use crate::config::Class;
pub use decide::{Asked, Decision, Ruling, about, classify, decide, decide_by, is_about};

#[cfg(test)]
mod tests;
