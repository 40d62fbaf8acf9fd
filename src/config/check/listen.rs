//! Listeners, names, notifications and logs.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::str::FromStr as _;
use std::time::Duration;

use http::Uri;

use super::hosts;
use super::value::{count, duration, kib, mib, minutes, positive, seconds, size, token_hash, warn_if_cut};
use crate::config::file::{self, At, Field};
use crate::config::model::{
    Admin, Allowed, Audit, Drain, Listen, ListenLimits, LogFormat, Notify, PageSize, ParkLimits, Sessions,
    Telemetry,
};
use crate::config::problem::{Findings, Place};
use crate::names::{Characters, NameRules, Separator};

/// The listener and where its address stands.
pub(super) struct Listener {
    /// What it is.
    pub(super) listen: Listen,
    /// The place of `listen.address`.
    pub(super) place: Place,
}

/// Reads `listen`.
pub(super) fn listener(field: Field<file::Listen>, findings: &Findings) -> Listener {
    let block = field.or_default();
    let place = block.address.place().cloned().unwrap_or_else(|| Place::nowhere("listen.address"));
    let address = address(&block.address, SocketAddr::from(([127, 0, 0, 1], 8080)), findings);
    let public_url = block.public_url.written().and_then(|at| public_url(at, findings));
    let allowed_hosts = these(&block.allowed_hosts, |at| hosts::host(at, findings))
        .unwrap_or_else(|| hosts::default_hosts(address, public_url.as_deref()));
    let allowed_origins = these(&block.allowed_origins, |at| hosts::origin(at, findings))
        .unwrap_or_else(|| hosts::default_origins(address));
    for at in block.trusted_proxies.or_default() {
        network(&at, findings);
    }
    let listen = Listen {
        address,
        public_url,
        allowed_origins,
        allowed_hosts,
        limits: limits(&block.limits.or_default(), findings),
        sessions: sessions(&block.sessions.or_default(), findings),
        page: page(&block.page.or_default(), findings),
        drain: drain(&block.drain.or_default(), findings),
    };
    Listener { listen, place }
}

/// A list that is not empty; an empty one is as good as none.
fn these(field: &Field<Vec<At<String>>>, read: impl Fn(&At<String>) -> Option<String>) -> Option<Allowed> {
    let list = &field.written()?.value;
    (!list.is_empty()).then(|| Allowed::These(list.iter().filter_map(read).collect()))
}

fn address(field: &Field<String>, default: SocketAddr, findings: &Findings) -> SocketAddr {
    let Some(at) = field.written() else { return default };
    at.value.parse().unwrap_or_else(|_not_an_address| {
        let shown = at.shown();
        let hint =
            format!("{shown} is not an address; accepted: IP:PORT, as in 127.0.0.1:8080 or [::1]:8080");
        findings.error(&at.place, &hint);
        default
    })
}

fn public_url(at: &At<String>, findings: &Findings) -> Option<String> {
    let text = at.value.trim_end_matches('/');
    let fits = text.parse::<Uri>().is_ok_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.authority().is_some_and(|host| !host.as_str().contains('@'))
            && uri.query().is_none()
    });
    if !fits || text.contains('#') {
        findings.error(&at.place, "not an http:// or https:// origin with an optional path prefix");
        return None;
    }
    Some(text.to_owned())
}

/// Checks a network such as `10.0.0.0/8`, or one address.
fn network(at: &At<String>, findings: &Findings) {
    let (ip, length) = at.value.split_once('/').unwrap_or((&at.value, "0"));
    let most = ip.parse::<IpAddr>().map(|ip| if ip.is_ipv4() { 32 } else { 128 });
    let fits = matches!((most, length.parse::<u8>()), (Ok(most), Ok(length)) if length <= most);
    if !fits {
        findings.error(&at.place, &format!("{} is not a network; accepted: IP or IP/BITS", at.shown()));
    }
}

fn limits(block: &file::ListenLimits, findings: &Findings) -> ListenLimits {
    ListenLimits {
        body: size(&block.body, mib(16), findings),
        header: size(&block.header, kib(32), findings),
        header_timeout: positive(&block.header_timeout, seconds(10), findings),
        connections: count(&block.connections, 20_000, findings),
        parked: ParkLimits {
            total: count(&block.parked, 1000, findings),
            per_principal: count(&block.parked_per_principal, 16, findings),
            wait: positive(&block.parked_wait, minutes(5), findings),
        },
    }
}

fn sessions(block: &file::Sessions, findings: &Findings) -> Sessions {
    Sessions {
        idle: positive(&block.idle, minutes(30), findings),
        max_age: positive(&block.max_age, minutes(24 * 60), findings),
        initialize: positive(&block.initialize, seconds(30), findings),
        resume: duration(&block.resume, seconds(60), findings),
        per_principal: count(&block.per_principal, 20_000, findings),
        total: count(&block.total, 50_000, findings),
    }
}

fn page(block: &file::PageSize, findings: &Findings) -> PageSize {
    PageSize { items: count(&block.items, 2000, findings), bytes: size(&block.bytes, mib(8), findings) }
}

fn drain(block: &file::Drain, findings: &Findings) -> Drain {
    let delay = duration(&block.delay, seconds(5), findings);
    let deadline = duration(&block.deadline, seconds(20), findings);
    let place = block.deadline.place().or(block.delay.place());
    warn_if_cut(place, deadline < delay, "drain.deadline comes before drain.delay has passed", findings);
    Drain { delay, deadline }
}

/// Reads `admin`.
pub(super) fn admin(field: Field<file::Admin>, listener: &Listener, findings: &Findings) -> Admin {
    let block = field.or_default();
    let address = address(&block.address, SocketAddr::from(([127, 0, 0, 1], 8090)), findings);
    if address == listener.listen.address && address.port() != 0 {
        let place = block.address.place().unwrap_or(&listener.place);
        findings.error(place, "listen.address and admin.address must differ");
    }
    let token = block.token.written().and_then(|at| token_hash(at, findings));
    Admin { address, token }
}

/// Reads `names`.
pub(super) fn names(field: Field<file::Names>, findings: &Findings) -> NameRules {
    let block = field.or_default();
    let characters = match block.characters.written().map(|at| at.value) {
        None | Some(file::Characters::Strict) => Characters::Strict,
        Some(file::Characters::Spec) => Characters::Spec,
        Some(file::Characters::Any) => Characters::Any,
    };
    let max_length = count(&block.max_length, 64, findings);
    if let Some(place) = block.max_length.place().filter(|_| !(16..=1024).contains(&max_length)) {
        findings.error(place, "accepted: 16 to 1024");
    }
    NameRules { separator: separator(&block.separator, characters, findings), max_length, characters }
}

fn separator(field: &Field<String>, characters: Characters, findings: &Findings) -> Separator {
    let text = field.written().map_or("__", |at| &at.value);
    let separator = Separator::from_str(text);
    if let Some(at) = field.written() {
        match &separator {
            Err(error) => findings.error(&at.place, &format!("{} is not accepted: {error}", at.shown())),
            Ok(_) if characters == Characters::Strict && text.contains('.') => {
                findings.error(&at.place, "\".\" needs \"characters: spec\" or \"characters: any\"");
            }
            Ok(_) => {}
        }
    }
    separator.unwrap_or_else(|_noted| Separator::default())
}

/// Reads `notify`.
pub(super) fn notify(field: Field<file::Notify>, findings: &Findings) -> Notify {
    let block = field.or_default();
    let debounce = duration(&block.debounce, Duration::from_millis(200), findings);
    let max_wait = duration(&block.max_wait, seconds(1), findings);
    let place = block.max_wait.place().or(block.debounce.place());
    warn_if_cut(place, max_wait < debounce, "notify.max_wait is shorter than notify.debounce", findings);
    Notify { debounce, max_wait }
}

/// Reads `telemetry`.
pub(super) fn telemetry(field: Field<file::Telemetry>, folder: &Path, findings: &Findings) -> Telemetry {
    let whole = field.or_default();
    let audit = whole.audit.written().and_then(|at| audit(at, folder, findings));
    let block = whole.log.or_default();
    let format = match block.format.written().map(|at| at.value) {
        None | Some(file::LogFormat::Text) => LogFormat::Text,
        Some(file::LogFormat::Json) => LogFormat::Json,
    };
    let level = block.level.written().map_or("info", |at| &at.value);
    if let Some(at) = block.level.written().filter(|_| !is_level(level)) {
        let shown = at.shown();
        let hint = format!(
            "{shown} is not a level; accepted: off, error, warn, info, debug, trace, or TARGET=LEVEL with commas between"
        );
        findings.error(&at.place, &hint);
    }
    let access = block.access.written().is_some_and(|at| at.value);
    Telemetry { format, level: level.to_owned(), access, audit }
}

fn audit(at: &At<file::Audit>, folder: &Path, findings: &Findings) -> Option<Audit> {
    let block = &at.value;
    if block.file.is_absent() {
        findings.error(&at.place.member("file"), "this key is missing; lines are appended to that file");
    }
    let full = block.arguments.written().is_some_and(|at| matches!(at.value, file::AuditArguments::Full));
    if let Some(place) = block.redact.place().filter(|_| !full) {
        findings.warning(place, "has no effect: arguments are hashed, not written; see arguments: full");
    }
    let pointers = block.redact.written().map(|at| at.value.as_slice()).unwrap_or_default();
    let redact = pointers.iter().filter_map(|at| pointer(at, findings)).collect();
    Some(Audit {
        file: folder.join(&block.file.written()?.value),
        required: block.mode.written().is_some_and(|at| matches!(at.value, file::AuditMode::Required)),
        full,
        redact,
    })
}

/// A JSON pointer in its parts (RFC 6901, section 4).
fn pointer(at: &At<String>, findings: &Findings) -> Option<Vec<String>> {
    let parts = at.value.strip_prefix('/');
    if parts.is_none() {
        findings.error(
            &at.place,
            &format!("{} is not a JSON pointer; accepted: /name or /list/0/name", at.shown()),
        );
    }
    Some(parts?.split('/').map(|part| part.replace("~1", "/").replace("~0", "~")).collect())
}

fn is_level(text: &str) -> bool {
    let level = |word: &str| matches!(word, "off" | "error" | "warn" | "info" | "debug" | "trace");
    let target = |name: &str| {
        !name.is_empty() && name.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b':'))
    };
    text.split(',').all(|part| match part.split_once('=') {
        Some((name, word)) => target(name) && level(word),
        None => level(part),
    })
}
