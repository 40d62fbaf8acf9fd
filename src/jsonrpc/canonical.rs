//! One text for equal JSON: keys sorted, white space gone, numbers as written.

use serde_json::value::RawValue;

use super::{Object, quoted};

/// Longer text is not looked into, in bytes: each level is read anew, so the work grows with the depth.
const LONGEST: usize = 64 * 1024;

/// Writes raw JSON canonically, for a digest. Takes text that passed [`super::scan`], so its depth is bounded. Text
/// longer than 64 KiB comes back as it is.
#[must_use]
pub fn canonical(raw: &str) -> String {
    if raw.len() > LONGEST { raw.to_owned() } else { level(raw) }
}

fn level(raw: &str) -> String {
    match raw.as_bytes().first() {
        Some(b'{') => object(raw),
        Some(b'[') => array(raw),
        Some(b'"') => {
            serde_json::from_str::<String>(raw).map_or_else(|_| raw.to_owned(), |text| quoted(&text))
        }
        Some(_) | None => raw.to_owned(),
    }
}

fn object(raw: &str) -> String {
    let Some(object) = Object::reopen(raw) else { return raw.to_owned() };
    let mut members: Vec<(&str, &str)> = object.iter().collect();
    members.sort_unstable_by_key(|(key, _)| *key);
    let members: Vec<String> =
        members.into_iter().map(|(key, value)| format!("{}:{}", quoted(key), level(value))).collect();
    format!("{{{}}}", members.join(","))
}

fn array(raw: &str) -> String {
    let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(raw) else { return raw.to_owned() };
    let items: Vec<String> = items.into_iter().map(|item| level(item.get())).collect();
    format!("[{}]", items.join(","))
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn equal_json_has_one_text() {
        assert_eq!(
            canonical(r#"{ "b" : [ 1.0, {"y":null,"x":true} ], "a":"\u0041" }"#),
            r#"{"a":"A","b":[1.0,{"x":true,"y":null}]}"#
        );
        let long = format!("[ \"{}\" ]", "x".repeat(super::LONGEST));
        assert_eq!(canonical(&long), long, "it is not worth the work");
        assert_ne!(canonical("[1]"), canonical("[1.0]"), "numbers count as written");
    }
}
