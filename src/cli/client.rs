//! Weir as a client of one endpoint, for `list --url` and `call`: the upstream side with one upstream.

use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use tokio::time::timeout;

use super::Exit;
use super::print::err;
use crate::app::Core;
use crate::catalog::{Presence, Snapshot};
use crate::config::{self, Config, URL_NAME};

/// How long a command waits for its endpoint or its upstreams.
const PATIENCE: Duration = Duration::from_secs(15);

/// Connects to one endpoint.
///
/// # Errors
/// The exit code, after saying why on standard error.
pub(super) async fn connect(url: &str, token: Option<SecretString>) -> Result<(Core, Arc<Snapshot>), Exit> {
    let config = config::for_url(url, token).map_err(|problems| {
        err(problems.to_string().trim_end());
        Exit::Unusable
    })?;
    let (core, snapshot) = settle(config).await?;
    for presence in snapshot.inventories.values() {
        match presence {
            Presence::Up { .. } => {}
            Presence::Down { trouble, .. } if trouble.label == "credential" => {
                err(&format!(
                    "{url}: HTTP error 401 or 403: no token, or a refused one (--token-file, WEIR_TOKEN)"
                ));
                return Err(Exit::Failure);
            }
            Presence::Down { trouble, .. } => {
                let text = trouble.text.replacen(&format!("upstream {URL_NAME}"), "the server", 1);
                err(&format!("{url}: {text}"));
                return Err(Exit::Failure);
            }
            Presence::Connecting { .. } => {
                err(&format!("{url}: the server did not answer in time"));
                return Err(Exit::Failure);
            }
        }
    }
    Ok((core, snapshot))
}

/// Starts the parts and waits until every upstream is up or known to be down, at most [`PATIENCE`].
///
/// # Errors
/// The exit code, after saying why on standard error.
pub(super) async fn settle(config: Config) -> Result<(Core, Arc<Snapshot>), Exit> {
    let core = Core::start(&Arc::new(config)).map_err(|error| {
        err(&format!("weir: {error}"));
        Exit::Failure
    })?;
    let mut snapshots = core.snapshots.clone();
    let settled = snapshots.wait_for(|snapshot| {
        let connecting =
            snapshot.inventories.values().any(|presence| matches!(presence, Presence::Connecting { .. }));
        snapshot.generation > 0 && !connecting
    });
    let settled =
        timeout(PATIENCE, settled).await.ok().and_then(Result::ok).map(|snapshot| Arc::clone(&snapshot));
    let snapshot = settled.unwrap_or_else(|| Arc::clone(&core.snapshots.borrow()));
    Ok((core, snapshot))
}
