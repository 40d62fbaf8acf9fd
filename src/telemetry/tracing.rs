//! Where log lines go and how they look.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::{LogFormat, Telemetry};

/// Sets up logging for the process. The first call wins; returns whether this one did.
///
/// Takes the configured format and level; writes to standard error only. Never panics.
pub fn init_tracing(telemetry: &Telemetry) -> bool {
    let lines =
        tracing_subscriber::fmt().with_env_filter(filter(&telemetry.level)).with_writer(std::io::stderr);
    match telemetry.format {
        LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).finish().try_init().is_ok(),
        LogFormat::Json => lines.json().flatten_event(true).finish().try_init().is_ok(),
    }
}

/// The filter for a level. A bare level is meant for Weir's own lines: what libraries say below `warn` is noise and
/// may hold whole addresses. Anything else is a filter directive as it stands, and nonsense counts as `info`.
pub(super) fn filter(level: &str) -> EnvFilter {
    let directive = match level.trim().to_ascii_lowercase().as_str() {
        level @ ("info" | "debug" | "trace") => format!("warn,weir={level}"),
        _ => level.to_owned(),
    };
    EnvFilter::try_new(directive).unwrap_or_else(|_unreadable| EnvFilter::new("warn,weir=info"))
}
