//! A clock that is set while Weir runs. The library `libfaketime` makes it so for one process.

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use super::{AUDIENCE, both, client, public};
use crate::support::issuer::Issuer;
use crate::support::{Ask, Client, Side, Upstream, Weir, eventually, tool};

/// The library, where Debian's package `faketime` has put it.
fn library() -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib").ok()?.flatten();
    let mut files = folders.map(|folder| folder.path().join("faketime/libfaketime.so.1"));
    files.find(|file| file.exists())
}

/// The clock of the gateway, in a file.
struct Clock(PathBuf);

impl Clock {
    /// So many seconds off from now on. Put there in one step, as it is read at any time.
    fn set(&self, seconds: i64) {
        let new = self.0.with_extension("new");
        std::fs::write(&new, format!("{seconds:+}\n")).expect("the file is written");
        std::fs::rename(new, &self.0).expect("the file is put in place");
    }
}

fn gateway(issuer: &Issuer, alpha: &Upstream, (library, clock): (&Path, &Clock)) -> Weir {
    let weir = public()
        .upstream_with(
            "alpha",
            alpha,
            "classes: { read: [\"seen*\"], write: [secret] }\ntimeout: { call: 4s }",
        )
        .section(&issuer.access(""))
        .environment("LD_PRELOAD", &library.display().to_string())
        .environment("FAKETIME_TIMESTAMP_FILE", &clock.0.display().to_string())
        .environment("FAKETIME_NO_CACHE", "1")
        .environment("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .environment("DONT_FAKE_MONOTONIC", "1")
        .run();
    eventually!(weir.admin_get("/readyz").0 == 200);
    weir
}

#[test]
fn t099_a_clock_that_is_set_ends_nobody_but_whose_token_is_over() {
    let Some(library) = library() else {
        println!("skipped: the library libfaketime is not on this machine");
        return;
    };
    let folder = tempfile::TempDir::new().expect("a folder");
    let clock = Clock(folder.path().join("clock"));
    clock.set(0);
    let (issuer, alpha) = (Issuer::start(), both("alpha", Side::Modern));
    let weir = gateway(&issuer, &alpha, (&library, &clock));
    let now = Timestamp::now().as_second();
    let good_for = |seconds: i64| {
        issuer.signed(AUDIENCE, &[("scope", json!("mcp:read mcp:write")), ("exp", json!(now + seconds))])
    };
    let (short, long) = (good_for(1800), good_for(3 * 3600));
    let a_minute_ago =
        [("scope", json!("mcp:read")), ("nbf", json!(now - 60)), ("exp", json!(now + 3 * 3600))];
    let begun = issuer.signed(AUDIENCE, &a_minute_ago);
    let status = |token: &str| {
        let client = Client::new(weir.address, Side::Modern).token(token);
        client.ask(Ask::new("tools/list")).status()
    };
    assert_eq!([status(&short), status(&long), status(&begun)], [200; 3]);
    let listeners = ["2025-11-25", "2026-07-28"].map(|revision| client(&weir, revision, &long));
    let mut streams = listeners.each_ref().map(Client::listen);
    let turns = [(3600, [401, 200, 200]), (0, [200; 3]), (-3600, [200, 200, 401]), (7, [200; 3])];
    for (seconds, expected) in turns {
        clock.set(seconds);
        assert_eq!([status(&short), status(&long), status(&begun)], expected, "{seconds}: {}", weir.log());
        for client in &listeners {
            assert!(!client.call("alpha__seen", "{}").is_failure(), "{seconds}: sessions go on");
        }
        alpha.add("tools", &tool(&format!("seen{}", seconds + 3600)));
        for stream in &mut streams {
            assert!(stream.next(Duration::from_secs(5)).is_some(), "{seconds}: a listener is told");
            assert_eq!(stream.broken(), None);
        }
    }
    clock.set(3600);
    eventually!(weir.log().contains("clock.jump"), "{}", weir.log());
    assert_eq!(weir.metric("weir_sessions", &[]), Some(1.0));
}
