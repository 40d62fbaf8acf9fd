//! What is shipped beside the program agrees with it: `routes.yaml`, YAML in documents, the schema.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::config::{Environment, Loaded, demonstration, load, read_text, schema};

/// Documents may name any variable and any file.
struct Anything;

impl Environment for Anything {
    fn variable(&self, _name: &str) -> Option<String> {
        Some("x".to_owned())
    }

    fn file(&self, path: &Path, _limit: u64) -> io::Result<Vec<u8>> {
        let is_part = path.extension().is_some_and(|extension| extension == "yaml");
        Ok(if is_part { b"upstreams: {}".to_vec() } else { b"x".to_vec() })
    }

    fn matches(&self, _folder: &Path, _pattern: &str) -> Result<Vec<PathBuf>, String> {
        Ok(vec![PathBuf::from("part.yaml")])
    }
}

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn documents() -> Vec<PathBuf> {
    let mut all = vec![root("README.md")];
    if let Ok(entries) = std::fs::read_dir(root("docs")) {
        all.extend(entries.map(|entry| entry.unwrap().path()));
    }
    all.retain(|path| path.is_file() && path.extension().is_some_and(|extension| extension == "md"));
    all
}

/// The blocks between fences that say `yaml` and nothing more.
fn blocks(text: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim_start().starts_with("```") {
            let block: Vec<&str> =
                lines.by_ref().take_while(|line| !line.trim_start().starts_with("```")).collect();
            if line.trim() == "```yaml" {
                blocks.push(block.join("\n"));
            }
        }
    }
    blocks
}

#[test]
fn the_shipped_file_has_no_problems() {
    let Loaded { config, warnings } = load(&root("routes.yaml")).unwrap();
    assert!(warnings.is_empty(), "{warnings}");
    assert_eq!(config.upstreams.len(), 2);
    let shown = demonstration();
    assert!(shown.path.is_none());
    assert!(shown.listen.address.ip().is_loopback());
}

#[test]
fn every_yaml_block_in_the_documents_has_no_problems() {
    for path in documents() {
        for block in blocks(&std::fs::read_to_string(&path).unwrap()) {
            let loaded = read_text(&block, Some(&path), &Anything);
            let problems = loaded.map_or_else(|problems| problems, |loaded| loaded.warnings);
            assert!(problems.is_empty(), "{problems}\n{block}");
        }
    }
}

/// All keys that the schema knows.
fn keys(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::Object(properties)) = members.get("properties") {
                found.extend(properties.keys().cloned());
            }
            members.values().for_each(|member| keys(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, found)),
        _ => {}
    }
}

#[test]
fn every_key_is_documented() {
    let text = std::fs::read_to_string(root("docs/configuration.md")).unwrap();
    let mut found = Vec::new();
    keys(&schema(), &mut found);
    assert!(found.len() > 150, "{}", found.len());
    found.retain(|key| {
        ![format!("`{key}`"), format!(".{key}`"), format!("`{key}."), format!(".{key}.")]
            .iter()
            .any(|form| text.contains(form.as_str()))
    });
    found.sort();
    found.dedup();
    assert!(found.is_empty(), "not in docs/configuration.md: {found:?}");
}

#[test]
fn the_schema_accepts_what_is_accepted() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let good = [
        root("routes.yaml"),
        root("tests/fixtures/routes/good/every-supported-key.yaml"),
        root("tests/fixtures/routes/bad/every-key.yaml"),
    ];
    for path in good {
        let text = std::fs::read_to_string(&path).unwrap();
        let strict = serde_saphyr::options! { strict_booleans: true };
        let value: Value = serde_saphyr::from_str_with_options(&text, strict).unwrap();
        let errors: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{}: {errors:?}", path.display());
    }
    let bad = [
        serde_json::json!({}),
        serde_json::json!({ "upstreams": { "a": { "timout": 5 } } }),
        serde_json::json!({ "upstreams": {}, "listen": { "limits": { "body": "16MB" } } }),
        serde_json::json!({ "upstreams": {}, "access": "opne" }),
    ];
    for value in bad {
        assert!(!validator.is_valid(&value), "{value}");
    }
}
