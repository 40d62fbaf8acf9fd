//! What another configuration changes. Pure.

use secrecy::ExposeSecret as _;

use super::model::{ChildCommand, Config, Credential, Kind, Timeouts, ToolTimeout, Upstream};
use super::problem::{Findings, Place, Problems};

impl Upstream {
    /// Whether one link serves for both: what is spoken to is the same, in the same way and within the same limits. What
    /// decides about names and rights alone, and the credential, may differ.
    #[must_use]
    pub fn is_spoken_to_like(&self, other: &Self) -> bool {
        // Written out, so that whoever adds a key decides where it belongs.
        let Self {
            name,
            kind,
            transport,
            revision,
            sessions,
            credential_error_codes,
            timeout,
            concurrency,
            limits,
            refresh,
            withdraw_after,
            idle,
            namespace: _,
            credential: _,
            forward_headers: _,
            read_only: _,
            tools: _,
            classes: _,
            trust_annotations: _,
            probe: _,
            required: _,
        } = self;
        *name == other.name
            && is_same_kind(kind, &other.kind)
            && (*transport, *revision, *sessions) == (other.transport, other.revision, other.sessions)
            && *credential_error_codes == other.credential_error_codes
            && are_same_times(timeout, &other.timeout)
            && (*concurrency, *limits) == (other.concurrency, other.limits)
            && (*refresh, *withdraw_after, *idle) == (other.refresh, other.withdraw_after, other.idle)
    }
}

impl Credential {
    /// Whether both send the same.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, Self::None) => true,
            (Self::Bearer(one), Self::Bearer(other)) => one.expose_secret() == other.expose_secret(),
            (Self::Headers(one), Self::Headers(other)) => {
                let pair = |(one, other): (&(_, secrecy::SecretString), &(_, secrecy::SecretString))| {
                    one.0 == other.0 && one.1.expose_secret() == other.1.expose_secret()
                };
                one.len() == other.len() && one.iter().zip(other).all(pair)
            }
            (Self::None | Self::Bearer(_) | Self::Headers(_), _) => false,
        }
    }
}

fn is_same_kind(one: &Kind, other: &Kind) -> bool {
    match (one, other) {
        (Kind::Http { urls: one }, Kind::Http { urls: other }) => one == other,
        (Kind::Child(one), Kind::Child(other)) => is_same_child(one, other),
        (Kind::Builtin(one), Kind::Builtin(other)) => one == other,
        (Kind::Http { .. } | Kind::Child(_) | Kind::Builtin(_), _) => false,
    }
}

fn is_same_child(one: &ChildCommand, other: &ChildCommand) -> bool {
    let variables = |child: &ChildCommand| -> Vec<(String, String)> {
        let all = child.environment.iter();
        all.map(|(name, value)| (name.clone(), value.expose_secret().to_owned())).collect()
    };
    (&one.words, &one.folder, one.processes) == (&other.words, &other.folder, other.processes)
        && variables(one) == variables(other)
}

fn are_same_times(one: &Timeouts, other: &Timeouts) -> bool {
    let pair =
        |(one, other): (&ToolTimeout, &ToolTimeout)| one.glob == other.glob && one.limit == other.limit;
    (one.connect, one.call, one.call_max) == (other.connect, other.call, other.call_max)
        && one.tools.len() == other.tools.len()
        && one.tools.iter().zip(&other.tools).all(pair)
}

/// Takes a configuration that is to follow `old` without a restart.
///
/// # Errors
/// A problem for each change that needs one.
pub fn follow(old: &Config, new: Config) -> Result<Config, Problems> {
    let path = new.path.as_deref().map_or_else(|| "routes.yaml".to_owned(), Findings::name_of);
    let findings = Findings::new(&path);
    let refuse = |key: &str, differs: bool| {
        if differs {
            findings.error(&Place::nowhere(key), "a change of this key needs a restart; nothing was changed");
        }
    };
    refuse("listen.address", old.listen.address != new.listen.address);
    refuse("admin.address", old.admin.address != new.admin.address);
    refuse("telemetry.log.format", old.telemetry.format != new.telemetry.format);
    refuse("telemetry.audit", old.telemetry.audit != new.telemetry.audit);
    let problems = findings.close();
    if problems.has_errors() { Err(problems) } else { Ok(new) }
}
