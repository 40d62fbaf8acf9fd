//! What the gateway does not own passes as it is: definitions, arguments, results, numbers, unknown members.

use crate::support::upstream::pattern;
use crate::support::{Ask, Client, Fake, Pair, Proxy, Side, eras, eventually, json, pairs, tool};

pairs! {
    c047_output_schemas_and_structured_content_pass, c048_unknown_members_pass, c049_schemas_stay_intact,
    c050_numbers_keep_their_digits, c051_empty_null_and_missing_stay_apart, c053_one_bad_tool_hides_no_other,
    c054_large_payloads_are_intact,
}

eras! { c052_structured_content_may_be_any_value, c055_instructions_are_attributed, schemas_under_other_names_are_taken }

/// A definition as it must be published: only the name differs.
fn published(definition: &str, name: &str) -> String {
    definition.replacen(&format!("\"{name}\""), &format!("\"alpha__{name}\""), 1)
}

fn c047_output_schemas_and_structured_content_pass(pair: Pair) {
    let definition = "{\"name\":\"weather\",\"inputSchema\":{\"type\":\"object\"},\"outputSchema\":{\"type\":\"object\",\
                      \"properties\":{\"t\":{\"type\":\"number\"}},\"required\":[\"t\"]}}";
    let fake = pair.fake().tools([definition]).script("tools/call", |_, wire| {
        wire.result(
            "{\"content\":[{\"type\":\"text\",\"text\":\"1.50\"}],\"structuredContent\":{\"t\": 1.50}}",
        );
    });
    let (_alpha, _weir, client) = pair.set_up(fake);
    assert_eq!(client.tools(), [published(definition, "weather")]);
    let answer = client.call("alpha__weather", "{}");
    assert_eq!(answer.raw(&["result", "structuredContent"]), Some("{\"t\": 1.50}"));
    assert_eq!(answer.raw(&["result", "content"]), Some("[{\"type\":\"text\",\"text\":\"1.50\"}]"));
}

fn c048_unknown_members_pass(pair: Pair) {
    let definition = "{\"x-vendor\":{\"b\": 1,\"a\":[ ]},\"title\":\"T\",\"name\":\"t\",\"icons\":[{\"src\":\
        \"https://example.com/i.png\"}],\"annotations\":{\"readOnlyHint\":true,\"unknownHint\":\"x\"},\"inputSchema\":\
        {\"type\":\"object\"},\"execution\":{\"taskSupport\":\"forbidden\"},\"_meta\":{\"com.example/k\":1.0}}";
    let result = "{\"content\":[{\"type\":\"hologram\",\"data\":{\"z\":1,\"a\":2}}],\"x-top\": [1, 2],\
                  \"_meta\":{\"com.example/r\":\"\\u0041\"}}";
    let fake = pair.fake().tools([definition]).script("tools/call", move |_, wire| wire.result(result));
    let (alpha, _weir, client) = pair.set_up(fake);
    let client = client.unchecked();
    assert_eq!(client.tools(), [published(definition, "t")]);
    let trace = "\"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\"";
    let answer =
        client.ask(Ask::call("alpha__t", "{}").meta("com.example/q", "{\"z\":1}").meta("traceparent", trace));
    for (path, raw) in [
        (["result", "content"], "[{\"type\":\"hologram\",\"data\":{\"z\":1,\"a\":2}}]"),
        (["result", "x-top"], "[1, 2]"),
        (["result", "_meta"], "{\"com.example/r\":\"\\u0041\"}"),
    ] {
        assert_eq!(answer.raw(&path), Some(raw));
    }
    let call = &alpha.calls("t")[0];
    assert_eq!(call.meta("com.example/q"), Some("{\"z\":1}"));
    assert_eq!(call.meta("traceparent"), Some(trace));
}

fn c049_schemas_stay_intact(pair: Pair) {
    let old = "{\"name\":\"old\",\"inputSchema\":{\"definitions\":{\"N\":{\"type\":\"integer\"}},\"type\":\"object\",\
               \"properties\":{\"n\":{\"$ref\":\"#/definitions/N\"}}}}";
    let new = "{\"inputSchema\":{\"$schema\":\"http://json-schema.org/draft-07/schema#\",\"$defs\":{\"T\":{\"type\":\
        \"object\",\"properties\":{\"next\":{\"$ref\":\"#/$defs/T\"},\"any\":true,\"none\":false}}},\"type\":\"object\",\
        \"oneOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]}],\"if\":{\"required\":[\"a\"]},\"then\":{\"properties\":\
        {\"c\":{\"const\":1.0}}},\"additionalProperties\":false,\"x-custom\":  [1,2]},\"name\":\"new\"}";
    let remote = format!("http://127.0.0.1:{}/schema.json", free_port());
    let away = format!(
        "{{\"name\":\"away\",\"inputSchema\":{{\"type\":\"object\",\"properties\":{{\"r\":{{\"$ref\":\"{remote}\"}}}}}}}}"
    );
    let (_alpha, _weir, client) = pair.set_up(pair.fake().tools([old, new, &away]));
    let tools = client.tools();
    assert_eq!(tools[0], published(old, "old"));
    assert_eq!(tools[1], published(new, "new"));
    assert!(tools.get(2).is_none_or(|raw| *raw == published(&away, "away")), "left out or as it was");
}

/// A port on which nobody listens.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn c050_numbers_keep_their_digits(pair: Pair) {
    let (alpha, _weir, client) = pair.set_up(pair.fake());
    let arguments = "{\"id\":9007199254740993,\"min\":-9223372036854775808,\"max\":18446744073709551615,\
                     \"more\":123456789012345678901234567890,\"f\":1.10,\"e\":1E400,\"z\":-0}";
    let answer = client.unchecked().call("alpha__echo", arguments);
    assert_eq!(alpha.calls("echo")[0].arguments(), Some(arguments));
    assert_eq!(answer.raw(&["result", "structuredContent"]), Some(arguments));
}

fn c051_empty_null_and_missing_stay_apart(pair: Pair) {
    let (alpha, _weir, client) = pair.set_up(pair.fake());
    for arguments in ["{}", "{\"a\":null,\"b\":[],\"c\":{}}"] {
        client.call("alpha__echo", arguments);
        assert_eq!(alpha.calls("echo").last().unwrap().arguments(), Some(arguments));
    }
    client.ask(Ask::new("tools/call").params("{\"name\":\"alpha__echo\"}"));
    assert_eq!(alpha.calls("echo").last().unwrap().arguments(), None);
    let notes = alpha.seen("notifications/initialized");
    assert!(
        notes.iter().all(|note| note.raw(&["params"]).is_none_or(|raw| raw.starts_with('{'))),
        "{notes:?}"
    );
}

fn c052_structured_content_may_be_any_value(side: Side) {
    let values = ["[1,{\"a\":null}]", "\"text\"", "0", "false", "null", "{\"o\":1}"];
    let definition =
        "{\"name\":\"any\",\"inputSchema\":{\"type\":\"object\"},\"outputSchema\":{\"type\":\"array\"}}";
    let alpha = Fake::modern()
        .tools([definition.to_owned(), tool("none")])
        .script("tools/call any", move |request, wire| {
            let value = request.raw(&["params", "arguments", "v"]).unwrap_or_default();
            wire.result(&format!("{{\"content\":[],\"structuredContent\":{value}}}"));
        })
        .script("tools/call none", |_, wire| wire.result("{\"content\":[]}"))
        .start();
    let weir = Proxy::before(&alpha).run();
    let client = weir.client(side);
    let schema = json::raw(&client.tools()[0], &["outputSchema"]).map(str::to_owned);
    let kept = side == Side::Modern;
    assert_eq!(schema.as_deref(), kept.then_some("{\"type\":\"array\"}"));
    for value in values {
        let answer = client.call("alpha__any", &format!("{{\"v\":{value}}}"));
        let expected = (kept || value.starts_with('{')).then_some(value);
        assert_eq!(answer.raw(&["result", "structuredContent"]), expected);
        if expected.is_none() {
            assert_eq!(answer.said(), value, "the value is told as a text");
        }
    }
    assert_eq!(client.call("alpha__none", "{}").raw(&["result", "structuredContent"]), None);
}

#[test]
fn c052_clients_before_structured_content_get_it_unchanged() {
    let alpha = Fake::modern()
        .script("tools/call echo", |_, wire| wire.result("{\"content\":[],\"structuredContent\":[1]}"))
        .start();
    let weir = Proxy::before(&alpha).run();
    let client = Client::new(weir.address, Side::Legacy).revision("2025-03-26").opened();
    assert_eq!(client.call("alpha__echo", "{}").raw(&["result", "structuredContent"]), Some("[1]"));
}

fn c053_one_bad_tool_hides_no_other(pair: Pair) {
    let unusual = "{\"name\":\"unusual\",\"inputSchema\":{\"type\":\"object\",\"anyOf\":[{\"required\":[\"a\"]},{}],\
                   \"properties\":{\"a\":true,\"b\":false}}}";
    let tools = [
        tool("good"),
        "{\"description\":\"no name\",\"inputSchema\":{\"type\":\"object\"}}".to_owned(),
        "{\"name\":\"null\",\"inputSchema\":null}".to_owned(),
        "{\"name\":\"int\",\"inputSchema\":{\"type\":\"int\"}}".to_owned(),
        unusual.to_owned(),
        "{\"name\":7,\"inputSchema\":{\"type\":\"object\"}}".to_owned(),
        "{\"name\":\"\",\"inputSchema\":{\"type\":\"object\"}}".to_owned(),
        "17".to_owned(),
        tool("good too"),
    ];
    let (_alpha, weir, client) = pair.set_up(pair.fake().tools(tools));
    let client = client.unchecked();
    assert_eq!(client.names(), ["alpha__good", "alpha__unusual", "alpha__good_too"]);
    assert_eq!(client.tools()[1], published(unusual, "unusual"));
    for name in client.names() {
        assert!(!client.call(&name, "{}").is_failure());
    }
    for named in ["null", "int"] {
        eventually!(weir.log().lines().any(|line| line.contains(named)), "{named} is not in the log");
    }
}

fn schemas_under_other_names_are_taken(side: Side) {
    let tools = [
        "{\"name\":\"snake\",\"input_schema\":{\"type\":\"object\"}}",
        "{\"name\":\"parameters\",\"parameters\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}}}}",
        "{\"name\":\"bare\",\"parameters\":{\"city\":{\"type\":\"string\"}}}",
    ];
    let alpha = Fake::of(side).tools(tools).start();
    let weir = Proxy::before(&alpha).run();
    let listed = weir.client(side).tools();
    let schemas: Vec<Option<&str>> = listed.iter().map(|raw| json::raw(raw, &["inputSchema"])).collect();
    assert_eq!(schemas[0], Some("{\"type\":\"object\"}"));
    assert_eq!(schemas[1], Some("{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}}}"));
    assert_eq!(schemas[2], Some("{\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\"}}}"));
}

fn comes_back(client: &Client, data: &str) {
    let answer = client.call("alpha__echo", &format!("{{\"data\":\"{data}\"}}"));
    let back = answer.raw(&["result", "structuredContent", "data"]).unwrap_or_default();
    assert!(back.trim_matches('"') == data, "{} of {}", back.len(), data.len());
}

fn c054_large_payloads_are_intact(pair: Pair) {
    let fakes = [pair.fake(), pair.fake().in_streams()];
    for fake in fakes {
        let (_alpha, _weir, client) = pair.set_up(fake);
        std::thread::scope(|scope| {
            for number in 0..4 {
                let client = &client;
                scope.spawn(move || comes_back(client, &format!("{number}{}", pattern(1 << 20))));
            }
        });
    }
}

fn c055_instructions_are_attributed(side: Side) {
    let alpha = Fake::legacy().instructions("Ask alpha\u{7} first.").start();
    let beta = Fake::modern().instructions(&format!("Then beta. {}", "x".repeat(5000))).start();
    let route = "routes:\n  - { name: default, path: /mcp, upstreams: all, instructions: \"Read this.\" }\n";
    let weir = Proxy::before(&alpha).upstream("beta", &beta).section(route).run();
    let client = weir.client(side);
    let answer = match side {
        Side::Legacy => Client::new(weir.address, side).initialize(),
        Side::Modern => client.ask(Ask::new("server/discover")),
    };
    let text = json::text(answer.body(), &["result", "instructions"]).expect("instructions");
    assert!(text.starts_with("Read this."), "{text}");
    let (a, b) = (text.find("[alpha]"), text.find("[beta]"));
    assert!(a.is_some() && a < b, "{text}");
    assert!(
        text.contains("Ask alpha first.") && text.contains("Then beta."),
        "no control characters: {text}"
    );
    assert!(text.len() < 3000, "{} bytes", text.len());
}
