//! What `/status` and `/api/status` show of a running gateway, and to whom.

use crate::support::exchange::Exchange;
use crate::support::proxy::token_hash;
use crate::support::{Fake, Proxy, Weir, eventually, json, tool};

fn status(weir: &Weir) -> serde_json::Value {
    json::value(&weir.admin_get("/api/status").1)
}

#[test]
fn the_life_of_a_link_is_visible() {
    let (alpha, beta) = (Fake::modern().start(), Fake::legacy().stopped());
    let weir = Proxy::before(&alpha)
        .upstream_with("beta", &beta, "withdraw_after: 100ms")
        .entries("  later: { url: \"http://127.0.0.1:1/\", enabled: false }\n")
        .run();
    (0..5).for_each(|_| assert!(!weir.modern().call("alpha__echo", "{}").is_failure()));
    eventually!(status(&weir)["upstreams"][1]["state"] == "down");
    let all = status(&weir);
    let [up, down, later] = [0, 1, 2].map(|number: usize| &all["upstreams"][number]);
    assert_eq!(
        (&up["state"], &up["era"], &up["revision"]),
        (&"up".into(), &"modern".into(), &"2026-07-28".into())
    );
    assert!(up["latency_ms"]["p50"].as_f64() > Some(0.0) && up["latency_ms"]["p99"].is_number(), "{up}");
    assert_eq!(down["last_error"]["reason"], "unreachable", "{down}");
    assert!(down["next_try_at"].is_string() && down["latency_ms"].is_null(), "{down}");
    assert_eq!((&later["name"], &later["state"]), (&"later".into(), &"disabled".into()));
    let state = |upstream: &str, state: &str| {
        weir.metric(
            "weir_upstream_state",
            &[&format!("upstream=\"{upstream}\""), &format!("state=\"{state}\"")],
        )
    };
    assert_eq!((state("alpha", "up"), state("alpha", "down")), (Some(1.0), Some(0.0)));
    assert_eq!((state("beta", "up"), state("beta", "down")), (Some(0.0), Some(1.0)));
    beta.restart();
    eventually!(status(&weir)["upstreams"][1]["state"] == "up");
    let told = |upstream: &str, what: &str| {
        let changes = status(&weir)["changes"].clone();
        let mut all = changes.as_array().into_iter().flatten();
        all.any(|change| {
            change["upstream"] == upstream && change["what"].as_str().is_some_and(|text| text.contains(what))
        })
    };
    eventually!(told("beta", "up") && told("beta", "tools: added beta__big"));
    let mut stream = weir.legacy().listen();
    eventually!(status(&weir)["streams"] == 1);
    assert_eq!(status(&weir)["sessions"], 1);
    assert!(stream.until_quiet(std::time::Duration::ZERO).is_empty());
}

#[test]
fn calls_in_flight_are_counted() {
    let alpha = Fake::modern().start();
    let weir = Proxy::before(&alpha).run();
    let client = weir.modern();
    std::thread::scope(|scope| {
        let call = scope.spawn(|| client.call("alpha__slow", "{\"ms\":800}").is_failure());
        eventually!(status(&weir)["calls_in_flight"] == 1);
        assert!(!call.join().expect("a client"));
    });
    eventually!(status(&weir)["calls_in_flight"] == 0);
}

#[test]
fn t078_the_page_shows_names_and_runs_nothing() {
    let evil = "{\"name\":\"evil\",\"description\":\"<script>alert(1)</script>\\nmore\",\"inputSchema\":{\"type\":\"object\"}}";
    let nameless = "{\"name\":\"<b>\",\"inputSchema\":5}";
    let alpha = Fake::modern().tools([tool("echo"), evil.to_owned(), nameless.to_owned()]).start();
    let weir = Proxy::new().upstream_at("alpha", &format!("{}?key=canary-query", alpha.url()), "").run();
    let page = Exchange::new(weir.admin(), "GET", "/status").send();
    assert_eq!(page.status(), 200);
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    let policy = page.header("content-security-policy").unwrap_or_default().to_owned();
    assert!(policy.contains("default-src 'none'") && !policy.contains("script"), "{policy}");
    let text = page.text();
    for part in ["alpha__evil", "&lt;script&gt;", "left out", "&lt;b&gt;", "2026-07-28", "routes.yaml"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    for part in ["<script", "<b>", "canary-query", "src=", "href="] {
        assert!(!text.contains(part), "{part}: {text}");
    }
}

#[test]
fn t094_off_loopback_the_state_needs_the_token() {
    let alpha = Fake::modern().start();
    let hash = token_hash("canary-admin");
    let with = |admin: &str| Proxy::before(&alpha).admin("0.0.0.0:0").section(admin).run();
    let get = |weir: &Weir, path: &str, token: Option<&str>| {
        let exchange = Exchange::new(weir.admin(), "GET", path);
        let exchange = match token {
            Some(token) => exchange.header("Authorization", &format!("Bearer {token}")),
            None => exchange,
        };
        exchange.send().status()
    };
    let (closed, guarded) = (with(""), with(&format!("admin: {{ token: \"{hash}\" }}")));
    for path in ["/status", "/api/status", "/api/tools"] {
        assert_eq!(get(&closed, path, None), 404, "{path}");
        assert_eq!(get(&guarded, path, None), 401, "{path}");
        assert_eq!(get(&guarded, path, Some("canary-other")), 401, "{path}");
        assert_eq!(get(&guarded, path, Some("canary-admin")), 200, "{path}");
    }
    for path in ["/livez", "/readyz", "/metrics"] {
        assert_eq!(get(&closed, path, None), 200, "{path}");
    }
}
