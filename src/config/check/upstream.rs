//! Upstreams.

mod kind;

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use super::value::{
    count, duration, mib, minutes, number, positive, read_duration, seconds, size, warn_if_cut,
};
use super::{credential, pattern};
use crate::config::file::{self, At, Entries, Field, Mode};
use crate::config::model::{
    Classes, Concurrency, Kind, Sharing, Timeouts, ToolFilter, ToolTimeout, Transport, Upstream,
    UpstreamLimits,
};
use crate::config::problem::{Findings, Place};
use crate::names::{LocalName, NameRules, Namespace, UpstreamName};
use crate::protocol::Revision;

/// A name that `upstreams` holds.
pub(super) struct Known {
    /// The name.
    pub(super) name: UpstreamName,
    /// Where the name stands.
    pub(super) place: Place,
    /// The number of the included file that it stands in, if it does.
    pub(super) part: Option<usize>,
    /// What it stands for; `None` where it is disabled or cannot be used.
    pub(super) upstream: Option<Arc<Upstream>>,
}

/// Reads the `upstreams` of one file and adds them to those of the files before it. `part` is the number of an included
/// file.
pub(super) fn add(
    all: &mut Vec<Known>,
    entries: Entries<file::Upstream>,
    (rules, folder): (&NameRules, &Path),
    (part, findings): (Option<usize>, &Findings),
) {
    for (key, field) in entries.0 {
        let name = UpstreamName::from_str(&key.value)
            .inspect_err(|error| {
                findings.error(&key.place, &format!("{} is not a name: {error}", key.shown()))
            })
            .ok();
        let Some(name) = name else { continue };
        if all.iter().any(|known| known.name == name) {
            findings.error(&key.place, "another file has an upstream of this name");
            continue;
        }
        let Field::Written(At { value: block, .. }) = field else {
            all.push(Known { name, place: key.place, part, upstream: None });
            continue;
        };
        let enabled = block.enabled.written().is_none_or(|at| at.value);
        let place = block.namespace.place().unwrap_or(&key.place).clone();
        let upstream = upstream(&name, &key.place, block, (rules, folder), findings).filter(|_| enabled);
        if let Some(upstream) = &upstream {
            refuse_double(upstream, all, &place, findings);
        }
        all.push(Known { name, place: key.place, part, upstream: upstream.map(Arc::new) });
    }
}

fn refuse_double(upstream: &Upstream, earlier: &[Known], place: &Place, findings: &Findings) {
    let mut earlier = earlier.iter().filter_map(|known| known.upstream.as_ref());
    if let Some(other) = earlier.find(|other| other.namespace == upstream.namespace) {
        let text = format!(
            "the namespace \"{}\" belongs to the upstream {} already; give one of them another with namespace:",
            upstream.namespace, other.name
        );
        findings.error(place, &text);
    }
}

fn upstream(
    name: &UpstreamName,
    place: &Place,
    block: file::Upstream,
    (rules, folder): (&NameRules, &Path),
    findings: &Findings,
) -> Option<Upstream> {
    let kind = kind::kind(&block, place, folder, findings);
    let namespace = namespace(name, place, &block.namespace, rules, findings);
    let transport = block.transport.written().map_or(Transport::Auto, |at| match at.value {
        file::Transport::Auto => Transport::Auto,
        file::Transport::StreamableHttp => Transport::StreamableHttp,
        file::Transport::Sse => Transport::Sse,
    });
    let codes = block.credential_error_codes.or_default();
    // `namespace` and `kind` come last: everything before them is looked at even where they cannot be used.
    Some(Upstream {
        name: name.clone(),
        transport,
        revision: block.revision.written().and_then(|at| revision(at, transport, findings)),
        sessions: sharing(&block.sessions, kind.as_ref()),
        credential: credential::credential(block.credential, findings),
        credential_error_codes: codes.into_iter().map(|at| at.value).collect(),
        forward_headers: credential::forwarded(&block.forward_headers.or_default(), findings),
        read_only: block.mode.written().is_some_and(|at| at.value == Mode::ReadOnly),
        tools: tools(&block.tools.or_default(), findings),
        classes: classes(&block.classes.or_default(), findings),
        trust_annotations: block.trust_annotations.written().is_some_and(|at| at.value),
        timeout: timeouts(&block.timeout.or_default(), findings),
        concurrency: concurrency(&block.concurrency.or_default(), findings),
        limits: limits(&block.limits.or_default(), findings),
        probe: block.resources.written().and_then(|at| at.value.probe.written()).is_none_or(|at| at.value),
        refresh: positive(&block.refresh, seconds(60), findings),
        withdraw_after: duration(&block.withdraw_after, seconds(30), findings),
        idle: positive(&block.idle, minutes(5), findings),
        required: block.required.written().is_some_and(|at| at.value),
        namespace: namespace?,
        kind: kind?,
    })
}

fn namespace(
    name: &UpstreamName,
    place: &Place,
    field: &Field<String>,
    rules: &NameRules,
    findings: &Findings,
) -> Option<Namespace> {
    let separator = &rules.separator;
    match field {
        Field::Bad => None,
        Field::Written(at) => Namespace::new(&at.value, separator)
            .inspect_err(|error| {
                let text = format!("{} is not accepted with the separator {separator}: {error}", at.shown());
                findings.error(&at.place, &text);
            })
            .ok(),
        Field::Absent => Namespace::default_for(name, separator)
            .inspect_err(|error| {
                let text = format!(
                    "this name makes no namespace with the separator {separator}: {error}; give the upstream \
                     another one with namespace:"
                );
                findings.error(place, &text);
            })
            .ok(),
    }
}

fn revision(at: &At<String>, transport: Transport, findings: &Findings) -> Option<Revision> {
    let found = Revision::parse(&at.value);
    if transport == Transport::Sse && found >= Some(Revision::V2026_07_28) {
        let text =
            format!("{} is not spoken over transport: sse, which only older revisions have", at.shown());
        findings.error(&at.place, &text);
    }
    if found.is_none() && at.value != "auto" {
        let known: Vec<_> = Revision::ALL.iter().map(ToString::to_string).collect();
        let text = format!("{} is not a revision; accepted: auto, {}", at.shown(), known.join(", "));
        findings.error(&at.place, &text);
    }
    found
}

fn sharing(field: &Field<file::Sharing>, kind: Option<&Kind>) -> Sharing {
    match (field.written().map(|at| at.value), kind) {
        (Some(file::Sharing::Client), _) | (None, Some(Kind::Http { .. })) => Sharing::Client,
        (Some(file::Sharing::Principal), _) => Sharing::Principal,
        (Some(file::Sharing::Shared), _) | (None, Some(Kind::Child(_) | Kind::Builtin(_)) | None) => {
            Sharing::Shared
        }
    }
}

fn tools(block: &file::Tools, findings: &Findings) -> ToolFilter {
    let mut rename = BTreeMap::new();
    for (old, field) in block.rename.written().map(|at| at.value.0.iter()).into_iter().flatten() {
        let Some(new) = field.written() else { continue };
        let to = LocalName::new(&new.value);
        if new.value.is_empty() {
            findings.error(&new.place, "a tool cannot be renamed to nothing");
        } else if rename.values().any(|taken| *taken == to) {
            findings.error(&new.place, &format!("another tool is renamed to {} already", new.shown()));
        }
        rename.insert(LocalName::new(&old.value), to);
    }
    let (allow, deny) = (pattern::allow(&block.allow, findings), pattern::set(&block.deny, findings));
    ToolFilter { allow, deny, rename }
}

fn classes(block: &file::Classes, findings: &Findings) -> Classes {
    Classes {
        read: pattern::set(&block.read, findings),
        write: pattern::set(&block.write, findings),
        destructive: pattern::set(&block.destructive, findings),
    }
}

fn timeouts(block: &file::Timeouts, findings: &Findings) -> Timeouts {
    let call = positive(&block.call, seconds(60), findings);
    let call_max = positive(&block.call_max, minutes(10), findings);
    let text = "longer than call_max, which cuts it";
    let place = block.call.place().or(block.call_max.place());
    warn_if_cut(place, call > call_max, text, findings);
    let mut tools = Vec::new();
    for (key, field) in block.tools.written().map(|at| at.value.0.iter()).into_iter().flatten() {
        let set = pattern::single(key, findings);
        let time = field.written().and_then(|at| read_duration(at, findings));
        let Some((set, time)) = set.zip(time) else { continue };
        if time == Duration::ZERO {
            findings.error(&key.place, "must be more than 0");
        }
        warn_if_cut(Some(&key.place), time > call_max, text, findings);
        tools.push(ToolTimeout { glob: key.value.clone(), tools: set, limit: time });
    }
    Timeouts { connect: positive(&block.connect, seconds(5), findings), call, call_max, tools }
}

fn concurrency(block: &file::Concurrency, findings: &Findings) -> Concurrency {
    let limit = |number: usize| (number > 0).then_some(number);
    Concurrency {
        calls: limit(number(&block.calls, 64, findings)),
        writes: limit(number(&block.writes, 0, findings)),
        queue: number(&block.queue, 64, findings),
    }
}

fn limits(block: &file::UpstreamLimits, findings: &Findings) -> UpstreamLimits {
    UpstreamLimits {
        answer: size(&block.answer, mib(64), findings),
        tools: count(&block.tools, 5000, findings),
        list_bytes: size(&block.list_bytes, mib(16), findings),
        pages: count(&block.pages, 100, findings),
    }
}
