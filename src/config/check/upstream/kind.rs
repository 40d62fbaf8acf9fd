//! What an upstream is, and which keys belong to that.

use std::path::{Path, PathBuf};

use http::Uri;
use secrecy::SecretString;

use crate::config::check::value::count;
use crate::config::file::{self, At, OneOrMore, Upstream};
use crate::config::model::{Builtin, ChildCommand, Kind};
use crate::config::problem::{Findings, Place};

/// The keys that say what an upstream is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Url,
    Command,
    Plugin,
    Builtin,
}

impl Form {
    fn key(self) -> &'static str {
        match self {
            Self::Url => "url",
            Self::Command => "command",
            Self::Plugin => "plugin",
            Self::Builtin => "builtin",
        }
    }
}

/// Reads the one of `url`, `command`, `plugin`, `builtin`; relative paths begin at `folder`. `None` where it cannot be used, which is noted.
pub(super) fn kind(block: &Upstream, place: &Place, folder: &Path, findings: &Findings) -> Option<Kind> {
    let form = form(block, place, findings)?;
    refuse_foreign(form, block, findings);
    match form {
        Form::Url => match &block.url.written()?.value {
            OneOrMore::More(all) if all.is_empty() => {
                findings.error(&block.url.written()?.place, "names no address; at least one is needed");
                None
            }
            OneOrMore::One(at) => url(at, findings).map(|url| Kind::Http { urls: vec![url] }),
            OneOrMore::More(all) => several(all, findings).map(|urls| Kind::Http { urls }),
        },
        Form::Builtin => block.builtin.written().map(|at| {
            Kind::Builtin(match at.value {
                file::Builtin::Clock => Builtin::Clock,
                file::Builtin::Notes => Builtin::Notes,
            })
        }),
        Form::Command => child(block, folder, findings).map(Kind::Child),
        Form::Plugin => None,
    }
}

fn form(block: &Upstream, place: &Place, findings: &Findings) -> Option<Form> {
    let written: Vec<Form> = [
        (Form::Url, block.url.is_absent()),
        (Form::Command, block.command.is_absent()),
        (Form::Plugin, block.plugin.is_absent()),
        (Form::Builtin, block.builtin.is_absent()),
    ]
    .into_iter()
    .filter_map(|(form, absent)| (!absent).then_some(form))
    .collect();
    match written.as_slice() {
        [form] => return Some(*form),
        [] => findings.error(place, "holds none of url, command, plugin, builtin; exactly one is accepted"),
        several => {
            let names: Vec<_> = several.iter().map(|form| form.key()).collect();
            let text = format!(
                "holds {}; exactly one of url, command, plugin, builtin is accepted",
                names.join(" and ")
            );
            findings.error(place, &text);
        }
    }
    None
}

/// Notes keys that belong to another kind of upstream.
fn refuse_foreign(form: Form, block: &Upstream, findings: &Findings) {
    let url: &[Form] = &[Form::Url];
    let servers: &[Form] = &[Form::Url, Form::Command];
    let children: &[Form] = &[Form::Command, Form::Plugin];
    let keys = [
        (block.transport.place(), url),
        (block.credential.place(), url),
        (block.credential_error_codes.place(), url),
        (block.forward_headers.place(), url),
        (block.tls.place(), url),
        (block.proxy.place(), url),
        (block.revision.place(), servers),
        (block.sessions.place(), servers),
        (block.inventory.place(), servers),
        (block.env.place(), children),
        (block.cwd.place(), children),
        (block.processes.place(), children),
    ];
    for (place, forms) in keys {
        if let Some(place) = place.filter(|_| !forms.contains(&form)) {
            let names: Vec<_> = forms.iter().map(|form| form.key()).collect();
            let text =
                format!("belongs to upstreams with {}, and this one has {}", names.join(" or "), form.key());
            findings.error(place, &text);
        }
    }
}

fn child(block: &Upstream, folder: &Path, findings: &Findings) -> Option<ChildCommand> {
    let at = block.command.written()?;
    let words: Vec<String> = at.value.iter().map(|at| at.value.clone()).collect();
    if words.first().is_none_or(String::is_empty) {
        findings.error(&at.place, "names no program; accepted: a list of the program and its arguments");
    }
    for word in at.value.iter().filter(|word| word.value.contains('\0')) {
        findings.error(&word.place, "must not hold a NUL character");
    }
    let written = block.cwd.written().map_or("", |at| at.value.as_str());
    let folder = folder.join(written);
    Some(ChildCommand {
        words,
        environment: environment(block, findings),
        folder: if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder },
        processes: count(&block.processes, 32, findings),
    })
}

fn environment(block: &Upstream, findings: &Findings) -> Vec<(String, SecretString)> {
    let entries = block.env.written().map(|at| at.value.0.as_slice()).unwrap_or_default();
    let mut all = Vec::with_capacity(entries.len());
    for (name, value) in entries {
        let Some(value) = value.written() else { continue };
        let is_name = !name.value.is_empty() && !name.value.contains(['=', '\0']);
        if !is_name || value.value.0.contains('\0') {
            findings.error(&name.place, "is no variable: a name without =, and no NUL character anywhere");
            continue;
        }
        all.push((name.value.clone(), SecretString::from(value.value.0.clone())));
    }
    all
}

/// Several addresses of one server.
fn several(all: &[At<String>], findings: &Findings) -> Option<Vec<Uri>> {
    let mut urls: Vec<Uri> = Vec::with_capacity(all.len());
    for at in all {
        let Some(url) = url(at, findings) else { continue };
        if urls.contains(&url) {
            findings.error(&at.place, "this address stands in the list already");
        }
        urls.push(url);
    }
    (urls.len() == all.len() && !urls.is_empty()).then_some(urls)
}

/// An address. It is not part of a message: its query may be a secret.
fn url(at: &At<String>, findings: &Findings) -> Option<Uri> {
    let parsed =
        at.value.parse::<Uri>().ok().filter(|url| matches!(url.scheme_str(), Some("http" | "https")));
    let problem = match &parsed {
        None => "not an http:// or https:// address",
        Some(url) if url.authority().is_none_or(|authority| authority.host().is_empty()) => {
            "the host is missing"
        }
        Some(url) if url.authority().is_some_and(|authority| authority.as_str().contains('@')) => {
            "must not hold a name or password; write them under credential:"
        }
        Some(_) if at.value.contains('#') => "must not hold a fragment",
        Some(_) => return parsed,
    };
    findings.error(&at.place, problem);
    None
}
