//! The composition root: the only place where modules meet.
//!
//! `bind` opens the sockets and builds everything; `run` serves until told to stop, and then drains: not ready →
//! work is taken for `drain.delay` → no new work, no new connections → standing streams end → calls finish until
//! `drain.deadline` → what is left is cancelled → upstream sessions end.

mod succession;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::admin::{Admin, Changes, Shown};
use crate::auth::{self, Authenticators, SetUpError};
use crate::catalog::{Keeper, Presence, Snapshot};
use crate::config::{Config, Loaded};
use crate::downstream::{Endpoint, Parts};
use crate::notify::Hub;
use crate::protocol::ListKind;
use crate::relay::Relay;
use crate::seal::Keyring;
use crate::server::{BindError, ConnectionLimits, Gate, Running, accept, admin_service, bind, mcp_service};
use crate::source::{self, FileSource, Loading, Read, Reload};
use crate::task::{Lanes, TaskGroup, blocking};
use crate::telemetry::{AuditLog, LogLevel, Registry, watch_clock};
use crate::upstream::{Set, StartError};
use crate::view::Views;
use crate::{downstream, notify, relay, upstream};
use succession::Succession;

/// How long what was cut gets to notice.
const LAST_MOMENT: Duration = Duration::from_millis(200);
/// Most connections of the admin listener.
const ADMIN_CONNECTIONS: usize = 256;

/// Why Weir cannot start.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// The threads that serve connections could not be started.
    #[error("cannot start threads")]
    Lanes(#[source] std::io::Error),
    /// A socket could not be opened.
    #[error("cannot open a listener")]
    Bind(#[from] BindError),
    /// Keys of issuers cannot be fetched.
    #[error("cannot set up the verification of tokens")]
    Auth(#[from] SetUpError),
    /// An upstream's client could not be built.
    #[error("cannot set up the upstreams")]
    Upstream(#[from] StartError),
}

/// Weir, ready to serve.
#[derive(Debug)]
pub struct App {
    mcp: TcpListener,
    admin_listener: TcpListener,
    admin: Arc<Admin>,
    endpoint: Arc<Endpoint>,
    core: Core,
    succession: Succession,
    reload: Option<Reload>,
    /// Kept to the end: what is said to upstreams then may be said on connections of theirs.
    lanes: Arc<Lanes>,
}

/// The parts without a socket: upstreams, catalog, relay.
#[derive(Debug)]
pub struct Core {
    /// What requests read.
    pub snapshots: watch::Receiver<Arc<Snapshot>>,
    /// The upstream side.
    pub upstreams: Set,
    /// Carries calls.
    pub relay: Arc<Relay>,
    hub: Arc<Hub>,
    keyring: Arc<Keyring>,
    audit: Option<Arc<AuditLog>>,
    registry: Registry,
    tasks: TaskGroup,
}

impl Core {
    /// Builds the parts and starts their tasks. Does not wait for an upstream.
    ///
    /// # Errors
    /// [`StartError`] when an upstream's client cannot be built.
    pub fn start(config: &Arc<Config>) -> Result<Self, StartError> {
        let mut registry = Registry::new();
        let tasks = TaskGroup::new("weir");
        let metrics = upstream::Metrics::register(registry.plain());
        let upstreams = Set::start(config, &tasks.child("upstreams"), metrics)?;
        let (keeper, snapshots) = Keeper::new(upstreams.material());
        let views = Arc::new(Views::default());
        let keyring = Arc::new(Keyring::random());
        tasks.spawn_until_cancelled("clock", watch_clock());
        let metrics = relay::Metrics::register(registry.plain());
        let settings = config.telemetry.audit.as_ref();
        let audit = settings.map(|audit| AuditLog::start(audit, registry.plain()));
        let kept = (audit.clone(), metrics);
        let relay = Relay::new(Arc::clone(&views), upstreams.clone(), Arc::clone(&keyring), kept);
        let metrics = notify::Metrics::register(registry.plain());
        let hub = Arc::new(Hub::new(snapshots.clone(), Arc::clone(&views), metrics));
        tasks.spawn(
            "catalog keeper",
            keeper.run(tasks.token(), move |snapshot| views_ready(&views, snapshot)),
        );
        tasks.spawn("notify hub", Arc::clone(&hub).run(tasks.token()));
        Ok(Self { snapshots, upstreams, relay: Arc::new(relay), hub, keyring, audit, registry, tasks })
    }

    /// Who owns the tasks of the parts.
    #[must_use]
    pub fn tasks(&self) -> &TaskGroup {
        &self.tasks
    }

    /// Ends upstream sessions and tasks.
    pub async fn close(&self) {
        self.upstreams.close().await;
        self.tasks.cancel();
        // What still runs has a line to write, parked calls among it.
        if timeout_at(Instant::now() + LAST_MOMENT, self.tasks.drained()).await.is_err() {
            tracing::debug!(event = "drain.cut", "some tasks did not end");
        }
        if let Some(audit) = &self.audit {
            audit.close().await;
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Tasks (connections, calls) that were cut at the deadline.
    pub cut: usize,
}

/// What `run` is told while it runs.
#[derive(Debug, Clone, Default)]
pub struct Orders {
    /// Begin to drain.
    pub begin: CancellationToken,
    /// Do not wait for `drain.delay`.
    pub hurry: CancellationToken,
    /// Read the configuration again.
    pub reload: Arc<Notify>,
}

/// What Weir starts with.
#[derive(Debug)]
pub struct Start {
    /// The configuration, as it was loaded.
    pub loaded: Loaded,
    /// Where it comes from, if it may come again, and what was read for it.
    pub source: Option<(FileSource, Read)>,
    /// The level of the log, if it may change.
    pub log_level: Option<LogLevel>,
}

impl App {
    /// Opens the sockets and builds everything.
    ///
    /// # Errors
    /// [`AppError`] when a socket or an upstream's client cannot be had.
    pub async fn bind(start: Start) -> Result<Self, AppError> {
        let Start { loaded: Loaded { config, warnings }, source, log_level } = start;
        let config = Arc::new(config);
        let mcp = bind(config.listen.address).await?;
        let admin_listener = bind(config.admin.address).await?;
        // Before anything runs: whoever cannot have the token need not start.
        auth::generate(&config)?;
        let mut core = Core::start(&config)?;
        let authenticators = Arc::new(Authenticators::start(&config, &core.tasks)?);
        let parts = Parts {
            relay: Arc::clone(&core.relay),
            hub: Arc::clone(&core.hub),
            authenticators: Arc::clone(&authenticators),
            keyring: Arc::clone(&core.keyring),
            metrics: downstream::Metrics::register(core.registry.plain()),
        };
        let endpoint = Arc::new(Endpoint::new(parts, &config, &core.tasks));
        let loading = watch::Sender::new(Arc::new(Loading::now(config.path.clone(), warnings)));
        let metrics = source::Metrics::register(core.registry.plain());
        let changes = Arc::new(Changes::default());
        let gather = Arc::clone(&changes).gather(core.snapshots.clone());
        core.tasks.spawn_until_cancelled("recent changes", gather);
        let shown = Shown {
            snapshots: core.snapshots.clone(),
            upstreams: core.upstreams.clone(),
            endpoint: Arc::clone(&endpoint),
            authenticators: Arc::clone(&authenticators),
            changes,
            loading: loading.subscribe(),
            registry: Arc::new(std::mem::take(&mut core.registry)),
        };
        let admin = Arc::new(Admin::new(shown));
        let reload = source.map(|source| Reload::new(source, loading, metrics));
        let succession = Succession {
            authenticators,
            upstreams: core.upstreams.clone(),
            snapshots: core.snapshots.clone(),
            log_level,
        };
        let lanes = Arc::new(Lanes::start().map_err(AppError::Lanes)?);
        Ok(Self { mcp, admin_listener, admin, endpoint, core, succession, reload, lanes })
    }

    /// Where the MCP listener is.
    ///
    /// # Errors
    /// When the operating system does not say.
    pub fn mcp_address(&self) -> std::io::Result<SocketAddr> {
        self.mcp.local_addr()
    }

    /// Where the admin listener is.
    ///
    /// # Errors
    /// When the operating system does not say.
    pub fn admin_address(&self) -> std::io::Result<SocketAddr> {
        self.admin_listener.local_addr()
    }

    /// The watch that requests read.
    #[must_use]
    pub fn snapshots(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.core.snapshots.clone()
    }

    /// Serves until the orders say to drain, and drains.
    pub async fn run(self, orders: Orders) -> Ended {
        let gate = Arc::new(Gate::default());
        let connections = TaskGroup::new("connections");
        let closing = CancellationToken::new();
        let running = Running {
            tasks: connections.clone(),
            lanes: Some(Arc::clone(&self.lanes)),
            closing: closing.clone(),
            limits: limits(&self.core.snapshots, None),
        };
        let service = mcp_service(
            self.core.snapshots.clone(),
            (Arc::clone(&self.succession.authenticators), self.core.audit.clone()),
            Arc::clone(&self.endpoint),
            Arc::clone(&gate),
        );
        self.core.tasks.spawn("mcp listener", accept(self.mcp, running, service));
        let admin_running = Running {
            tasks: self.core.tasks.child("admin"),
            lanes: None,
            closing: CancellationToken::new(),
            limits: limits(&self.core.snapshots, Some(ADMIN_CONNECTIONS)),
        };
        let admin = admin_service(Arc::clone(&self.admin));
        self.core
            .tasks
            .spawn_until_cancelled("admin listener", accept(self.admin_listener, admin_running, admin));
        let reloading = self.core.tasks.child("reload");
        if let Some(reload) = self.reload {
            let (succession, hangup) = (self.succession, Arc::clone(&orders.reload));
            let current = Arc::clone(&self.core.snapshots.borrow().config);
            let apply = async move |config| succession.apply(config).await;
            let run = reload.run(current, async move || hangup.notified().await, apply);
            reloading.spawn_until_cancelled("reload", Box::pin(run));
        }

        orders.begin.cancelled().await;
        reloading.cancel();
        let drain = self.core.snapshots.borrow().config.listen.drain;
        let deadline = Instant::now() + drain.deadline;
        self.admin.drain();
        tracing::info!(event = "drain.begin", "not ready any more");
        tokio::select! {
            () = sleep(drain.delay) => {}
            () = orders.hurry.cancelled() => {}
        }
        gate.shut();
        closing.cancel();
        self.endpoint.end_streams();
        let calls = self.endpoint.calls().clone();
        let cut = finish(&connections, deadline).await + finish(&calls, deadline).await;
        self.endpoint.end_sessions();
        // Cancelled calls tell their upstreams, before the sessions there end.
        if timeout_at(Instant::now() + LAST_MOMENT, calls.drained()).await.is_err() {
            tracing::warn!(event = "drain.cut", "some calls did not end");
        }
        self.core.close().await;
        tracing::info!(event = "drain.end", cut, "drained");
        Ended { cut }
    }
}

/// Gets views ready where that holds up nobody. Where it panics, they are made when they are asked for.
fn views_ready(views: &Arc<Views>, snapshot: Arc<Snapshot>) -> impl Future<Output = ()> + Send + use<> {
    let views = Arc::clone(views);
    blocking("views", move || views.get_ready(&snapshot)).map(drop)
}

/// The limits on connections of the configuration in force, or with another number of them.
fn limits(
    snapshots: &watch::Receiver<Arc<Snapshot>>,
    most: Option<usize>,
) -> impl Fn() -> ConnectionLimits + use<> {
    let snapshots = snapshots.clone();
    move || {
        let limits = snapshots.borrow().config.listen.limits;
        let most = most.unwrap_or(limits.connections);
        ConnectionLimits { most, header_timeout: limits.header_timeout }
    }
}

/// Waits for connections to end by themselves; cuts what is left at the deadline and says how much that was.
async fn finish(connections: &TaskGroup, deadline: Instant) -> usize {
    if timeout_at(deadline, connections.drained()).await.is_ok() {
        return 0;
    }
    let cut = connections.active();
    tracing::warn!(event = "drain.cut", cut, "calls were still running at the deadline");
    connections.cancel();
    if timeout_at(Instant::now() + LAST_MOMENT, connections.drained()).await.is_err() {
        tracing::warn!(event = "drain.cut", "some connections did not end");
    }
    cut
}

/// An error with everything that led to it, in one line.
#[must_use]
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}

/// What `serve` says of its upstreams once it is ready.
#[must_use]
pub fn summary(snapshot: &Snapshot) -> String {
    let all = snapshot.inventories.len();
    let up = snapshot.inventories.values().filter(|presence| matches!(presence, Presence::Up { .. })).count();
    format!("upstreams {up}/{all} up, {} tools", snapshot.catalog.list(ListKind::Tools).len())
}
