//! What the log lets through and how metrics look.

use prometheus_client::metrics::counter::Counter;

use super::tracing::filter;
use super::{Registry, init_tracing};
use crate::config::{LogFormat, Telemetry};

#[test]
fn a_second_set_up_is_harmless() {
    let telemetry =
        |format, level: &str| Telemetry { format, level: level.to_owned(), access: false, audit: None };
    let first = init_tracing(&telemetry(LogFormat::Json, "error"));
    assert!(init_tracing(&telemetry(LogFormat::Text, "off")).is_none(), "the first set-up ({first:?}) stays");
}

#[test]
fn a_bare_level_is_for_weir_alone() {
    let check = |level: &str, wanted: &str| {
        let mut parts: Vec<String> = filter(level).to_string().split(',').map(str::to_owned).collect();
        parts.sort_unstable();
        assert_eq!(parts.join(","), wanted, "{level}");
    };
    check("info", "warn,weir=info");
    check("DEBUG", "warn,weir=debug");
    check("error", "error");
    check("off", "off");
    check("info,weir::relay=trace", "info,weir::relay=trace");
    check("=?=", "warn,weir=info");
}

#[test]
fn metrics_are_written_in_the_text_format() {
    let mut registry = Registry::new();
    let (own, foreign) = (Counter::<u64>::default(), Counter::<u64>::default());
    registry.module("notify").register("announcements", "Announcements sent", own.clone());
    registry.plain().register("mcp_server_operations", "Operations", foreign);
    own.inc_by(3);
    let text = registry.render();
    assert!(
        text.contains("# TYPE weir_notify_announcements_total counter\nweir_notify_announcements_total 3\n")
    );
    assert!(text.contains("\nmcp_server_operations_total 0\n"), "{text}");
    assert!(Registry::CONTENT_TYPE.starts_with("text/plain"));
}
