//! The configuration changes while the gateway runs: what is not touched goes on.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::stdio::{child, lives, pid};
use crate::support::client::{Answer, Running};
use crate::support::{
    Ask, Client, Fake, Proxy, Side, Upstream, Weir, eras, eventually, json, resource, tool,
};

eras! {
    c099_a_reload_leaves_calls_sessions_and_streams_alone, c099_a_changed_upstream_ends_no_call_and_loses_no_call,
    c045_a_renamed_or_removed_upstream_takes_its_names_along, a_credential_takes_effect_with_the_next_request,
    a_token_that_left_ends_what_rests_on_it, other_scopes_of_a_token_show_at_once,
    a_route_that_left_ends_its_streams, a_hundred_reloads_lose_no_call, updates_end_with_the_right_to_read,
    a_subscription_outlives_an_upstream_that_leaves_and_comes_back, a_subscription_is_taken_while_a_link_is_new,
}

const CHANGED: &str = "notifications/tools/list_changed";
const SOON: Duration = Duration::from_secs(4);
const QUIET: Duration = Duration::from_millis(500);

/// Waits for the announcement of a change, and for no second one.
fn told_once(stream: &mut Running) {
    assert_eq!(stream.next(SOON).map(|message| message.method()).as_deref(), Some(CHANGED));
    told_nothing(stream);
}

fn told_nothing(stream: &mut Running) {
    let more: Vec<String> = stream.until_quiet(QUIET).iter().map(|message| message.method()).collect();
    assert_eq!(more, Vec::<String>::new());
}

/// Makes a call, and does something while it runs. Whether the call was answered well.
fn during(upstream: &Upstream, client: &Client, name: &str, ms: u64, then: impl FnOnce()) -> bool {
    std::thread::scope(|scope| {
        let before = upstream.calls("slow").len();
        let call = scope.spawn(|| client.call(name, &format!("{{\"ms\":{ms}}}")));
        eventually!(upstream.calls("slow").len() > before);
        then();
        !call.join().expect("a client").is_failure()
    })
}

fn c099_a_reload_leaves_calls_sessions_and_streams_alone(side: Side) {
    let (beta, gamma) = (Fake::of(side).start(), Fake::of(side).tools([tool("extra")]).start());
    let proxy = || Proxy::new().entries(&child("alpha", "", "")).upstream("beta", &beta);
    let weir = proxy().run();
    let client = weir.client(side);
    let alpha = pid(&client, "alpha");
    let mut stream = client.listen();
    let opened = beta.seen("initialize").len();
    let answered = during(&beta, &client, "beta__slow", 1500, || {
        weir.becomes(&proxy().upstream("gamma", &gamma));
        told_once(&mut stream);
        assert!(!client.call("gamma__extra", "{}").is_failure(), "in the same session");
    });
    assert!(answered, "the call went on");
    assert_eq!(pid(&client, "alpha"), alpha, "the child is the same");
    assert!(beta.seen("initialize").len() <= opened + 1, "the session of the call, nothing else");
    weir.becomes(&proxy());
    told_once(&mut stream);
    assert_eq!(client.call("gamma__extra", "{}").code(), -32602);
    let upstreams = json::value(&weir.admin_get("/api/status").1)["upstreams"].to_string();
    assert!(!upstreams.contains("gamma"), "{upstreams}");
    assert_eq!(weir.metric("weir_upstream_up", &["gamma"]), None);
}

fn c099_a_changed_upstream_ends_no_call_and_loses_no_call(side: Side) {
    let alpha = Fake::of(side).start();
    let weir = Proxy::before(&alpha).listen("drain: { delay: 0s, deadline: 5s }").run();
    let client = weir.client(side);
    let mut stream = client.listen();
    let changed = Proxy::new().upstream_with("alpha", &alpha, "timeout: { call: 20s }");
    let answered = during(&alpha, &client, "alpha__slow", 1200, || {
        weir.becomes(&changed.listen("drain: { delay: 0s, deadline: 5s }"));
        assert!(!client.call("alpha__echo", "{}").is_failure(), "at once");
    });
    assert!(answered, "the call on the old link went on");
    told_nothing(&mut stream);
    alpha.set_tools([tool("new")]);
    eventually!(alpha.streams() >= 1);
    alpha.announce();
    told_once(&mut stream);
    assert_eq!(client.names(), ["alpha__new"]);
}

fn c045_a_renamed_or_removed_upstream_takes_its_names_along(side: Side) {
    let (alpha, beta) =
        (Fake::of(side).tools([tool("one")]).start(), Fake::of(side).tools([tool("two")]).start());
    let weir = Proxy::before(&alpha).upstream("beta", &beta).run();
    let client = weir.client(side);
    let mut stream = client.listen();
    weir.becomes(&Proxy::new().upstream("gamma", &alpha).upstream("beta", &beta));
    eventually!(client.names() == ["gamma__one", "beta__two"], "{:?}", client.names());
    assert_eq!(client.call("alpha__one", "{}").code(), -32602);
    assert!(!client.call("gamma__one", "{}").is_failure());
    assert!(!stream.until_quiet(QUIET).is_empty(), "told of it");
    weir.becomes(&Proxy::new().upstream("gamma", &alpha));
    told_once(&mut stream);
    assert_eq!(client.names(), ["gamma__one"]);
    assert_eq!(client.call("beta__two", "{}").code(), -32602);
    // Names alone change nothing between the gateway and the upstream.
    let asked = alpha.seen("server/discover").len();
    weir.becomes(&Proxy::new().upstream_with("gamma", &alpha, "namespace: other"));
    told_once(&mut stream);
    assert_eq!(client.names(), ["other__one"]);
    assert_eq!(alpha.seen("server/discover").len(), asked);
}

fn a_credential_takes_effect_with_the_next_request(side: Side) {
    let alpha = Fake::of(side).start();
    let folder = tempfile::TempDir::new().expect("a folder");
    let secret = folder.path().join("token");
    std::fs::write(&secret, "canary-first\n").expect("a file");
    let keys = format!("credential: {{ bearer: \"${{file:{}}}\" }}", secret.display());
    let weir = Proxy::new().upstream_with("alpha", &alpha, &keys).run();
    let client = weir.client(side);
    let mut stream = client.listen();
    client.call("alpha__echo", "{}");
    let opened = alpha.seen("initialize").len();
    let before = weir.reloads("applied");
    std::fs::write(&secret, "canary-second\n").expect("a file");
    eventually!(weir.reloads("applied") > before, "the file is watched: {}", weir.log());
    assert!(!client.call("alpha__echo", "{}").is_failure());
    let sent = alpha.calls("echo").last().and_then(|call| call.header("authorization").map(str::to_owned));
    assert_eq!(sent.as_deref(), Some("Bearer canary-second"));
    assert_eq!(alpha.seen("initialize").len(), opened, "in the same session");
    told_nothing(&mut stream);
}

/// Calls a tool until it is `done`; the answers that are failures.
fn failures(client: &Client, name: &str, (done, made): (&AtomicBool, &AtomicUsize)) -> Vec<Answer> {
    let mut failures = Vec::new();
    while !done.load(Ordering::Relaxed) {
        made.fetch_add(1, Ordering::Relaxed);
        failures.extend(Some(client.call(name, "{}")).filter(Answer::is_failure));
    }
    failures
}

/// A gateway with these tokens, each with its scopes.
fn guarded(alpha: &Upstream, tokens: &[(&str, &str, &str)]) -> Proxy {
    let proxy = Proxy::new()
        .listen("public_url: https://gw.example")
        .listen("allowed_hosts: [127.0.0.1]")
        .upstream_with("alpha", alpha, "classes: { read: [look], write: [put] }");
    tokens.iter().fold(proxy, |proxy, (name, token, scopes)| proxy.token(name, token, scopes))
}

fn with_token(weir: &Weir, side: Side, token: &str) -> Client {
    let client = Client::new(weir.address, side).token(token);
    if side == Side::Legacy { client.opened() } else { client }
}

const READ: &str = "\"mcp:read\"";

fn a_token_that_left_ends_what_rests_on_it(side: Side) {
    let alpha = Fake::of(side).tools(["look", "put"].map(tool)).start();
    let weir = guarded(&alpha, &[("one", "token-1", READ), ("two", "token-2", READ)]).run();
    let (leaving, staying) = (with_token(&weir, side, "token-1"), with_token(&weir, side, "token-2"));
    let (mut ends, mut stays) = (leaving.listen(), staying.listen());
    weir.becomes(&guarded(&alpha, &[("two", "token-2", READ), ("three", "token-3", READ)]));
    let last = ends.next(SOON);
    assert_eq!(last.is_some(), side == Side::Modern, "the completion result, where there is one: {last:?}");
    assert_eq!(ends.ended(SOON), Some(true));
    assert_eq!(leaving.call("alpha__look", "{}").status(), 401);
    told_nothing(&mut stays);
    assert!(!staying.call("alpha__look", "{}").is_failure());
    assert!(!with_token(&weir, side, "token-3").call("alpha__look", "{}").is_failure());
    if side == Side::Legacy {
        eventually!(
            weir.metric("weir_sessions", &[]) == Some(2.0),
            "{:?}",
            weir.metric("weir_sessions", &[])
        );
    }
}

fn other_scopes_of_a_token_show_at_once(side: Side) {
    let alpha = Fake::of(side).tools(["look", "put"].map(tool)).start();
    let weir = guarded(&alpha, &[("one", "token-1", READ)]).run();
    let client = with_token(&weir, side, "token-1");
    let mut stream = client.listen();
    assert_eq!(client.names(), ["alpha__look"]);
    weir.becomes(&guarded(&alpha, &[("one", "token-1", "\"mcp:write\"")]));
    told_once(&mut stream);
    assert_eq!(client.names(), ["alpha__look", "alpha__put"]);
    weir.becomes(&guarded(&alpha, &[("one", "token-1", "\"mcp:write\"")]).section("# nothing else"));
    told_nothing(&mut stream);
}

#[test]
fn a_session_that_stands_for_its_token_has_the_rights_that_the_token_has_now() {
    let alpha = Fake::legacy().tools(["look", "put"].map(tool)).start();
    let with = |scopes: &str| {
        let hash = crate::support::proxy::token_hash("canary-token-0123456789");
        let tokens = format!("  tokens: [{{ name: ci, hash: \"{hash}\", scopes: [{scopes}] }}]\n");
        Proxy::new()
            .upstream_with("alpha", &alpha, "classes: { read: [look], write: [put] }")
            .section(&format!("access:\n  initialize_token: true\n{tokens}"))
    };
    let weir = with("\"mcp:write\"").run();
    let hello = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",\
                 \"capabilities\":{},\"clientInfo\":{\"name\":\"it\",\"version\":\"1\"},\"token\":\"canary-token-0123456789\"}}";
    let opened = weir.post(hello).send();
    let session = opened.header("mcp-session-id").expect("a session").to_owned();
    let client = Client::new(weir.address, Side::Legacy).with_session(&session);
    assert_eq!(client.names(), ["alpha__look", "alpha__put"]);
    assert!(!client.call("alpha__put", "{}").is_failure());
    weir.becomes(&with("\"mcp:read\""));
    assert_eq!(client.names(), ["alpha__look"]);
    assert_eq!(client.call("alpha__put", "{}").status(), 403);
    assert_eq!(alpha.calls("put").len(), 1);
    assert!(!client.call("alpha__look", "{}").is_failure(), "the session goes on");
}

fn updates_end_with_the_right_to_read(side: Side) {
    let alpha = Fake::of(side).subscribable().with("resources", [resource("file:///one")]).start();
    let plain = || guarded(&alpha, &[("one", "token-1", READ)]);
    let weir = plain().run();
    let client = with_token(&weir, side, "token-1");
    let wish = "{\"resourceSubscriptions\":[\"file:///one\"]}";
    let mut stream = client.listen_for(wish);
    if side == Side::Legacy {
        let asked = client.ask(Ask::new("resources/subscribe").params("{\"uri\":\"file:///one\"}"));
        assert!(!asked.is_failure(), "{asked:?}");
    }
    eventually!(alpha.subscriptions("file:///one") > 0);
    let updates = |stream: &mut Running| -> usize {
        alpha.update("file:///one");
        let told = stream.until_quiet(QUIET);
        told.iter().filter(|message| message.method() == "notifications/resources/updated").count()
    };
    assert_eq!(updates(&mut stream), 1);
    let rules = "  rules: [{ name: no, match: { resource: \"file:///*\" }, deny: true }]";
    let denied = plain().text().replacen("access:\n", &format!("access:\n{rules}\n"), 1);
    let applied = weir.reloads("applied");
    std::fs::write(weir.file(), denied).expect("the file is written");
    eventually!(weir.reloads("applied") > applied, "{}", weir.log());
    assert_eq!(updates(&mut stream), 0, "who may not read it hears nothing of it");
    weir.becomes(&plain());
    assert_eq!(updates(&mut stream), 1, "and again, once it may");
}

fn a_subscription_outlives_an_upstream_that_leaves_and_comes_back(side: Side) {
    let alpha = Fake::of(side).subscribable().with("resources", [resource("file:///one")]).start();
    let beta = Fake::of(side).start();
    let with = || Proxy::before(&alpha).upstream("beta", &beta);
    let weir = with().run();
    let client = weir.client(side);
    let mut stream = client.listen_for("{\"resourceSubscriptions\":[\"file:///one\"]}");
    if side == Side::Legacy {
        client.ask(Ask::new("resources/subscribe").params("{\"uri\":\"file:///one\"}"));
    }
    eventually!(alpha.subscriptions("file:///one") > 0);
    weir.becomes(&Proxy::new().upstream("beta", &beta));
    eventually!(alpha.subscriptions("file:///one") == 0, "nobody listens any more");
    weir.becomes(&with());
    eventually!(alpha.subscriptions("file:///one") > 0, "it is wanted again");
    stream.until_quiet(QUIET);
    alpha.update("file:///one");
    let told = stream.until_quiet(QUIET);
    assert!(told.iter().any(|message| message.method() == "notifications/resources/updated"), "{told:?}");
}

fn a_route_that_left_ends_its_streams(side: Side) {
    let alpha = Fake::of(side).start();
    let two = "routes:\n  - { name: default, path: /mcp }\n  - { name: more, path: /more }";
    let weir = Proxy::before(&alpha).section(two).run();
    let client = Client::new(weir.address, side).at("/more");
    let client = if side == Side::Legacy { client.opened() } else { client };
    let mut stream = client.listen();
    let mut other = weir.client(side).listen();
    weir.becomes(&Proxy::before(&alpha));
    assert_eq!(stream.next(SOON).is_some(), side == Side::Modern);
    assert_eq!(stream.ended(SOON), Some(true));
    assert_eq!(client.call("alpha__echo", "{}").status(), 404);
    told_nothing(&mut other);
}

fn a_hundred_reloads_lose_no_call(side: Side) {
    let (alpha, beta) = (Fake::of(side).start(), Fake::of(side).start());
    let with = |keys: &str| Proxy::before(&alpha).upstream_with("beta", &beta, keys);
    let weir = with("").run();
    let (done, made) = (AtomicBool::new(false), AtomicUsize::new(0));
    let failed: Vec<Answer> = std::thread::scope(|scope| {
        let clients = ["alpha__echo", "beta__echo", "beta__incr", "alpha__steps"].map(|name| {
            let (weir, done, made) = (&weir, &done, &made);
            scope.spawn(move || failures(&weir.client(side), name, (done, made)))
        });
        for round in 0..100 {
            // Every other one replaces the link of beta, all of them read everything anew.
            weir.becomes(&with(&format!("idle: {}m\n refresh: {}s", 1 + round / 2, 60 + round)));
        }
        done.store(true, Ordering::Relaxed);
        clients.into_iter().flat_map(|client| client.join().expect("a client")).collect()
    });
    let made = made.into_inner();
    assert!(failed.is_empty(), "{} of {made} calls failed: {:?}", failed.len(), failed.first());
    assert!(made > 200, "{made} calls");
}

#[test]
fn t098_a_bad_file_changes_nothing_and_is_seen() {
    let alpha = Fake::modern().start();
    let weir = Proxy::before(&alpha).run();
    let client = weir.modern();
    let good = Proxy::before(&alpha).text();
    for bad in [
        "upstreams: [",
        &good.replace("url:", "urll:"),
        "",
        &good.replace("upstreams:", "timout: 5\nupstreams:"),
    ] {
        let refused = weir.reloads("refused");
        std::fs::write(weir.file(), bad).expect("the file is written");
        eventually!(weir.reloads("refused") > refused, "{bad:?}");
        assert!(!client.call("alpha__echo", "{}").is_failure());
        assert!(weir.metric("weir_config_problems", &[]) > Some(0.0));
        let status = weir.admin_get("/api/status").1;
        let problems = json::value(&status)["config"]["problems"].clone();
        assert_eq!(problems[0]["severity"], "error", "{status}");
    }
    eventually!(weir.log().contains("config.rejected") && weir.log().contains("urll"), "{}", weir.log());
    let applied = weir.reloads("applied");
    std::fs::write(weir.file(), &good).expect("the file is written");
    eventually!(weir.reloads("applied") > applied, "a good one is taken again");
    assert_eq!(weir.metric("weir_config_problems", &[]), Some(0.0));
}

#[test]
fn what_needs_a_restart_is_said_and_not_done() {
    let alpha = Fake::modern().start();
    let proxy = || Proxy::before(&alpha).upstream("beta", &alpha);
    let weir = Proxy::before(&alpha).section("telemetry: { log: { format: text } }").run();
    for change in ["telemetry: { log: { format: json } }", "telemetry: { audit: { file: audit.jsonl } }"] {
        let refused = weir.reloads("refused");
        std::fs::write(weir.file(), proxy().section(change).text()).expect("the file is written");
        eventually!(weir.reloads("refused") > refused);
        eventually!(weir.log().contains("needs a restart"), "{}", weir.log());
        assert!(
            !weir.modern().names().iter().any(|name| name.starts_with("beta")),
            "nothing of it is in force"
        );
    }
}

#[test]
fn a_swap_of_links_is_a_change() {
    let (alpha, beta) =
        (Fake::modern().tools([tool("one")]).start(), Fake::modern().tools([tool("two")]).start());
    let folder = tempfile::TempDir::new().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    for (version, upstream) in [("..v1", &alpha), ("..v2", &beta)] {
        std::fs::create_dir(at(version)).expect("a folder");
        std::fs::write(at(version).join("routes.yaml"), Proxy::before(upstream).text()).expect("a file");
    }
    std::os::unix::fs::symlink("..v1", at("..data")).expect("a link");
    std::os::unix::fs::symlink("..data/routes.yaml", at("routes.yaml")).expect("a link");
    let weir = Proxy::of_file(Some(&at("routes.yaml")));
    let client = weir.modern();
    assert_eq!(client.names(), ["alpha__one"]);
    std::os::unix::fs::symlink("..v2", at("..next")).expect("a link");
    std::fs::rename(at("..next"), at("..data")).expect("the swap");
    eventually!(client.names() == ["alpha__two"], "{:?}", client.names());
}

#[test]
fn an_editor_that_renames_and_a_hangup_are_heard() {
    let (alpha, beta) =
        (Fake::modern().tools([tool("one")]).start(), Fake::modern().tools([tool("two")]).start());
    let weir = Proxy::before(&alpha).run();
    let client = weir.modern();
    let other = weir.file().with_extension("tmp");
    std::fs::write(&other, Proxy::before(&beta).text()).expect("a file");
    std::fs::rename(&other, weir.file()).expect("a rename");
    eventually!(client.names() == ["alpha__two"], "{:?}", client.names());
    let applied = weir.reloads("applied");
    for _ in 0..20 {
        weir.signal("HUP");
    }
    eventually!(weir.reloads("applied") > applied, "it is read again");
    assert!(!client.call("alpha__two", "{}").is_failure());
}

#[test]
fn a_file_that_is_included_comes_goes_and_changes() {
    let (alpha, beta) =
        (Fake::modern().tools([tool("one")]).start(), Fake::modern().tools([tool("two")]).start());
    let weir = Proxy::before(&alpha).section("include: [\"more.d/*.yaml\"]").run();
    let folder = weir.file().with_file_name("more.d");
    let client = weir.modern();
    assert_eq!(client.names(), ["alpha__one"]);
    // The folder was not there when the configuration was read.
    std::fs::create_dir(&folder).expect("a folder");
    let entry = |name: &str| format!("upstreams: {{ {name}: {{ url: \"{}\" }} }}\n", beta.url());
    std::fs::write(folder.join("beta.yaml"), entry("beta")).expect("a file");
    eventually!(client.names() == ["alpha__one", "beta__two"], "{:?}", client.names());
    std::fs::write(folder.join("beta.yaml"), entry("gamma")).expect("a file");
    eventually!(client.names() == ["alpha__one", "gamma__two"], "{:?}", client.names());
    std::fs::remove_file(folder.join("beta.yaml")).expect("a file");
    eventually!(client.names() == ["alpha__one"], "{:?}", client.names());
}

#[test]
fn a_client_that_stands_by_does_so_for_an_upstream_that_comes_later() {
    let (alpha, beta) = (Fake::legacy().start(), Fake::legacy().asking().start());
    let weir = Proxy::before(&alpha).run();
    let client = Client::new(weir.address, Side::Legacy).capable("{\"roots\":{}}").opened();
    let mut stream = client.listen();
    weir.becomes(&Proxy::before(&alpha).upstream("beta", &beta));
    eventually!(client.names().contains(&"beta__echo".to_owned()));
    client.call("beta__echo", "{}").result();
    let session = beta.calls("echo")[0].session().expect("a session").to_owned();
    let question = "{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"roots/list\",\"params\":{}}";
    eventually!(beta.say_in(&session, question) > 0, "the session is heard");
    let heard = stream.until_quiet(QUIET);
    assert!(heard.iter().any(|message| message.method() == "roots/list"), "{heard:?}");
}

/// What is shown may be subscribed to while a link is new, whether or not its upstream can be reached.
fn a_subscription_is_taken_while_a_link_is_new(side: Side) {
    let alpha = Fake::of(side).subscribable().with("resources", [resource("file:///one")]).start();
    let weir = Proxy::before(&alpha).run();
    let client = weir.client(side);
    let held = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let silent = format!("http://{}/mcp", held.local_addr().expect("an address"));
    weir.becomes(&Proxy::new().upstream_at("alpha", &silent, ""));
    let mut stream = client.listen_for("{\"resourceSubscriptions\":[\"file:///one\"]}");
    if side == Side::Legacy {
        let asked = client.ask(Ask::new("resources/subscribe").params("{\"uri\":\"file:///one\"}"));
        assert!(!asked.is_failure(), "{asked:?}");
    }
    weir.becomes(&Proxy::before(&alpha));
    eventually!(alpha.subscriptions("file:///one") > 0, "it is wanted there");
    stream.until_quiet(QUIET);
    alpha.update("file:///one");
    let told = stream.until_quiet(QUIET);
    assert!(told.iter().any(|message| message.method() == "notifications/resources/updated"), "{told:?}");
}

#[test]
fn c106_fifty_reloads_leave_one_child() {
    let with =
        |round: usize| Proxy::new().entries(&child("alpha", "", &format!(", env: {{ ROUND: \"{round}\" }}")));
    let weir = with(0).run();
    let client = weir.modern();
    let mut known = vec![pid(&client, "alpha")];
    for round in 1..=50 {
        weir.becomes(&with(round));
        known.push(pid(&client, "alpha"));
    }
    eventually!(known.iter().filter(|pid| lives(**pid)).count() == 1, "{known:?}");
    assert!(lives(known[50]));
}

#[test]
fn the_level_of_the_log_follows() {
    let alpha = Fake::modern().start();
    let weir = Proxy::before(&alpha).section("telemetry: { log: { level: warn } }").run();
    weir.becomes(&Proxy::before(&alpha).section("telemetry: { log: { level: info, access: true } }"));
    assert!(!weir.modern().call("alpha__echo", "{}").is_failure());
    eventually!(weir.log().contains("tools/call"), "{}", weir.log());
}
