//! Changes that an upstream tells of: of a list, of a resource.

use std::time::Duration;

use super::{Trial, check, comes, list};
use crate::support::{Ask, Client, Side, Upstream, eventually, json};

const SOON: Duration = Duration::from_secs(8);
const URI: &str = "file:///a.txt";

/// A new item of a list is announced, and listed from then on.
pub(super) fn heard(client: &Client, alpha: &Upstream, kind: &str, item: &str) -> Trial {
    check(eventually::holds(SOON, || alpha.streams() >= 1), || "nobody listens to the upstream".to_owned())?;
    let mut stream = client.listen_for(&format!("{{\"{kind}ListChanged\":true}}"));
    alpha.add(kind, item);
    let told = comes(&mut stream, &format!("notifications/{kind}/list_changed"));
    check(told.is_some(), || "no announcement".to_owned())?;
    let name = json::text(item, &["uri"]).or_else(|| json::text(item, &["name"])).unwrap_or_default();
    let (items, _) = list(client, &format!("{kind}/list"), kind)?;
    check(items.iter().any(|item| item.ends_with(&name)), || format!("{name} is not in {items:?}"))
}

/// A subscription reaches the upstream, and its update comes back.
pub(super) fn subscribe(client: &Client, alpha: &Upstream) -> Trial {
    let mut stream = match client.side() {
        Side::Modern => client.listen_for(&format!("{{\"resourceSubscriptions\":[\"{URI}\"]}}")),
        Side::Legacy => {
            let stream = client.listen();
            let answer =
                client.ask(Ask::new("resources/subscribe").params(&format!("{{\"uri\":\"{URI}\"}}")));
            check(answer.raw(&["result"]).is_some(), || answer.body().to_owned())?;
            stream
        }
    };
    let known = eventually::holds(SOON, || alpha.subscriptions(URI) > 0);
    check(known, || "the upstream knows of no subscription".to_owned())?;
    alpha.update(URI);
    let told = comes(&mut stream, "notifications/resources/updated").ok_or("no update")?;
    check(json::text(&told, &["params", "uri"]).as_deref() == Some(URI), || told.clone())
}
