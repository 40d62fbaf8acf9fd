//! Who hears of changes, and when.
//!
//! The hub reads the same watch that requests read, so a client that hears of a change and lists at once sees at
//! least that generation. A subscriber has a pending *set* of changes, not a queue: it cannot overflow and a slow
//! client costs nothing. Whoever sees the change hears one announcement; nobody else hears anything.

mod changes;
mod debounce;
mod hub;
mod metrics;
mod subscriber;

pub use changes::Changes;
pub use hub::{Hub, Subscription};
pub use metrics::Metrics;
pub use subscriber::Subscriber;

#[cfg(test)]
mod tests;
