//! The gateway under measurement: a process of its own.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use super::usage;

/// A gateway.
pub(crate) struct Weir {
    child: Child,
    /// Where clients come in.
    pub(crate) address: String,
    _directory: tempfile::TempDir,
}

impl Weir {
    /// Starts one with a configuration, by way of a command such as `taskset`, and waits until all its upstreams are up.
    pub(crate) fn of(text: &str, by_way_of: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("routes.yaml");
        std::fs::write(&path, text).expect("written");
        let binary = binary();
        let binary = binary.as_str();
        let program = by_way_of.first().copied().unwrap_or(binary);
        let mut command = Command::new(program);
        if by_way_of.len() > 1 {
            command.args(by_way_of.iter().skip(1)).arg(binary);
        }
        command.args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--config"]).arg(&path);
        command.current_dir(directory.path()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the gateway");
        let stdout = BufReader::new(child.stdout.take().expect("its output"));
        let mut address = None;
        for line in stdout.lines().map_while(Result::ok) {
            if let Some(rest) = line.strip_prefix("listening http://") {
                address = rest.split('/').next().map(str::to_owned);
            }
            if line.starts_with("upstreams ") {
                break;
            }
        }
        Self { address: address.expect("an address"), child, _directory: directory }
    }

    /// Processor time of the gateway so far, in seconds.
    pub(crate) fn cpu(&self) -> f64 {
        usage::cpu(&[self.id()])
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

/// The build that is measured: the one of this benchmark, or another one, for comparisons.
pub(crate) fn binary() -> String {
    std::env::var("WEIR_BINARY").unwrap_or_else(|_unset| env!("CARGO_BIN_EXE_weir").to_owned())
}

/// An upstream in a configuration.
pub(crate) fn entry(name: &str, url: &str, revision: &str) -> String {
    format!("  {name}: {{ url: \"{url}\", revision: \"{revision}\", required: true }}\n")
}

impl Drop for Weir {
    fn drop(&mut self) {
        self.child.kill().expect("ended");
        self.child.wait().expect("reaped");
    }
}
