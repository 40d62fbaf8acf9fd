//! The accept loop and its connections.

use std::convert::Infallible;
use std::error::Error as _;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;

use crate::downstream::Body;
use crate::task::{Lanes, TaskGroup};

/// Most header fields of a request.
const MOST_HEADERS: usize = 100;
/// So many times the time for a head may go by without a byte that the client takes.
const STALLED: u32 = 3;
/// How long the loop rests when the process has no file descriptor left.
const EXHAUSTED: Duration = Duration::from_millis(50);
/// What is said to a connection above the limit.
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// The answer to one request, on its way.
pub type Answering = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

/// What answers the requests of a listener, each with the address that it comes from.
pub type Service = Arc<dyn Fn(Request<Incoming>, IpAddr) -> Answering + Send + Sync>;

/// What connections may use.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    /// Most at once.
    pub most: usize,
    /// How long a request head may take. A client that takes nothing of its answer for three times as long is given
    /// up.
    pub header_timeout: Duration,
}

/// What governs a running listener; `L` tells the limits of this moment.
#[derive(Debug, Clone)]
pub struct Running<L> {
    /// Owns the connections.
    pub tasks: TaskGroup,
    /// Where they run; on the runtime of the process where there are none.
    pub lanes: Option<Arc<Lanes>>,
    /// Cancelled when no new connections are taken and open ones end after their current exchange.
    pub closing: CancellationToken,
    /// What is in force when a connection comes.
    pub limits: L,
}

/// Takes connections until `closing` is cancelled, and serves each in a task of its own.
pub async fn accept<L: Fn() -> ConnectionLimits>(
    listener: TcpListener,
    running: Running<L>,
    service: Service,
) {
    let held = Arc::new(());
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
        let limits = (running.limits)();
        // One is held here, one by each connection.
        if Arc::strong_count(&held) > limits.most {
            refuse(&stream);
            continue;
        }
        let permit = Arc::clone(&held);
        let service = Arc::clone(&service);
        let (tasks, closing) = (running.tasks.clone(), running.closing.clone());
        let connection = Connection { stream, from: peer.ip(), tasks, closing, _permit: permit };
        let serving = serve(connection, limits.header_timeout, service);
        match running.lanes.as_ref().and_then(|lanes| lanes.idlest()) {
            Some(lane) => running.tasks.spawn_on(lane, "connection", serving),
            None => running.tasks.spawn("connection", serving),
        }
    }
}

/// Says that there is no room, as far as the socket takes it at once.
fn refuse(stream: &TcpStream) {
    if stream.try_write(FULL).is_err() {
        tracing::debug!(event = "conn.limit", "a refused connection was gone already");
    }
}

/// A connection that was taken.
struct Connection {
    stream: TcpStream,
    from: IpAddr,
    tasks: TaskGroup,
    closing: CancellationToken,
    /// Counts it as long as it is there.
    _permit: Arc<()>,
}

async fn serve(taken: Connection, header_timeout: Duration, service: Service) {
    let Connection { stream, from, tasks, closing, _permit } = taken;
    // Its events come to the thread that it runs on.
    let stream = match stream.into_std().and_then(TcpStream::from_std) {
        Ok(stream) => stream,
        Err(error) => {
            tracing::warn!(event = "accept.error", %error, "a connection could not be taken over");
            return;
        }
    };
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "nodelay");
    }
    let mut stream = TimeoutStream::new(stream);
    // Of a client that reads nothing, nothing is kept for long: neither its answer nor its call.
    stream.set_write_timeout(Some(header_timeout * STALLED));
    let answer = service_fn(move |request| {
        let answering = service(request, from);
        async move { Ok::<_, Infallible>(answering.await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_timeout)
        .max_headers(MOST_HEADERS)
        .serve_connection(TokioIo::new(Box::pin(stream)), answer);
    let mut connection = std::pin::pin!(connection);
    // Cancel-safe: the connection is pinned and polled again after the graceful end was asked for.
    let outcome = tokio::select! {
        outcome = connection.as_mut() => outcome,
        () = tasks.cancelled() => return,
        () = closing.cancelled() => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                outcome = connection => outcome,
                () = tasks.cancelled() => return,
            }
        }
    };
    if let Err(error) = outcome {
        let reason =
            error.source().and_then(|source| source.downcast_ref::<io::Error>()).map(io::Error::kind);
        if reason == Some(io::ErrorKind::TimedOut) {
            tracing::info!(event = "stream.stalled", "a client took nothing of its answer any more");
            return;
        }
        tracing::debug!(event = "http.connection", %error, "a connection ended");
    }
}
