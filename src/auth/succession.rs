//! The authenticator of the configuration in force, and how the next one follows it.
//!
//! A request asks the one that was made from the configuration that it sees, so that no token of one configuration is
//! judged by the rules of another. Keys of issuers that both know are taken over.

use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::DropGuard;

use super::{Authenticator, SetUpError, generate};
use crate::config::Config;
use crate::task::TaskGroup;

/// The authenticators of this process.
#[derive(Debug)]
pub struct Authenticators {
    line: watch::Sender<Arc<Line>>,
    /// Counts the configurations that every request sees.
    settled: watch::Sender<u64>,
    tasks: TaskGroup,
}

#[derive(Debug)]
struct Line {
    newest: Arc<Prepared>,
    /// The one before it, while there may be requests that see its configuration.
    before: Option<Arc<Prepared>>,
}

/// An authenticator that works, and may be put in force. Its keys are kept as long as it is.
#[derive(Debug)]
pub struct Prepared {
    config: Arc<Config>,
    authenticator: Arc<Authenticator>,
    _keys: DropGuard,
}

impl Prepared {
    fn new(
        config: &Arc<Config>,
        before: Option<&Authenticator>,
        tasks: &TaskGroup,
    ) -> Result<Self, SetUpError> {
        generate(config)?;
        let authenticator = Arc::new(Authenticator::after(config, before)?);
        let keys = tasks.child("keys of issuers");
        authenticator.keep_keys(&keys)?;
        Ok(Self { config: Arc::clone(config), authenticator, _keys: keys.token().drop_guard() })
    }
}

impl Authenticators {
    /// Begins with the authenticator of this configuration.
    ///
    /// # Errors
    /// [`SetUpError`] when it cannot work.
    pub fn start(config: &Arc<Config>, tasks: &TaskGroup) -> Result<Self, SetUpError> {
        let newest = Arc::new(Prepared::new(config, None, tasks)?);
        let line = watch::Sender::new(Arc::new(Line { newest, before: None }));
        Ok(Self { line, settled: watch::Sender::new(0), tasks: tasks.clone() })
    }

    /// Gets the authenticator of another configuration ready. Nobody asks it yet.
    ///
    /// # Errors
    /// [`SetUpError`] when it cannot work.
    pub fn prepare(&self, config: &Arc<Config>) -> Result<Prepared, SetUpError> {
        Prepared::new(config, Some(&self.newest()), &self.tasks)
    }

    /// Has it asked by every request that sees its configuration.
    pub fn put(&self, next: Prepared) {
        self.line.send_modify(|line| {
            let before = Some(Arc::clone(&line.newest));
            *line = Arc::new(Line { newest: Arc::new(next), before });
        });
    }

    /// New requests see the newest configuration from now on: what hangs on an earlier one looks whether it may go on.
    pub fn settle(&self) {
        self.line.send_modify(|line| {
            *line = Arc::new(Line { newest: Arc::clone(&line.newest), before: None });
        });
        self.settled.send_modify(|count| *count += 1);
    }

    /// Changes when the configuration in force is another one for everybody.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.settled.subscribe()
    }

    /// The authenticator of the newest configuration.
    #[must_use]
    pub fn newest(&self) -> Arc<Authenticator> {
        Arc::clone(&self.line.borrow().newest.authenticator)
    }

    /// The authenticator of a configuration; the newest one for one that is not in force any more.
    #[must_use]
    pub fn of(&self, config: &Arc<Config>) -> Arc<Authenticator> {
        let line = self.line.borrow();
        let before = line.before.as_ref().filter(|before| Arc::ptr_eq(&before.config, config));
        Arc::clone(&before.unwrap_or(&line.newest).authenticator)
    }
}
