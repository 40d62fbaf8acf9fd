//! Resources keep their URIs, templates find their owner, and reads carry legal cache hints.

use serde_json::{Value, json};

use crate::support::client::Answer;
use crate::support::{Ask, Client, Fake, Pair, Proxy, Side, eras, json as text, pairs, resource, template};

pairs! {
    c081_uris_survive_the_round_trip, c081_equal_uris_are_told_apart, c081_links_in_results_can_be_read,
    c081_user_interfaces_of_two_tools_are_told_apart,
    an_unlisted_uri_is_asked_for_in_file_order, contents_pass_byte_for_byte,
    a_template_leads_to_its_owner, what_an_upstream_does_not_find_is_unknown, c134_reads_carry_legal_cache_hints,
    a_read_of_a_lost_upstream_says_so,
}

eras! { an_unknown_uri_is_not_found, c134_every_list_carries_legal_cache_hints }

fn read(client: &Client, uri: &str) -> Answer {
    client.ask(Ask::new("resources/read").params(&format!("{{\"uri\":{}}}", text::quote(uri))))
}

fn listed(client: &Client, method: &str, member: &str, key: &str) -> Vec<String> {
    let result = client.ask(Ask::new(method)).result();
    let all = result[member].as_array().cloned().unwrap_or_default();
    all.iter().filter_map(|one| one[key].as_str().map(str::to_owned)).collect()
}

fn uris(client: &Client) -> Vec<String> {
    listed(client, "resources/list", "resources", "uri")
}

/// Label of the upstream that served a read, and the URI of the contents.
fn served(answer: &Answer) -> (String, String) {
    let contents = answer.result()["contents"][0].clone();
    let label = contents["text"].as_str().and_then(|text| text.rsplit(' ').next()).unwrap_or_default();
    (label.to_owned(), contents["uri"].as_str().unwrap_or_default().to_owned())
}

const ODD: [&str; 5] =
    ["file:///a.txt", "ui://panel/main", "custom:opaque?x=1#f", "file:///日本.txt", "file:///a%20b?q=%2F"];

fn c081_uris_survive_the_round_trip(pair: Pair) {
    let alpha = pair.fake().with("resources", ODD.map(resource)).page(2).start();
    let beta = pair.fake().label("beta").with("resources", [resource("ui://panel/beta")]).start();
    let weir = Proxy::before(&alpha).upstream("beta", &beta).run();
    let client = pair.client(&weir);
    let all = [&ODD[..], &["ui://panel/beta"]].concat();
    assert_eq!(uris(&client), all);
    for uri in all {
        let owner = if uri.ends_with("beta") { ("beta", &beta) } else { ("alpha", &alpha) };
        assert_eq!(served(&read(&client, uri)), (owner.0.to_owned(), uri.to_owned()));
        let seen = owner.1.seen("resources/read").pop().expect("a request");
        assert_eq!(seen.name(), uri);
    }
    assert_eq!((alpha.violations(), beta.violations()), (Vec::new(), Vec::new()));
}

/// The upstream that stands first in the file has them; those of the other carry its name.
fn c081_equal_uris_are_told_apart(pair: Pair) {
    let alpha = pair.fake().with("resources", ODD.map(resource)).start();
    let beta = pair.fake().label("beta").with("resources", ODD.map(resource)).start();
    let weir = Proxy::before(&alpha).upstream("beta", &beta).run();
    let client = pair.client(&weir);
    let labelled = [
        "file://beta+/a.txt",
        "ui://beta+panel/main",
        "custom:beta+opaque?x=1#f",
        "file://beta+/日本.txt",
        "file://beta+/a%20b?q=%2F",
    ];
    assert_eq!(uris(&client), [&ODD[..], &labelled].concat());
    for (own, published) in ODD.iter().zip(labelled) {
        assert_eq!(served(&read(&client, own)), ("alpha".to_owned(), (*own).to_owned()));
        assert_eq!(served(&read(&client, published)), ("beta".to_owned(), published.to_owned()));
        assert_eq!(beta.seen("resources/read").pop().map(|request| request.name()).as_deref(), Some(*own));
    }
    assert_eq!((alpha.violations(), beta.violations()), (Vec::new(), Vec::new()));
}

/// A tool that gives a link and an embedded resource, both with this URI.
fn linking(fake: Fake, uri: &'static str) -> Fake {
    fake.script("tools/call echo", move |_, wire| {
        let link = format!("{{\"type\":\"resource_link\",\"name\":\"l\",\"uri\":\"{uri}\"}}");
        let inner = format!("{{\"text\":\"t\",\"uri\":\"{uri}\"}}");
        wire.result(&format!("{{\"content\":[{link},{{\"type\":\"resource\",\"resource\":{inner}}}]}}"));
    })
}

fn c081_links_in_results_can_be_read(pair: Pair) {
    let alpha = pair.fake().with("resources", [resource("x:1")]).start();
    let beta = linking(pair.fake().label("beta").with("resources", [resource("x:1")]), "x:1").start();
    let gamma = linking(pair.fake().label("gamma").with("resources", [resource("x:2")]), "x:unlisted");
    let gamma = gamma
        .script("resources/read", |request, wire| {
            let (uri, hints) = (text::quote(&request.name()), ",\"ttlMs\":0,\"cacheScope\":\"private\"");
            wire.result(&format!("{{\"contents\":[{{\"uri\":{uri},\"text\":\"at gamma\"}}]{hints}}}"));
        })
        .start();
    let quiet = "resources: { probe: false }";
    let weir = Proxy::new()
        .upstream_with("alpha", &alpha, quiet)
        .upstream_with("beta", &beta, quiet)
        .upstream_with("gamma", &gamma, quiet)
        .run();
    let client = pair.client(&weir);
    assert_not_found(&read(&client, "x:unlisted"), pair.client, "x:unlisted");
    for (label, uri) in [("beta", "x:beta+1"), ("gamma", "x:unlisted")] {
        let result = client.call(&format!("{label}__echo"), "{}").result();
        assert_eq!(result["content"][0]["uri"], uri);
        assert_eq!(result["content"][1]["resource"]["uri"], uri);
        assert_eq!(served(&read(&client, uri)), (label.to_owned(), uri.to_owned()));
    }
}

/// A tool with a user interface that no list has, and that it gives when asked.
fn with_interface(fake: Fake, label: &str) -> Fake {
    let tool = "{\"name\":\"show\",\"inputSchema\":{\"type\":\"object\"},\
        \"_meta\":{\"ui\":{\"resourceUri\":\"ui://panel/main\"}}}";
    let only = resource(&format!("x:{label}"));
    fake.label(label).with("tools", [tool]).with("resources", [only]).script("resources/read", |request, wire| {
        if request.name() != "ui://panel/main" {
            return wire.error("{\"code\":-32602,\"message\":\"Resource not found\"}");
        }
        let label = text::quote(&format!("at {}", wire.label()));
        wire.result(&format!(
            "{{\"contents\":[{{\"uri\":\"ui://panel/main\",\"text\":{label}}}],\"ttlMs\":0,\"cacheScope\":\"private\"}}"
        ));
    })
}

fn c081_user_interfaces_of_two_tools_are_told_apart(pair: Pair) {
    let alpha = with_interface(pair.fake(), "alpha").start();
    let beta = with_interface(pair.fake(), "beta").start();
    let weir = Proxy::before(&alpha).upstream("beta", &beta).run();
    let client = pair.client(&weir);
    let tools = client.tools();
    for (label, uri) in [("alpha", "ui://panel/main"), ("beta", "ui://beta+panel/main")] {
        let name = format!("{label}__show");
        let tool =
            tools.iter().find(|raw| text::text(raw, &["name"]).as_deref() == Some(&name)).expect("a tool");
        assert_eq!(text::text(tool, &["_meta", "ui", "resourceUri"]).as_deref(), Some(uri));
        assert_eq!(served(&read(&client, uri)), (label.to_owned(), uri.to_owned()));
    }
}

fn an_unlisted_uri_is_asked_for_in_file_order(pair: Pair) {
    let alpha = pair.fake().with("resources", [resource("x:1")]).start();
    let silent = pair.fake().start();
    let vague = pair.fake().label("vague").with("resources", [resource("v:1")]).script(
        "resources/read",
        |_, wire| {
            wire.error("{\"code\":0,\"message\":\"Unknown resource: x:unlisted\"}");
        },
    );
    let vague = vague.start();
    let quiet = pair.fake().label("quiet").with("templates", [template("q:{id}")]).start();
    let beta = pair.fake().label("beta").with("templates", [template("y:{id}")]);
    let beta = beta
        .script("resources/read", |request, wire| {
            let (uri, hints) = (text::quote(&request.name()), ",\"ttlMs\":0,\"cacheScope\":\"private\"");
            wire.result(&format!("{{\"contents\":[{{\"uri\":{uri},\"text\":\"at beta\"}}]{hints}}}"));
        })
        .start();
    let weir = Proxy::before(&alpha)
        .upstream("silent", &silent)
        .upstream("vague", &vague)
        .upstream_with("quiet", &quiet, "resources: { probe: false }")
        .upstream("beta", &beta)
        .run();
    let client = pair.client(&weir);
    assert_eq!(served(&read(&client, "x:unlisted")), ("beta".to_owned(), "x:unlisted".to_owned()));
    let asked =
        [&alpha, &silent, &vague, &quiet, &beta].map(|upstream| upstream.seen("resources/read").len());
    assert_eq!(asked, [1, 0, 1, 0, 1]);
}

fn contents_pass_byte_for_byte(pair: Pair) {
    let contents = "[{\"uri\":\"file:///a.txt\",\"mimeType\":\"image/png\",\"blob\":\"AAEC/w==\",\"_meta\":{\"n\":1.50}},\
        {\"text\":\"\\u00e9\",\"uri\":\"file:///a.txt#2\"}]";
    let fake = pair.fake().with("resources", [resource("file:///a.txt")]);
    let (_alpha, _weir, client) = pair.set_up(fake.script("resources/read", move |request, wire| {
        let hints = if request.meta("io.modelcontextprotocol/protocolVersion").is_some() {
            ",\"ttlMs\":5,\"cacheScope\":\"public\""
        } else {
            ""
        };
        wire.result(&format!("{{\"contents\":{contents}{hints},\"_meta\":{{\"own\":[1,2]}}}}"));
    }));
    let answer = read(&client, "file:///a.txt");
    assert_eq!(answer.raw(&["result", "contents"]), Some(contents));
    assert_eq!(answer.raw(&["result", "_meta", "own"]), Some("[1,2]"));
}

fn a_template_leads_to_its_owner(pair: Pair) {
    let alpha = pair.fake().with("templates", ["db://{table}/{id}", "note://{id}"].map(template)).start();
    let second = ["db://special/{id}", "note://{name}", "file:///{+path}"].map(template);
    let beta = pair
        .fake()
        .label("beta")
        .with("templates", second)
        .with("resources", [resource("db://one/1")])
        .start();
    let weir = Proxy::before(&alpha).upstream("beta", &beta).run();
    let client = pair.client(&weir);
    let all = listed(&client, "resources/templates/list", "resourceTemplates", "uriTemplate");
    let wanted =
        ["db://{table}/{id}", "note://{id}", "db://special/{id}", "note://{name}", "file:///{+path}"];
    assert_eq!(all, wanted);
    let cases = [
        ("db://users/7", "alpha"),
        ("db://special/7", "beta"),
        ("db://one/1", "beta"),
        ("note://x", "alpha"),
        ("file:///deep/down/é", "beta"),
    ];
    for (uri, owner) in cases {
        assert_eq!(served(&read(&client, uri)), (owner.to_owned(), uri.to_owned()), "{uri}");
    }
    assert_eq!((alpha.violations(), beta.violations()), (Vec::new(), Vec::new()));
}

/// The code for a resource that is not there, as the client's revision has it.
fn not_found(side: Side) -> i64 {
    match side {
        Side::Legacy => -32002,
        Side::Modern => -32602,
    }
}

fn assert_not_found(answer: &Answer, side: Side, uri: &str) {
    assert_eq!((answer.code(), answer.error().as_str()), (not_found(side), "Resource not found"));
    assert_eq!(answer.raw(&["error", "data"]).map(text::value), Some(json!({ "uri": uri })));
}

fn an_unknown_uri_is_not_found(side: Side) {
    let alpha = Fake::of(side).with("templates", [template("db://{table}/{id}")]).start();
    let weir = Proxy::new().upstream_with("alpha", &alpha, "resources: { probe: false }").run();
    let client = weir.client(side);
    for uri in ["file:///none", "db://a/b/c", "db://a", "alpha__echo", "é", ""] {
        assert_not_found(&read(&client, uri), side, uri);
    }
    assert_eq!(alpha.seen("resources/read").len(), 0);
}

fn what_an_upstream_does_not_find_is_unknown(pair: Pair) {
    let own = if pair.upstream == Side::Legacy { -32002 } else { -32602 };
    let fake = pair.fake().with("templates", [template("db://{table}/{id}")]);
    let (alpha, _weir, client) = pair.set_up(fake.script("resources/read", move |_, wire| {
        wire.error(&format!(
            "{{\"code\":{own},\"message\":\"no row in db-7.internal\",\"data\":{{\"at\":\"db-7\"}}}}"
        ));
    }));
    let answer = read(&client, "db://users/7");
    assert_eq!(alpha.seen("resources/read").len(), 1);
    assert_not_found(&answer, pair.client, "db://users/7");
}

fn c134_every_list_carries_legal_cache_hints(side: Side) {
    let goods = |fake: Fake| {
        let fake = fake.with("resources", [resource("x:1")]).with("templates", [template("db://{id}")]);
        fake.with("prompts", [crate::support::prompt("review")])
    };
    let (alpha, beta) = (goods(Fake::modern().hints(7000, "public")).start(), Fake::legacy().start());
    let weir = Proxy::before(&alpha).upstream_with("beta", &beta, "refresh: 30s").run();
    let client = weir.client(side);
    for method in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
        let result = client.ask(Ask::new(method)).result();
        let hints = (&result["ttlMs"], &result["cacheScope"]);
        match side {
            Side::Modern => assert_eq!(hints, (&json!(7000), &json!("public")), "{method}"),
            Side::Legacy => assert_eq!(hints, (&Value::Null, &Value::Null), "{method}"),
        }
        assert_eq!(client.ask(Ask::new(method)).result(), result, "the same on every call");
    }
}

fn c134_reads_carry_legal_cache_hints(pair: Pair) {
    let fake = || pair.fake().hints(7000, "public").with("resources", [resource("x:1")]);
    let (_alpha, _weir, client) = pair.set_up(fake());
    let hints = |client: &Client| {
        let result = read(client, "x:1").result();
        (result["ttlMs"].clone(), result["cacheScope"].clone())
    };
    match (pair.client, pair.upstream) {
        (Side::Modern, Side::Modern) => assert_eq!(hints(&client), (json!(7000), json!("public"))),
        (Side::Modern, Side::Legacy) => assert_eq!(hints(&client), (json!(0), json!("private"))),
        (Side::Legacy, Side::Legacy) => assert_eq!(hints(&client), (Value::Null, Value::Null)),
        (Side::Legacy, Side::Modern) => assert!(matches!(hints(&client).1.as_str(), None | Some("public"))),
    }
    if pair.client == Side::Modern {
        let alpha = fake().start();
        let weir = Proxy::before(&alpha).token("x", "token-x", "\"mcp:read\"").run();
        let client = Client::new(weir.address, Side::Modern).token("token-x");
        assert_eq!(hints(&client).1, "private", "what needs a token is nobody else's");
    }
}

fn a_read_of_a_lost_upstream_says_so(pair: Pair) {
    let (alpha, _weir, client) = pair.set_up(pair.fake().with("resources", [resource("x:1")]));
    alpha.stop();
    let answer = read(&client, "x:1");
    assert_eq!(answer.code(), -32603, "{answer:?}");
    let data = answer.raw(&["error", "data"]).map(text::value).unwrap_or_default();
    assert_eq!(data["upstream"], "alpha");
    assert!(data["reason"].is_string() && data["retryable"].is_boolean(), "{data}");
}
