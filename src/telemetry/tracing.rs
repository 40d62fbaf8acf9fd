//! Where log lines go and how they look.

use std::fmt;
use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::reload::Handle;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::{LogFormat, Telemetry};

/// The level of the log, which may change while Weir runs.
pub struct LogLevel(Box<dyn Fn(EnvFilter) -> bool + Send + Sync>);

impl fmt::Debug for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogLevel").finish_non_exhaustive()
    }
}

impl LogLevel {
    fn of<S: 'static>(handle: Handle<EnvFilter, S>) -> Self {
        Self(Box::new(move |filter| handle.reload(filter).is_ok()))
    }

    /// Logs by the level of this configuration from now on. False where nobody logs any more.
    pub fn follow(&self, telemetry: &Telemetry) -> bool {
        (self.0)(filter(&telemetry.level))
    }
}

/// Sets up logging for the process. The first call wins; `None` where this one did not.
///
/// Takes the configured format and level; writes to standard error only. Never panics.
pub fn init_tracing(telemetry: &Telemetry) -> Option<LogLevel> {
    let lines = tracing_subscriber::fmt().with_writer(std::io::stderr);
    let filter = filter(&telemetry.level);
    match telemetry.format {
        LogFormat::Text => {
            let lines = lines.with_ansi(std::io::stderr().is_terminal());
            let lines = lines.with_env_filter(filter).with_filter_reloading();
            let level = LogLevel::of(lines.reload_handle());
            lines.finish().try_init().is_ok().then_some(level)
        }
        LogFormat::Json => {
            let lines = lines.json().flatten_event(true).with_env_filter(filter).with_filter_reloading();
            let level = LogLevel::of(lines.reload_handle());
            lines.finish().try_init().is_ok().then_some(level)
        }
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
