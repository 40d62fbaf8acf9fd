//! The first minute: the shipped configuration and none at all serve the demonstration upstreams.

use std::path::Path;

use crate::support::{Ask, Client, Proxy, Side, Weir, eras, eventually};

eras! { the_shipped_configuration_serves, without_a_configuration_the_demonstration_is_served }

const TOOLS: [&str; 6] =
    ["clock__now", "clock__convert", "clock__timer", "notes__add", "notes__list", "notes__remove"];

/// Lists and uses what is demonstrated.
fn works(weir: &Weir, client: &Client) {
    assert!(weir.printed.contains(&"upstreams 2/2 up, 6 tools".to_owned()), "{:?}", weir.printed);
    assert_eq!(client.names(), TOOLS);
    assert!(!client.call("clock__now", "{}").is_failure());
    let timer = client.ask(Ask::call("clock__timer", "{\"seconds\":1}").progress("1"));
    assert!(!timer.is_failure() && !timer.before.is_empty(), "{timer:?}");
    let failed = client.call("clock__convert", "{\"nonsense\":1}");
    assert!(failed.is_failure() || failed.code() == -32602, "{failed:?}");
}

fn the_shipped_configuration_serves(side: Side) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("routes.yaml");
    let weir = Proxy::of_file(Some(&file));
    works(&weir, &weir.client(side));
}

fn without_a_configuration_the_demonstration_is_served(side: Side) {
    let weir = Proxy::of_file(None);
    works(&weir, &weir.client(side));
    eventually!(weir.log().contains("demonstration"), "a line says so: {}", weir.log());
    assert!(weir.address.ip().is_loopback());
}
