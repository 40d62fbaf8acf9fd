//! Watching it run: the admin address and the lines that are printed.

use crate::support::exchange::Exchange;
use crate::support::{Ask, Fake, Pair, Proxy, eventually, json, pairs};

pairs! { operations_are_measured }

#[test]
fn serve_prints_its_addresses_and_what_is_up() {
    let (alpha, beta) = (Fake::legacy().start(), Fake::modern().start());
    let routes = "routes:\n  - { name: default, path: /mcp }\n  - { name: other, upstreams: [beta] }\n";
    let weir = Proxy::before(&alpha).upstream("beta", &beta).section(routes).run();
    let address = weir.address;
    let admin = weir.admin();
    assert_eq!(
        weir.printed,
        [
            format!("listening http://{address}/mcp"),
            format!("listening http://{address}/other"),
            format!("admin http://{admin}"),
            "upstreams 2/2 up, 14 tools".to_owned(),
        ]
    );
    let other = crate::support::Client::new(address, crate::support::Side::Modern).at("/other");
    assert_eq!(other.names().len(), 7, "a route shows its own upstreams");
}

#[test]
fn health_is_told() {
    let alpha = Fake::modern().start();
    let weir = Proxy::before(&alpha).run();
    let (status, text) = weir.admin_get("/livez");
    assert_eq!((status, text.trim_end()), (200, "ok"));
    let (status, text) = weir.admin_get("/readyz");
    let value = json::value(&text);
    assert_eq!(status, 200, "{text}");
    assert_eq!((&value["v"], &value["ready"], &value["draining"]), (&1.into(), &true.into(), &false.into()));
    assert!(value["generation"].is_u64(), "{text}");
    let checks = value["checks"].as_array().cloned().unwrap_or_default();
    for name in ["listener", "snapshot"] {
        assert!(checks.iter().any(|check| check["name"] == name && check["ok"] == true), "{name}: {text}");
    }
}

#[test]
fn readiness_waits_for_what_is_required() {
    let (alpha, beta) = (Fake::legacy().stopped(), Fake::modern().start());
    let weir = Proxy::new().upstream_with("alpha", &alpha, "required: true").upstream("beta", &beta).run();
    let (status, text) = weir.admin_get("/readyz");
    assert_eq!(status, 503, "{text}");
    assert!(text.contains("upstream:alpha"), "{text}");
    assert_eq!(weir.modern().names().len(), 7, "others are served all the same");
    alpha.restart();
    eventually!(weir.admin_get("/readyz").0 == 200);
    alpha.stop();
    assert_eq!(weir.admin_get("/readyz").0, 200, "only until it has been up once");
}

#[test]
fn the_admin_address_answers_reading_only() {
    let alpha = Fake::modern().start();
    let weir = Proxy::before(&alpha).run();
    let get = |path: &str| Exchange::new(weir.admin(), "GET", path);
    assert_eq!(get("/livez").set("Host", "evil.example").send().status(), 403, "T094");
    assert_eq!(get("/livez").header("Origin", "https://evil.example").send().status(), 403);
    assert_eq!(get("/nowhere").send().status(), 404);
    for verb in ["POST", "DELETE", "PUT"] {
        assert_eq!(Exchange::new(weir.admin(), verb, "/livez").send().status(), 405, "{verb}");
    }
    let head = Exchange::new(weir.admin(), "HEAD", "/livez").send();
    assert_eq!(head.status(), 200);
    for path in ["/livez", "/metrics", "/readyz"] {
        assert_eq!(
            Exchange::new(weir.address, "GET", path).send().status(),
            404,
            "{path} is not on the MCP listener"
        );
    }
}

#[test]
fn t123_log_lines_are_json_and_cannot_be_forged() {
    let alpha = Fake::modern().start();
    let log = "telemetry: { log: { format: json, level: debug } }\n";
    let weir = Proxy::before(&alpha).section(log).run();
    let client = weir.modern();
    let forged = "x\\n{\\\"level\\\":\\\"ERROR\\\",\\\"forged\\\":1}\\u2028\\u001b[31m";
    client.ask(Ask::new("tools/call").params(&format!("{{\"name\":\"{forged}\"}}")).without("Mcp-Name"));
    client.call("alpha__echo", "{}");
    let is_object = |line: &str| serde_json::from_str::<serde_json::Map<_, _>>(line).is_ok();
    eventually!(weir.log().contains("alpha"));
    let log = weir.log();
    let odd: Vec<&str> = log.lines().filter(|line| !is_object(line)).collect();
    assert!(odd.is_empty(), "{odd:?}");
    assert!(!log.lines().any(|line| line.starts_with("{\"level\":\"ERROR\",\"forged\"")), "{log}");
}

#[test]
fn an_access_line_is_written_for_each_exchange() {
    let alpha = Fake::modern().start();
    for (access, expected) in [(true, 3), (false, 0)] {
        let log = format!("telemetry: {{ log: {{ format: json, level: info, access: {access} }} }}\n");
        let weir = Proxy::before(&alpha).section(&log).run();
        for _ in 0..3 {
            weir.modern().call("alpha__echo", "{}");
        }
        let lines = || weir.log().lines().filter(|line| line.contains("tools/call")).count();
        eventually!(lines() == expected, "{} lines of {expected}: {}", lines(), weir.log());
    }
}

fn operations_are_measured(pair: Pair) {
    let (_alpha, weir, client) = pair.set_up(pair.fake());
    for _ in 0..3 {
        client.call("alpha__echo", "{}");
    }
    client.names();
    client.call("nobody__knows", "{}");
    let count = |name: &str, labels: &[&str]| weir.metric(name, labels).unwrap_or(0.0);
    let server = "mcp_server_operation_duration_seconds_count";
    let call = "method=\"tools/call\"";
    eventually!(count(server, &[call, "route=\"default\"", "outcome=\"result\""]) >= 3.0);
    assert!(count(server, &[call, "upstream=\"alpha\""]) >= 3.0, "the upstream is a label");
    assert!(count(server, &["method=\"tools/list\"", "route=\"default\""]) >= 1.0);
    assert!(count("mcp_client_operation_duration_seconds_count", &[call, "upstream=\"alpha\""]) >= 3.0);
    let (_, text) = weir.admin_get("/metrics");
    assert!(!text.contains("echo") && !text.contains("nobody"), "T090: no tool name is a label: {text}");
    assert!(text.lines().any(|line| line.starts_with("weir_")), "{text}");
}
