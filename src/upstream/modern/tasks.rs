//! News of tasks from a modern upstream: a `subscriptions/listen` stream with their ids (the extension
//! `io.modelcontextprotocol/tasks`, "Task Status Notifications").
//!
//! Who listens polls as well, so nothing is made up for what a broken stream missed; it is opened again with
//! back-off.

use std::sync::Arc;

use futures_util::{Stream, stream};
use serde_json::Value;
use tokio::time::Instant;

use super::Peer;
use super::listen::{self, Ended, GOOD};
use crate::jsonrpc::Text;
use crate::protocol::notification;
use crate::upstream::backoff;

/// The raw params of `notifications/tasks` for the tasks with these ids. It never ends; dropping it ends the stream.
pub(in crate::upstream) fn follow(
    peer: Arc<Peer>,
    ids: &[String],
) -> impl Stream<Item = String> + Send + use<> {
    let following = Following { peer, params: params(ids), stream: None, failures: 0 };
    stream::unfold(following, |mut following| async move {
        let params = Box::pin(following.next()).await;
        Some((params, following))
    })
}

fn params(ids: &[String]) -> String {
    let mut filter = Text::object();
    filter.member("taskIds", &Value::from_iter(ids.iter().map(String::as_str)).to_string());
    let mut params = Text::object();
    params.member("notifications", &filter.close());
    params.close()
}

struct Following {
    peer: Arc<Peer>,
    params: String,
    stream: Option<(listen::Stream, Instant)>,
    failures: u32,
}

impl Following {
    /// The next news.
    async fn next(&mut self) -> String {
        loop {
            if let Some(params) = self.told().await {
                return params;
            }
            // The link has ended, and with it what its upstream has to say.
            if self.peer.leg.way.tasks.is_cancelled() {
                std::future::pending::<()>().await;
            }
            if self.failures > 0 {
                tokio::time::sleep(backoff::pause(self.failures, backoff::jitter())).await;
            }
            match listen::open(&self.peer, &self.params).await {
                Ok(stream) => self.stream = Some((stream, Instant::now())),
                Err(Ended::Refused) => std::future::pending().await,
                Err(Ended::Failed | Ended::Closed) => self.failures += 1,
            }
        }
    }

    /// What the stream says of a task; `None` where there is none any more.
    async fn told(&mut self) -> Option<String> {
        let (stream, since) = self.stream.as_mut()?;
        while let Some((method, params)) = stream.next().await {
            if method == notification::TASK {
                return Some(params);
            }
        }
        self.failures = if since.elapsed() >= GOOD { 1 } else { self.failures + 1 };
        self.stream = None;
        None
    }
}
