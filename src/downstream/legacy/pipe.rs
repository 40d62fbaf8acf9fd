//! HTTP+SSE, the transport of 2024-11-05 (2024-11-05, basic/transports, "HTTP with SSE").
//!
//! The client opens `PATH/sse`, is told where to post, and gets every answer on that one stream. Behind it stands an
//! ordinary session: each posted message is served as if it had come to the endpoint, and what would have been its
//! response goes into the stream. When the stream ends the session ends.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use dashmap::DashMap;
use futures_util::{StreamExt as _, stream};
use http::{HeaderValue, Method, Response, StatusCode, header};
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Legacy, encode};
use crate::downstream::render::{self, with_comments};
use crate::downstream::{Body, Footing, Inbound, unreadable};
use crate::jsonrpc::Message;
use crate::protocol::{Revision, encode_event, encode_named, headers, notification};
use crate::seal::{Owner, SessionSeal, random_bytes};

/// So many chunks may wait for a client that reads slowly; then what writes to it waits.
const AHEAD: usize = 64;

/// One client's stream.
#[derive(Debug)]
struct Pipe {
    out: mpsc::Sender<Bytes>,
    /// The sealed id of the session behind it, once that is open.
    session: Mutex<Option<HeaderValue>>,
    ended: CancellationToken,
}

/// The open streams.
#[derive(Debug, Default)]
pub(super) struct Pipes {
    pipes: DashMap<[u8; 16], Arc<Pipe>>,
}

/// Takes a stream out of the list when its body is dropped, and ends what stands behind it.
struct Guard {
    legacy: Legacy,
    key: [u8; 16],
    pipe: Arc<Pipe>,
    request: Inbound,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.legacy.pipes.pipes.remove(&self.key);
        self.pipe.ended.cancel();
        if let Some(id) = self.pipe.session() {
            self.request.headers.insert(headers::SESSION_ID, id);
            if let Ok(session) = self.legacy.session(&self.request) {
                self.legacy.table.end(session.key);
            }
        }
    }
}

impl Pipe {
    fn session(&self) -> Option<HeaderValue> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Writes a response into the stream, chunk by chunk.
    async fn carry(&self, body: Body) {
        match body {
            Body::Pieces(pieces) if pieces.is_empty() => {}
            Body::Pieces(pieces) => {
                let text = Vec::from(pieces).concat();
                self.put(encode_event(None, &String::from_utf8_lossy(&text))).await;
            }
            Body::Stream(mut chunks) => {
                while let Some(chunk) = chunks.next().await {
                    self.put(chunk).await;
                }
            }
        }
    }

    async fn put(&self, chunk: Bytes) {
        if self.out.send(chunk).await.is_err() {
            tracing::debug!("an event stream was gone before its answer");
        }
    }
}

/// Answers a request to `PATH/sse`.
pub(super) fn serve(legacy: &Legacy, request: Inbound, query: Option<&str>) -> Response<Body> {
    match request.method {
        Method::GET => open(legacy, request),
        Method::POST => post(legacy, request, query),
        _ => {
            let response = render::empty(StatusCode::METHOD_NOT_ALLOWED);
            render::with_header(response, header::ALLOW, "GET, POST")
        }
    }
}

/// Opens a stream; its first event says where to post.
fn open(legacy: &Legacy, request: Inbound) -> Response<Body> {
    if legacy.pipes.pipes.len() + legacy.table.len() >= legacy.table.limits().total {
        let response = encode::refused(StatusCode::SERVICE_UNAVAILABLE, "too many sessions; try again later");
        return render::with_header(response, header::RETRY_AFTER, "10");
    }
    let key = random_bytes();
    let now = Timestamp::now().as_second();
    let life = i64::try_from(legacy.table.limits().max_age.as_secs()).unwrap_or(i64::MAX);
    let seal = SessionSeal {
        key,
        revision: Revision::V2024_11_05,
        issued: now,
        expires: now.saturating_add(life),
        owner: Owner::new(&request.route.name, &request.principal.subject),
    };
    let (out, chunks) = mpsc::channel(AHEAD);
    let pipe = Arc::new(Pipe { out, session: Mutex::new(None), ended: CancellationToken::new() });
    legacy.pipes.pipes.insert(key, Arc::clone(&pipe));
    let prefix = request.snapshot.config.listen.public_path();
    let address = format!("{prefix}{}/sse?session={}", request.route.path, seal.seal(&legacy.shared.keyring));
    let footing = Footing::new(&legacy.shared, &request.principal, &request.route);
    let first = stream::iter([encode_named("endpoint", &address)]);
    let guard = Guard { legacy: legacy.clone(), key, pipe, request };
    let rest = stream::unfold((chunks, guard, footing), async |(mut chunks, guard, mut footing)| {
        // Cancel-safe: `recv` takes nothing until it is ready.
        let chunk = tokio::select! {
            () = footing.over() => None,
            chunk = chunks.recv() => chunk,
        };
        Some((chunk?, (chunks, guard, footing)))
    });
    render::events(with_comments(first.chain(rest)))
}

/// Takes a message: it is accepted at once, its answer comes on the stream.
fn post(legacy: &Legacy, mut request: Inbound, query: Option<&str>) -> Response<Body> {
    let Some(pipe) = find(legacy, &request, query) else { return encode::no_such_session() };
    if let Err(error) = Message::of(&request.body) {
        return unreadable(&error);
    }
    // The answer is wanted as events, whatever the client of this old transport sends as `Accept`.
    request.headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    request.headers.remove(headers::SESSION_ID);
    request.headers.remove(headers::PROTOCOL_VERSION);
    if let Some(id) = pipe.session() {
        request.headers.insert(headers::SESSION_ID, id);
    }
    let (legacy, ended) = (legacy.clone(), pipe.ended.clone());
    let tasks = legacy.calls.clone();
    tasks.spawn("message of an event stream", async move {
        ended.run_until_cancelled_owned(Box::pin(carry(legacy, pipe, request))).await;
    });
    render::empty(StatusCode::ACCEPTED)
}

fn find(legacy: &Legacy, request: &Inbound, query: Option<&str>) -> Option<Arc<Pipe>> {
    let sealed = query?.split('&').find_map(|pair| pair.strip_prefix("session="))?;
    let owner = Owner::new(&request.route.name, &request.principal.subject);
    let seal = SessionSeal::open(&legacy.shared.keyring, sealed, owner, Timestamp::now().as_second()).ok()?;
    legacy.pipes.pipes.get(&seal.key).map(|pipe| Arc::clone(&pipe))
}

/// Serves one message and writes its answer into the stream. The first one opens the session; once the client says
/// that it is ready, what the session has to say by itself comes along too.
async fn carry(legacy: Legacy, pipe: Arc<Pipe>, request: Inbound) {
    let body = request.body.clone();
    let Ok(message) = Message::of(&body) else { return };
    let is_ready =
        matches!(&message, Message::Notification { method, .. } if method == notification::INITIALIZED);
    let response = legacy.post(&request, message).await;
    if let Some(id) = response.headers().get(headers::SESSION_ID) {
        *pipe.session.lock().unwrap_or_else(PoisonError::into_inner) = Some(id.clone());
    }
    pipe.carry(response.into_body()).await;
    if is_ready {
        pipe.carry(legacy.get(&request).into_body()).await;
    }
}
