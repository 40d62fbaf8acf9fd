//! The gateway under measurement: a process of its own.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

/// A gateway in front of an upstream.
pub(crate) struct Weir {
    child: Child,
    /// Where clients come in.
    pub(crate) address: String,
    _directory: tempfile::TempDir,
}

impl Weir {
    /// Starts one before the server at an address, which is spoken to in this revision.
    pub(crate) fn start(upstream: &str, revision: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("routes.yaml");
        let text = format!(
            "upstreams:\n  up:\n    url: http://{upstream}/mcp\n    revision: \"{revision}\"\n    required: true\n"
        );
        std::fs::write(&path, text).expect("written");
        let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--config"])
            .arg(&path)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the gateway");
        let stdout = child.stdout.take().expect("its output");
        let first = BufReader::new(stdout).lines().next().expect("a line").expect("text");
        let address = first.strip_prefix("listening http://").and_then(|rest| rest.strip_suffix("/mcp"));
        Self { address: address.expect("an address").to_owned(), child, _directory: directory }
    }

    /// Processor time of the gateway so far, in seconds.
    pub(crate) fn cpu(&self) -> f64 {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("its threads");
        let nanoseconds: f64 = tasks
            .flatten()
            .filter_map(|task| std::fs::read_to_string(task.path().join("schedstat")).ok())
            .filter_map(|text| text.split(' ').next()?.parse::<f64>().ok())
            .sum();
        nanoseconds / 1e9
    }
}

impl Drop for Weir {
    fn drop(&mut self) {
        self.child.kill().expect("ended");
        self.child.wait().expect("reaped");
    }
}
