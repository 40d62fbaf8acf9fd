//! Revision 2026-07-28 on either leg, and the choice of a revision for each peer.

use serde_json::json;

use crate::support::client::encode;
use crate::support::{
    Ask, Client, Fake, Pair, Proxy, Request, Side, Weir, eras, eventually, json, pairs, tool,
};

pairs! { c121_headers_towards_upstreams_are_written_anew, c132_result_type_is_there_for_modern_clients }

eras! { c122_each_upstream_is_spoken_to_in_its_revision, c123_an_unsupported_version }

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

fn one(fake: Fake) -> (crate::support::Upstream, Weir, Client) {
    let alpha = fake.start();
    let weir = Proxy::before(&alpha).run();
    let client = weir.modern();
    (alpha, weir, client)
}

#[test]
fn c119_header_and_body_must_agree() {
    let (alpha, _weir, client) = one(Fake::modern());
    let before = alpha.asked();
    let call = || Ask::call("alpha__fail", "{}").id("\"m\"");
    for ask in [
        call().header("Mcp-Name", "alpha__echo"),
        call().header("Mcp-Method", "tools/list"),
        call().meta(VERSION, "\"2025-11-25\""),
        call().header("MCP-Protocol-Version", "2025-11-25"),
        call().header("Mcp-Method", "Tools/Call"),
        call().header("Mcp-Name", "Alpha__fail"),
        call().header("Mcp-Name", "=?base64?%%%?="),
    ] {
        let answer = client.ask(ask.clone());
        assert_eq!((answer.status(), answer.code(), answer.id()), (400, -32020, Some("\"m\"")), "{ask:?}");
    }
    assert_eq!(alpha.asked(), before);
    let other_case = client.request(&call()).without("Mcp-Name").header("mcp-NAME", "alpha__fail");
    assert_eq!(other_case.send().status(), 200);
    let encoded = call().header("Mcp-Name", "=?base64?YWxwaGFfX2ZhaWw=?=");
    assert_eq!(client.ask(encoded).status(), 200);
    let twice = client.request(&call()).header("Mcp-Name", "alpha__fail").send();
    assert_eq!(twice.status(), 400, "two of them");
}

#[test]
fn c120_required_headers_and_metadata() {
    let (alpha, _weir, client) = one(Fake::modern());
    let call = || Ask::call("alpha__echo", "{}");
    let before = alpha.asked();
    let read = Ask::new("resources/read").params("{\"uri\":\"file:///a\"}");
    let get = Ask::new("prompts/get").params("{\"name\":\"p\"}");
    for (ask, header) in [
        (call(), "Mcp-Method"),
        (Ask::new("tools/list"), "Mcp-Method"),
        (call(), "Mcp-Name"),
        (read, "Mcp-Name"),
        (get, "Mcp-Name"),
        (call(), "MCP-Protocol-Version"),
    ] {
        let answer = client.ask(ask.without(header));
        assert_eq!((answer.status(), answer.code()), (400, -32020), "{header}");
    }
    for missing in [VERSION, CAPABILITIES] {
        let answer = client.ask(call().meta(missing, ""));
        assert_eq!((answer.status(), answer.code()), (400, -32602), "{missing}");
        assert!(answer.error().contains(missing), "{}", answer.error());
    }
    assert_eq!(alpha.asked(), before);
    assert_eq!(client.ask(Ask::new("tools/list").without("Mcp-Name")).status(), 200);
    assert_eq!(client.ask(call().meta("io.modelcontextprotocol/clientInfo", "")).status(), 200);
}

fn c121_headers_towards_upstreams_are_written_anew(pair: Pair) {
    let tools = ["echo", "café", " padded ", "=?base64?x?="];
    let (alpha, _weir, client) = pair.set_up(pair.fake().tools(tools.map(tool)));
    let names = client.names();
    for (name, local) in names.iter().zip(tools) {
        assert!(!client.call(name, "{\"n\":1}").is_failure());
        assert_eq!(alpha.calls(local).len(), 1, "{local}");
    }
    client.ask(Ask::call(&names[0], "{}").header("Mcp-Param-Foo", "bar").header("Last-Event-ID", "5"));
    assert_eq!(alpha.violations(), Vec::<String>::new());
    let strange = |name: &str| name.starts_with("mcp-") || name == "last-event-id";
    for request in alpha.requests().iter().filter(|request| request.method() != "server/discover") {
        let own =
            request.head.fields.iter().map(|(name, _)| name.to_lowercase()).filter(|name| strange(name));
        let permitted: &[&str] = match pair.upstream {
            Side::Legacy => &["mcp-protocol-version", "mcp-session-id"],
            Side::Modern => &["mcp-protocol-version", "mcp-method", "mcp-name", "mcp-param-foo"],
        };
        for name in own {
            assert!(permitted.contains(&name.as_str()), "{name} with {}", request.method());
        }
    }
}

fn c122_each_upstream_is_spoken_to_in_its_revision(side: Side) {
    let alpha = Fake::legacy().revisions(&["2025-03-26"]).start();
    let beta = Fake::legacy().revisions(&["2025-11-25"]).start();
    let gamma = Fake::modern().start();
    let weir = Proxy::before(&alpha).upstream("beta", &beta).upstream("gamma", &gamma).run();
    let client = match side {
        Side::Legacy => Client::new(weir.address, side).revision("2025-06-18").opened(),
        Side::Modern => weir.modern(),
    };
    assert_eq!(client.names().len(), 21);
    for name in ["alpha", "beta", "gamma"] {
        assert!(!client.call(&format!("{name}__echo"), "{}").is_failure(), "{name}");
    }
    let said = |request: &Request| request.header("mcp-protocol-version").map(str::to_owned);
    assert_eq!(said(&beta.calls("echo")[0]).as_deref(), Some("2025-11-25"));
    assert_eq!(said(&gamma.calls("echo")[0]).as_deref(), Some("2026-07-28"));
    for upstream in [&alpha, &beta, &gamma] {
        assert_eq!(upstream.violations(), Vec::<String>::new());
    }
}

fn c123_an_unsupported_version(side: Side) {
    let (alpha, weir, client) = one(Fake::of(side));
    let before = alpha.asked();
    for version in ["2099-01-01", "draft"] {
        let quoted = json::quote(version);
        let ask =
            Ask::new("tools/list").id("\"v\"").meta(VERSION, &quoted).header("MCP-Protocol-Version", version);
        let answer = client.ask(ask);
        assert_eq!((answer.status(), answer.code(), answer.id()), (400, -32022, Some("\"v\"")), "{answer:?}");
        let data = json::value(answer.raw(&["error", "data"]).unwrap_or_default());
        assert_eq!(data["requested"], version);
        assert_eq!(data["supported"], json!(["2026-07-28"]));
    }
    let versioned =
        |version| weir.legacy().ask(Ask::new("tools/list").header("MCP-Protocol-Version", version));
    assert_eq!(versioned("1999-01-01").status(), 400);
    assert_eq!(versioned("2025-03-26").status(), 200, "not what the session negotiated, but a legacy one");
    assert_eq!(alpha.asked(), before);
}

#[test]
fn c124_legacy_negotiation_is_in_the_body() {
    let alpha = Fake::modern().start();
    let weir = Proxy::before(&alpha).run();
    for (asked, given) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2030-01-01", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
    ] {
        let params = format!(
            "{{\"protocolVersion\":\"{asked}\",\"capabilities\":{{}},\"clientInfo\":{{\"name\":\"a\",\"version\":\"1\"}}}}"
        );
        for header in [None, Some("1999-01-01"), Some("2026-07-28")] {
            let client = Client::new(weir.address, Side::Legacy).revision(given);
            let ask = Ask::new("initialize").params(&params);
            let ask = header.into_iter().fold(ask, |ask, value| ask.header("MCP-Protocol-Version", value));
            let answer = client.ask(ask);
            assert_eq!(answer.result()["protocolVersion"], given, "{asked} {header:?}");
            let client = client.with_session(answer.header("mcp-session-id").unwrap());
            assert_eq!(client.notify("notifications/initialized", None), 202);
            let bare = client.ask(Ask::new("tools/list").without("MCP-Protocol-Version"));
            assert_eq!(bare.status(), 200, "without the header");
        }
    }
}

#[test]
fn c125_a_legacy_upstream_is_found_by_one_probe() {
    let probes: [fn(&Request, &mut crate::support::Wire<'_>); 5] = [
        |_, wire| wire.page(400, "text/plain", "Bad Request"),
        |_, wire| wire.page(404, "text/html", "<h1>not found</h1>"),
        |_, wire| wire.refuse(200, -32601, "Method not found"),
        |_, wire| wire.refuse(400, -32600, "session id required"),
        |_, wire| wire.with("mcp-session-id", "junk").refuse(400, -32000, "no session"),
    ];
    for (number, probe) in probes.into_iter().enumerate() {
        let alpha = Fake::legacy().script("server/discover", probe).start();
        let weir = Proxy::before(&alpha).run();
        eventually!(weir.upstream_up("alpha"), "probe {number}");
        for client in [weir.legacy(), weir.modern()] {
            assert!(!client.call("alpha__echo", "{}").is_failure());
        }
        assert_eq!(alpha.seen("server/discover").len(), 1, "probe {number} is remembered");
        assert_eq!(alpha.violations(), Vec::<String>::new());
    }
}

#[test]
fn c125_an_upgraded_upstream_is_found_again() {
    for (before, after) in [(Fake::legacy(), Fake::modern()), (Fake::modern(), Fake::legacy())] {
        let alpha = before.label("before").start();
        let address = alpha.address();
        let weir = Proxy::before(&alpha).run();
        let client = weir.modern();
        assert!(!client.call("alpha__echo", "{}").is_failure());
        drop(alpha);
        let alpha = after.label("after").start_at(address);
        let at = || client.call("alpha__echo", "{}").raw(&["result", "_meta", "at"]).map(str::to_owned);
        eventually!(at().as_deref() == Some("\"after\""));
        assert!(!weir.legacy().call("alpha__echo", "{}").is_failure());
        drop(alpha);
    }
}

#[test]
fn c125_a_refused_version_may_list_the_legacy_ones() {
    let alpha = Fake::legacy()
        .script("server/discover", |request, wire| {
            let id = request.id().unwrap_or("null");
            wire.json(400, &[], &format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-32022,\"message\":\"no\",\"data\":\
                 {{\"requested\":\"2026-07-28\",\"supported\":[\"2025-11-25\"]}}}}}}"
            ));
        })
        .start();
    let weir = Proxy::before(&alpha).run();
    assert!(!weir.modern().call("alpha__echo", "{}").is_failure());
}

#[test]
fn c126_discover_is_a_merged_answer() {
    let (alpha, beta) = (Fake::modern().start(), Fake::legacy().start());
    let gone = Fake::modern().stopped();
    let weir = Proxy::before(&alpha).upstream("beta", &beta).upstream("gone", &gone).run();
    let answer = Client::new(weir.address, Side::Modern).ask(Ask::new("server/discover"));
    assert_eq!(answer.status(), 200);
    let result = answer.result();
    assert_eq!(result["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(result["capabilities"]["tools"], json!({ "listChanged": true }));
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["ttlMs"], 0, "one upstream is missing");
    assert!(matches!(result["cacheScope"].as_str(), Some("public" | "private")));
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "weir");
    assert_eq!(result["_meta"]["dev.weir/missing"][0]["upstream"], "gone");
    assert_eq!(answer.header("mcp-session-id"), None);
}

const ANNOTATED: &str = "{\"name\":\"q\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"region\":{\"type\":\
    \"string\",\"x-mcp-header\":\"Region\"},\"n\":{\"type\":\"integer\",\"x-mcp-header\":\"N\"},\"o\":{\"type\":\"object\",\
    \"properties\":{\"k\":{\"type\":\"boolean\",\"x-mcp-header\":\"K\"}}}}}}";

/// A tool whose annotation breaks the rules: these properties, this name.
fn annotated(name: &str, properties: &str) -> String {
    format!("{{\"name\":\"{name}\",\"inputSchema\":{{\"type\":\"object\",\"properties\":{{{properties}}}}}}}")
}

fn badly_annotated() -> Vec<String> {
    let string = |name: &str, header: &str| {
        format!("\"{name}\":{{\"type\":\"string\",\"x-mcp-header\":\"{header}\"}}")
    };
    vec![
        ANNOTATED.to_owned(),
        annotated("twice", &format!("{},{}", string("a", "Same"), string("b", "sAME"))),
        annotated("empty", &string("a", "")),
        annotated("space", &string("a", "a b")),
        annotated("number", "\"a\":{\"type\":\"number\",\"x-mcp-header\":\"A\"}"),
        annotated(
            "items",
            &format!("\"a\":{{\"type\":\"array\",\"items\":{{\"properties\":{{{}}}}}}}", string("b", "B")),
        ),
        tool("plain"),
    ]
}

#[test]
fn c129_tools_with_bad_annotations_are_left_out_alone() {
    let (_alpha, weir, client) = one(Fake::modern().tools(badly_annotated()));
    assert_eq!(client.names(), ["alpha__q", "alpha__plain"]);
    assert_eq!(client.tools()[0], ANNOTATED.replacen("\"q\"", "\"alpha__q\"", 1));
    for name in ["twice", "empty", "space", "number", "items"] {
        eventually!(weir.log().contains(name), "{name} is not in the log");
    }
}

#[test]
fn c129_mirrored_arguments() {
    let (alpha, weir, client) = one(Fake::modern().tools(badly_annotated()));
    let arguments = "{\"region\":\" Zürich\",\"n\":42,\"o\":{\"k\":true}}";
    let call = |region: &str, n: &str| {
        Ask::call("alpha__q", arguments)
            .header("Mcp-Param-Region", region)
            .header("Mcp-Param-N", n)
            .header("Mcp-Param-K", "true")
    };
    let right = encode(" Zürich");
    assert_eq!(client.ask(call(&right, "42").header("Mcp-Param-Foo", "unknown")).status(), 200);
    assert_eq!(client.ask(call(&right, "42.0")).status(), 200, "integers are compared as numbers");
    let executed = alpha.calls("q").len();
    let missing =
        Ask::call("alpha__q", arguments).header("Mcp-Param-Region", &right).header("Mcp-Param-N", "42");
    for wrong in [call("Bern", "42"), call(&right, "43"), missing, call("=?base64?%?=", "42")] {
        let answer = client.ask(wrong.clone());
        assert_eq!((answer.status(), answer.code()), (400, -32020), "{wrong:?}");
    }
    assert_eq!(alpha.calls("q").len(), executed);
    let legacy = weir.legacy();
    assert!(!legacy.call("alpha__q", arguments).is_failure(), "the gateway adds the headers");
    assert!(!legacy.call("alpha__q", "{\"region\":null}").is_failure());
    assert_eq!(alpha.violations(), Vec::<String>::new());
    assert_eq!(alpha.calls("q").last().unwrap().header("mcp-param-region"), None, "null: no header");
}

#[test]
fn c130_modern_requests_have_no_session() {
    let alpha = Fake::modern().start();
    let replicas = [Proxy::before(&alpha).run(), Proxy::before(&alpha).run()];
    let gauge = |weir: &Weir| weir.metric("weir_sessions", &[]).unwrap_or(0.0);
    for turn in 0..40 {
        let client = replicas[turn % 2].modern();
        let ask = match turn % 3 {
            0 => Ask::new("server/discover"),
            1 => Ask::new("tools/list"),
            _ => Ask::call("alpha__echo", "{}"),
        };
        let ask = if turn % 4 == 0 {
            ask.header("Mcp-Session-Id", "junk").header("Last-Event-ID", "5")
        } else {
            ask
        };
        let answer = client.ask(ask);
        assert_eq!((answer.status(), answer.header("mcp-session-id")), (200, None));
    }
    assert!(replicas.iter().all(|weir| gauge(weir) == 0.0));
}

#[test]
fn c131_unknown_methods() {
    let (alpha, weir, client) = one(Fake::modern());
    let before = alpha.asked();
    for method in ["foo/bar", "ping", "logging/setLevel", "resources/subscribe", "initialize"] {
        let answer = client.ask(Ask::new(method).params("{}").id("\"x\""));
        assert_eq!((answer.status(), answer.code(), answer.id()), (404, -32601, Some("\"x\"")), "{method}");
    }
    let legacy = weir.legacy();
    for method in ["foo/bar", "server/discover", "subscriptions/listen"] {
        let answer = legacy.ask(Ask::new(method).params("{}").id("\"x\""));
        assert_eq!((answer.status(), answer.code(), answer.id()), (200, -32601, Some("\"x\"")), "{method}");
    }
    assert_eq!(alpha.asked(), before);
}

#[test]
fn modern_requests_without_metadata_are_told_what_is_missing() {
    let (_alpha, weir, _) = one(Fake::modern());
    let list = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}";
    for request in [
        weir.post("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\"}"),
        weir.post(list).header("MCP-Protocol-Version", "2026-07-28"),
        weir.post(list).header("Mcp-Method", "tools/list"),
    ] {
        let response = request.send();
        assert_eq!(response.status(), 400);
        let text = response.text();
        assert_eq!(json::raw(&text, &["error", "code"]), Some("-32602"), "{text}");
        assert!(text.contains(VERSION), "{text}");
    }
    let client = weir.modern();
    let note = client.post(format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{{\"_meta\":{{\"{VERSION}\":\
         \"2026-07-28\",\"{CAPABILITIES}\":{{}}}},\"requestId\":1}}}}"
    ));
    assert_eq!(note.send().status(), 202);
    assert_eq!(client.post("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}").send().status(), 400);
}

fn c132_result_type_is_there_for_modern_clients(pair: Pair) {
    let (_alpha, _weir, client) = pair.set_up(pair.fake());
    for ask in [Ask::new("tools/list"), Ask::call("alpha__echo", "{}"), Ask::call("alpha__fail", "{}")] {
        let method = ask.method.clone();
        let answer = client.ask(ask);
        let kind = answer.raw(&["result", "resultType"]);
        match pair.client {
            Side::Modern => assert_eq!(kind, Some("\"complete\""), "{method}"),
            Side::Legacy => assert!(matches!(kind, None | Some("\"complete\"")), "{method}"),
        }
    }
}

#[test]
fn c133_codes_of_an_upstreams_own_pass_between_eras() {
    for (upstream, client) in [(Side::Legacy, Side::Modern), (Side::Modern, Side::Legacy)] {
        let alpha = Fake::of(upstream)
            .script("tools/call echo", |request, wire| {
                let code = request.raw(&["params", "arguments", "code"]).unwrap_or("0");
                wire.error(&format!("{{\"code\":{code},\"message\":\"own\"}}"));
            })
            .start();
        let weir = Proxy::before(&alpha).run();
        let client = weir.client(client);
        let code = |code: i64| client.call("alpha__echo", &format!("{{\"code\":{code}}}")).code();
        for own in [-1, 1, 42, -31999] {
            assert_eq!(code(own), own);
        }
        assert!(matches!(code(-32602), -32602 | -32002));
        if client.side() == Side::Modern {
            assert_eq!(code(-32002), -32602, "a code that this revision may not emit");
        }
    }
}

#[test]
fn c134_lists_carry_legal_cache_hints() {
    let alpha = Fake::modern().hints(7000, "public").start();
    let beta = Fake::legacy().start();
    let weir = Proxy::before(&alpha).upstream_with("beta", &beta, "refresh: 30s").run();
    let client = weir.modern();
    for method in
        ["tools/list", "prompts/list", "resources/list", "resources/templates/list", "server/discover"]
    {
        let result = client.ask(Ask::new(method)).result();
        assert!(result["ttlMs"].as_u64().is_some(), "{method}: {result}");
        assert_eq!(result["cacheScope"], "public", "{method}");
    }
    assert_eq!(client.ask(Ask::new("tools/list")).result()["ttlMs"], 7000, "the smallest");
    assert_eq!(client.names(), client.names());
    let (secret, cautious) = (Fake::modern().hints(600_000, "private").start(), Fake::modern().start());
    let weir = Proxy::before(&secret).upstream("beta", &cautious).run();
    let result = weir.modern().ask(Ask::new("tools/list")).result();
    assert_eq!((&result["cacheScope"], &result["ttlMs"]), (&json!("private"), &json!(60_000)));
}

#[test]
fn c135_an_upstream_that_refuses_the_newest_legacy_version() {
    let alpha = Fake::legacy().revisions(&["2025-06-18", "2025-03-26"]).picky().start();
    let old = Fake::legacy().revisions(&["2025-03-26"]).picky().start();
    let weir = Proxy::before(&alpha).upstream("old", &old).run();
    eventually!(weir.missing().is_empty());
    for client in [weir.legacy(), weir.modern()] {
        assert!(!client.call("alpha__echo", "{}").is_failure());
        assert!(!client.call("old__echo", "{}").is_failure());
    }
    for upstream in [&alpha, &old] {
        let refused =
            upstream.seen("initialize").iter().filter(|request| request.status == Some(400)).count();
        assert!((1..4).contains(&refused), "{refused} attempts, then it is remembered");
        assert_eq!(upstream.violations(), Vec::<String>::new());
    }
}
