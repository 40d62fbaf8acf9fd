//! nginx as a plain proxy before the same upstream: what a gateway can be held against.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::usage;

/// An nginx with one worker.
pub(crate) struct Nginx {
    child: Child,
    pub(crate) address: String,
    folder: tempfile::TempDir,
}

impl Nginx {
    /// Starts one before a server. Panics where Debian's package is not installed.
    pub(crate) fn start(upstream: &str) -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = free.local_addr().expect("an address").to_string();
        drop(free);
        let path = folder.path().join("nginx.conf");
        std::fs::write(&path, configuration(folder.path(), &address, upstream)).expect("written");
        let child = Command::new("nginx")
            .arg("-c")
            .arg(&path)
            .arg("-p")
            .arg(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("nginx (the package nginx-light)");
        for _ in 0..100 {
            if std::net::TcpStream::connect(&address).is_ok() {
                break;
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
        Self { child, address, folder }
    }

    /// Puts a file where it serves files from.
    pub(crate) fn file(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).expect("written");
    }

    /// Processor time of its processes so far, in seconds.
    pub(crate) fn cpu(&self) -> f64 {
        let own = self.child.id();
        let children =
            std::fs::read_to_string(format!("/proc/{own}/task/{own}/children")).expect("its workers");
        let workers: Vec<u32> = children.split_whitespace().filter_map(|id| id.parse().ok()).collect();
        assert_eq!(workers.len(), 1, "one worker");
        usage::cpu(&workers)
    }
}

fn configuration(folder: &std::path::Path, address: &str, upstream: &str) -> String {
    let dir = folder.display();
    format!(
        "user root; daemon off; worker_processes 1; pid {dir}/pid; error_log {dir}/errors;
events {{ worker_connections 4096; }}
http {{
  access_log off; sendfile on; keepalive_requests 1000000; client_max_body_size 64m;
  client_body_temp_path {dir}/b; proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
  upstream server {{ server {upstream}; keepalive 128; keepalive_requests 1000000; }}
  server {{
    listen {address};
    location /files/ {{ alias {dir}/; default_type application/json; }}
    location / {{ proxy_pass http://server; proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_max_temp_file_size 0; }}
    location /events {{ proxy_pass http://server; proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_buffering off; }}
  }}
}}
"
    )
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Asked to end: a worker of a killed master would go on.
        Command::new("kill").arg(self.child.id().to_string()).status().expect("kill");
        self.child.wait().expect("reaped");
    }
}
