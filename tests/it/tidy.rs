//! Rules about the source text: which module may use which, what eras may be named where, sizes, words.
//!
//! The layer table of the architecture stands in `layers` as data. The scan works on text with comments and strings
//! taken out (`source`), so it sees what the compiler sees and nothing that is only written about.

mod layers;
mod source;

use std::collections::{BTreeMap, BTreeSet};

use layers::{ANYTHING, LAYERS};
use source::{Source, is_word, sources, words};

const MOST_LINES: usize = 500;

/// Files that may look at a peer's era; everything else gets a type or a value that was made there.
const ERA_FILES: [&str; 3] =
    ["src/protocol/revision.rs", "src/downstream/negotiate.rs", "src/upstream/connect.rs"];

/// Words that say nothing about what a file is for.
const REFUSED_WORDS: [&str; 14] = [
    "manager", "managers", "helper", "helpers", "util", "utils", "common", "misc", "data", "info", "handle",
    "process", "do", "internal",
];

/// Collects what breaks a rule and fails with all of it at once.
fn refuse(rule: &str, broken: &[String]) {
    assert!(broken.is_empty(), "{rule}:\n  {}", broken.join("\n  "));
}

fn src() -> Vec<Source> {
    sources("src")
}

fn everything() -> Vec<Source> {
    ["src", "tests/it", "benches"].into_iter().flat_map(sources).collect()
}

#[test]
fn each_file_begins_with_what_it_is() {
    let broken = everything().into_iter().filter(|file| !file.text.starts_with("//! "));
    refuse("a file begins with `//!`", &broken.map(|file| file.path).collect::<Vec<_>>());
}

#[test]
fn no_file_is_too_long() {
    let broken = everything().into_iter().filter(|file| {
        let head: String = file.text.lines().take_while(|line| line.starts_with("//!")).collect();
        file.text.lines().count() > MOST_LINES && !head.contains("data table")
    });
    refuse(
        "a file has at most 500 lines, or says \"data table\" in its `//!`",
        &broken.map(|file| file.path).collect::<Vec<_>>(),
    );
}

#[test]
fn modules_stand_beside_their_folders_and_are_named_for_what_they_hold() {
    let broken = everything().into_iter().map(|file| file.path).filter(|path| {
        let stem = path.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs");
        stem == "mod" || stem.split('_').any(|word| REFUSED_WORDS.contains(&word))
    });
    refuse("no mod.rs, no file named manager, helper, util and the like", &broken.collect::<Vec<_>>());
}

/// What each top-level module of `src` uses, with the places. Test code is left out: it may use anything.
fn imports() -> BTreeMap<String, BTreeMap<String, String>> {
    let mut all: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for file in src().into_iter().filter(|file| !file.is_test()) {
        let module = file.module().to_owned();
        let used = all.entry(module.clone()).or_default();
        for (name, line) in file.crate_paths() {
            if name != module {
                used.entry(name).or_insert_with(|| format!("{}:{line}", file.path));
            }
        }
    }
    all
}

fn allowed(module: &str) -> Option<&'static [&'static str]> {
    LAYERS.iter().find(|(name, _)| *name == module).map(|(_, allowed)| *allowed)
}

#[test]
fn each_module_uses_only_what_its_layer_may() {
    let mut broken = Vec::new();
    for (module, used) in imports() {
        let Some(allowed) = allowed(&module) else {
            broken.push(format!("{module} has no row in tests/it/tidy/layers.rs"));
            continue;
        };
        let foreign =
            used.iter().filter(|(name, _)| allowed != ANYTHING && !allowed.contains(&name.as_str()));
        broken.extend(foreign.map(|(name, place)| format!("{module} uses {name} ({place})")));
    }
    refuse("a module uses only what the layer table permits", &broken);
}

#[test]
fn the_layer_table_is_in_order() {
    let mut broken = Vec::new();
    let mut above = BTreeSet::new();
    for (module, allowed) in LAYERS {
        let early = allowed.iter().filter(|name| *allowed != ANYTHING && !above.contains(*name));
        broken.extend(early.map(|name| format!("{module} lists {name}, which does not stand above it")));
        above.insert(*module);
    }
    refuse("a row of the layer table names only rows above it", &broken);
}

#[test]
fn modules_import_each_other_in_no_ring() {
    let imports = imports();
    let reach = |start: &str| {
        let mut seen = BTreeSet::new();
        let mut open = vec![start.to_owned()];
        while let Some(module) = open.pop() {
            let next = imports.get(&module).into_iter().flat_map(BTreeMap::keys);
            open.extend(next.filter(|name| seen.insert((*name).clone())).cloned());
        }
        seen
    };
    let broken = imports.keys().filter(|module| reach(module).contains(*module));
    refuse("no module reaches itself over others", &broken.cloned().collect::<Vec<_>>());
}

/// Whether a text of code stands in a file where it may not; test code is left out where the rule is for production.
fn places(files: Vec<Source>, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let mut broken = Vec::new();
    for file in files {
        let lines = file.code.lines().enumerate().filter(|(_, line)| wanted(line));
        broken.extend(lines.map(|(at, line)| format!("{}:{}: {}", file.path, at + 1, line.trim())));
    }
    broken
}

#[test]
fn eras_are_told_apart_at_the_borders_only() {
    let files = src().into_iter().filter(|file| !file.is_test() && !ERA_FILES.contains(&file.path.as_str()));
    let names_one =
        |line: &str| words(line).any(|(at, word)| word == "Era" && line.split_at(at + 3).1.starts_with("::"));
    refuse("`Era::` is named in three files only", &places(files.collect(), names_one));
}

#[test]
fn imports_say_what_they_import() {
    let hides = |line: &str| line.contains("::*") || line.contains("super::super");
    refuse("no `::*`, no `super::super`", &places(src(), hides));
}

#[test]
fn no_test_is_switched_off_or_expects_a_panic() {
    let off = |line: &str| line.contains("#[ignore") || line.contains("#[should_panic");
    refuse("no `ignore`, no `should_panic`", &places(everything(), off));
}

#[test]
fn each_expected_lint_has_a_reason() {
    let mut broken = Vec::new();
    for file in everything() {
        let attributes = ["#[expect(", "#![expect(", "#[allow(", "#![allow("];
        for (at, start) in attributes.iter().flat_map(|start| file.code.match_indices(start)) {
            let (_, rest) = file.code.split_at(at + start.len());
            let inner = rest.split(")]").next().unwrap_or_default();
            if start.contains("allow") || !inner.split(',').any(|part| part.trim().starts_with("reason")) {
                broken.push(format!("{}:{}", file.path, file.line_of(at)));
            }
        }
    }
    refuse("a lint is silenced by `expect` with a reason", &broken);
}

#[test]
fn only_task_rs_spawns() {
    let files = src().into_iter().filter(|file| !file.is_test() && !file.path.starts_with("src/task"));
    let spawns = |line: &str| {
        ["tokio::spawn", "task::spawn", "unbounded_channel"].iter().any(|text| line.contains(text))
    };
    refuse("tasks belong to a TaskGroup and channels have bounds", &places(files.collect(), spawns));
}

#[test]
fn the_scan_sees_code_and_nothing_else() {
    let text = "//! x\nuse crate::a::B; // crate::c\n/* crate::d /* crate::e */ */ let s = \"crate::f\\\"\";\n\
        let r = r#\"crate::g\"#; let c = '\"'; fn f<'a>(x: &'a crate::h::T) {}\nuse crate::{i::J, k::{l, m}, n};\n\
        #[cfg(test)]\nmod tests {\n    use crate::o::P;\n}\npub(crate) fn p() -> crate ::q::R {}\n";
    let file = Source::new("src/x.rs".to_owned(), text.to_owned());
    let found: Vec<(String, usize)> = file.crate_paths();
    let wanted = [("a", 2), ("h", 4), ("i", 5), ("k", 5), ("n", 5), ("q", 10)];
    assert_eq!(found, wanted.map(|(name, line)| (name.to_owned(), line)));
    assert!(is_word("word", "a word here") && !is_word("word", "a sword_1"));
}
