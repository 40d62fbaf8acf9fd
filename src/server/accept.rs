//! The accept loop and its connections.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tower::{Service, ServiceExt as _};

use crate::downstream::Peer;
use crate::task::TaskGroup;

/// Most header fields of a request.
const MOST_HEADERS: usize = 100;
/// How long the loop rests when the process has no file descriptor left.
const EXHAUSTED: Duration = Duration::from_millis(50);
/// What is said to a connection above the limit.
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// What governs a running listener.
#[derive(Debug, Clone)]
pub struct Running {
    /// Owns the connections.
    pub tasks: TaskGroup,
    /// Cancelled when no new connections are taken and open ones end after their current exchange.
    pub closing: CancellationToken,
    /// Most connections at once.
    pub connections: usize,
    /// How long a request head may take.
    pub header_timeout: Duration,
}

/// Takes connections until `closing` is cancelled, and serves each in a task of its own.
pub async fn accept<S, B>(listener: TcpListener, running: Running, service: S)
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let permits = Arc::new(Semaphore::new(running.connections));
    loop {
        // Cancel-safe: `accept` loses no connection when dropped.
        let accepted = tokio::select! {
            () = running.closing.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(event = "accept.error", %error, "a connection could not be accepted");
                sleep(EXHAUSTED).await;
                continue;
            }
        };
        let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else {
            refuse(&stream);
            continue;
        };
        let from = Peer(peer.ip());
        let service = service.clone().map_request(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(from);
            request
        });
        let connection = running.clone();
        running.tasks.spawn("connection", async move {
            serve(stream, &connection, service).await;
            drop(permit);
        });
    }
}

/// Says that there is no room, as far as the socket takes it at once.
fn refuse(stream: &TcpStream) {
    if stream.try_write(FULL).is_err() {
        tracing::debug!(event = "conn.limit", "a refused connection was gone already");
    }
}

async fn serve<S, B>(stream: TcpStream, running: &Running, service: S)
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "nodelay");
    }
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(running.header_timeout)
        .max_headers(MOST_HEADERS)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    let mut connection = std::pin::pin!(connection);
    // Cancel-safe: the connection is pinned and polled again after the graceful end was asked for.
    let outcome = tokio::select! {
        outcome = connection.as_mut() => outcome,
        () = running.tasks.cancelled() => return,
        () = running.closing.cancelled() => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                outcome = connection => outcome,
                () = running.tasks.cancelled() => return,
            }
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(event = "http.connection", %error, "a connection ended");
    }
}
