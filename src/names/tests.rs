//! Naming: what is refused, what is replaced, and that the plan is injective.

use std::collections::HashSet;

use proptest::prelude::{ProptestConfig, proptest};

use super::{Characters, LocalName, NameError, NameRules, Namespace, Separator, UpstreamName};

fn rules(characters: Characters) -> NameRules {
    NameRules { separator: separator("__"), max_length: 64, characters }
}

fn separator(text: &str) -> Separator {
    text.parse().expect("a separator")
}

fn check(characters: Characters, namespace: &str, locals: &[&str], wanted: &[&str]) {
    let namespace = Namespace::new(namespace, &separator("__")).expect("a namespace");
    let locals: Vec<LocalName> = locals.iter().map(|l| LocalName::new(l)).collect();
    let published = rules(characters).publish(&namespace, &locals);
    let found: Vec<&str> = published.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(found, wanted);
}

#[test]
fn c041_characters_outside_the_common_set_become_underscores() {
    check(
        Characters::Strict,
        "a",
        &["calendar.read", "git/commit", "Status Report", "天気", "_x", "9lives"],
        &["a__calendar_read", "a__git_commit", "a__Status_Report", "a____", "a___x", "a__9lives"],
    );
}

#[test]
fn c041_one_switch_keeps_the_dot() {
    check(Characters::Spec, "a", &["calendar.read", "x/y"], &["a__calendar.read", "a__x_y"]);
    check(Characters::Any, "a", &["天 気"], &["a__天 気"]);
}

#[test]
fn ambiguous_replacements_get_a_hash_and_unchanged_names_stay() {
    check(Characters::Strict, "a", &["x_y", "x.y", "x/y"], &["a__x_y", "a__x_y_b24ca9b7", "a__x_y_bd3c9047"]);
}

#[test]
fn c040_long_names_are_cut_and_keep_a_hash_of_the_full_name() {
    let namespace = Namespace::new("sixteen-letters1", &separator("__")).expect("a namespace");
    let long = "n".repeat(70);
    let exact = "m".repeat(64 - 18);
    let published =
        rules(Characters::Strict).publish(&namespace, &[LocalName::new(&long), LocalName::new(&exact)]);
    assert_eq!(published[0].name.as_str().len(), 64);
    assert_eq!(published[0].full.as_deref(), Some(format!("sixteen-letters1__{long}").as_str()));
    assert_eq!(published[1].name.as_str(), format!("sixteen-letters1__{exact}"));
    assert_eq!(published[1].full, None);
}

#[test]
fn c042_namespaces_that_could_claim_another_ones_names_are_refused() {
    let cases = [
        ("a__b", "__", Err(NameError::NamespaceSeparator)),
        ("a_", "__", Err(NameError::NamespaceSeparator)),
        ("a", "__", Ok(())),
        ("", "__", Ok(())),
        ("weir", "__", Err(NameError::NamespaceReserved)),
        ("a.b", "__", Err(NameError::NamespaceCharacters)),
        ("ab", "ba", Ok(())),
        ("aba", "ba", Err(NameError::NamespaceSeparator)),
    ];
    for (namespace, with, wanted) in cases {
        let found = Namespace::new(namespace, &separator(with)).map(|_| ());
        assert_eq!(found, wanted, "{namespace:?} with {with:?}");
    }
}

#[test]
fn upstream_names_have_one_shape() {
    for good in ["a", "io.github.example.cdn", "9-x_y"] {
        assert!(good.parse::<UpstreamName>().is_ok(), "{good}");
    }
    for bad in ["", "-a", "a b", "ä", &"x".repeat(64)] {
        assert_eq!(bad.parse::<UpstreamName>(), Err(NameError::Shape), "{bad}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn publishing_is_injective_and_independent_of_order(
        locals in proptest::collection::hash_set("[a-c._/ ]{1,4}", 1..12)
    ) {
        let namespace = Namespace::new("up", &separator("__")).expect("a namespace");
        let mut locals: Vec<LocalName> = locals.iter().map(|l| LocalName::new(l)).collect();
        let forward = rules(Characters::Strict).publish(&namespace, &locals);
        let distinct: HashSet<&str> = forward.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(distinct.len(), locals.len());
        locals.reverse();
        let mut backward = rules(Characters::Strict).publish(&namespace, &locals);
        backward.reverse();
        assert_eq!(forward, backward);
    }
}

#[test]
fn c081_equal_uris_get_a_label_and_keep_their_scheme() {
    let beta: UpstreamName = "io.beta_2".parse().expect("a name");
    let cases = [
        ("file:///a.txt", "file://io.beta-2+/a.txt"),
        ("ui://panel/main", "ui://io.beta-2+panel/main"),
        ("custom:opaque?x=1#f", "custom:io.beta-2+opaque?x=1#f"),
        ("db://{table}/{id}", "db://io.beta-2+{table}/{id}"),
    ];
    for (own, marked) in cases {
        assert_eq!(super::mark_uri(own, &beta), marked);
        assert_eq!(super::unmark_uri(marked, &beta).as_deref(), Some(own));
        assert_eq!(super::unmark_uri(own, &beta), None);
    }
}
