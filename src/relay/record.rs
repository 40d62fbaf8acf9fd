//! One record per exchange that reaches the relay: a measurement and, where the operator wants it, a log line.
//!
//! It is completed along the way and written once, when the exchange ends for whatever reason.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use futures_util::Stream;
use tokio::time::Instant;

use super::audit::Draft;
use super::metrics::{Labels, Metrics};
use crate::exchange::{Event, Failure, Reply};
use crate::names::{RouteName, UpstreamName};
use crate::protocol::Method;

/// The record of one exchange.
#[derive(Debug)]
pub(super) struct Record {
    metrics: Metrics,
    labels: Labels,
    began: Instant,
    is_logged: bool,
    audit: Option<Draft>,
    /// Where a probe finds what was asked for.
    probed: Arc<OnceLock<UpstreamName>>,
}

impl Record {
    /// Begins the record of an exchange. `is_logged`: whether it gets a line in the log.
    pub(super) fn begin(metrics: &Metrics, method: Method, route: &RouteName, is_logged: bool) -> Self {
        metrics.began();
        let labels = Labels {
            method: method.as_str(),
            route: route.to_string(),
            upstream: String::new(),
            outcome: "cancelled",
        };
        Self {
            metrics: metrics.clone(),
            labels,
            began: Instant::now(),
            is_logged,
            audit: None,
            probed: Arc::default(),
        }
    }

    /// The exchange is one that the audit log has a line for.
    pub(super) fn audited(&mut self, draft: Draft) {
        self.audit = Some(draft);
    }

    /// Says which upstream the call goes to.
    pub(super) fn goes_to(&mut self, upstream: &UpstreamName) {
        self.labels.upstream = upstream.to_string();
        if let Some(audit) = &mut self.audit {
            audit.goes_to(upstream.as_str());
        }
    }

    /// Where to write which upstream a probe found.
    pub(super) fn probed(&self) -> Arc<OnceLock<UpstreamName>> {
        Arc::clone(&self.probed)
    }

    /// Says that an exchange failed before there was a reply.
    pub(super) fn failed(mut self, failure: &Failure) {
        if let Some(audit) = &mut self.audit {
            audit.has_failed(failure);
        }
        self.labels.outcome = failure.label();
    }

    /// Says how an exchange without a reply ended.
    pub(super) fn ended(mut self, outcome: &'static str) {
        self.labels.outcome = outcome;
    }

    /// A reply that writes the record when it ends.
    pub(super) fn watch(self, reply: Reply) -> Reply {
        Box::pin(Watched { reply, record: self })
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let took = self.began.elapsed();
        if let Some(upstream) = self.probed.get().cloned() {
            self.goes_to(&upstream);
        }
        self.metrics.ended(&self.labels, took);
        if let Some(audit) = &mut self.audit {
            audit.write(self.labels.outcome, took);
        }
        if self.is_logged {
            tracing::info!(
                event = "access",
                method = self.labels.method,
                route = %self.labels.route,
                upstream = %self.labels.upstream,
                outcome = self.labels.outcome,
                duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
                "exchange"
            );
        }
    }
}

struct Watched {
    reply: Reply,
    record: Record,
}

impl Stream for Watched {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        let event = self.reply.as_mut().poll_next(context);
        if let Poll::Ready(Some(event)) = &event {
            if let Some(audit) = &mut self.record.audit {
                audit.hears(event);
            }
            self.record.labels.outcome = match event {
                Event::Result(_) => "result",
                Event::Error(_) => "error",
                Event::Failed(failure) => failure.label(),
                Event::Asks(_) => "input_required",
                Event::Progress(_)
                | Event::Log(..)
                | Event::Paused(_)
                | Event::Task(_)
                | Event::Inquiry(_) => self.record.labels.outcome,
            };
        }
        event
    }
}
