//! Watching it run: the admin address and the lines that are printed.

use crate::support::exchange::Exchange;
use crate::support::{Fake, Pair, Proxy, eventually, json, pairs};

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
    eventually!(count(server, &[call, "upstream=\"alpha\""]) >= 3.0, "{}", weir.admin_get("/metrics").1);
    assert!(count(server, &["method=\"tools/list\"", "route=\"default\""]) >= 1.0);
    assert!(count("mcp_client_operation_duration_seconds_count", &[call, "upstream=\"alpha\""]) >= 3.0);
    let (_, text) = weir.admin_get("/metrics");
    assert!(!text.contains("echo") && !text.contains("nobody"), "T090: no tool name is a label: {text}");
    assert!(text.lines().any(|line| line.starts_with("weir_")), "{text}");
}
