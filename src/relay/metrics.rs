//! One record per exchange that reaches the relay.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::Stream;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use tokio::time::Instant;

use crate::exchange::{Event, Reply};
use crate::names::{RouteName, UpstreamName};
use crate::protocol::Method;

/// The labels of an operation. All closed: methods are a table, routes and upstreams are configured (empty where none
/// is asked), outcomes are an enum.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    method: &'static str,
    route: String,
    upstream: String,
    outcome: &'static str,
}

/// The families of the relay.
#[derive(Debug, Clone)]
pub struct Metrics {
    duration: Family<Labels, Histogram, fn() -> Histogram>,
    in_flight: Gauge,
}

fn buckets() -> Histogram {
    Histogram::new(exponential_buckets(0.0005, 2.5, 14))
}

impl Metrics {
    /// Makes the families known to the registry.
    #[must_use]
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            duration: Family::new_with_constructor(buckets as fn() -> Histogram),
            in_flight: Gauge::default(),
        };
        registry.register(
            "mcp_server_operation_duration_seconds",
            "Time from a call's arrival at the relay to its last event",
            metrics.duration.clone(),
        );
        registry.register("weir_calls_in_flight", "Calls that have no answer yet", metrics.in_flight.clone());
        metrics
    }

    /// Begins the record of one call.
    pub(super) fn start(&self, method: Method, route: &RouteName) -> Timer {
        self.in_flight.inc();
        Timer {
            metrics: self.clone(),
            labels: Labels {
                method: method.as_str(),
                route: route.to_string(),
                upstream: String::new(),
                outcome: "cancelled",
            },
            began: Instant::now(),
        }
    }
}

/// The record of one call, written when it is dropped.
#[derive(Debug)]
pub(super) struct Timer {
    metrics: Metrics,
    labels: Labels,
    began: Instant,
}

impl Timer {
    /// Says which upstream the call goes to.
    pub(super) fn goes_to(&mut self, upstream: &UpstreamName) {
        self.labels.upstream = upstream.to_string();
    }

    /// Says how an exchange without a reply ended.
    pub(super) fn ended(mut self, outcome: &'static str) {
        self.labels.outcome = outcome;
    }

    /// A reply that writes the record when it ends, for whatever reason.
    pub(super) fn watch(self, reply: Reply) -> Reply {
        Box::pin(Watched { reply, timer: self })
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.metrics.in_flight.dec();
        let seconds = self.began.elapsed().as_secs_f64();
        self.metrics.duration.get_or_create(&self.labels).observe(seconds);
    }
}

struct Watched {
    reply: Reply,
    timer: Timer,
}

impl Stream for Watched {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        let event = self.reply.as_mut().poll_next(context);
        if let Poll::Ready(Some(event)) = &event {
            self.timer.labels.outcome = match event {
                Event::Result(_) => "result",
                Event::Error(_) => "error",
                Event::Failed(failure) => failure.label(),
                Event::Progress(_) | Event::Log(..) | Event::Paused(_) => self.timer.labels.outcome,
            };
        }
        event
    }
}
