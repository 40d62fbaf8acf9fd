//! The one task that writes the snapshot.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{Builder, Catalog, Inventories, Material, Presence, Snapshot};

/// How long the first snapshot waits for upstreams that are still connecting.
const FIRST_WAIT: Duration = Duration::from_secs(2);

/// Turns inventories into snapshots.
#[derive(Debug)]
pub struct Keeper {
    material: watch::Receiver<Material>,
    snapshots: watch::Sender<Arc<Snapshot>>,
    builder: Builder,
}

impl Keeper {
    /// Takes the watch of the upstream side; returns the keeper and the watch that requests read. The watch holds a
    /// snapshot of generation 0 until [`Keeper::run`] publishes the first one.
    #[must_use]
    pub fn new(material: watch::Receiver<Material>) -> (Self, watch::Receiver<Arc<Snapshot>>) {
        let Material { config, inventories } = material.borrow().clone();
        let empty = Snapshot { generation: 0, config, catalog: Arc::new(Catalog::default()), inventories };
        let (snapshots, receiver) = watch::channel(Arc::new(empty));
        (Self { material, snapshots, builder: Builder::default() }, receiver)
    }

    /// Publishes snapshots until cancelled or until the upstream side is gone. `get_ready` sees each of them before
    /// anybody else does, and is waited for.
    pub async fn run<F>(mut self, cancelled: CancellationToken, get_ready: impl Fn(Arc<Snapshot>) -> F)
    where
        F: Future<Output = ()>,
    {
        let first = Instant::now() + FIRST_WAIT;
        // Cancel-safe: `wait_for` and `changed` lose nothing when dropped.
        while !settled(&self.material.borrow_and_update().inventories) {
            tokio::select! {
                () = cancelled.cancelled() => return,
                changed = timeout_at(first, self.material.changed()) => match changed {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) | Err(_) => break,
                },
            }
        }
        loop {
            if let Some(next) = self.next() {
                get_ready(Arc::clone(&next)).await;
                self.snapshots.send_replace(next);
            }
            tokio::select! {
                () = cancelled.cancelled() => return,
                changed = self.material.changed() => if changed.is_err() { return },
            }
        }
    }

    /// The snapshot that comes next; `None` where nothing has changed.
    fn next(&mut self) -> Option<Arc<Snapshot>> {
        let Material { config, inventories } = self.material.borrow_and_update().clone();
        let catalog = self.builder.build(&config, &inventories);
        let current = Arc::clone(&self.snapshots.borrow());
        let same_catalog = *current.catalog == catalog;
        let is_settled = Arc::ptr_eq(&current.config, &config) && current.generation > 0;
        if same_catalog && is_settled && *current.inventories == *inventories {
            return None;
        }
        let unchanged = same_catalog && current.generation > 0;
        let catalog = if unchanged { Arc::clone(&current.catalog) } else { Arc::new(catalog) };
        if !unchanged {
            report(&current.catalog, &catalog);
        }
        let generation = current.generation + 1;
        Some(Arc::new(Snapshot { generation, config, catalog, inventories }))
    }
}

fn settled(inventories: &Inventories) -> bool {
    inventories.values().all(|presence| match presence {
        Presence::Connecting { .. } => false,
        Presence::Up { .. } | Presence::Down { .. } => true,
    })
}

/// Says once what a new catalog leaves out.
fn report(before: &Catalog, now: &Catalog) {
    for (upstream, left) in &now.left_out {
        let known = before.left_out.iter().any(|(name, old)| name == upstream && old == left);
        if !known {
            tracing::warn!(event = "tool.rejected", %upstream, name = ?left.name, reason = %left.reason, "left out");
        }
    }
}
