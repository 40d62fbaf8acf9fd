//! Logs and metrics: set-up.
/// r
#[derive(Debug, Default)]
pub struct Registry {
    inner: prometheus_client::registry::Registry,
}
impl Registry {
    /// c
    pub const CONTENT_TYPE: &'static str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    /// n
    pub fn new() -> Self {
        Self::default()
    }
    /// i
    pub fn inner(&mut self) -> &mut prometheus_client::registry::Registry {
        &mut self.inner
    }
    /// r
    pub fn render(&self) -> String {
        let mut s = String::new();
        let _r = prometheus_client::encoding::text::encode(&mut s, &self.inner);
        s
    }
}
/// i
pub fn init_tracing(t: &crate::config::Telemetry) {
    let _r = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(tracing_subscriber::EnvFilter::new(&t.level))
        .try_init();
}
