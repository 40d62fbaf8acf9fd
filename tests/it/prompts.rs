//! Prompts are merged and routed like tools, completion follows its reference, and what is announced works.

use serde_json::{Value, json};

use crate::support::client::Answer;
use crate::support::{
    Ask, Client, Fake, Pair, Proxy, Side, Weir, eras, json as text, pairs, prompt, resource, template,
};

pairs! {
    c082_prompts_are_merged_and_routed, c082_an_error_of_a_prompt_passes, c083_completion_follows_its_reference,
    c083_without_completion_nobody_is_asked, c084_what_is_announced_works, a_prompt_of_a_lost_upstream_says_so,
}

eras! { c082_an_unknown_prompt_is_named, c084_completion_of_the_oldest_revision_needs_no_announcement }

fn get(client: &Client, name: &str, arguments: &str) -> Answer {
    let name = text::quote(name);
    client.ask(Ask::new("prompts/get").params(&format!("{{\"name\":{name},\"arguments\":{arguments}}}")))
}

fn names(client: &Client) -> Vec<String> {
    let result = client.ask(Ask::new("prompts/list")).result();
    let all = result["prompts"].as_array().cloned().unwrap_or_default();
    all.iter().filter_map(|one| one["name"].as_str().map(str::to_owned)).collect()
}

fn complete(client: &Client, reference: &str, value: &str) -> Answer {
    let value = text::quote(value);
    client.ask(Ask::new("completion/complete").params(&format!(
        "{{\"ref\":{reference},\"argument\":{{\"name\":\"table\",\"value\":{value}}},\
         \"context\":{{\"arguments\":{{\"n\":\"1\"}}}}}}"
    )))
}

fn c082_prompts_are_merged_and_routed(pair: Pair) {
    let alpha = pair.fake().with("prompts", [prompt("review")]).start();
    let beta =
        pair.fake().label("beta").with("prompts", [prompt("review"), prompt("rewrite")]).page(1).start();
    let gamma = pair.fake().start();
    let weir = Proxy::before(&alpha).upstream("beta", &beta).upstream("gamma", &gamma).run();
    let client = pair.client(&weir);
    assert_eq!(names(&client), ["alpha__review", "beta__review", "beta__rewrite"]);
    let arguments = "{\"marker\" : \"é\", \"x\":\"1\"}";
    for (label, upstream) in [("alpha", &alpha), ("beta", &beta)] {
        let answer = get(&client, &format!("{label}__review"), arguments);
        let said = format!("review at {label} with {arguments}");
        let messages = format!(
            "[{{\"role\":\"user\",\"content\":{{\"type\":\"text\",\"text\":{}}}}}]",
            text::quote(&said)
        );
        assert_eq!(answer.raw(&["result", "messages"]), Some(messages.as_str()));
        let seen = upstream.seen("prompts/get");
        assert_eq!((seen.len(), seen[0].name().as_str()), (1, "review"));
        assert_eq!(seen[0].arguments(), Some(arguments), "byte for byte");
        assert_eq!(upstream.violations(), Vec::<String>::new());
    }
    assert_eq!(gamma.seen("prompts/list").len(), 0, "it did not say that it has prompts");
}

fn c082_an_error_of_a_prompt_passes(pair: Pair) {
    let raw = "{\"code\":-31999,\"message\":\"no\",\"data\":{\"n\":1.50}}";
    let fake = pair.fake().with("prompts", [prompt("review")]);
    let (_alpha, _weir, client) = pair.set_up(fake.script("prompts/get", move |_, wire| wire.error(raw)));
    assert_eq!(get(&client, "alpha__review", "{}").raw(&["error"]), Some(raw));
}

fn c082_an_unknown_prompt_is_named(side: Side) {
    let alpha = Fake::of(side).with("prompts", [prompt("review")]).start();
    let weir = Proxy::before(&alpha).run();
    let client = weir.client(side);
    for name in ["review", "alpha__reviewer", "alpha__echo", "beta__review", ""] {
        let answer = get(&client, name, "{}");
        assert_eq!((answer.code(), answer.error()), (-32602, format!("Unknown prompt: {name}")));
    }
    let no_name = client.ask(Ask::new("prompts/get").params("{\"name\":7}").without("Mcp-Name"));
    assert!(matches!(no_name.code(), -32602 | -32020), "{no_name:?}");
    assert_eq!(alpha.seen("prompts/get").len(), 0);
}

const TEMPLATE: &str = "{\"type\":\"ref/resource\",\"uri\":\"db://{table}/{id}\"}";
const PROMPT: &str = "{\"type\":\"ref/prompt\",\"name\":\"alpha__review\"}";

fn c083_completion_follows_its_reference(pair: Pair) {
    let fake =
        pair.fake().with("prompts", [prompt("review")]).with("templates", [template("db://{table}/{id}")]);
    let (alpha, _weir, client) = pair.set_up(fake.completing());
    let local = "{\"type\":\"ref/prompt\",\"name\":\"review\"}";
    for (published, own) in [(PROMPT, local), (TEMPLATE, TEMPLATE)] {
        let answer = complete(&client, published, "é");
        let name = text::value(own);
        let named = name["name"].as_str().or_else(|| name["uri"].as_str()).unwrap_or_default();
        let wanted = format!("{{\"values\":[\"{named}\",\"é\"],\"total\":2,\"hasMore\":false}}");
        assert_eq!(answer.raw(&["result", "completion"]), Some(wanted.as_str()));
        let seen = alpha.seen("completion/complete").pop().expect("a request");
        assert_eq!(seen.raw(&["params", "ref"]).map(text::value), Some(text::value(own)));
        assert_eq!(seen.raw(&["params", "argument"]), Some("{\"name\":\"table\",\"value\":\"é\"}"));
        assert_eq!(seen.raw(&["params", "context"]), Some("{\"arguments\":{\"n\":\"1\"}}"));
    }
    let error = "{\"code\":-31999,\"message\":\"no completion today\",\"data\":[1]}";
    assert_eq!(complete(&client, PROMPT, "fail").raw(&["error"]), Some(error));
    let before = alpha.asked();
    for wrong in [
        "{\"type\":\"ref/prompt\",\"name\":\"review\"}",
        "{\"type\":\"ref/resource\",\"uri\":\"db://none\"}",
        "{\"type\":\"ref/tool\",\"name\":\"alpha__echo\"}",
        "{\"type\":\"ref/prompt\"}",
        "7",
    ] {
        let code = complete(&client, wrong, "").code();
        assert!(matches!(code, -32602 | -32002), "{wrong}: {code}");
    }
    assert_eq!((alpha.asked(), alpha.violations()), (before, Vec::new()));
}

fn c083_without_completion_nobody_is_asked(pair: Pair) {
    let alpha = pair.fake().with("prompts", [prompt("review")]).start();
    let beta = pair.fake().with("prompts", [prompt("review")]).completing().start();
    let weir = Proxy::before(&alpha).upstream("beta", &beta).run();
    let client = pair.client(&weir);
    let answer = complete(&client, PROMPT, "x");
    let empty = answer.raw(&["result", "completion", "values"]) == Some("[]");
    assert!(answer.code() == -32601 || empty, "{answer:?}");
    assert_eq!(alpha.seen("completion/complete").len(), 0);
    let reference = "{\"type\":\"ref/prompt\",\"name\":\"beta__review\"}";
    assert_eq!(complete(&client, reference, "x").result()["completion"]["total"], 2);
}

fn announced(weir: &Weir, side: Side) -> Value {
    let client = Client::new(weir.address, side);
    match side {
        Side::Legacy => client.initialize().result()["capabilities"].clone(),
        Side::Modern => client.ask(Ask::new("server/discover")).result()["capabilities"].clone(),
    }
}

fn c084_what_is_announced_works(pair: Pair) {
    let alpha = pair.fake().without_logging().with("prompts", [prompt("review")]).start();
    let beta = pair.fake().without_logging().with("resources", [resource("x:1")]).start();
    let weir = Proxy::before(&alpha).upstream("beta", &beta).run();
    let changes = json!({ "listChanged": true });
    let wanted = json!({ "tools": changes, "prompts": changes, "resources": changes });
    assert_eq!(announced(&weir, pair.client), wanted);
    let client = pair.client(&weir);
    assert_eq!(names(&client), ["alpha__review"]);
    client.ask(Ask::new("resources/read").params("{\"uri\":\"x:1\"}")).result();
    let answer = complete(&client, PROMPT, "x");
    assert!(answer.code() == -32601 || answer.raw(&["result"]).is_some(), "{answer:?}");
    let weir = Proxy::new().upstream("beta", &beta).run();
    assert_eq!(announced(&weir, pair.client), json!({ "tools": changes, "resources": changes }));
    let client = pair.client(&weir);
    assert_eq!(names(&client), Vec::<String>::new(), "a list that nobody serves is empty");
    let rich = pair.fake().completing().with("prompts", [prompt("review")]).start();
    let weir = Proxy::before(&rich).upstream("beta", &beta).run();
    let all = announced(&weir, pair.client);
    assert_eq!((&all["logging"], &all["completions"]), (&json!({}), &json!({})));
    assert!(all["experimental"].is_null(), "{all}");
}

/// The capability came with 2025-03-26; a server of 2024-11-05 completes without saying so.
fn c084_completion_of_the_oldest_revision_needs_no_announcement(side: Side) {
    let alpha = Fake::legacy()
        .revisions(&["2024-11-05"])
        .label("alpha")
        .with("prompts", [prompt("review")])
        .completing()
        .start();
    let weir = Proxy::before(&alpha).run();
    let answer = complete(&weir.client(side), PROMPT, "x");
    assert_eq!(answer.raw(&["result", "completion", "values"]), Some("[\"review\",\"x\"]"), "{answer:?}");
}

fn a_prompt_of_a_lost_upstream_says_so(pair: Pair) {
    let (alpha, _weir, client) = pair.set_up(pair.fake().with("prompts", [prompt("review")]));
    alpha.stop();
    let answer = get(&client, "alpha__review", "{}");
    assert_eq!(answer.code(), -32603, "{answer:?}");
    let data = answer.raw(&["error", "data"]).map(text::value).unwrap_or_default();
    assert_eq!(data["upstream"], "alpha");
    assert!(data["reason"].is_string() && data["retryable"].is_boolean(), "{data}");
}
