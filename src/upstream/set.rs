//! All upstreams of a configuration, and what becomes of them with the next one.

mod kept;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use jiff::Timestamp;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};
use tokio_stream::wrappers::WatchStream;

use super::http::BuildError;
use super::link::Link;
use super::metrics::Metrics;
use super::peer::TaskNews;
use super::status::Status;
use super::wishes::{Said, Standing, Watching, Wishes};
use crate::catalog::{Material, Presence};
use crate::config::{Config, Upstream};
use crate::exchange::{Caller, SessionKey};
use crate::names::UpstreamName;
use crate::task::TaskGroup;

use kept::{Kept, Prepared, prepared};

/// How long the end of all sessions may take.
const CLOSING: Duration = Duration::from_secs(2);

/// How long after a link was looked up its call has begun, at most.
const BEGUN: Duration = Duration::from_millis(250);

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
    links: watch::Sender<Arc<Links>>,
    material: watch::Sender<Material>,
    metrics: Metrics,
    tasks: TaskGroup,
}

type Kepts = HashMap<UpstreamName, Kept>;
type KeptWishes = HashMap<UpstreamName, Arc<Wishes>>;

/// What is ready for another configuration.
#[derive(Debug)]
pub struct Next {
    config: Arc<Config>,
    prepared: Vec<Prepared>,
}

/// The links of the configuration in force, and those of earlier ones whose calls still run.
#[derive(Debug, Default, Clone)]
struct Links {
    kept: Kepts,
    leaving: Vec<Kept>,
    /// What clients want to hear of each upstream, also of one that is not configured now: it may come back.
    wishes: KeptWishes,
}

impl Links {
    fn all(&self) -> impl Iterator<Item = &Link> {
        self.kept.values().chain(&self.leaving).map(|kept| &kept.link)
    }
}

impl Set {
    /// Starts one task per upstream. Waits for none of them.
    ///
    /// # Errors
    /// [`StartError`] for an upstream whose address or credential cannot be used, or when TLS cannot be set up.
    pub fn start(config: &Arc<Config>, tasks: &TaskGroup, metrics: Metrics) -> Result<Self, StartError> {
        let nothing = Material { config: Arc::clone(config), inventories: Arc::default() };
        let (links, material) = (watch::Sender::default(), watch::Sender::new(nothing));
        let set = Self { links, material, metrics, tasks: tasks.clone() };
        set.put(set.prepare(config)?);
        Ok(set)
    }

    /// Gets everything ready that another configuration needs. Changes nothing yet.
    ///
    /// # Errors
    /// [`StartError`], as for [`Set::start`].
    pub fn prepare(&self, config: &Arc<Config>) -> Result<Next, StartError> {
        let links = self.links();
        let of = |upstream: &Arc<Upstream>| prepared(upstream, links.kept.get(&upstream.name), &self.tasks);
        let prepared = config.upstreams.iter().map(of).collect::<Result<Vec<Prepared>, StartError>>()?;
        Ok(Next { config: Arc::clone(config), prepared })
    }

    /// Puts a configuration in force, as a whole: links that it does not touch go on, others begin or end. What runs on
    /// a link that ends may finish within `listen.drain.deadline`. One is put after the other, each prepared after the
    /// one before it was put.
    pub fn put(&self, next: Next) {
        let Next { config, prepared } = next;
        let old = self.links();
        let (mut kept, mut begun) = (HashMap::with_capacity(prepared.len()), Vec::new());
        let mut wishes = old.wishes.clone();
        wishes.retain(|_, wishes| !wishes.are_none());
        for (upstream, prepared) in config.upstreams.iter().zip(prepared) {
            let upstream = Arc::clone(upstream);
            let name = upstream.name.clone();
            let link = match prepared {
                Prepared::Same(old) => Kept { upstream, ..old },
                Prepared::Credential(old, credential) => {
                    tracing::info!(upstream = %name, "another credential");
                    old.link.present(credential);
                    Kept { upstream, ..old }
                }
                Prepared::New(end, before) => {
                    let tasks = self.tasks.child(name.as_str());
                    let wishes = Arc::clone(wishes.entry(name.clone()).or_default());
                    let new =
                        Kept::new(&upstream, (end, before), (&self.material, &self.metrics, wishes), tasks);
                    begun.push(new.clone());
                    new
                }
            };
            kept.insert(name, link);
        }
        let goes_on = |old: &&Kept| kept.get(&old.upstream.name).is_some_and(|now| now.is(old));
        let ended: Vec<Kept> = old.kept.values().filter(|old| !goes_on(old)).cloned().collect();
        self.publish(&config, (kept, wishes), &ended);
        begun.iter().for_each(Kept::begin);
        for ended in ended {
            self.retire(ended, config.listen.drain.deadline);
        }
    }

    /// Shows the configuration and the upstreams that it has in one step. What is shown of a link stays shown while
    /// another takes its place.
    fn publish(&self, config: &Arc<Config>, (kept, wishes): (Kepts, KeptWishes), ended: &[Kept]) {
        let since = Timestamp::now();
        let names: Vec<UpstreamName> = kept.keys().cloned().collect();
        self.links.send_modify(|links| {
            let leaving = links.leaving.iter().chain(ended).cloned().collect();
            *links = Arc::new(Links { kept, leaving, wishes });
        });
        self.material.send_modify(|material| {
            ended.iter().for_each(|ended| ended.publisher.retire());
            let shown = |name: UpstreamName| {
                let known = material.inventories.get(&name).cloned();
                (name, known.unwrap_or(Presence::Connecting { since }))
            };
            material.inventories = Arc::new(names.into_iter().map(shown).collect());
            material.config = Arc::clone(config);
        });
    }

    /// Ends a link once its calls have ended, or when their time is over.
    fn retire(&self, ended: Kept, deadline: Duration) {
        let name = ended.upstream.name.clone();
        if self.link(&name).is_none() {
            tracing::info!(upstream = %name, "upstream removed");
        }
        // What the new link hears is nothing for the keeper of the old one.
        if ended.link.is_tried() {
            ended.keeping.cancel();
        }
        let set = self.clone();
        self.tasks.spawn_until_cancelled("end of a link", async move {
            // Who looked the link up a moment ago has begun its call by then; one that was just made is reached first.
            sleep(BEGUN).await;
            let finished = async {
                ended.link.has_been_tried().await;
                ended.keeping.cancel();
                ended.link.finished().await;
            };
            if timeout(deadline, finished).await.is_err() {
                tracing::warn!(upstream = %name, "calls were cut: their upstream left the configuration");
                ended.link.cut();
                sleep(BEGUN).await;
            }
            ended.keeping.cancel();
            if set.link(&name).is_none() {
                set.metrics.forget(&name);
            }
            if timeout(CLOSING, ended.link.close()).await.is_err() {
                tracing::info!(upstream = %name, "the upstream did not confirm the end of its sessions");
            }
            ended.tasks.cancel();
            set.links.send_modify(|links| {
                let mut next = Links::clone(links);
                next.leaving.retain(|leaving| !leaving.is(&ended));
                *links = Arc::new(next);
            });
        });
    }

    /// The configuration in force, and where each of its upstreams stands, from the first moment.
    #[must_use]
    pub fn material(&self) -> watch::Receiver<Material> {
        self.material.subscribe()
    }

    fn links(&self) -> Arc<Links> {
        Arc::clone(&self.links.borrow())
    }

    /// The link of an upstream.
    #[must_use]
    pub fn link(&self, name: &UpstreamName) -> Option<Link> {
        self.links.borrow().kept.get(name).map(|kept| kept.link.clone())
    }

    /// Updates of one resource, as the caller would read it; `uri` is the upstream's own. `None`: the upstream is
    /// unknown, or offers no subscriptions.
    #[must_use]
    pub fn watch(&self, upstream: &UpstreamName, uri: &str, caller: &Caller) -> Option<Watching> {
        self.link(upstream)?.watch(uri, caller)
    }

    /// While this is held, the upstream sessions of the caller's client session keep their standing streams open,
    /// and what arrives there for the client comes out.
    #[must_use]
    pub fn stand(&self, caller: &Caller) -> Standing {
        let turns = WatchStream::from_changes(self.links.subscribe()).map(|_links| ());
        let (set, caller) = (self.clone(), caller.clone());
        let stand = move |to: &mpsc::Sender<Said>| {
            set.links().all().filter_map(|link| link.stand(&caller, to)).collect()
        };
        Standing::new(Box::pin(turns), Box::new(stand))
    }

    /// The raw states of tasks with these ids, as the upstream tells of them. `None`: it is unknown, or does not.
    #[must_use]
    pub fn follow(&self, upstream: &UpstreamName, ids: &[String]) -> Option<TaskNews> {
        self.link(upstream)?.follow(ids)
    }

    /// The roots of a client session changed: the upstreams that it has sessions with are told.
    pub fn roots_changed(&self, session: SessionKey) {
        self.links().all().for_each(|link| link.roots_changed(session));
    }

    /// A client session ended: what upstreams keep for it is ended in the background.
    pub fn end_session(&self, key: SessionKey) {
        self.links().all().for_each(|link| link.end_session(key));
    }

    /// Ends all sessions with upstreams, within two seconds. Calls that still run lose theirs. Also good after the
    /// task group was cancelled.
    pub async fn close(&self) {
        let links = self.links();
        let closing = join_all(links.all().map(Link::close));
        if timeout(CLOSING, closing).await.is_err() {
            tracing::info!("some upstreams did not confirm the end of their sessions");
        }
    }

    /// Where every upstream stands, in file order.
    #[must_use]
    pub fn status(&self) -> Vec<Status> {
        let (material, links) = (self.material.borrow().clone(), self.links());
        let of = |upstream: &Arc<Upstream>| {
            let presence = material.inventories.get(&upstream.name)?;
            let mut status = Status::of(&upstream.name, presence);
            links.kept.get(&upstream.name)?.link.tell(&mut status);
            Some(status)
        };
        material.config.upstreams.iter().filter_map(of).collect()
    }
}
