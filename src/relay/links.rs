//! URIs inside results: written as the client must ask for them, and remembered, so that a link that a client was
//! given can be read (design contract, section 4, "Resources").

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use dashmap::DashMap;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::template::fits;
use crate::jsonrpc::{Edit, Object, mentioning, quoted};
use crate::names::{UpstreamName, mark_uri};
use crate::principal::Subject;

/// How long a URI is remembered.
const LIFE: Duration = Duration::from_secs(3600);
/// Most URIs of one principal and upstream, in two halves: when the younger is full, the older goes.
const MOST: usize = 10_000;
/// Most pairs of principal and upstream; beyond it all are forgotten.
const MOST_PAIRS: usize = 10_000;
/// The longest URI that is remembered, in bytes.
const LONGEST: usize = 4096;

/// URIs and when they were given last: looked up and added in constant time, however many a result brings.
#[derive(Debug, Default)]
struct Recent {
    younger: HashMap<String, Instant>,
    older: HashMap<String, Instant>,
}

impl Recent {
    fn add(&mut self, uri: String, now: Instant) {
        if self.younger.len() >= MOST / 2 {
            self.older = std::mem::take(&mut self.younger);
        }
        self.younger.insert(uri, now);
    }

    fn holds(&self, uri: &str) -> bool {
        let given = self.younger.get(uri).or_else(|| self.older.get(uri));
        given.is_some_and(|at| at.elapsed() < LIFE)
    }
}

/// The URIs that principals were given, by upstream.
#[derive(Debug, Default)]
pub(super) struct Given {
    uris: DashMap<(Subject, UpstreamName), Mutex<Recent>>,
}

impl Given {
    /// Remembers that an upstream gave these URIs, as published, to a principal.
    pub(super) fn remember(&self, subject: &Subject, upstream: &UpstreamName, uris: Vec<String>) {
        if self.uris.len() >= MOST_PAIRS {
            self.uris.clear();
        }
        let place = self.uris.entry((subject.clone(), upstream.clone())).or_default();
        let Ok(mut known) = place.lock() else { return };
        let now = Instant::now();
        for uri in uris.into_iter().filter(|uri| uri.len() <= LONGEST) {
            known.add(uri, now);
        }
    }

    /// Whether an upstream gave a principal this URI, not too long ago.
    pub(super) fn knows(&self, subject: &Subject, upstream: &UpstreamName, uri: &str) -> bool {
        let Some(place) = self.uris.get(&(subject.clone(), upstream.clone())) else { return false };
        let Ok(known) = place.lock() else { return false };
        known.holds(uri)
    }
}

/// How URIs in results are published, and for whom they are remembered.
#[derive(Debug, Clone)]
pub(super) struct Links {
    pub(super) given: Arc<Given>,
    pub(super) subject: Subject,
    pub(super) upstream: UpstreamName,
    /// The upstream's URIs that are published in another form, and that form.
    pub(super) resources: Vec<(String, String)>,
    /// Its templates of that kind.
    pub(super) templates: Vec<(String, String)>,
}

impl Links {
    /// Writes the URIs of a result as clients must ask for them, and remembers them.
    pub(super) fn published(&self, result: Bytes) -> Bytes {
        let looked = look(&result, &|uri| self.publish(uri));
        if !looked.uris.is_empty() {
            self.given.remember(&self.subject, &self.upstream, looked.uris);
        }
        looked.changed.unwrap_or(result)
    }

    fn publish(&self, uri: &str) -> String {
        let listed =
            self.resources.iter().find(|(own, _)| own == uri).map(|(_, published)| published.clone());
        let matched = || self.templates.iter().any(|(own, _)| fits(own, uri).is_some());
        listed.or_else(|| matched().then(|| mark_uri(uri, &self.upstream))).unwrap_or_else(|| uri.to_owned())
    }
}

/// A result whose URIs were looked at.
#[derive(Debug)]
pub(super) struct Looked {
    /// The result, where a URI in it had to be written anew.
    pub(super) changed: Option<Bytes>,
    /// The URIs that it gives, as published.
    pub(super) uris: Vec<String>,
}

/// Looks into a result for URIs of resources: `contents`, `content` and `messages`, their blocks of type
/// `resource_link` and `resource`. `publish` gives the published form of an upstream's URI. Results that do not hold
/// the word are not opened.
pub(super) fn look(result: &Bytes, publish: &dyn Fn(&str) -> String) -> Looked {
    let mut uris = Vec::new();
    let changed = mentioning(result, "\"uri\"").and_then(Object::open).and_then(|object| {
        let mut walk = Walk { publish, uris: &mut uris, changed: false };
        let mut edit = Edit::new();
        // A task that has ended holds its result inside.
        if let Some(inner) = object.object("result") {
            edit = edit.set("result", walk.members(&inner, Edit::new()).apply(&inner));
        }
        edit = walk.members(&object, edit);
        walk.changed.then(|| Bytes::from(edit.apply(&object)))
    });
    Looked { changed, uris }
}

struct Walk<'w> {
    publish: &'w dyn Fn(&str) -> String,
    uris: &'w mut Vec<String>,
    changed: bool,
}

impl Walk<'_> {
    fn members<'e>(&mut self, object: &Object<'_>, mut edit: Edit<'e>) -> Edit<'e> {
        for member in ["contents", "content", "messages"] {
            if let Some(list) = object.get(member).and_then(|raw| self.list(raw, member)) {
                edit = edit.set(member, list);
            }
        }
        edit
    }

    fn list(&mut self, raw: &str, member: &str) -> Option<String> {
        let items: Vec<&RawValue> = serde_json::from_str(raw).ok()?;
        let items: Vec<String> = items
            .into_iter()
            .map(|item| self.item(item.get(), member).unwrap_or_else(|| item.get().to_owned()))
            .collect();
        Some(format!("[{}]", items.join(",")))
    }

    fn item(&mut self, raw: &str, member: &str) -> Option<String> {
        let object = Object::open(raw)?;
        if member == "messages" {
            let block = object.get("content")?;
            let block = self.item(block, "content")?;
            return Some(Edit::new().set("content", block).apply(&object));
        }
        let kind = object.text("type");
        match (member, kind.as_deref()) {
            ("contents", _) | (_, Some("resource_link")) => self.uri(&object),
            (_, Some("resource")) => {
                let inner = self.uri(&object.object("resource")?)?;
                Some(Edit::new().set("resource", inner).apply(&object))
            }
            _ => None,
        }
    }

    fn uri(&mut self, object: &Object<'_>) -> Option<String> {
        let own = object.text("uri")?;
        let published = (self.publish)(&own);
        let edited = (published != own).then(|| {
            self.changed = true;
            Edit::new().set("uri", quoted(published.as_str())).apply(object)
        });
        self.uris.push(published);
        edited
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tokio::time::Instant;

    use super::{LIFE, MOST, Recent, look};

    #[tokio::test(start_paused = true)]
    async fn the_latest_uris_are_remembered_for_an_hour_and_the_rest_goes() {
        let mut known = Recent::default();
        for n in 0..3 * MOST {
            known.add(format!("x:{n}"), Instant::now());
        }
        let kept = (0..3 * MOST).filter(|n| known.holds(&format!("x:{n}"))).count();
        assert!((MOST / 2..=MOST).contains(&kept), "{kept}");
        assert!(known.holds(&format!("x:{}", 3 * MOST - 1)) && !known.holds("x:0"));
        tokio::time::advance(LIFE).await;
        assert!(!known.holds(&format!("x:{}", 3 * MOST - 1)));
    }

    #[test]
    fn c081_uris_in_results_are_published_ones_and_the_rest_stays() {
        let publish = |uri: &str| if uri == "x:1" { "x:a+1".to_owned() } else { uri.to_owned() };
        let cases = [
            (
                r#"{"contents":[{"uri":"x:1","text":"x:1"}]}"#,
                Some(r#"{"contents":[{"uri":"x:a+1","text":"x:1"}]}"#),
            ),
            (r#"{"content":[{"type":"resource_link","uri":"x:2"}]}"#, None),
            (
                r#"{"content":[{"type":"text","text":"t"},{"type":"resource","resource":{"uri":"x:1"}}],"n":1.0}"#,
                Some(
                    r#"{"content":[{"type":"text","text":"t"},{"type":"resource","resource":{"uri":"x:a+1"}}],"n":1.0}"#,
                ),
            ),
            (
                r#"{"messages":[{"role":"user","content":{"type":"resource_link","uri":"x:1"}}]}"#,
                Some(r#"{"messages":[{"role":"user","content":{"type":"resource_link","uri":"x:a+1"}}]}"#),
            ),
            (r#"{"structuredContent":{"uri":"x:1"}}"#, None),
            (
                r#"{"taskId":"t","result":{"content":[{"type":"resource_link","uri":"x:1"}],"n":1.0}}"#,
                Some(
                    r#"{"taskId":"t","result":{"content":[{"type":"resource_link","uri":"x:a+1"}],"n":1.0}}"#,
                ),
            ),
        ];
        for (result, wanted) in cases {
            let looked = look(&Bytes::from(result), &publish);
            assert_eq!(looked.changed.as_deref(), wanted.map(str::as_bytes), "{result}");
        }
        assert_eq!(look(&Bytes::from(cases[1].0), &publish).uris, ["x:2"]);
    }
}
