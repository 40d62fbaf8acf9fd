//! HTTP/1.1 without TLS to one address, driven by whoever asks.
//!
//! The usual client gives each connection a task of its own, so every request goes from task to task, and often from
//! core to core, and back. Here a connection belongs to the request that uses it and is polled along with it; between
//! requests it lies in a pool, where nobody polls it. Whether it still stands is seen when it is taken out.

use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, USER_AGENT};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use http_body::Body as _;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tower::ServiceExt as _;

#[cfg(target_os = "linux")]
use super::UNACKNOWLEDGED;
use super::{IDLE_CONNECTION, KEEPALIVE, KEEPALIVE_ANSWER, KEEPALIVE_PROBES, logged};
use crate::exchange::Reason;
use crate::task::{TaskGroup, lane};
use crate::upstream::fault::Fault;

/// One for each of so many lanes, and one for threads that are none. Where there are more, some share theirs.
const POOLS: usize = 32;
/// Most connections that a lane keeps for later.
const MOST_IDLE: usize = 64;
/// How often it is looked whether some have been idle for too long.
const LOOK: Duration = Duration::from_secs(1);

/// The way to one address.
#[derive(Debug)]
pub(super) struct Plain {
    origin: Uri,
    host: HeaderValue,
    connector: HttpConnector,
    patience: Duration,
    /// One for each lane: a connection stays on the thread that opened it.
    pools: [Arc<Pool>; POOLS],
    tasks: TaskGroup,
}

impl Plain {
    /// The way to the address of a URL with scheme `http`. Does not connect. `patience`: how long a connection may take;
    /// `tasks` own the look at idle ones.
    pub(super) fn new(url: &reqwest::Url, patience: Duration, tasks: &TaskGroup) -> Option<Self> {
        if url.scheme() != "http" {
            return None;
        }
        let authority = &url[url::Position::BeforeHost..url::Position::AfterPort];
        let host = HeaderValue::from_str(authority).ok()?;
        let origin = Uri::builder().scheme("http").authority(authority).path_and_query("/").build().ok()?;
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(patience));
        connector.set_keepalive(Some(KEEPALIVE));
        connector.set_keepalive_interval(Some(KEEPALIVE_ANSWER));
        connector.set_keepalive_retries(Some(KEEPALIVE_PROBES));
        #[cfg(target_os = "linux")]
        connector.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
        Some(Self { origin, host, connector, patience, pools: Default::default(), tasks: tasks.clone() })
    }

    /// Sends one request. One that was not written, since the connection had just been ended by the other side, goes over
    /// another one.
    ///
    /// # Errors
    /// [`Fault`]: no connection could be had, or it ended before the head of the answer was there.
    pub(super) async fn send(
        &self,
        (method, path): (&Method, PathAndQuery),
        mut head: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Flow>, Fault> {
        head.insert(HOST, self.host.clone());
        head.insert(USER_AGENT, HeaderValue::from_static(super::NAME));
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method.clone();
        *request.uri_mut() = Uri::from(path);
        *request.headers_mut() = head;
        loop {
            let pool = self.pool();
            let kept = std::future::poll_fn(|context| Poll::Ready(pool.take(context))).await;
            let is_new = kept.is_none();
            let mut line = match kept {
                Some(line) => line,
                None => Box::pin(self.connect()).await?,
            };
            match line.exchange(request).await {
                Ok(response) => {
                    let (pool, tasks) = (Arc::clone(pool), self.tasks.clone());
                    return Ok(response.map(|body| Flow { body, line: Some(line), pool, tasks }));
                }
                Err(mut error) => match error.take_message() {
                    Some(unsent) if !is_new => request = unsent,
                    Some(_) => return Err(logged(Fault::unsent(Reason::Ended))),
                    None => return Err(logged(Fault::sent(Reason::Ended))),
                },
            }
        }
    }

    fn pool(&self) -> &Arc<Pool> {
        let [first, others @ ..] = &self.pools;
        lane().checked_sub(1).and_then(|lane| others.get(lane % others.len())).unwrap_or(first)
    }

    async fn connect(&self) -> Result<Line, Fault> {
        let connecting = self.connector.clone().oneshot(self.origin.clone());
        let unreachable = || logged(Fault::unsent(Reason::Unreachable));
        let Ok(Ok(stream)) = tokio::time::timeout(self.patience, connecting).await else {
            return Err(unreachable());
        };
        let (sender, connection) = http1::handshake(stream).await.map_err(|_why| unreachable())?;
        Ok(Line { sender, connection: Some(Box::new(connection)) })
    }
}

/// A connection.
#[derive(Debug)]
struct Line {
    sender: SendRequest<Full<Bytes>>,
    /// `None` once it has ended.
    connection: Option<Box<http1::Connection<TokioIo<TcpStream>, Full<Bytes>>>>,
}

impl Line {
    /// Lets it go on; true while it stands. All that it brings lies ready for whoever looks next: where it has ended, the
    /// end.
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        self.connection.take_if(|connection| Pin::new(connection).poll(context).is_ready());
        self.connection.is_some()
    }

    async fn exchange(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Full<Bytes>>>> {
        let mut answer = pin!(self.sender.try_send_request(request));
        std::future::poll_fn(|context| {
            self.poll(context);
            answer.as_mut().poll(context)
        })
        .await
    }
}

/// Connections without a request.
#[derive(Debug, Default)]
struct Pool(Mutex<Idle>);

#[derive(Debug, Default)]
struct Idle {
    lines: Vec<(Line, Instant)>,
    is_watched: bool,
}

impl Pool {
    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection that was used last, if it still stands.
    fn take(&self, context: &mut Context<'_>) -> Option<Line> {
        loop {
            let (mut line, since) = self.idle().lines.pop()?;
            if since.elapsed() < IDLE_CONNECTION && line.poll(context) && line.sender.is_ready() {
                return Some(line);
            }
        }
    }

    /// Keeps a connection for later.
    fn keep(self: &Arc<Self>, line: Line, tasks: &TaskGroup) {
        let mut idle = self.idle();
        if idle.lines.len() >= MOST_IDLE {
            return;
        }
        idle.lines.push((line, Instant::now()));
        if !std::mem::replace(&mut idle.is_watched, true) {
            drop(idle);
            tasks.spawn_until_cancelled("idle connections", Arc::clone(self).watch());
        }
    }

    /// Ends what has been idle for too long, until there is nothing.
    async fn watch(self: Arc<Self>) {
        loop {
            tokio::time::sleep(LOOK).await;
            let mut idle = self.idle();
            idle.lines.retain(|(_, since)| since.elapsed() < IDLE_CONNECTION);
            if idle.lines.is_empty() {
                idle.is_watched = false;
                return;
            }
        }
    }
}

/// The body of an answer, with its connection.
#[derive(Debug)]
pub(super) struct Flow {
    body: Incoming,
    /// `None` once the body has ended.
    line: Option<Line>,
    pool: Arc<Pool>,
    tasks: TaskGroup,
}

impl Flow {
    /// How many bytes there are, where the head said so.
    pub(super) fn length(&self) -> Option<u64> {
        self.body.size_hint().exact()
    }

    /// The next bytes; `None` at the end, with which the connection is free for others.
    ///
    /// # Errors
    /// [`Fault`] where the connection ended before the body did.
    ///
    /// # Cancel safety
    /// Nothing is lost when it is dropped.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, Fault> {
        std::future::poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Fault>> {
        loop {
            if let Some(line) = self.line.as_mut() {
                line.poll(context);
            }
            match Pin::new(&mut self.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) if frame.is_data() => {
                    return Poll::Ready(Ok(frame.into_data().ok()));
                }
                // Trailers, which mean nothing here.
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(_why))) => {
                    self.line = None;
                    return Poll::Ready(Err(logged(Fault::sent(Reason::Ended))));
                }
                Poll::Ready(None) => {
                    self.release();
                    return Poll::Ready(Ok(None));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn release(&mut self) {
        let Some(mut line) = self.line.take() else { return };
        // It gets ready for another request as soon as it is looked at.
        if line.poll(&mut Context::from_waker(Waker::noop())) && line.sender.is_ready() {
            self.pool.keep(line, &self.tasks);
        }
    }
}
