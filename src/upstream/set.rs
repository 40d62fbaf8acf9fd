//! All upstreams of a configuration.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use tokio::sync::watch;

use super::builtin::Demonstration;
use super::http::{BuildError, Http};
use super::ids::Ids;
use super::link::{Keeper, Link, Posts, Publisher, Shared};
use super::metrics::Metrics;
use super::peer::TaskNews;
use super::status::Status;
use super::stdio::Stdio;
use super::way::Way;
use super::wire::Wire;
use super::wishes::{Standing, Watching};
use crate::catalog::{Inventories, Presence};
use crate::config::{Config, Kind, Upstream};
use crate::exchange::{Caller, SessionKey};
use crate::names::UpstreamName;
use crate::task::TaskGroup;

/// How long the end of all sessions may take.
const CLOSING: Duration = Duration::from_secs(2);

/// Why the upstream side cannot start.
#[derive(Debug, thiserror::Error)]
#[error("upstream {upstream} cannot be used")]
pub struct StartError {
    /// Which upstream.
    pub upstream: UpstreamName,
    #[source]
    source: BuildError,
}

/// The links to all upstreams. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Set {
    names: Arc<[UpstreamName]>,
    links: Arc<HashMap<UpstreamName, Link>>,
    inventories: watch::Sender<Arc<Inventories>>,
}

impl Set {
    /// Starts one task per upstream. Waits for none of them.
    ///
    /// # Errors
    /// [`StartError`] for an upstream whose address or credential cannot be used, or when TLS cannot be set up.
    #[expect(clippy::needless_pass_by_value, reason = "the links keep clones of it")]
    pub fn start(config: &Config, tasks: &TaskGroup, metrics: Metrics) -> Result<Self, StartError> {
        Self::of(&config.upstreams, config.notify.debounce, tasks, &metrics)
    }

    /// Starts the links of these upstreams; none is listed twice within `gap`.
    pub(super) fn of(
        upstreams: &[Arc<Upstream>],
        gap: Duration,
        tasks: &TaskGroup,
        metrics: &Metrics,
    ) -> Result<Self, StartError> {
        let since = Timestamp::now();
        let all: Inventories =
            upstreams.iter().map(|up| (up.name.clone(), Presence::Connecting { since })).collect();
        let inventories = watch::channel(Arc::new(all)).0;
        let mut links = HashMap::with_capacity(upstreams.len());
        for upstream in upstreams {
            let publisher = Publisher::new(upstream.name.clone(), inventories.clone());
            let tasks = tasks.child(upstream.name.as_str());
            let link = match &upstream.kind {
                Kind::Builtin(kind) => builtin(Demonstration::new(*kind), publisher, &tasks),
                Kind::Http { url } => {
                    let http = Http::new(url, upstream)
                        .map_err(|source| StartError { upstream: upstream.name.clone(), source })?;
                    remote(Wire::Http(http), upstream, (publisher, metrics), (&tasks, gap))
                }
                Kind::Child(command) => {
                    let children = Stdio::new(command.clone(), upstream, &tasks);
                    remote(Wire::Stdio(children), upstream, (publisher, metrics), (&tasks, gap))
                }
            };
            links.insert(upstream.name.clone(), link);
        }
        let names = upstreams.iter().map(|upstream| upstream.name.clone()).collect();
        Ok(Self { names, links: Arc::new(links), inventories })
    }

    /// Where every upstream stands. Holds all of them from the first moment.
    #[must_use]
    pub fn inventories(&self) -> watch::Receiver<Arc<Inventories>> {
        self.inventories.subscribe()
    }

    /// The link of an upstream.
    #[must_use]
    pub fn link(&self, name: &UpstreamName) -> Option<Link> {
        self.links.get(name).cloned()
    }

    /// Updates of one resource, as the caller would read it; `uri` is the upstream's own. `None`: the upstream is
    /// unknown, or offers no subscriptions.
    #[must_use]
    pub fn watch(&self, upstream: &UpstreamName, uri: &str, caller: &Caller) -> Option<Watching> {
        self.links.get(upstream)?.watch(uri, caller)
    }

    /// While this is held, the upstream sessions of the caller's client session keep their standing streams open,
    /// and what arrives there for the client comes out.
    #[must_use]
    pub fn stand(&self, caller: &Caller) -> Standing {
        Standing::new(|to| self.links.values().filter_map(|link| link.stand(caller, to)).collect())
    }

    /// The raw states of tasks with these ids, as the upstream tells of them. `None`: it is unknown, or does not.
    #[must_use]
    pub fn follow(&self, upstream: &UpstreamName, ids: &[String]) -> Option<TaskNews> {
        self.links.get(upstream)?.follow(ids)
    }

    /// The roots of a client session changed: the upstreams that it has sessions with are told.
    pub fn roots_changed(&self, session: SessionKey) {
        self.links.values().for_each(|link| link.roots_changed(session));
    }

    /// A client session ended: what upstreams keep for it is ended in the background.
    pub fn end_session(&self, key: SessionKey) {
        self.links.values().for_each(|link| link.end_session(key));
    }

    /// Ends all sessions with upstreams, within two seconds. Calls that still run lose theirs. Also good after the
    /// task group was cancelled.
    pub async fn close(&self) {
        let closing = join_all(self.links.values().map(Link::close));
        if tokio::time::timeout(CLOSING, closing).await.is_err() {
            tracing::info!("some upstreams did not confirm the end of their sessions");
        }
    }

    /// Where every upstream stands, in file order.
    #[must_use]
    pub fn status(&self) -> Vec<Status> {
        let inventories = Arc::clone(&self.inventories.borrow());
        let of = |name: &UpstreamName| {
            let presence = inventories.get(name)?;
            let mut status = Status::of(name, presence);
            self.links.get(name)?.tell(&mut status);
            Some(status)
        };
        self.names.iter().filter_map(of).collect()
    }
}

/// A server that is reached over a wire; its link is kept from now on.
fn remote(
    wire: Wire,
    upstream: &Arc<Upstream>,
    (publisher, metrics): (Publisher, &Metrics),
    (tasks, gap): (&TaskGroup, Duration),
) -> Link {
    let wire = Arc::new(wire);
    let shared = Shared::new(Arc::clone(upstream));
    let posts = Posts { shared: Arc::clone(&shared), publisher, metrics: metrics.clone() };
    let way = Way {
        wire: Arc::clone(&wire),
        ids: Arc::new(Ids::new()),
        upstream: Arc::clone(upstream),
        tasks: tasks.clone(),
        wishes: Arc::clone(&shared.wishes),
    };
    let keeper = Keeper::new(way, posts, tasks.clone(), gap);
    tasks.spawn_until_cancelled("keep a link", Box::pin(keeper.run()));
    tasks.spawn_until_cancelled("wishes", Arc::clone(&shared).attend());
    tasks.spawn_until_cancelled("time limits", Arc::clone(&shared).watch_time());
    Link::remote(shared, wire, metrics.clone())
}

/// A demonstration upstream is up from the first moment.
fn builtin(demonstration: Demonstration, publisher: Publisher, tasks: &TaskGroup) -> Link {
    let demonstration = Arc::new(demonstration);
    let mut changes = demonstration.changes();
    publisher.publish(Presence::Up { inventory: Arc::new(demonstration.inventory()) });
    let shown = Arc::clone(&demonstration);
    tasks.spawn_until_cancelled("keep a demonstration", async move {
        while changes.changed().await.is_ok() {
            publisher.publish(Presence::Up { inventory: Arc::new(shown.inventory()) });
        }
    });
    Link::builtin(demonstration)
}
