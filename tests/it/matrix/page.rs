//! `docs/compatibility.md`: one table per client, a row per feature, a column per upstream.

use std::path::Path;

use super::expected::{Expected, expected};
use super::{Feature, Pair, REVISIONS};

const HEAD: &str = "# Which client reaches which upstream with what

Every cell is run by `cargo test` (`tests/it/matrix.rs`) through the built program: a client of one revision, an upstream
of another, a feature. The test fails when a cell changes, and writes this page with `WEIR_UPDATE=1`.

*yes*: it works. *–*: the protocol rules it out. The numbers lead to the reasons at the end. 2024-11-05 is spoken over HTTP+SSE, the later revisions over Streamable HTTP.
";

/// Writes the page, or fails the test where the one in the repository differs.
pub(super) fn compare() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/compatibility.md");
    let wanted = text();
    if std::env::var_os("WEIR_UPDATE").is_some_and(|value| value == "1") {
        std::fs::write(&path, wanted).expect("the documentation can be written");
        return;
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(there == wanted, "docs/compatibility.md is not what was found; run this test with WEIR_UPDATE=1");
}

/// The page. Every cell was found to be as expected before, so it is written from the expectations.
fn text() -> String {
    let mut text = HEAD.to_owned();
    let mut reasons = Vec::new();
    for client in REVISIONS {
        text.push_str(&format!("\n## Clients of {client}\n\n| Upstream | {} |\n", REVISIONS.join(" | ")));
        text.push_str(&format!("|---|{}\n", "---|".repeat(REVISIONS.len())));
        for feature in Feature::ALL {
            let cells =
                REVISIONS.map(|upstream| cell(expected(feature, Pair { client, upstream }), &mut reasons));
            text.push_str(&format!("| {} | {} |\n", feature.name(), cells.join(" | ")));
        }
    }
    text.push_str("\n## Reasons\n\n");
    for (number, reason) in (1..).zip(&reasons) {
        text.push_str(&format!("{number}. {}\n", capital(reason)));
    }
    text
}

/// The words of a cell, with the number of its reason.
fn cell(expected: Expected, reasons: &mut Vec<&'static str>) -> String {
    let Expected::Impossible(reason) = expected else { return "yes".to_owned() };
    if !reasons.contains(&reason) {
        reasons.push(reason);
    }
    let place = reasons.iter().take_while(|known| **known != reason).count();
    format!("– ({})", place + 1)
}

/// A sentence of a phrase.
fn capital(phrase: &str) -> String {
    let mut letters = phrase.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}
