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
use std::sync::Arc;

use super::file::File;
use super::model::{Access, Config, Kind, Sharing, Upstream};
use super::problem::{Findings, Place};

pub(crate) use access::NEEDS_ACCESS;
pub(crate) use credential::bearer_problem;
pub(crate) use hosts::{is_loopback, moved};
pub(crate) use unsupported::unsupported;

/// Gives the configuration that `file` means, or notes why there is none. `path` is the file it stands in.
pub(crate) fn check(file: File, path: Option<&Path>, findings: &Findings) -> Option<Config> {
    let listen = listen::listener(file.listen, findings);
    let admin = listen::admin(file.admin, &listen, findings);
    let names = listen::names(file.names, findings);
    let notify = listen::notify(file.notify, findings);
    let telemetry = listen::telemetry(file.telemetry, findings);
    if file.upstreams.is_absent() {
        findings.error(&Place::nowhere("upstreams"), "this key is missing; it names the upstreams");
    }
    let upstreams = upstream::upstreams(file.upstreams.or_default(), &names, findings);
    let routes = route::routes(file.routes, &upstreams, findings);
    let (access, open_anywhere) = access::access(file.access, &listen, findings);
    let upstreams: Vec<Arc<Upstream>> = upstreams.into_iter().filter_map(|known| known.upstream).collect();
    warn_of_sessions(&upstreams, &access, is_loopback(listen.listen.address), findings);
    if findings.has_errors() {
        return None;
    }
    Some(Config {
        path: path.map(Path::to_path_buf),
        listen: listen.listen,
        admin,
        names,
        notify,
        upstreams,
        routes,
        access,
        open_anywhere,
        telemetry,
    })
}

/// Callers without an identity and without a session cannot share one of an upstream's (design contract, section 5).
fn warn_of_sessions(upstreams: &[Arc<Upstream>], access: &Access, loopback: bool, findings: &Findings) {
    let open = match access {
        Access::Open => true,
        Access::Tokens(_) => false,
    };
    if !open || loopback {
        return;
    }
    for upstream in upstreams {
        let apart = match (&upstream.kind, upstream.sessions) {
            (Kind::Http { .. }, Sharing::Client | Sharing::Principal) => true,
            (Kind::Http { .. }, Sharing::Shared) | (Kind::Builtin(_), _) => false,
        };
        if apart {
            let text = "access is open: a client without a session gets an upstream session for each call, where \
                        this upstream has sessions; \"sessions: shared\" avoids that";
            findings.warning(&Place::nowhere(&format!("upstreams.{}.sessions", upstream.name)), text);
        }
    }
}
