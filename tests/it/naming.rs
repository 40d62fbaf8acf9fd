//! Published names: unambiguous, fit for every client, and stable.

use crate::support::{Ask, Client, Fake, Pair, Proxy, Side, eras, json, pairs, tool};

pairs! { c040_names_fit_sixty_four_characters, c041_characters_are_made_safe, c043_the_prefix_is_removed }

eras! { c044_the_same_name_on_two_upstreams_is_not_a_lottery }

/// Which tool of which upstream answered.
fn reached(client: &Client, name: &str) -> (String, String) {
    let answer = client.call(name, "{}");
    let meta = &answer.result()["_meta"];
    let text = |key: &str| meta[key].as_str().unwrap_or_default().to_owned();
    (text("at"), text("tool"))
}

fn c040_names_fit_sixty_four_characters(pair: Pair) {
    let long = "l".repeat(70);
    let exact = "e".repeat(64 - 16 - 2);
    let over = "e".repeat(64 - 16 - 1);
    let locals = [long.as_str(), &exact, &over];
    let upstream = pair.fake().tools(locals.map(tool)).start();
    let run = || Proxy::new().upstream("sixteen-letters-", &upstream).run();
    let weir = run();
    let client = pair.client(&weir);
    let names = client.names();
    assert!(names.iter().all(|name| name.len() <= 64), "{names:?}");
    assert_eq!(names[1], format!("sixteen-letters-__{exact}"));
    for (name, local) in names.iter().zip(locals) {
        assert_eq!(reached(&client, name).1, local);
    }
    let tools = client.tools();
    let full = json::text(&tools[0], &["_meta", "dev.weir/name"]);
    assert_eq!(full, Some(format!("sixteen-letters-__{long}")));
    assert_eq!(json::raw(&tools[1], &["_meta", "dev.weir/name"]), None);
    drop(weir);
    assert_eq!(run().client(pair.client).names(), names, "the same after a restart");
}

fn c041_characters_are_made_safe(pair: Pair) {
    let locals = ["calendar.read", "git/commit", "Status Report", "天気", "_x", "9lives", "a.b", "a b"];
    let tools =
        locals.map(|name| tool(name).replacen("{", &format!("{{\"title\":{},", json::quote(name)), 1));
    let (_alpha, _weir, client) = pair.set_up(pair.fake().tools(tools));
    let names = client.names();
    let safe = |name: &String| {
        name.len() <= 64
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    };
    assert!(names.iter().all(safe), "{names:?}");
    assert_eq!(names[..3], ["alpha__calendar_read", "alpha__git_commit", "alpha__Status_Report"]);
    assert_ne!(names[6], names[7], "two that become the same get a hash each");
    for ((name, local), raw) in names.iter().zip(locals).zip(client.tools()) {
        assert_eq!(reached(&client, name), ("alpha".to_owned(), local.to_owned()), "{name}");
        assert_eq!(json::text(&raw, &["title"]).as_deref(), Some(local), "the title keeps the original");
    }
}

#[test]
fn c041_original_characters_may_be_kept() {
    let alpha = Fake::modern().tools([tool("calendar.read"), tool("天気")]).start();
    let listed = |characters: &str| {
        let names = format!("names: {{ characters: {characters}, separator: \".\" }}");
        Proxy::before(&alpha).section(&names).run().modern().names()
    };
    assert_eq!(listed("spec"), ["alpha.calendar.read", "alpha.__"]);
    assert_eq!(listed("any"), ["alpha.calendar.read", "alpha.天気"]);
}

#[test]
fn c042_a_separator_in_a_tool_name_is_no_other_upstream() {
    let (one, other) =
        (Fake::modern().label("a").tools([tool("b__c"), tool("__d")]), Fake::modern().label("b"));
    let (one, other) = (one.start(), other.tools([tool("c")]).start());
    let weir = Proxy::new().upstream("a", &one).upstream_with("a__b", &other, "namespace: ab").run();
    let client = weir.modern();
    assert_eq!(client.names(), ["a__b__c", "a____d", "ab__c"]);
    assert_eq!(reached(&client, "a__b__c"), ("a".to_owned(), "b__c".to_owned()));
    assert_eq!(reached(&client, "a____d"), ("a".to_owned(), "__d".to_owned()));
    assert_eq!(reached(&client, "ab__c"), ("b".to_owned(), "c".to_owned()));
}

fn c043_the_prefix_is_removed(pair: Pair) {
    let (alpha, _weir, client) = pair.set_up(pair.fake());
    let params =
        "{\"arguments\": {\"name\" : \"alpha__echo\", \"x\":[ 1 ]},\"name\":\"alpha__echo\",\"vendor\":{ }}";
    let answer = client.ask(Ask::new("tools/call").params(params).meta("com.example/k", "{\"a\": 1}"));
    assert!(!answer.is_failure());
    let call = &alpha.calls("echo")[0];
    assert_eq!(call.name(), "echo");
    assert_eq!(call.arguments(), Some("{\"name\" : \"alpha__echo\", \"x\":[ 1 ]}"));
    assert_eq!(call.raw(&["params", "vendor"]), Some("{ }"));
    assert_eq!(call.meta("com.example/k"), Some("{\"a\": 1}"));
}

fn c044_the_same_name_on_two_upstreams_is_not_a_lottery(side: Side) {
    let alpha = Fake::legacy().label("alpha").tools([tool("search")]).start();
    let beta = Fake::modern().label("beta").tools([tool("search")]).start();
    let weir = Proxy::before(&alpha).upstream("beta", &beta).run();
    let client = weir.client(side);
    std::thread::scope(|scope| {
        for first in 0..2 {
            let client = &client;
            scope.spawn(move || {
                let to = (0..25).map(|turn| ["alpha", "beta"][(turn * 7 + first) % 2]);
                let astray = to.filter(|to| reached(client, &format!("{to}__search")).0 != *to);
                assert_eq!(astray.count(), 0);
            });
        }
    });
    assert_eq!(alpha.calls("search").len() + beta.calls("search").len(), 50);
}

#[test]
fn c046_a_second_upstream_renames_nothing() {
    let (alpha, beta) = (Fake::modern().start(), Fake::legacy().start());
    let alone = Proxy::before(&alpha).run().modern().names();
    let both = Proxy::before(&alpha).upstream("beta", &beta).run().modern().names();
    assert_eq!(alone[..], both[..alone.len()]);
}

#[test]
fn one_upstream_may_publish_bare_names() {
    let (alpha, beta) = (Fake::modern().label("a").start(), Fake::modern().label("b").start());
    let weir = Proxy::new()
        .upstream_with("alpha", &alpha, "namespace: \"\"")
        .upstream_with("beta", &beta, "namespace: beta")
        .run();
    let client = weir.legacy();
    assert_eq!(client.names()[..2], ["echo", "slow"]);
    assert_eq!(reached(&client, "echo").0, "a");
    assert_eq!(reached(&client, "beta__echo").0, "b");
}

#[test]
fn of_two_equal_names_the_more_definite_one_is_published() {
    let alpha = Fake::modern().label("a").tools([tool("beta__echo"), tool("own")]).start();
    let beta = Fake::modern().label("b").tools([tool("echo")]).start();
    let weir = Proxy::new().upstream_with("alpha", &alpha, "namespace: \"\"").upstream("beta", &beta).run();
    let client = weir.modern();
    assert_eq!(client.names(), ["own", "beta__echo"]);
    assert_eq!(reached(&client, "beta__echo").0, "b", "one with a namespace wins over one without");
}

#[test]
fn tools_are_filtered_and_renamed_by_their_local_names() {
    let alpha = Fake::legacy().label("a").start();
    let keys = "tools: { allow: [\"e*\", \"s*\", incr], deny: [slow], rename: { incr: count } }";
    let weir = Proxy::new().upstream_with("alpha", &alpha, keys).run();
    let client = weir.modern();
    assert_eq!(client.names(), ["alpha__echo", "alpha__count", "alpha__steps"]);
    assert_eq!(client.call("alpha__count", "{}").said(), "1");
    assert_eq!(alpha.calls("incr").len(), 1);
    for hidden in ["alpha__slow", "alpha__fail", "alpha__incr"] {
        assert_eq!(client.call(hidden, "{}").code(), -32602, "{hidden}");
    }
}

#[test]
fn c100_an_empty_allow_list_permits_nothing() {
    let (alpha, beta) = (Fake::modern().start(), Fake::modern().tools([tool("x")]).start());
    let weir =
        Proxy::new().upstream_with("alpha", &alpha, "tools: { allow: [] }").upstream("beta", &beta).run();
    assert_eq!(weir.modern().names(), ["beta__x"]);
}
