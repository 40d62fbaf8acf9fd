//! Updates of resources from a modern upstream: one `subscriptions/listen` stream for all that anybody watches.
//!
//! Where other resources are wanted another stream is opened, and the old one is read on until that one is
//! acknowledged and a little longer, so that nothing falls between the two. Where a stream broke, each resource is
//! reported as updated once the next one is there, since nobody knows what was missed.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::Peer;
use super::listen::{self, Ended, Stream};
use crate::jsonrpc::{Object, Text};
use crate::protocol::notification;
use crate::upstream::backoff;
use crate::upstream::wishes::Wishes;

/// A stream that lived so long was a good one: the next one is not held back for older failures.
const GOOD: Duration = Duration::from_secs(30);
/// Wishes that change so close together are one change.
const GATHER: Duration = Duration::from_millis(50);
/// How long an old stream is read beside its successor.
const OVERLAP: Duration = Duration::from_millis(100);

/// Listens for what is wanted, for as long as the caller wants, or until the upstream says that it has no such
/// stream.
pub(in crate::upstream) async fn attend(peer: Arc<Peer>) {
    let wishes = &peer.leg.way.wishes;
    let mut turned = wishes.turned();
    let mut heard = Heard::default();
    let mut failures = 0;
    loop {
        turned.borrow_and_update();
        let wanted = wishes.resources();
        if wanted.is_empty() {
            heard = Heard::default();
        } else if wanted != heard.resources {
            match heard.replaced(&peer, wanted).await {
                Ok(()) => {}
                Err(Ended::Refused) => return,
                Err(Ended::Failed | Ended::Closed) => {
                    failures += 1;
                    heard.pause(wishes, failures).await;
                    continue;
                }
            }
        }
        let since = Instant::now();
        tokio::select! {
            () = heard.read(wishes) => {
                failures = if since.elapsed() >= GOOD { 1 } else { failures + 1 };
                heard.pause(wishes, failures).await;
            }
            () = turns(&mut turned) => {}
        }
    }
}

/// Waits until other resources are wanted, and a little longer.
async fn turns(turned: &mut watch::Receiver<u64>) {
    if turned.changed().await.is_err() {
        pending::<()>().await;
    }
    tokio::time::sleep(GATHER).await;
}

/// What is listened for now.
#[derive(Debug, Default)]
struct Heard {
    stream: Option<Stream>,
    resources: BTreeSet<String>,
    /// What a stream that broke was for.
    missed: BTreeSet<String>,
}

impl Heard {
    /// Reads until the stream ends; for ever where there is none.
    async fn read(&mut self, wishes: &Wishes) {
        let Some(stream) = &mut self.stream else { return pending().await };
        while let Some((method, params)) = stream.next().await {
            if method == notification::UPDATED
                && let Some(uri) = Object::open(&params).and_then(|params| params.text("uri"))
            {
                wishes.updated(&uri);
            }
        }
        self.stream = None;
        self.missed.append(&mut self.resources);
    }

    /// Waits before another attempt, and reads what there is meanwhile.
    async fn pause(&mut self, wishes: &Wishes, failures: u32) {
        let pause = backoff::pause(failures, backoff::jitter());
        if tokio::time::timeout(pause, self.read(wishes)).await.is_ok() {
            tokio::time::sleep(pause).await;
        }
    }

    /// Opens a stream for these resources in place of the one that is there.
    async fn replaced(&mut self, peer: &Peer, wanted: BTreeSet<String>) -> Result<(), Ended> {
        let wishes = &peer.leg.way.wishes;
        let params = params(&wanted);
        let mut opening = Box::pin(listen::open(peer, &params));
        let stream = loop {
            tokio::select! {
                biased;
                stream = &mut opening => break stream?,
                () = self.read(wishes) => {}
            }
        };
        let missed = std::mem::take(&mut self.missed);
        // What the upstream sent on the old stream before it acknowledged the new one is still on its way.
        if self.stream.is_some() && tokio::time::timeout(OVERLAP, self.read(wishes)).await.is_err() {
            tracing::trace!("an old stream is let go");
        }
        missed.intersection(&wanted).for_each(|uri| wishes.updated(uri));
        self.missed.clear();
        self.stream = Some(stream);
        self.resources = wanted;
        Ok(())
    }
}

fn params(resources: &BTreeSet<String>) -> String {
    let uris = serde_json::Value::from_iter(resources.iter().map(String::as_str));
    let mut filter = Text::object();
    filter.member("resourceSubscriptions", &uris.to_string());
    let mut params = Text::object();
    params.member("notifications", &filter.close());
    params.close()
}
