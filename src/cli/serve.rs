//! `weir serve`.

use std::path::Path;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::print::{err, out};
use super::{Exit, ServeArguments};
use crate::app::{App, Orders, Start, chain, summary};
use crate::config::{self, DefaultDecision, Loaded, Problems};
use crate::source::{FileSource, Read};
use crate::telemetry;

/// Serves until a signal says stop.
pub(super) async fn run(arguments: &ServeArguments) -> Exit {
    let (loaded, source) = match load(arguments) {
        Ok(loaded) => loaded,
        Err(exit) => return exit,
    };
    let log_level = telemetry::init_tracing(&loaded.config.telemetry);
    let config = &loaded.config;
    let open = config.access.is_open();
    if open {
        tracing::warn!(
            event = "auth.disabled",
            "access is open: whoever reaches the listener may call everything"
        );
    }
    for route in config.routes.iter().filter(|_| !open) {
        if route.policy.default == DefaultDecision::Deny && route.policy.rules.is_empty() {
            tracing::warn!(event = "authz.no_rules", route = %route.name, "default: deny without a rule allows nothing");
        }
    }
    let paths: Vec<String> = config.routes.iter().map(|route| route.path.clone()).collect();
    let helpful = open && config.listen.address.ip().is_loopback();
    // Before anything is bound or printed: whoever reads the lines may send a signal at once.
    let Ok(signals) = Signals::new() else {
        err("weir: signals cannot be received");
        return Exit::Failure;
    };
    match App::bind(Start { loaded, source, log_level }).await {
        Ok(app) => {
            let orders = Orders::default();
            let signals = signals.give(&orders);
            Box::pin(serve(app, &Lines { paths, helpful }, &orders, signals)).await
        }
        Err(error) => {
            err(&format!("weir: {}", chain(&error)));
            Exit::Failure
        }
    }
}

/// The configuration that the contract names, with overrides applied, and where it may come from again.
fn load(arguments: &ServeArguments) -> Result<(Loaded, Option<(FileSource, Read)>), Exit> {
    let default = Path::new("routes.yaml");
    let path = arguments.config.as_deref().or_else(|| default.exists().then_some(default));
    let (outcome, source) = match path {
        Some(path) => {
            let source =
                FileSource { path: path.to_path_buf(), listen: arguments.listen, admin: arguments.admin };
            let (outcome, read) = source.load();
            (outcome, Some((source, read)))
        }
        None => {
            err("no --config and no ./routes.yaml: serving the built-in demonstration, on loopback only");
            let config = config::overridden(config::demonstration(), arguments.listen, arguments.admin);
            (config.map(|config| Loaded { config, warnings: Problems::default() }), None)
        }
    };
    match outcome {
        Ok(loaded) => {
            if !loaded.warnings.is_empty() {
                err(loaded.warnings.to_string().trim_end());
            }
            Ok((loaded, source))
        }
        Err(problems) => {
            err(problems.to_string().trim_end());
            Err(Exit::Unusable)
        }
    }
}

/// What is said once Weir serves.
struct Lines {
    paths: Vec<String>,
    /// Whether to say how to connect a client.
    helpful: bool,
}

async fn serve(app: App, lines: &Lines, orders: &Orders, signals: impl Future<Output = ()>) -> Exit {
    let (Ok(mcp), Ok(admin)) = (app.mcp_address(), app.admin_address()) else {
        err("weir: the listener has no address");
        return Exit::Failure;
    };
    let mut signalled = std::pin::pin!(signals);
    let mut snapshots = app.snapshots();
    let mut running = std::pin::pin!(app.run(orders.clone()));
    let ready = async {
        let first = snapshots.wait_for(|snapshot| snapshot.generation > 0).await;
        first.map(|snapshot| std::sync::Arc::clone(&snapshot)).ok()
    };
    let early = tokio::select! {
        _ = running.as_mut() => Some(Exit::Success),
        () = signalled.as_mut() => Some(Exit::Failure),
        first = ready => {
            for path in &lines.paths {
                out(&format!("listening http://{mcp}{path}"));
            }
            out(&format!("admin http://{admin}"));
            if let Some(snapshot) = first {
                out(&summary(&snapshot));
            }
            if lines.helpful {
                let path = lines.paths.first().map_or("/mcp", String::as_str);
                out(&format!("connect any MCP client to http://{mcp}{path}, or try: weir list --url http://{mcp}{path}"));
            }
            None
        }
    };
    if let Some(exit) = early {
        return exit;
    }
    tokio::select! {
        _ = running.as_mut() => Exit::Success,
        () = signalled => Exit::Failure,
    }
}

/// The signals that Weir obeys.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Turns signals into orders; ends with the second one that says to stop, which means "at once".
    async fn give(mut self, orders: &Orders) {
        loop {
            tokio::select! {
                _ = self.hangup.recv() => {
                    orders.reload.notify_one();
                    continue;
                }
                _ = self.terminate.recv() => {}
                _ = self.interrupt.recv() => orders.hurry.cancel(),
            }
            if orders.begin.is_cancelled() {
                return;
            }
            orders.begin.cancel();
        }
    }
}
