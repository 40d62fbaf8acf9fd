//! Standing streams: what they are told, and who asked for what.

use std::net::TcpStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use serde_json::Value;

use super::server::Shared;
use super::wire::closed;
use super::{Request, Wire};
use crate::support::{Side, json};

/// What a standing stream is told.
pub(super) enum Order {
    /// A notification: its method and the members of its params.
    Notify(String, String),
    /// Any message.
    Message(String),
    /// Nothing; sent to see whether the stream still lives.
    Look,
    /// End.
    Close,
}

/// A standing stream: the session or subscription it belongs to, and its end of the channel.
pub(super) struct Standing {
    pub(super) session: String,
    pub(super) orders: Sender<Order>,
    /// The wishes of a `subscriptions/listen`; `None` where everything is told.
    wish: Option<Value>,
}

impl Standing {
    /// Tells it; whether it lives.
    pub(super) fn tell(&self, order: Order) -> bool {
        self.orders.send(order).is_ok()
    }

    /// Whether it wants to hear of changes of this list.
    fn wants_list(&self, kind: &str) -> bool {
        self.wish.as_ref().is_none_or(|wish| wish[format!("{kind}ListChanged")] == true)
    }

    /// Whether it wants to hear of this task; `None` where it is told of everything of its session.
    pub(super) fn wants_task(&self, id: &str) -> Option<bool> {
        let all = self.wish.as_ref()?["taskIds"].as_array().cloned().unwrap_or_default();
        Some(all.iter().any(|one| one == id))
    }

    fn wants_uri(&self, uri: &str) -> Option<bool> {
        let all = self.wish.as_ref()?["resourceSubscriptions"].as_array().cloned().unwrap_or_default();
        Some(all.iter().any(|one| one == uri))
    }
}

impl Shared {
    /// Holds a standing stream open until it is closed, and writes what it is told. A `subscriptions/listen` has
    /// the raw id that marks its messages, and what it agreed to.
    pub(super) fn stand(
        &self,
        wire: &mut Wire<'_>,
        socket: &TcpStream,
        session: &str,
        agreed: Option<(&str, Value)>,
    ) {
        let (mark, wish) = agreed.unzip();
        let told = self.standing(session, wish);
        self.follow(wire, socket, &told, mark);
    }

    /// Registers a standing stream; where its orders come out.
    pub(super) fn standing(&self, session: &str, wish: Option<Value>) -> Receiver<Order> {
        let (orders, told) = channel();
        self.state().standing.push(Standing { session: session.to_owned(), orders, wish });
        told
    }

    /// Writes what a standing stream is told, until it is closed.
    pub(super) fn follow(
        &self,
        wire: &mut Wire<'_>,
        socket: &TcpStream,
        told: &Receiver<Order>,
        mark: Option<&str>,
    ) {
        wire.stream();
        loop {
            match told.recv_timeout(Duration::from_millis(10)) {
                Ok(Order::Notify(method, members)) => {
                    let meta = mark
                        .map(|id| format!("\"_meta\":{{\"io.modelcontextprotocol/subscriptionId\":{id}}}"));
                    let all = [meta, Some(members).filter(|text| !text.is_empty())];
                    let all: Vec<String> = all.into_iter().flatten().collect();
                    wire.notify(&method, &format!("{{{}}}", all.join(",")));
                }
                Ok(Order::Message(text)) => drop(wire.event(&text)),
                Ok(Order::Close) => return wire.end(),
                Err(RecvTimeoutError::Disconnected) => return wire.abort(),
                Err(RecvTimeoutError::Timeout) if closed(socket, Duration::from_millis(1)) => {
                    return wire.abort();
                }
                Ok(Order::Look) | Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Sends a message on the standing stream of a request's session.
    pub(super) fn tell(&self, request: &Request, message: &str) {
        let session = request.session().unwrap_or_default();
        for stream in self.state().standing.iter().filter(|stream| stream.session == session) {
            stream.tell(Order::Message(message.to_owned()));
        }
    }

    /// Whether the session of a request has a standing stream.
    pub(super) fn has_line(&self, request: &Request) -> bool {
        let session = request.session().unwrap_or_default();
        self.state().standing.iter().any(|stream| stream.session == session)
    }

    /// Announces that a list changed, to those who want to hear of it.
    pub(super) fn announce(&self, kind: &str) {
        let method = format!("notifications/{kind}/list_changed");
        for stream in self.state().standing.iter().filter(|stream| stream.wants_list(kind)) {
            stream.tell(Order::Notify(method.clone(), String::new()));
        }
    }

    /// Says that a resource changed, to those who subscribed to it.
    pub(super) fn update(&self, uri: &str) {
        let state = self.state();
        let subscribed = |session: &str| state.subscriptions.iter().any(|(s, u)| s == session && u == uri);
        let wants = |stream: &Standing| stream.wants_uri(uri).unwrap_or_else(|| subscribed(&stream.session));
        for stream in state.standing.iter().filter(|stream| wants(stream)) {
            let members = format!("\"uri\":{}", json::quote(uri));
            stream.tell(Order::Notify("notifications/resources/updated".to_owned(), members));
        }
    }

    /// How many subscriptions to a resource there are that can be told of an update.
    pub(super) fn subscriptions(&self, uri: &str) -> usize {
        let mut state = self.state();
        state.standing.retain(|stream| stream.tell(Order::Look));
        match self.fake.side {
            Side::Legacy => {
                let heard = |session: &String| state.standing.iter().any(|stream| stream.session == *session);
                state.subscriptions.iter().filter(|(session, u)| u == uri && heard(session)).count()
            }
            Side::Modern => state.standing.iter().filter(|s| s.wants_uri(uri) == Some(true)).count(),
        }
    }

    /// How many standing streams live.
    pub(super) fn standing_streams(&self) -> usize {
        let mut state = self.state();
        state.standing.retain(|stream| stream.tell(Order::Look));
        state.standing.len()
    }

    /// Takes or ends a subscription of a legacy session; whether the request was that.
    pub(super) fn subscribe(&self, request: &Request, wire: &mut Wire<'_>) -> bool {
        let key = (request.session().unwrap_or_default().to_owned(), request.name());
        let mut state = self.state();
        match request.method().as_str() {
            _ if !state.goods.subscribes || self.fake.side == Side::Modern => return false,
            "resources/subscribe" => state.subscriptions.push(key),
            "resources/unsubscribe" => state.subscriptions.retain(|one| *one != key),
            _ => return false,
        }
        drop(state);
        wire.result("{}");
        true
    }

    /// What a `subscriptions/listen` gets of what it wishes.
    pub(super) fn agreed(&self, wish: &Value) -> Value {
        let goods = self.state().goods.clone();
        let has = |kind: &str| match kind {
            "toolsListChanged" => true,
            "promptsListChanged" => !goods.prompts.is_empty(),
            "resourcesListChanged" => !goods.resources.is_empty() || !goods.templates.is_empty(),
            "resourceSubscriptions" => goods.subscribes,
            "taskIds" => goods.tasks,
            _ => false,
        };
        let wishes = wish.as_object().cloned().unwrap_or_default();
        wishes.into_iter().filter(|(kind, value)| has(kind) && *value != false).collect()
    }
}
