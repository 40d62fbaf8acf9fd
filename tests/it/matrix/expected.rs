//! What is expected of each cell: it works, or the protocol rules it out.

use super::Pair;
use super::feature::Feature;

/// The expectation of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    /// It works.
    Works,
    /// The protocol has no way for it; the clause.
    Impossible(&'static str),
}

impl Expected {
    /// Whether it works.
    pub(super) fn works(self) -> bool {
        self == Self::Works
    }
}

struct Rule {
    /// None: every feature.
    features: &'static [Feature],
    when: fn(Pair) -> bool,
    expected: Expected,
}

const fn rule(features: &'static [Feature], when: fn(Pair) -> bool, expected: Expected) -> Rule {
    Rule { features, when, expected }
}

/// The first rule that fits decides; what no rule names works.
const RULES: [Rule; 4] = [
    rule(
        &[Feature::ElicitForm],
        |pair| pair.older() < "2025-06-18",
        Expected::Impossible("elicitation came with 2025-06-18 (2025-06-18, Key Changes, major change 6)"),
    ),
    rule(
        &[Feature::ElicitUrl],
        |pair| pair.older() < "2025-11-25",
        Expected::Impossible("URL mode came with 2025-11-25 (2025-11-25, Key Changes, major change 6)"),
    ),
    rule(
        &[Feature::Task],
        |pair| pair.older() < "2025-11-25",
        Expected::Impossible("tasks came with 2025-11-25 (2025-11-25, Key Changes, major change 9)"),
    ),
    rule(
        &[Feature::Task],
        Pair::crosses_eras,
        Expected::Impossible(
            "the tasks of 2025-11-25 were removed; those of the later extension are other ones: the server decides \
             that a call becomes one, and nothing lists them or waits for them (2026-07-28, Key Changes, major \
             change 6)",
        ),
    ),
];

/// What is expected of a cell.
pub(super) fn expected(feature: Feature, pair: Pair) -> Expected {
    let fits =
        |rule: &&Rule| (rule.features.is_empty() || rule.features.contains(&feature)) && (rule.when)(pair);
    RULES.iter().find(fits).map_or(Expected::Works, |rule| rule.expected)
}
