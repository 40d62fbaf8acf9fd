//! The ways to a configuration: a file, a text, the command line, the demonstration.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use secrecy::SecretString;

use super::check::{NEEDS_ACCESS, PLAIN_TOKENS, bearer_problem, check, is_loopback, moved, unsupported};
use super::environment::{Environment, Process};
use super::file::{At, Entries, Field, File, OneOrMore, Upstream};
use super::include::{self, Part};
use super::model::{Admin, Config, Credential};
use super::problem::{Findings, Place, Problems};
use super::tree::{self, Source};
use crate::names::Characters;

/// Most bytes of a configuration file.
pub(super) const LIMIT: u64 = 4 * 1024 * 1024;

/// The shipped example, which is also the demonstration.
const SHIPPED: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/routes.yaml"));

/// A configuration that was read.
#[derive(Debug)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// What the operator may want to know about it.
    pub warnings: Problems,
}

/// Reads the configuration file at `path`.
///
/// # Errors
/// All problems of the file; one without position where it cannot be read.
pub fn load(path: &Path) -> Result<Loaded, Problems> {
    load_in(path, &Process)
}

/// Reads the configuration file at `path`, which this environment holds.
///
/// # Errors
/// As for [`load`].
pub fn load_in(path: &Path, environment: &dyn Environment) -> Result<Loaded, Problems> {
    let label = Findings::name_of(path);
    let content = environment.file(path, LIMIT).map_err(|error| {
        Problems::single(&label, "", &format!("the file cannot be read: {}", reason(&error)))
    })?;
    if content.len() as u64 > LIMIT {
        return Err(Problems::single(&label, "", "the file is larger than 4 MiB"));
    }
    match std::str::from_utf8(&content) {
        Ok(text) => read_text(text, Some(path), environment),
        Err(error) => {
            let findings = Findings::new(&label);
            findings.error(
                &end_of(content.get(..error.valid_up_to()).unwrap_or_default()),
                "the text is not UTF-8",
            );
            Err(findings.close())
        }
    }
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        kind => kind.to_string(),
    }
}

/// The place behind the last byte of a text.
fn end_of(before: &[u8]) -> Place {
    let lines = before.split(|byte| *byte == b'\n');
    let last = lines.clone().next_back().unwrap_or_default();
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let column = String::from_utf8_lossy(last).chars().count() + 1;
    Place { line: number(lines.count()), column: number(column), key: String::new() }
}

/// Reads the text of a configuration. `path` names it in problems and is where relative paths begin;
/// `environment` says what `${…}` stands for.
///
/// # Errors
/// All problems of the text.
pub fn read_text(text: &str, path: Option<&Path>, environment: &dyn Environment) -> Result<Loaded, Problems> {
    let label = path.map_or_else(|| "routes.yaml".to_owned(), Findings::name_of);
    let findings = Findings::new(&label);
    let folder = path.and_then(Path::parent).unwrap_or_else(|| Path::new(""));
    let mut parts = Vec::new();
    let config = understand(text, (path, &mut parts), &Source { environment, folder }, &findings);
    let mut problems = findings.close();
    parts.into_iter().for_each(|part| problems.extend(part.findings.close().iter().cloned()));
    match config.filter(|_| !problems.has_errors()) {
        Some(config) => Ok(Loaded { config, warnings: problems }),
        None => Err(problems),
    }
}

fn understand(
    text: &str,
    (path, parts): (Option<&Path>, &mut Vec<Part>),
    source: &Source<'_>,
    findings: &Findings,
) -> Option<Config> {
    let mut root = tree::parse(text, findings)?;
    tree::substitute(&mut root, "", source, findings);
    unsupported(&root, findings);
    if root.is_empty() {
        findings.error(&root.place(""), "the file holds no configuration; at least \"upstreams\" is needed");
        return None;
    }
    let whole: At<File> = tree::decode(&root, findings)?;
    *parts = include::parts(&whole.value.include, source, findings);
    check(whole, (path, parts), findings)
}

/// The built-in demonstration: the shipped `routes.yaml`, on loopback.
#[must_use]
#[expect(clippy::expect_used, reason = "the shipped file is part of the program, and a test reads it")]
pub fn demonstration() -> Config {
    read_text(SHIPPED, None, &Process).expect("the shipped routes.yaml has no problems").config
}

/// The configuration with the addresses of the command line in place of its own.
///
/// # Errors
/// A listener that would be reachable from other machines without `access`; two listeners at one address.
pub fn overridden(
    mut config: Config,
    listen: Option<SocketAddr>,
    admin: Option<SocketAddr>,
) -> Result<Config, Problems> {
    if let Some(address) = listen {
        config.listen = moved(&config.listen, address);
        let unguarded = config.access.is_open() && !config.open_anywhere;
        if unguarded && !is_loopback(address) {
            return Err(Problems::single("--listen", "listen.address", NEEDS_ACCESS));
        }
        let takes_plain_tokens = config.access.guard().is_some_and(|guard| guard.initialize_token);
        if takes_plain_tokens && !is_loopback(address) {
            return Err(Problems::single("--listen", "access.initialize_token", PLAIN_TOKENS));
        }
    }
    if let Some(address) = admin {
        config.admin = Admin { address, ..config.admin };
    }
    if config.admin.address == config.listen.address && config.listen.address.port() != 0 {
        let (option, key) =
            if admin.is_some() { ("--admin", "admin.address") } else { ("--listen", "listen.address") };
        return Err(Problems::single(option, key, "the two listeners must have different addresses"));
    }
    Ok(config)
}

/// The name of the one upstream of [`for_url`].
pub const URL_NAME: &str = "url";

/// A configuration with one upstream named [`URL_NAME`] at an address, its names published as they are.
///
/// # Errors
/// An address or a token that cannot be used.
pub fn for_url(url: &str, token: Option<SecretString>) -> Result<Config, Problems> {
    let findings = Findings::new("--url");
    let upstream = Upstream {
        url: Field::Written(At::made("url", OneOrMore::One(At::made("url", url.to_owned())))),
        namespace: Field::Written(At::made("namespace", String::new())),
        ..Upstream::default()
    };
    let entry = (At::made("url", URL_NAME.to_owned()), Field::Written(At::made("url", upstream)));
    let file =
        File { upstreams: Field::Written(At::made("upstreams", Entries(vec![entry]))), ..File::default() };
    if let Some(problem) = token.as_ref().and_then(bearer_problem) {
        findings.error(&Place::nowhere("token"), problem);
    }
    let config = check(At::made("", file), (None, &mut []), &findings);
    let problems = findings.close();
    let Some(mut config) = config.filter(|_| !problems.has_errors()) else { return Err(problems) };
    config.names.characters = Characters::Any;
    config.names.max_length = usize::MAX;
    let credential = token.map_or(Credential::None, Credential::Bearer);
    for upstream in config.upstreams.iter_mut().filter_map(Arc::get_mut) {
        upstream.credential = credential.clone();
    }
    Ok(config)
}

/// The JSON Schema of `routes.yaml`.
#[must_use]
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(File).to_value()
}
