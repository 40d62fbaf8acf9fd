//! The gateway under test: the built binary with a configuration of its own, on ports that it chose.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tokio::time::Instant;

use super::client::{Ask, Client};
use super::exchange::Exchange;
use super::upstream::Upstream;
use super::{Side, canary, eventually, json};

/// What a gateway is. Start it with [`Proxy::run`].
#[derive(Debug, Default)]
pub(crate) struct Proxy {
    listen: Vec<String>,
    sections: Vec<String>,
    upstreams: Vec<String>,
    notify: Option<String>,
    tokens: Vec<String>,
    address: Option<String>,
    admin: Option<String>,
    descriptors: Option<usize>,
    environment: Vec<(&'static str, String)>,
}

impl Proxy {
    /// A gateway with small times and no upstream.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// One that serves this upstream as `alpha`.
    pub(crate) fn before(upstream: &Upstream) -> Self {
        Self::new().upstream("alpha", upstream)
    }

    /// A further upstream.
    pub(crate) fn upstream(self, name: &str, upstream: &Upstream) -> Self {
        self.upstream_with(name, upstream, "")
    }

    /// A further upstream with keys of its own, one a line.
    pub(crate) fn upstream_with(self, name: &str, upstream: &Upstream, keys: &str) -> Self {
        self.upstream_at(name, &upstream.url(), keys)
    }

    /// A further upstream by its address.
    pub(crate) fn upstream_at(mut self, name: &str, url: &str, keys: &str) -> Self {
        canary::keep_credential(keys);
        let mut text = format!("  {name}:\n    url: {}\n", json::quote(url));
        for line in keys.lines().map(str::trim).filter(|line| !line.is_empty()) {
            text.push_str(&format!("    {line}\n"));
        }
        self.upstreams.push(text);
        self
    }

    /// Further upstreams, as they stand in the file.
    pub(crate) fn entries(mut self, text: &str) -> Self {
        self.upstreams.push(text.to_owned());
        self
    }

    /// A key below `listen`.
    pub(crate) fn listen(mut self, line: &str) -> Self {
        self.listen.push(line.to_owned());
        self
    }

    /// A section of its own, as YAML.
    pub(crate) fn section(mut self, text: &str) -> Self {
        self.sections.push(text.to_owned());
        self
    }

    /// A static token with its name and its scopes, as YAML lists them.
    pub(crate) fn token(mut self, name: &str, token: &str, scopes: &str) -> Self {
        let hash = token_hash(token);
        self.tokens.push(format!("    - {{ name: {name}, hash: \"{hash}\", scopes: [{scopes}] }}\n"));
        self
    }

    /// Other values of `notify`.
    pub(crate) fn notify(mut self, flow: &str) -> Self {
        self.notify = Some(flow.to_owned());
        self
    }

    /// Another address to listen on.
    pub(crate) fn address(mut self, address: &str) -> Self {
        self.address = Some(address.to_owned());
        self
    }

    /// Another address of the admin pages.
    pub(crate) fn admin(mut self, address: &str) -> Self {
        self.admin = Some(address.to_owned());
        self
    }

    /// How many descriptors it may have.
    pub(crate) fn descriptors(mut self, most: usize) -> Self {
        self.descriptors = Some(most);
        self
    }

    /// A variable of its environment.
    pub(crate) fn environment(mut self, name: &'static str, value: &str) -> Self {
        self.environment.push((name, value.to_owned()));
        self
    }

    /// The configuration as text.
    pub(crate) fn text(&self) -> String {
        let mut listen = self.listen.clone();
        if !listen.iter().any(|line| line.starts_with("drain:")) {
            listen.push("drain: { delay: 0s, deadline: 1s }".to_owned());
        }
        let listen: String = listen.iter().map(|line| format!("  {line}\n")).collect();
        let notify = self.notify.as_deref().unwrap_or("{ debounce: 50ms, max_wait: 300ms }");
        let upstreams = if self.upstreams.is_empty() {
            " {}\n".to_owned()
        } else {
            format!("\n{}", self.upstreams.concat())
        };
        let access = if self.tokens.is_empty() {
            String::new()
        } else {
            format!("access:\n  tokens:\n{}", self.tokens.concat())
        };
        let sections = self.sections.join("\n");
        format!("listen:\n{listen}notify: {notify}\n{access}{sections}\nupstreams:{upstreams}")
    }

    /// Starts it and waits until it says that it is ready.
    pub(crate) fn run(&self) -> Weir {
        let folder = TempDir::new().expect("a temporary folder");
        let file = folder.path().join("routes.yaml");
        std::fs::write(&file, self.text()).expect("a temporary file");
        let mut command = serve(self.address.as_deref(), Some(&file));
        command.args(["--admin", self.admin.as_deref().unwrap_or("127.0.0.1:0")]);
        let mut command = match self.descriptors {
            Some(most) => limited(&command, most),
            None => command,
        };
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        Weir::start(command, folder)
    }

    /// Starts one with this configuration file as it is, or with none at all, in an empty folder.
    pub(crate) fn of_file(file: Option<&Path>) -> Weir {
        let mut command = serve(None, file);
        command.args(["--admin", "127.0.0.1:0"]);
        Weir::start(command, TempDir::new().expect("a temporary folder"))
    }
}

/// The `hash:` of a token.
pub(crate) fn token_hash(token: &str) -> String {
    canary::keep(token);
    let digits: String = Sha256::digest(token.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}

fn serve(address: Option<&str>, file: Option<&Path>) -> Command {
    let mut command = weir();
    command.args(["serve", "--listen", address.unwrap_or("127.0.0.1:0")]);
    if let Some(file) = file {
        command.arg("--config").arg(file);
    }
    command
}

/// The same, with at most so many descriptors.
fn limited(command: &Command, most: usize) -> Command {
    let mut shell = Command::new("sh");
    shell.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    shell.args(["-c", &format!("ulimit -n {most}; exec \"$0\" \"$@\"")]);
    shell.arg(command.get_program()).args(command.get_args());
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    shell
}

/// The binary, without the environment of the test.
pub(crate) fn weir() -> Command {
    // Another build, for runs that measure.
    let binary = std::env::var_os("WEIR_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_weir").into());
    let mut command = Command::new(binary);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A running gateway. It is ended with this value.
#[derive(Debug)]
pub(crate) struct Weir {
    child: Child,
    /// Where clients come in.
    pub(crate) address: SocketAddr,
    admin: SocketAddr,
    /// What it printed on standard output until it was ready.
    pub(crate) printed: Vec<String>,
    log: Arc<Mutex<String>>,
    folder: TempDir,
}

impl Weir {
    fn start(mut command: Command, folder: TempDir) -> Self {
        let mut child = command.current_dir(folder.path()).spawn().expect("the binary starts");
        let log = Arc::new(Mutex::new(String::new()));
        let errors = child.stderr.take().expect("standard error is piped");
        let into = Arc::clone(&log);
        thread::spawn(move || gather(errors, &into));
        let lines = lines_of(child.stdout.take().expect("standard output is piped"));
        let deadline = Instant::now() + Duration::from_secs(15);
        let mut printed = Vec::new();
        while !printed.iter().any(|line: &String| line.starts_with("upstreams ")) {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = lines.recv_timeout(left) else {
                child.kill().ok();
                let log = log.lock().unwrap_or_else(PoisonError::into_inner);
                panic!("the gateway did not become ready; it printed {printed:?}\n{log}");
            };
            printed.push(line);
        }
        let address = address(&printed, "listening ");
        let admin = address_or(&printed, "admin ", address);
        Self { child, address, admin, printed, log, folder }
    }

    /// Its configuration file.
    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("routes.yaml")
    }

    /// How many configurations it has put in force (`applied`) or `refused` while it ran.
    pub(crate) fn reloads(&self, outcome: &str) -> f64 {
        self.metric("weir_config_reloads_total", &[&format!("outcome=\"{outcome}\"")]).unwrap_or_default()
    }

    /// Writes another configuration into its file and waits until it is in force.
    pub(crate) fn becomes(&self, other: &Proxy) {
        let before = self.reloads("applied");
        std::fs::write(self.file(), other.text()).expect("the file is written");
        eventually::eventually!(self.reloads("applied") > before, "{}", self.log());
    }

    /// A client of this era that is ready to ask.
    pub(crate) fn client(&self, side: Side) -> Client {
        Client::ready(self.address, side)
    }

    /// A legacy client with a session.
    pub(crate) fn legacy(&self) -> Client {
        self.client(Side::Legacy)
    }

    /// A modern client.
    pub(crate) fn modern(&self) -> Client {
        self.client(Side::Modern)
    }

    /// A POST to the endpoint, with nothing but what every POST has.
    pub(crate) fn post(&self, body: impl Into<Vec<u8>>) -> Exchange {
        Exchange::post(self.address, "/mcp", body)
    }

    /// Status and body of a page of the admin address.
    pub(crate) fn admin_get(&self, path: &str) -> (u16, String) {
        let response = Exchange::new(self.admin, "GET", path).send();
        (response.status(), response.text())
    }

    /// Where the admin pages are.
    pub(crate) fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// The sum of all series of a metric that carry every one of these labels, written `name="value"`.
    pub(crate) fn metric(&self, name: &str, labels: &[&str]) -> Option<f64> {
        let (_, text) = self.admin_get("/metrics");
        let series = text.lines().filter(|line| {
            line.split(['{', ' ']).next() == Some(name) && labels.iter().all(|label| line.contains(label))
        });
        let values: Vec<f64> = series.filter_map(|line| line.rsplit(' ').next()?.parse().ok()).collect();
        (!values.is_empty()).then(|| values.iter().sum())
    }

    /// Whether the lists hold what this upstream has: it is not among those that are missing.
    pub(crate) fn upstream_up(&self, name: &str) -> bool {
        !self.missing().contains(&name.to_owned())
    }

    /// The upstreams that the lists say are missing.
    pub(crate) fn missing(&self) -> Vec<String> {
        let answer = self.modern().ask(Ask::new("tools/list"));
        let result = answer.result();
        let missing = result["_meta"]["dev.weir/missing"].as_array().cloned().unwrap_or_default();
        missing.iter().filter_map(|entry| entry["upstream"].as_str().map(str::to_owned)).collect()
    }

    /// What it wrote on standard error so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The processes that it has started and that have not ended.
    pub(crate) fn children(&self) -> Vec<u32> {
        let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let of_gateway = |entry: std::fs::DirEntry| {
            let id: u32 = entry.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            // Behind the name, which may hold anything: the state and the parent.
            let mut rest = stat.rsplit(") ").next()?.split(' ');
            let (state, parent) = (rest.next()?, rest.next()?.parse::<u32>().ok()?);
            (parent == self.pid() && state != "Z").then_some(id)
        };
        all.filter_map(of_gateway).collect()
    }

    /// Sends a signal, by its name.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        Command::new("kill").args([&format!("-{name}"), &id]).status().ok();
    }

    /// Its exit status, if it ends in this time.
    pub(crate) fn ends(&mut self, within: Duration) -> Option<ExitStatus> {
        let mut status = None;
        eventually::holds(within, || {
            status = self.child.try_wait().ok().flatten();
            status.is_some()
        });
        status
    }
}

impl Drop for Weir {
    fn drop(&mut self) {
        if !thread::panicking() && self.ends(Duration::ZERO).is_none() && is_open(self.admin) {
            // One that was told to end may do so this moment.
            match Exchange::new(self.admin, "GET", "/metrics").try_send() {
                Some(response) => canary::check("/metrics", &response.text()),
                None => {
                    assert!(self.ends(eventually::PATIENCE).is_some(), "it says nothing and does not end")
                }
            }
        }
        if self.ends(Duration::ZERO).is_none() {
            self.signal("TERM");
            if self.ends(Duration::from_secs(4)).is_none() {
                self.child.kill().ok();
                self.child.wait().ok();
            }
        }
        if thread::panicking() {
            let log = self.log();
            let from = log.len().saturating_sub(6000);
            let tail = log.get(from..).unwrap_or(&log);
            std::io::stderr().write_all(format!("--- gateway\n{tail}\n").as_bytes()).ok();
        } else {
            canary::check("the log", &self.log());
        }
    }
}

fn gather(mut from: impl Read, into: &Mutex<String>) {
    let mut buffer = [0; 4096];
    while let Ok(count) = from.read(&mut buffer) {
        let Some(bytes) = buffer.get(..count).filter(|bytes| !bytes.is_empty()) else { return };
        into.lock().unwrap_or_else(PoisonError::into_inner).push_str(&String::from_utf8_lossy(bytes));
    }
}

fn lines_of(from: impl Read + Send + 'static) -> Receiver<String> {
    let (to, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            to.send(line).ok();
        }
    });
    lines
}

fn address(printed: &[String], label: &str) -> SocketAddr {
    let found = printed.iter().find_map(|line| {
        let rest = line.strip_prefix(label)?.strip_prefix("http://")?;
        rest.split('/').next()?.parse().ok()
    });
    found.unwrap_or_else(|| panic!("no line {label:?} in {printed:?}"))
}

fn address_or(printed: &[String], label: &str, other: SocketAddr) -> SocketAddr {
    if printed.iter().any(|line| line.starts_with(label)) { address(printed, label) } else { other }
}

/// Whether somebody listens there.
pub(crate) fn is_open(address: SocketAddr) -> bool {
    TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok()
}
