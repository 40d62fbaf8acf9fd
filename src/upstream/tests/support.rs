//! A link to a scripted server, and the calls that go through it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use globset::GlobSet;
use prometheus_client::registry::Registry;

use super::server::{Answer, Seen, Server, empty, error, result};
use crate::catalog::{Inventory, Presence};
use crate::config::{
    Classes, Concurrency, Config, Credential, Kind, Sharing, Timeouts, ToolFilter, Transport, Upstream,
    UpstreamLimits, demonstration,
};
use crate::exchange::{Call, Caller, Event, Failure, Lost, SessionKey};
use crate::names::{Namespace, UpstreamName};
use crate::principal::Principal;
use crate::protocol::Method;
use crate::task::TaskGroup;
use crate::upstream::{Link, Metrics, Set};

/// Long enough for anything on loopback.
const PATIENCE: Duration = Duration::from_secs(10);

/// One upstream behind a set.
pub(super) struct Fixture {
    pub(super) server: Server,
    pub(super) set: Set,
    pub(super) link: Link,
    pub(super) name: UpstreamName,
    tasks: TaskGroup,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

/// An upstream as the defaults make it, but quicker.
pub(super) fn upstream(port: u16) -> Upstream {
    let none = GlobSet::empty;
    Upstream {
        name: "alpha".parse().unwrap(),
        namespace: Namespace::new("alpha", &"__".parse().unwrap()).unwrap(),
        kind: Kind::Http { urls: vec![format!("http://127.0.0.1:{port}/mcp").parse().unwrap()] },
        transport: Transport::Auto,
        revision: None,
        sessions: Sharing::Client,
        credential: Credential::None,
        credential_error_codes: Vec::new(),
        forward_headers: Vec::new(),
        read_only: false,
        tools: ToolFilter { allow: none(), deny: none(), rename: std::collections::BTreeMap::new() },
        classes: Classes { read: none(), write: none(), destructive: none() },
        trust_annotations: false,
        timeout: Timeouts {
            connect: Duration::from_secs(2),
            call: Duration::from_secs(5),
            call_max: Duration::from_secs(20),
            tools: Vec::new(),
        },
        concurrency: Concurrency { calls: Some(64), writes: None, queue: 64 },
        limits: UpstreamLimits { answer: 1 << 20, tools: 5000, list_bytes: 1 << 24, pages: 100 },
        probe: true,
        refresh: Duration::from_secs(60),
        withdraw_after: Duration::from_secs(30),
        idle: Duration::from_secs(300),
        required: false,
    }
}

/// A configuration with these upstreams, each of which is listed once in 50 ms at most.
pub(super) fn config(upstreams: Vec<Arc<Upstream>>) -> Arc<Config> {
    let mut config = demonstration();
    config.upstreams = upstreams;
    config.notify.debounce = Duration::from_millis(50);
    Arc::new(config)
}

impl Fixture {
    /// A link to a server with this script.
    pub(super) async fn start(script: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Self {
        Self::with(script, |_| {}).await
    }

    /// A link to a server with this script, configured differently.
    pub(super) async fn with(
        script: impl Fn(&Seen) -> Answer + Send + Sync + 'static,
        adjust: impl FnOnce(&mut Upstream),
    ) -> Self {
        let tasks = TaskGroup::new("test");
        let server = Server::start(&tasks, script).await;
        let mut upstream = upstream(server.port);
        adjust(&mut upstream);
        let name = upstream.name.clone();
        let metrics = Metrics::register(&mut Registry::default());
        let set = Set::start(&config(vec![Arc::new(upstream)]), &tasks, metrics).unwrap();
        let link = set.link(&name).unwrap();
        Self { server, set, link, name, tasks }
    }

    /// Waits until the upstream stands so.
    pub(super) async fn stands(&self, wanted: impl Fn(&Presence) -> bool) -> Presence {
        let mut material = self.set.material();
        let found = material.wait_for(|all| wanted(&all.inventories[&self.name]));
        let found = tokio::time::timeout(PATIENCE, found).await;
        let now = self.set.material().borrow().inventories[&self.name].clone();
        assert!(found.is_ok(), "the upstream stands as {now:?}");
        now
    }

    /// Waits until the upstream is listed.
    pub(super) async fn up(&self) -> Arc<Inventory> {
        match self.stands(|presence| matches!(presence, Presence::Up { .. })).await {
            Presence::Up { inventory } => inventory,
            other => panic!("{other:?}"),
        }
    }

    /// Calls and gathers all events.
    pub(super) async fn events(&self, call: Call) -> Vec<Event> {
        let events = self.link.call(call).collect();
        tokio::time::timeout(PATIENCE, events).await.expect("a call ends")
    }

    /// Calls and returns the raw result.
    pub(super) async fn result(&self, call: Call) -> String {
        match self.events(call).await.pop() {
            Some(Event::Result(answer)) => String::from_utf8(answer.result.to_vec()).unwrap(),
            other => panic!("no result: {other:?}"),
        }
    }

    /// Calls and returns why there is no answer.
    pub(super) async fn lost(&self, call: Call) -> Lost {
        match self.events(call).await.pop() {
            Some(Event::Failed(Failure::Upstream(lost))) => lost,
            other => panic!("no failure: {other:?}"),
        }
    }
}

/// A call of a tool that may not be repeated, from one client session.
pub(super) fn call(tool: &str, arguments: &str) -> Call {
    let params = format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#);
    Call::plain(Method::ToolsCall, tool, params, client(1))
}

/// A caller in a client session of this number.
pub(super) fn client(number: u8) -> Caller {
    Caller { session: Some(SessionKey([number; 16])), ..Caller::local(Principal::open()) }
}

/// A legacy server that gives session ids, has one tool `echo`, and no standing stream.
pub(super) fn legacy(seen: &Seen) -> Answer {
    if seen.body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].is_string() {
        return super::server::text(400, "Bad Request: no session");
    }
    match seen.method().as_str() {
        "initialize" => {
            let revision = &seen.body["params"]["protocolVersion"];
            let answer = format!(
                r#"{{"protocolVersion":{revision},"capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"x","version":"1"}}}}"#
            );
            result(seen, &answer).with("mcp-session-id", &format!("s{}", seen.number))
        }
        "tools/list" => result(seen, r#"{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}"#),
        "tools/call" => echo(seen),
        "ping" => result(seen, "{}"),
        method if method.starts_with("notifications/") => empty(202),
        "GET" => empty(405),
        "DELETE" => empty(204),
        _ if seen.body["result"].is_object() || seen.body["error"].is_object() => empty(202),
        _ => error(seen, 200, -32601, "Method not found"),
    }
}

/// A modern server with one tool `echo` and no standing stream.
pub(super) fn modern(seen: &Seen) -> Answer {
    match seen.method().as_str() {
        "server/discover" => result(
            seen,
            r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"instructions":"be kind"}"#,
        ),
        "tools/list" => result(
            seen,
            r#"{"resultType":"complete","ttlMs":1000,"cacheScope":"public","tools":[{"name":"echo","inputSchema":{"type":"object"}}]}"#,
        ),
        "tools/call" => echo(seen),
        _ => error(seen, 404, -32601, "Method not found"),
    }
}

/// The arguments come back as the text of a result.
pub(super) fn echo(seen: &Seen) -> Answer {
    let text = seen.body["params"]["arguments"].to_string();
    result(seen, &serde_json::json!({ "content": [{ "type": "text", "text": text }] }).to_string())
}
