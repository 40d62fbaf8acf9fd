//! The handle of a running fake server: what a test asks and tells it.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::server::{Shared, accept};
use super::standing::Order;
use super::{Fake, Gone, Request, Sessions, Wire};
use crate::support::eventually;

/// A running fake server. It ends with this value.
pub(crate) struct Upstream {
    shared: Arc<Shared>,
    address: SocketAddr,
    accepting: Mutex<Option<JoinHandle<()>>>,
}

impl Upstream {
    pub(super) fn start(fake: Fake) -> Self {
        Self::start_at(fake, SocketAddr::from(([127, 0, 0, 1], 0)))
    }

    pub(super) fn start_at(fake: Fake, address: SocketAddr) -> Self {
        let listener = bind(address);
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(Shared::new(fake));
        *shared.authority.lock().unwrap_or_else(PoisonError::into_inner) = address.to_string();
        let upstream = Self { shared, address, accepting: Mutex::default() };
        upstream.serve(listener);
        upstream
    }

    fn serve(&self, listener: TcpListener) {
        self.shared.stop(false);
        let shared = Arc::clone(&self.shared);
        let thread = thread::spawn(move || accept(&shared, &listener));
        *self.accepting.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
    }

    /// Its endpoint.
    pub(crate) fn url(&self) -> String {
        let path = if self.shared.fake.sessions == Sessions::Lines { "sse" } else { "mcp" };
        format!("http://{}/{path}", self.address)
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes the port and every connection.
    pub(crate) fn stop(&self) {
        self.shared.stop(true);
        let thread = self.accepting.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            TcpStream::connect_timeout(&self.address, Duration::from_secs(1)).ok();
            thread.join().ok();
        }
    }

    /// Serves again at the same port, with no session of before.
    pub(crate) fn restart(&self) {
        self.stop();
        self.forget();
        self.serve(bind(self.address));
    }

    /// Forgets every session, as a restart does.
    pub(crate) fn forget(&self) {
        self.shared.state().sessions.clear();
    }

    /// Every request so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.shared.state().requests.clone()
    }

    /// The requests of this JSON-RPC method.
    pub(crate) fn seen(&self, method: &str) -> Vec<Request> {
        self.requests().into_iter().filter(|request| request.method() == method).collect()
    }

    /// The calls of this tool.
    pub(crate) fn calls(&self, tool: &str) -> Vec<Request> {
        self.seen("tools/call").into_iter().filter(|request| request.name() == tool).collect()
    }

    /// How many requests came, those for standing streams left out.
    pub(crate) fn asked(&self) -> usize {
        let standing =
            |request: &Request| request.verb() == "GET" || request.method() == "subscriptions/listen";
        self.requests().iter().filter(|request| !standing(request)).count()
    }

    /// The requests of this HTTP method.
    pub(crate) fn verbs(&self, verb: &str) -> Vec<Request> {
        self.requests().into_iter().filter(|request| request.verb() == verb).collect()
    }

    /// How a hanging request ended, if it has.
    pub(crate) fn gone(&self, request: &Request) -> Option<Gone> {
        self.shared.state().gone.get(&request.number).copied()
    }

    /// Whether `notifications/cancelled` came for this request, in its session.
    pub(crate) fn was_told_to_cancel(&self, request: &Request) -> bool {
        self.shared.is_cancelled(request)
    }

    /// Breaches of the protocol so far.
    pub(crate) fn violations(&self) -> Vec<String> {
        self.shared.state().violations.clone()
    }

    /// The ids of its living sessions.
    pub(crate) fn sessions(&self) -> Vec<String> {
        self.shared.state().sessions.keys().cloned().collect()
    }

    /// How many standing streams are open.
    pub(crate) fn streams(&self) -> usize {
        let mut state = self.shared.state();
        state.standing.retain(|stream| stream.orders.send(Order::Look).is_ok());
        state.standing.len()
    }

    /// Other tools from now on; nothing is announced.
    pub(crate) fn set_tools<T: Into<String>>(&self, tools: impl IntoIterator<Item = T>) {
        self.shared.state().goods.tools = tools.into_iter().map(Into::into).collect();
    }

    /// Announces on every standing stream that the tools changed.
    pub(crate) fn announce(&self) {
        self.notify("notifications/tools/list_changed", "");
    }

    /// Adds an item to one of its lists (`tools`, `prompts`, `resources`, `templates`) and announces it to those who
    /// asked for that.
    pub(crate) fn add(&self, kind: &str, item: &str) {
        self.shared.state().goods.place(kind).push(item.to_owned());
        self.shared.announce(if kind == "templates" { "resources" } else { kind });
    }

    /// Says that a resource changed, to those who subscribed to it.
    pub(crate) fn update(&self, uri: &str) {
        self.shared.update(uri);
    }

    /// How many standing streams of clients it holds, that of the gateway's own listing aside.
    pub(crate) fn standing(&self) -> usize {
        self.shared.standing_streams().saturating_sub(1)
    }

    /// A task stands differently, and those who listen are told.
    pub(crate) fn turn_task(&self, id: &str, status: &str) {
        self.shared.turn(id, status);
    }

    /// How many subscriptions to a resource there are that can be told of an update.
    pub(crate) fn subscriptions(&self, uri: &str) -> usize {
        self.shared.subscriptions(uri)
    }

    /// Sends a notification on every standing stream; `members` are those of its params.
    pub(crate) fn notify(&self, method: &str, members: &str) {
        for stream in &self.shared.state().standing {
            stream.orders.send(Order::Notify(method.to_owned(), members.to_owned())).ok();
        }
    }

    /// Sends a message on every standing stream.
    pub(crate) fn say(&self, message: &str) {
        for stream in &self.shared.state().standing {
            stream.orders.send(Order::Message(message.to_owned())).ok();
        }
    }

    /// Sends a message on the standing streams of one session; how many there were.
    pub(crate) fn say_in(&self, session: &str, message: &str) -> usize {
        let state = self.shared.state();
        let own = state.standing.iter().filter(|stream| stream.session == session);
        own.filter(|stream| stream.tell(Order::Message(message.to_owned()))).count()
    }

    /// Ends every standing stream.
    pub(crate) fn close_streams(&self) {
        for stream in self.shared.state().standing.drain(..) {
            stream.orders.send(Order::Close).ok();
        }
    }

    /// As [`Fake::script`], from now on.
    pub(crate) fn script(
        &self,
        what: &str,
        script: impl Fn(&Request, &mut Wire<'_>) + Send + Sync + 'static,
    ) {
        self.shared.state().scripts.insert(what.to_owned(), Arc::new(script));
    }

    /// Takes a script away.
    pub(crate) fn unscript(&self, what: &str) {
        self.shared.state().scripts.remove(what);
    }
}

/// Binds a port that may have to become free first.
fn bind(address: SocketAddr) -> TcpListener {
    let mut listener = None;
    eventually::holds(eventually::PATIENCE, || {
        listener = TcpListener::bind(address).ok();
        listener.is_some()
    });
    listener.expect("the port becomes free")
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.stop();
    }
}
