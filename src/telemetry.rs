//! Log set-up, the registry of metrics, and the audit log.
//!
//! Modules define their own numbers and register them here; this one only holds the registry and writes it out.
//! Logs go to standard error: standard output belongs to results.

mod audit;
mod clock;
mod registry;
mod tracing;

pub use self::audit::{AuditLine, AuditLog, AuditPrincipal, Slot, Unwritable};
pub use self::clock::watch_clock;
pub use self::registry::Registry;
pub use self::tracing::{LogLevel, init_tracing};

#[cfg(test)]
mod tests;
