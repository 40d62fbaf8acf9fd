//! The registry that every module's metrics are entered in.

use prometheus_client::encoding::prometheus_text;
use prometheus_client::registry;

/// All metrics of the process.
#[derive(Debug, Default)]
pub struct Registry {
    inner: registry::Registry,
}

impl Registry {
    /// The content type of what [`Registry::render`] gives: the Prometheus text format.
    pub const CONTENT_TYPE: &'static str = prometheus_text::CONTENT_TYPE;

    /// An empty registry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The part for names that stand as they are, such as those of OpenTelemetry.
    pub fn plain(&mut self) -> &mut registry::Registry {
        &mut self.inner
    }

    /// The part for one module: names get `weir_` and the module's name in front.
    pub fn module(&mut self, name: &str) -> &mut registry::Registry {
        self.inner.sub_registry_with_prefix("weir").sub_registry_with_prefix(name)
    }

    /// All metrics as text.
    #[must_use]
    pub fn render(&self) -> String {
        let mut text = String::new();
        match prometheus_text::encode(&mut text, &self.inner) {
            Ok(()) => text,
            // Writing to a string cannot fail; half a page would be worse than none.
            Err(_) => String::new(),
        }
    }
}
