//! Log set-up and the registry of metrics.
//!
//! Modules define their own numbers and register them here; this one only holds the registry and writes it out.
//! Logs go to standard error: standard output belongs to results.

mod registry;
mod tracing;

pub use self::registry::Registry;
pub use self::tracing::init_tracing;

#[cfg(test)]
mod tests;
