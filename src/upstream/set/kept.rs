//! One link and what it hangs on.

use std::sync::Arc;

use http::HeaderMap;
use tokio::sync::watch;

use super::StartError;
use crate::catalog::Material;
use crate::config::{ChildCommand, Kind, Upstream};
use crate::task::TaskGroup;
use crate::upstream::builtin::Demonstration;
use crate::upstream::http::{BuildError, Http, headers_of};
use crate::upstream::link::{Link, Publisher, Shared};
use crate::upstream::metrics::Metrics;
use crate::upstream::stdio::Stdio;
use crate::upstream::wire::Wire;
use crate::upstream::wishes::Wishes;

/// A link and what it hangs on. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    pub(super) upstream: Arc<Upstream>,
    pub(super) link: Link,
    pub(super) publisher: Publisher,
    /// Owns everything of it.
    pub(super) tasks: TaskGroup,
    /// Owns what looks after it: connecting, listing, listening.
    pub(super) keeping: TaskGroup,
}

/// What is ready for an upstream of another configuration.
#[derive(Debug)]
pub(super) enum Prepared {
    /// Its link goes on.
    Same(Kept),
    /// Its link goes on, with another credential.
    Credential(Kept, HeaderMap),
    /// It needs a link of its own, which takes the place of this one.
    New(End, Option<Kept>),
}

/// What a new link leads to.
#[derive(Debug)]
pub(super) enum End {
    Demonstration(Demonstration),
    Http(Box<Http>),
    Child(ChildCommand),
}

/// Gets everything ready that may fail; changes nothing.
///
/// # Errors
/// [`StartError`] for an address or a credential that cannot be used, or when TLS cannot be set up.
pub(super) fn prepared(
    upstream: &Upstream,
    old: Option<&Kept>,
    tasks: &TaskGroup,
) -> Result<Prepared, StartError> {
    let failed = |source: BuildError| StartError { upstream: upstream.name.clone(), source };
    if let Some(old) = old.filter(|old| old.upstream.is_spoken_to_like(upstream)) {
        if old.upstream.credential.is_like(&upstream.credential) {
            return Ok(Prepared::Same(old.clone()));
        }
        let headers = headers_of(&upstream.credential).map_err(failed)?;
        return Ok(Prepared::Credential(old.clone(), headers));
    }
    let end = match &upstream.kind {
        Kind::Builtin(kind) => End::Demonstration(Demonstration::new(*kind)),
        Kind::Http { urls } => End::Http(Box::new(Http::new(urls, upstream, tasks).map_err(failed)?)),
        Kind::Child(command) => End::Child(command.clone()),
    };
    Ok(Prepared::New(end, old.cloned()))
}

impl Kept {
    /// A new link, which nothing looks after yet. It takes over what clients want to hear of an upstream of this name, and
    /// from the one `before` it who runs and who waits, where the limits are the same.
    pub(super) fn new(
        upstream: &Arc<Upstream>,
        (end, before): (End, Option<Self>),
        (material, metrics, wishes): (&watch::Sender<Material>, &Metrics, Arc<Wishes>),
        tasks: TaskGroup,
    ) -> Self {
        let publisher = Publisher::new(upstream.name.clone(), material.clone());
        let remote = |wire: Wire| {
            let same = before.as_ref().filter(|before| before.upstream.concurrency == upstream.concurrency);
            let gate = same.and_then(|before| before.link.gate());
            let earlier = before.as_ref().and_then(|before| before.link.peer());
            let shared = Shared::new(Arc::clone(upstream), wishes, (gate, earlier));
            Link::remote(shared, Arc::new(wire), metrics.clone())
        };
        let link = match end {
            End::Demonstration(demonstration) => Link::builtin(Arc::new(demonstration)),
            End::Http(http) => remote(Wire::Http(http)),
            End::Child(command) => remote(Wire::Stdio(Stdio::new(command, upstream, &tasks))),
        };
        let keeping = tasks.child("keeping");
        Self { upstream: Arc::clone(upstream), link, publisher, tasks, keeping }
    }

    /// Has the link looked after from now on.
    pub(super) fn begin(&self) {
        self.link.begin(self.publisher.clone(), &self.tasks, &self.keeping);
    }

    /// Whether both are the same link.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.publisher.is(&other.publisher)
    }
}
