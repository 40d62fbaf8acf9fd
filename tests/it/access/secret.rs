//! Canaries: what must never be said anywhere is not said anywhere.

use super::{client, public};
use crate::support::proxy::token_hash;
use crate::support::{Ask, Client, Fake, Side, eventually, tool};

#[test]
fn c097_t097_secrets_stand_in_no_answer_log_metric_or_audit_line() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let file = folder.path().join("audit.jsonl");
    let alpha = Fake::modern().label("alpha").tools(["seen", "canary-hidden"].map(tool)).start();
    let gone = Fake::modern().label("gone").stopped();
    let access = format!(
        "access:\n  tokens:\n    - {{ name: kim, hash: \"{}\", scopes: [\"mcp:admin\"] }}\n    \
         - {{ name: lee, hash: \"{}\", scopes: [\"mcp:admin\"] }}\n  \
         rules: [ {{ match: {{ tool: \"canary-*\" }}, deny: true }} ]\n\
         telemetry: {{ log: {{ level: debug, access: true }}, audit: {{ file: \"{}\" }} }}\n",
        token_hash("canary-kim"),
        token_hash("canary-lee"),
        file.display()
    );
    let keys = "credential: { bearer: canary-credential }";
    let weir = public()
        .upstream_with("alpha", &alpha, keys)
        .upstream_at("gone", &format!("{}?key=canary-query", gone.url()), "")
        .section(&access)
        .run();
    let mut said = String::new();
    for side in [Side::Legacy, Side::Modern] {
        let revision = if side == Side::Legacy { "2025-11-25" } else { "2026-07-28" };
        let (kim, lee) = (client(&weir, revision, "canary-kim"), client(&weir, revision, "canary-lee"));
        kim.call("alpha__seen", "{\"a\":\"canary-argument\"}");
        let asked = [
            lee.ask(Ask::new("tools/list")),
            lee.call("alpha__seen", "{}"),
            lee.call("alpha__nosuch", "{}"),
            lee.call("gone__any", "{}"),
            lee.ask(Ask::new("prompts/list")),
            Client::new(weir.address, side).token("canary-wrong").ask(Ask::new("tools/list")),
        ];
        said.push_str(&format!("{asked:?}"));
    }
    for page in ["/metrics", "/status", "/api/status", "/readyz"] {
        // Operators see all tools, whoever may not.
        said.push_str(&weir.admin_get(page).1.replace("canary-hidden", ""));
    }
    eventually!(std::fs::read_to_string(&file).unwrap_or_default().lines().count() >= 8);
    said.push_str(&std::fs::read_to_string(&file).expect("a file"));
    said.push_str(&weir.log());
    let address = gone.url();
    let port = address.rsplit_once(':').and_then(|(_, rest)| rest.split('/').next()).expect("a port");
    let places: Vec<&str> = said.split('\n').filter(|line| line.contains("canary")).collect();
    assert_eq!(places, Vec::<&str>::new());
    assert!(!said.contains(&format!("127.0.0.1:{port}")), "an address of an upstream");
}
