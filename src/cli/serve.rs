//! `weir serve`.

use std::path::Path;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::print::{err, out};
use super::{Exit, ServeArguments};
use crate::app::{App, AppError, Shutdown, summary};
use crate::config::{self, Config, DefaultDecision};
use crate::telemetry;

/// Serves until a signal says stop.
pub(super) async fn run(arguments: &ServeArguments) -> Exit {
    let config = match load(arguments) {
        Ok(config) => config,
        Err(exit) => return exit,
    };
    telemetry::init_tracing(&config.telemetry);
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
    let (Ok(terminate), Ok(interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        err("weir: signals cannot be received");
        return Exit::Failure;
    };
    match App::bind(config).await {
        Ok(app) => {
            let shutdown = Shutdown::default();
            let signals = signals(terminate, interrupt, &shutdown);
            serve(app, &Lines { paths, helpful }, &shutdown, signals).await
        }
        Err(error) => {
            err(&format!("weir: {}", chain(&error)));
            Exit::Failure
        }
    }
}

/// The configuration that the contract names, with overrides applied.
fn load(arguments: &ServeArguments) -> Result<Config, Exit> {
    let default = Path::new("routes.yaml");
    let path = arguments.config.as_deref().or_else(|| default.exists().then_some(default));
    let loaded = match path {
        Some(path) => match config::load(path) {
            Ok(loaded) => {
                if !loaded.warnings.is_empty() {
                    err(loaded.warnings.to_string().trim_end());
                }
                loaded.config
            }
            Err(problems) => {
                err(problems.to_string().trim_end());
                return Err(Exit::Unusable);
            }
        },
        None => {
            err("no --config and no ./routes.yaml: serving the built-in demonstration, on loopback only");
            config::demonstration()
        }
    };
    config::overridden(loaded, arguments.listen, arguments.admin).map_err(|problems| {
        err(problems.to_string().trim_end());
        Exit::Unusable
    })
}

fn chain(error: &AppError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}

/// What is said once Weir serves.
struct Lines {
    paths: Vec<String>,
    /// Whether to say how to connect a client.
    helpful: bool,
}

async fn serve(app: App, lines: &Lines, shutdown: &Shutdown, signals: impl Future<Output = ()>) -> Exit {
    let (Ok(mcp), Ok(admin)) = (app.mcp_address(), app.admin_address()) else {
        err("weir: the listener has no address");
        return Exit::Failure;
    };
    let mut signalled = std::pin::pin!(signals);
    let mut snapshots = app.snapshots();
    let mut running = std::pin::pin!(app.run(shutdown.clone()));
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

/// Turns the first signal into the shutdown; ends with the second, which says "at once".
async fn signals(mut terminate: Signal, mut interrupt: Signal, shutdown: &Shutdown) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => shutdown.hurry.cancel(),
    }
    shutdown.begin.cancel();
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
