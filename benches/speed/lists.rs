//! Lists of 10 × 100 realistic tools, from an unchanged catalog.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use super::client::{Connection, MODERN, legacy, modern, open_session};
use super::upstream::TOOLS;
use super::{Bench, Contender, Size, ratio_row};

const UPSTREAMS: usize = 10;
const PRINCIPALS: usize = 100;

fn is_whole(body: &str) -> bool {
    body.contains("up0__record_action_000") && body.contains("up9__record_action_099")
}

fn is_list(body: &str) -> bool {
    body.contains("up0__record_action_000") && body.contains("\"id\":7")
}

/// Against nginx that serves a file of that size: for one principal, and for 100 of which each sees something else.
pub(crate) fn lists(bench: &Bench) {
    let open = bench.gateway(MODERN, UPSTREAMS, "/list");
    let ruled = bench.gateway_with(MODERN, (UPSTREAMS, "/list"), &access(), &[]);
    let list = modern("/mcp", "", ("tools/list", "", ""));
    let (_, whole) = Connection::open(&open.address).exchange(&list);
    assert!(is_whole(&whole), "{} bytes", whole.len());
    bench.nginx.file("list.json", &whole);
    let session = open_session(&mut Connection::open(&open.address), "/mcp");
    let of_principal = |number: usize| {
        let token = format!("authorization: Bearer {}\r\n", token(number));
        modern("/mcp", &token, ("tools/list", "", ""))
    };
    let file = "GET /files/list.json HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".to_owned();
    let (of_nginx, of_open, of_ruled) = (|| bench.nginx.cpu(), || open.cpu(), || ruled.cpu());
    let contender =
        |label: &str, address, requests, cpu| Contender { label: label.to_owned(), address, requests, cpu };
    let contenders = [
        contender("nginx", bench.nginx.address.as_str(), vec![file], &of_nginx as &dyn Fn() -> f64),
        contender("modern client", open.address.as_str(), vec![list], &of_open),
        contender(
            "legacy client",
            open.address.as_str(),
            vec![legacy("/mcp", &session, ("tools/list", ""))],
            &of_open,
        ),
        contender(
            "100 principals",
            ruled.address.as_str(),
            (0..PRINCIPALS).map(of_principal).collect(),
            &of_ruled,
        ),
    ];
    // As many connections as principals, so that each asks.
    let size = Size { calls: PRINCIPALS * 2, clients: PRINCIPALS, bytes: whole.len() * 4 / 5 };
    let best = bench.compete(&contenders, size, is_list);
    let Some((plain, all)) = best.split_first() else { return };
    for (contender, best) in contenders.iter().skip(1).zip(all) {
        let what =
            format!("tools/list of {} tools ({} bytes), {}", UPSTREAMS * TOOLS, whole.len(), contender.label);
        ratio_row(&what, 1.5, (best.cpu, plain.cpu));
    }
}

fn token(number: usize) -> String {
    format!("weir_bench_principal_{number:03}_0123456789abcdef0123456789abcdef")
}

/// A token for each principal, and a tool for each that the others do not see.
fn access() -> String {
    let mut text = "access:\n  tokens:\n".to_owned();
    for number in 0..PRINCIPALS {
        let digest: String = Sha256::digest(token(number)).iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("written");
            text
        });
        writeln!(text, "    - {{ name: p{number}, hash: \"sha256:{digest}\", scopes: [\"mcp:admin\"], groups: [g{number}] }}")
            .expect("written");
    }
    text.push_str("  rules:\n");
    for number in 0..PRINCIPALS {
        let tool = format!("match: {{ upstream: up{}, tool: record_action_{number:03} }}", 1 + number % 9);
        writeln!(text, "    - {{ {tool}, require: {{ groups_any: [g{number}] }} }}").expect("written");
    }
    text
}
