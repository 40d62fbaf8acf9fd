//! Access: who somebody is, what they may see and do, and that every way of asking gets the same answer.

mod audit;
mod clock;
mod entrance;
mod hidden;
mod jwt;
mod secret;

use crate::support::{Client, Fake, Proxy, Side, Upstream, Weir, prompt, resource, template, tool};

/// Every revision of clients; 2024-11-05 is spoken over HTTP+SSE.
const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/// What a route at `/mcp` calls its tokens' audience.
const AUDIENCE: &str = "https://gw.example/mcp";

/// A client of a revision that is ready to ask.
fn client(weir: &Weir, revision: &str, token: &str) -> Client {
    let side = if revision >= "2026-07-28" { Side::Modern } else { Side::Legacy };
    let client = Client::new(weir.address, side).token(token);
    match (revision, side) {
        ("2024-11-05", _) => client.over_sse().expect("HTTP+SSE is spoken").opened(),
        (_, Side::Legacy) => client.revision(revision).opened(),
        (_, Side::Modern) => client,
    }
}

/// An upstream with something of every kind, once seen and once hidden.
fn both(label: &str, side: Side) -> Upstream {
    Fake::of(side)
        .label(label)
        .tools(["seen", "secret"].map(tool))
        .with("prompts", ["seen", "secret"].map(prompt))
        .with("resources", ["x:seen", "x:secret"].map(resource))
        .with("templates", ["seen:{id}", "secret:{id}"].map(template))
        .completing()
        .subscribable()
        .start()
}

/// A gateway whose public address is known, so that it can be named as an audience.
fn public() -> Proxy {
    Proxy::new().listen("public_url: https://gw.example").listen("allowed_hosts: [127.0.0.1]")
}
