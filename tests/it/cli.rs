//! The commands beside `serve`: what they print, where, and how they exit.

use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::proxy::{token_hash, weir};
use crate::support::{Fake, Proxy, Upstream, Weir, eras, json, tool};

/// What a command printed, and how it ended.
#[derive(Debug)]
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Ran {
    fn value(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }
}

fn ran(output: &Output) -> Ran {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ran { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
}

/// Runs a command in an empty folder.
fn run(arguments: &[&str]) -> Ran {
    let folder = TempDir::new().unwrap();
    ran(&weir().args(arguments).current_dir(folder.path()).output().unwrap())
}

/// Runs a command in a folder that holds this `routes.yaml`.
fn run_with(text: &str, arguments: &[&str]) -> Ran {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("routes.yaml"), text).unwrap();
    ran(&weir().args(arguments).current_dir(folder.path()).output().unwrap())
}

const BAD: &str = "listen: { address: nowhere }
names: { separator: \"/\" }
upstreams:
  alpha:
    url: http://127.0.0.1:1/mcp
    timout: 5s
  beta:
    url: http://127.0.0.1:2/mcp
    command: [x]
  gamma:
    mode: sideways
    builtin: clock
";

#[test]
fn check_prints_every_problem_with_its_place() {
    let bad = run_with(BAD, &["check"]);
    assert_eq!(bad.code, Some(2), "{bad:?}");
    for (key, line) in [("address", 1), ("separator", 2), ("timout", 6), ("beta", 0), ("mode", 11)] {
        let found = bad.out.lines().find(|text| text.contains(key));
        let found = found.unwrap_or_else(|| panic!("nothing about {key}: {bad:?}"));
        let (place, rest) = found.split_once(": ").unwrap();
        let numbers: Vec<&str> = place.split(':').collect();
        assert!(numbers[0].ends_with("routes.yaml") && numbers.len() == 3, "{found}");
        assert!(rest.starts_with("error: "), "{found}");
        assert!(line == 0 || numbers[1] == line.to_string(), "{found}, wanted line {line}");
        assert!(numbers[2].parse::<u32>().is_ok(), "{found}");
    }
    assert!(bad.out.contains("read-only"), "the accepted values are named: {}", bad.out);
}

#[test]
fn check_has_a_json_form() {
    let bad = run_with(BAD, &["check", "--json"]);
    assert_eq!(bad.code, Some(2));
    let problems = bad.value()["problems"].as_array().cloned().unwrap_or_default();
    assert!(problems.len() >= 5, "{problems:?}");
    for problem in problems {
        assert!(problem["line"].is_u64() && problem["column"].is_u64(), "{problem}");
        assert_eq!(problem["severity"], "error", "{problem}");
        assert!(["path", "key", "message"].iter().all(|member| problem[*member].is_string()), "{problem}");
    }
    let good = run_with("upstreams: { clock: { builtin: clock } }", &["check", "--json"]);
    assert_eq!((good.code, good.value()), (Some(0), serde_json::json!({ "problems": [] })));
}

#[test]
fn check_does_not_touch_the_network() {
    let alpha = Fake::modern().start();
    let text = Proxy::before(&alpha).text();
    let good = run_with(&text, &["check"]);
    assert_eq!(good.code, Some(0), "{good:?}");
    assert_eq!(alpha.requests().len(), 0);
    assert_eq!(run(&["check", "missing.yaml"]).code, Some(2));
}

#[test]
fn check_connects_where_it_is_asked_to() {
    let (alpha, gone) = (Fake::legacy().start(), Fake::legacy().stopped());
    let good = run_with(&Proxy::before(&alpha).text(), &["check", "--connect"]);
    assert_eq!(good.code, Some(0), "{good:?}");
    assert!(good.out.contains("alpha") || good.err.contains("alpha"), "{good:?}");
    let bad = run_with(&Proxy::before(&alpha).upstream("gone", &gone).text(), &["check", "--connect"]);
    assert_eq!(bad.code, Some(1), "{bad:?}");
}

#[test]
fn check_names_entries_that_fit_nothing() {
    let alpha = Fake::legacy().tools(["seen"].map(tool)).start();
    let keys = "tools: { deny: [\"x_*\"], rename: { gone: other } }\nclasses: { read: [seen, sen] }";
    let rules = "access:\n  anonymous: { scopes: [] }\n  rules: [ { name: idle, match: { tool: nope }, deny: true } ]\n";
    let proxy = Proxy::new().upstream_with("alpha", &alpha, keys).section(rules);
    let checked = run_with(&proxy.text(), &["check", "--connect"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    for wanted in
        ["alpha.tools.deny[0]", "alpha.tools.rename", "alpha.classes.read[1]", "access.rules (idle)"]
    {
        assert!(checked.out.contains(wanted), "{wanted}: {checked:?}");
    }
    assert!(!checked.out.contains("classes.read[0]") && !checked.out.contains("allow"), "{checked:?}");
}

/// Two tokens, a rule and a class decide about three tools.
fn explained(arguments: &[&str]) -> Ran {
    let alpha = Fake::legacy().tools(["seen", "secret", "other"].map(tool)).start();
    let access = format!(
        "access:\n  tokens:\n    - {{ name: kim, hash: \"{}\", scopes: [\"mcp:read\"], groups: [g] }}\n    \
         - {{ name: lee, hash: \"{}\", scopes: [\"mcp:admin\"] }}\n  \
         rules: [ {{ name: no, match: {{ tool: secret }}, deny: true }} ]\n",
        token_hash("kim"),
        token_hash("lee")
    );
    let proxy = Proxy::new().upstream_with("alpha", &alpha, "classes: { read: [seen] }").section(&access);
    run_with(&proxy.text(), &[&["explain", "--config", "routes.yaml"], arguments].concat())
}

#[test]
fn explain_says_who_a_token_is_and_what_decides() {
    let told = explained(&["--token", "kim", "--json"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    let value = told.value();
    let principal =
        serde_json::json!({ "issuer": "static", "subject": "kim", "scopes": ["mcp:read"], "groups": ["g"] });
    assert_eq!(value["principal"], principal);
    let rows: Vec<String> = value["items"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|row| {
            format!(
                "{} {} {} {} {}",
                row["name"], row["kind"], row["decision"], row["rule"], row["missing_scopes"]
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            "\"alpha__seen\" \"tool\" \"allow\" \"class\" []",
            "\"alpha__secret\" \"tool\" \"hide\" \"rule no\" []",
            "\"alpha__other\" \"tool\" \"step_up\" \"class\" [\"mcp:destructive\"]",
        ]
    );
    let one = explained(&["--token", "lee", "alpha__secret"]);
    assert!(one.code == Some(0) && one.out.contains("hide") && one.out.contains("rule no"), "{one:?}");
    for refused in [&["--token", "wrong", "--json"][..], &["--json"]] {
        let told = explained(refused);
        assert_eq!((told.code, &told.value()["principal"]), (Some(1), &Value::Null), "{told:?}");
    }
    let matrix = explained(&["--matrix"]);
    let row = matrix.out.lines().find(|line| line.starts_with("alpha__other")).unwrap_or_default().to_owned();
    assert_eq!(
        row.split_whitespace().collect::<Vec<_>>(),
        ["alpha__other", "step_up", "allow"],
        "{matrix:?}"
    );
}

eras! { list_shows_what_clients_will_see, list_of_a_url_is_a_clients_view }

fn list_shows_what_clients_will_see(side: crate::support::Side) {
    let alpha =
        Fake::of(side).tools([tool("echo"), tool("a.b"), "{\"name\":\"bad\",\"inputSchema\":7}".to_owned()]);
    let (alpha, gone) = (alpha.start(), Fake::of(side).stopped());
    let proxy =
        Proxy::new().upstream_with("alpha", &alpha, "classes: { read: [echo] }").upstream("gone", &gone);
    let listed = run_with(&proxy.text(), &["list", "--json"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    let value = listed.value();
    let tool = &value["tools"][0];
    assert_eq!((&tool["name"], &tool["upstream"]), (&"alpha__echo".into(), &"alpha".into()));
    assert_eq!((&tool["local_name"], &tool["class"]), (&"echo".into(), &"read".into()));
    assert_eq!(tool["description"], "The tool echo");
    assert_eq!(
        (&value["tools"][1]["name"], &value["tools"][1]["class"]),
        (&"alpha__a_b".into(), &"destructive".into())
    );
    assert_eq!((&value["route"], value["tools"].as_array().map(Vec::len)), (&"default".into(), Some(2)));
    let upstreams = value["upstreams"].as_array().cloned().unwrap_or_default();
    let states: Vec<&Value> = upstreams.iter().map(|upstream| &upstream["state"]).collect();
    assert_eq!(states[0], "up", "{upstreams:?}");
    assert_ne!(states[1], "up");
    assert_eq!(upstreams[0]["left_out"][0]["name"], "bad");
    assert_eq!(upstreams[0]["tools"], 2);
    assert!(upstreams[1]["error"].is_string());
    assert!(listed.err.contains("gone"), "what is missing is said on standard error: {}", listed.err);
    let text = run_with(&proxy.text(), &["list"]);
    assert!(text.out.contains("alpha__echo") && text.out.contains("The tool echo"), "{text:?}");
}

fn list_of_a_url_is_a_clients_view(side: crate::support::Side) {
    let alpha = Fake::of(side).start();
    let weir = Proxy::before(&alpha).run();
    for url in [format!("http://{}/mcp", weir.address), alpha.url()] {
        let listed = run(&["list", "--url", &url, "--json"]);
        assert_eq!(listed.code, Some(0), "{listed:?}");
        let value = listed.value();
        assert_eq!(value["tools"].as_array().map(Vec::len), Some(7));
        assert!(value["tools"][0]["upstream"].is_null() && value.get("upstreams").is_none(), "{value}");
    }
}

#[test]
fn list_without_anything_to_show_is_exit_1() {
    let gone = Fake::modern().stopped();
    assert_eq!(run(&["list", "--url", &gone.url()]).code, Some(1));
    assert_eq!(run_with("upstreams: { a: 7 }", &["list"]).code, Some(2));
}

fn serving(fake: Fake) -> (Upstream, Weir, String) {
    let alpha = fake.start();
    let weir = Proxy::before(&alpha).run();
    let url = format!("http://{}/mcp", weir.address);
    (alpha, weir, url)
}

#[test]
fn call_prints_the_result_and_nothing_else() {
    let blocks = "{\"content\":[{\"type\":\"text\",\"text\":\"one\"},{\"type\":\"image\",\"data\":\"AAAA\",\"mimeType\":\
                  \"image/png\"},{\"type\":\"text\",\"text\":\"two\"}]}";
    let fake = Fake::modern()
        .script("tools/call big", move |_, wire| wire.result(blocks))
        .script("tools/call incr", |_, wire| {
            wire.result("{\"content\":[],\"structuredContent\":{\"n\": 1.0}}")
        });
    let (_alpha, _weir, url) = serving(fake);
    let call = |name: &str, arguments: &str| run(&["call", name, arguments, "--url", &url]);
    let echo = call("alpha__echo", "{\"n\":9007199254740993}");
    assert_eq!((echo.code, echo.out.trim_end()), (Some(0), "{\"n\":9007199254740993}"), "{echo:?}");
    let big = call("alpha__big", "{}");
    let lines: Vec<&str> = big.out.lines().collect();
    assert_eq!((lines[0], lines[2], lines.len()), ("one", "two", 3), "{big:?}");
    assert_eq!(json::value(lines[1])["type"], "image");
    assert_eq!(json::value(&call("alpha__incr", "{}").out)["n"], 1.0, "without text, the structured content");
    let steps = call("alpha__steps", "{}");
    assert_eq!((steps.code, steps.out.trim_end()), (Some(0), "done"), "progress is no result: {steps:?}");
    let whole = run(&["call", "alpha__echo", "{}", "--url", &url, "--json"]);
    assert_eq!(whole.value()["result"]["content"][0]["text"], "{}");
}

#[test]
fn call_says_how_it_failed() {
    let fake =
        Fake::legacy().script("tools/call incr", |_, wire| wire.error("{\"code\":42,\"message\":\"own\"}"));
    let (_alpha, _weir, url) = serving(fake);
    let call = |name: &str, arguments: &str| run(&["call", name, arguments, "--url", &url]);
    let failed = call("alpha__fail", "{}");
    assert_eq!((failed.code, failed.out.trim_end()), (Some(1), "it failed"), "{failed:?}");
    assert!(failed.err.lines().next().is_some_and(|line| line.contains("isError")), "{failed:?}");
    let error = call("alpha__incr", "{}");
    assert_eq!((error.code, error.out.as_str()), (Some(1), ""), "{error:?}");
    assert!(error.err.contains("42") && error.err.contains("own"), "{error:?}");
    assert_eq!(call("nope", "{}").code, Some(1));
    for arguments in ["[]", "7", "{", "text"] {
        assert_eq!(call("alpha__echo", arguments).code, Some(2), "{arguments}");
    }
    assert_eq!(run(&["call", "x", "--url", "http://127.0.0.1:1/mcp"]).code, Some(1), "no connection");
    assert_eq!(run(&["call"]).code, Some(2));
}

#[test]
fn call_takes_a_token() {
    let alpha = Fake::modern().start();
    let weir_ = Proxy::before(&alpha).token("ci", "secret-token", "\"mcp:admin\"").run();
    let url = format!("http://{}/mcp", weir_.address);
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "secret-token\n").unwrap();
    let base = ["call", "alpha__echo", "--url", &url];
    let refused = run(&base);
    assert_eq!(refused.code, Some(1));
    assert!(refused.err.contains("401"), "{refused:?}");
    assert_eq!(run(&[&base[..], &["--token", "secret-token"]].concat()).code, Some(0));
    assert_eq!(run(&[&base[..], &["--token-file", file.to_str().unwrap()]].concat()).code, Some(0));
    let by_environment = weir().args(base).env("WEIR_TOKEN", "secret-token").output().unwrap();
    assert_eq!(by_environment.status.code(), Some(0));
}

#[test]
fn call_finds_the_route_of_the_file() {
    let (_alpha, weir_, _) = serving(Fake::modern());
    let text =
        format!("listen: {{ address: \"{}\" }}\nupstreams: {{ c: {{ builtin: clock }} }}\n", weir_.address);
    assert_eq!(run_with(&text, &["call", "alpha__echo"]).code, Some(0));
}

#[test]
fn token_makes_a_token_and_its_hash() {
    let (one, other) = (run(&["token"]), run(&["token"]));
    assert_eq!(one.code, Some(0));
    let member = |ran: &Ran, key: &str| {
        let line =
            ran.out.lines().find_map(|line| line.trim().strip_prefix(key).map(str::trim).map(str::to_owned));
        line.unwrap_or_else(|| panic!("no {key} in {ran:?}")).trim_matches('"').to_owned()
    };
    let token = member(&one, "token:");
    let rest = token.strip_prefix("weir_").expect("its beginning");
    assert!(
        rest.len() == 43 && rest.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-' || c == b'_'),
        "{token}"
    );
    assert_eq!(member(&one, "hash:"), token_hash(&token));
    assert_ne!(token, member(&other, "token:"));
}

#[test]
fn schema_is_a_schema_of_the_configuration() {
    let schema = run(&["schema"]);
    assert_eq!(schema.code, Some(0));
    let validator = jsonschema::validator_for(&schema.value()).expect("it compiles");
    let good = serde_json::json!({ "upstreams": { "a": { "url": "http://127.0.0.1:1/mcp", "timeout": { "call": "5s" } } } });
    let bad =
        serde_json::json!({ "upstreams": { "a": { "url": "http://127.0.0.1:1/mcp", "timout": "5s" } } });
    assert!(validator.is_valid(&good));
    assert!(!validator.is_valid(&bad), "unknown keys are refused");
}

#[test]
fn unusable_arguments_are_exit_2() {
    for arguments in
        [&["frobnicate"][..], &["serve", "--nope"], &["serve", "--listen", "nowhere"], &["list", "x", "y"]]
    {
        let refused = run(arguments);
        assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""), "{arguments:?}: {refused:?}");
    }
    let version = run(&["-V"]);
    assert_eq!(version.code, Some(0));
    assert!(
        version.out.contains(env!("CARGO_PKG_VERSION")) && version.out.contains("2026-07-28"),
        "{version:?}"
    );
}
