//! From what was written to what it means, with every problem on the way.
//!
//! Pure. Each part is read even where another one is wrong, with defaults in place of what cannot be used, so that
//! all problems are found at once; with an error among them there is no configuration.

mod access;
mod credential;
mod hosts;
mod listen;
mod pattern;
mod route;
mod unsupported;
mod upstream;
mod value;

use std::path::Path;

use self::upstream::Known;
use super::file::{At, File};
use super::include::Part;
use super::model::{Config, Kind, Sharing};
use super::problem::{Findings, Place};

pub(crate) use access::{NEEDS_ACCESS, PLAIN_TOKENS};
pub(crate) use credential::bearer_problem;
pub(crate) use hosts::{is_loopback, moved};
pub(crate) use unsupported::unsupported;

/// Gives the configuration that `file` means with the upstreams of included files, or notes why there is none. `path` is
/// the file it stands in.
pub(crate) fn check(
    whole: At<File>,
    (path, parts): (Option<&Path>, &mut [Part]),
    findings: &Findings,
) -> Option<Config> {
    let file = whole.value;
    let listen = listen::listener(file.listen, findings);
    let admin = listen::admin(file.admin, &listen, findings);
    let names = listen::names(file.names, findings);
    let notify = listen::notify(file.notify, findings);
    let folder = path.and_then(Path::parent).unwrap_or_else(|| Path::new(""));
    let telemetry = listen::telemetry(file.telemetry, folder, findings);
    if file.upstreams.is_absent() && parts.is_empty() {
        let place = Place { key: "upstreams".to_owned(), ..whole.place };
        findings.error(&place, "this key is missing; it names the upstreams");
    }
    let mut upstreams = Vec::new();
    upstream::add(&mut upstreams, file.upstreams.or_default(), (&names, folder), (None, findings));
    for (number, part) in parts.iter_mut().enumerate() {
        let entries = std::mem::take(&mut part.upstreams);
        upstream::add(&mut upstreams, entries, (&names, &part.folder), (Some(number), &part.findings));
    }
    let names_of_routes = route::names(&file.routes);
    let scene = access::Scene { upstreams: &upstreams, routes: &names_of_routes };
    let understood = access::access(file.access, &listen, (scene, folder), findings);
    let routes = route::routes(file.routes, scene, &understood, findings);
    let open = understood.access.is_open() && !is_loopback(listen.listen.address);
    if open {
        warn_of_sessions(&upstreams, parts, findings);
    }
    if findings.has_errors() || parts.iter().any(|part| part.findings.has_errors()) {
        return None;
    }
    Some(Config {
        path: path.map(Path::to_path_buf),
        listen: listen.listen,
        admin,
        names,
        notify,
        disabled: upstreams
            .iter()
            .filter(|known| known.upstream.is_none())
            .map(|known| known.name.clone())
            .collect(),
        upstreams: upstreams.into_iter().filter_map(|known| known.upstream).collect(),
        routes,
        access: understood.access,
        open_anywhere: understood.open_anywhere,
        telemetry,
    })
}

/// Callers without an identity and without a session cannot share one of an upstream's (design contract, section 5).
fn warn_of_sessions(upstreams: &[Known], parts: &[Part], findings: &Findings) {
    let text = "access is open: a client without a session gets an upstream session for each call, where this \
                upstream has sessions; \"sessions: shared\" avoids that";
    for known in upstreams {
        let Some(upstream) = &known.upstream else { continue };
        let part = known.part.and_then(|number| parts.get(number));
        let findings = part.map_or(findings, |part| &part.findings);
        match (&upstream.kind, upstream.sessions) {
            (Kind::Http { .. } | Kind::Child(_), Sharing::Client | Sharing::Principal) => {
                findings.warning(&known.place.member("sessions"), text);
            }
            (Kind::Http { .. } | Kind::Child(_), Sharing::Shared) | (Kind::Builtin(_), _) => {}
        }
    }
}
