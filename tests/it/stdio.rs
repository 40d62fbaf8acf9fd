//! Upstreams that are children of the gateway: what they get, what they may do wrong, and how they end.

use std::time::Duration;

use tokio::time::Instant;

use crate::questions::EVERYTHING;
use crate::support::{Ask, Client, Proxy, Side, Weir, eventually};

/// The line of an upstream that is a child in these modes.
pub(crate) fn child(name: &str, modes: &str, keys: &str) -> String {
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_weir")).parent().expect("a folder");
    let program = folder.join("examples/child");
    assert!(program.exists(), "cargo test builds it, as an example");
    let words: Vec<String> = std::iter::once(program.display().to_string())
        .chain(modes.split_whitespace().map(str::to_owned))
        .collect();
    format!("  {name}: {{ command: {words:?}{keys} }}\n")
}

fn with(children: &str) -> Weir {
    Proxy::new().entries(children).run()
}

/// What a tool of a child says.
fn said(client: &Client, tool: &str, arguments: &str) -> String {
    client.call(tool, arguments).said()
}

pub(crate) fn pid(client: &Client, name: &str) -> u32 {
    said(client, &format!("{name}__pid"), "{}").parse().expect("a number")
}

pub(crate) fn lives(pid: u32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // A zombie has ended, and nobody has asked how.
    !state.is_empty() && !state.contains(") Z ")
}

fn is_zombie(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default().contains(") Z ")
}

#[test]
fn children_of_both_eras_serve_clients_of_both_eras() {
    let weir = with(&(child("old", "", "") + &child("new", "modern", "")));
    for side in [Side::Legacy, Side::Modern] {
        let client = weir.client(side);
        assert_eq!(client.names().len(), 20);
        for name in ["old", "new"] {
            assert_eq!(said(&client, &format!("{name}__echo"), "{\"text\":\"hi\"}"), "hi", "{name}");
        }
    }
    let (_, status) = weir.admin_get("/api/status");
    assert!(status.contains("\"kind\":\"stdio\"") && status.contains("2026-07-28"), "{status}");
}

#[test]
fn c105_t092_a_child_gets_its_own_environment_and_three_pipes() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let keys = format!(", env: {{ FOO: bar }}, cwd: \"{}\"", folder.path().display());
    let weir = with(&(child("alpha", "", &keys) + &child("beta", "", ", env: { SECRET_B: canary-b }")));
    let client = weir.modern();
    let told = said(&client, "alpha__env", "{}");
    let mut lines = told.lines();
    let here = folder.path().canonicalize().expect("a folder").display().to_string();
    assert_eq!(lines.next(), Some(here.as_str()));
    let names: Vec<&str> = lines.filter_map(|line| line.split('=').next()).collect();
    assert!(names.contains(&"FOO") && names.contains(&"PATH"), "{told}");
    let known = ["FOO", "PATH", "HOME", "TMPDIR", "LANG"];
    assert!(names.iter().all(|name| known.contains(name)), "{told}");
    assert_eq!(said(&client, "alpha__fds", "{}"), "0 1 2");
}

#[test]
fn c066_one_child_serves_all_and_keeps_their_calls_apart() {
    let weir = with(&child("alpha", "", ""));
    let clients: Vec<Client> =
        [Side::Legacy, Side::Modern].into_iter().cycle().take(12).map(|side| weir.client(side)).collect();
    let running: Vec<_> = clients
        .iter()
        .enumerate()
        .map(|(number, client)| {
            let arguments = format!("{{\"text\":\"canary-{number}\"}}");
            (number, client.start(Ask::call("alpha__echo", &arguments).id("1")))
        })
        .collect();
    for (number, call) in running {
        assert_eq!(call.answer().said(), format!("canary-{number}"));
    }
    let all: std::collections::BTreeSet<u32> = clients.iter().map(|client| pid(client, "alpha")).collect();
    assert_eq!(all.len(), 1, "one process");
}

#[test]
fn a_shared_child_can_ask_nobody_and_one_of_a_client_its_client() {
    let weir = with(&(child("all", "", "") + &child("own", "", ", sessions: client")));
    let client = Client::new(weir.address, Side::Legacy).capable(EVERYTHING).opened();
    let refused = said(&client, "all__ask", "{\"message\":\"m\"}");
    assert!(refused.contains("-32601"), "{refused}");
    let talk = client.converse(Ask::call("own__ask", "{\"message\":\"canary-m\"}"));
    assert_eq!(talk.asked.len(), 1);
    assert!(talk.answer.said().contains("canary-m"), "{:?}", talk.answer);
    let modern = Client::new(weir.address, Side::Modern).capable(EVERYTHING);
    let talk = modern.converse(Ask::call("own__ask", "{\"message\":\"canary-n\"}"));
    assert!(talk.answer.said().contains("canary-n"), "{:?}", talk.answer);
    assert_ne!(pid(&client, "own"), pid(&modern, "own"), "each has its own");
}

#[test]
fn c107_children_of_clients_are_bounded_and_end_with_their_sessions() {
    let weir = with(&child("own", "", ", sessions: client, processes: 3"));
    let (one, two, three) = (weir.legacy(), weir.legacy(), weir.legacy());
    let first = pid(&one, "own");
    assert_ne!(first, pid(&two, "own"));
    let refused = three.call("own__pid", "{}");
    assert!(refused.is_failure() && refused.said().contains("as many calls"), "{refused:?}");
    assert_eq!(one.delete(), 204);
    eventually!(!lives(first), "its child ends with a session");
    eventually!(!three.call("own__pid", "{}").is_failure());
}

#[test]
fn c107_a_child_that_ends_at_once_is_started_less_and_less_often() {
    let mut weir = with(&(child("alpha", "gone", "") + &child("beta", "", "")));
    let client = weir.modern();
    assert_eq!(weir.missing(), ["alpha"]);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(4) {
        client.call("alpha__echo", "{}");
        client.call("beta__echo", "{}");
    }
    let started =
        weir.log().lines().filter(|line| line.contains("stdio.started") && line.contains("=alpha")).count();
    assert!((2..=6).contains(&started), "{started} starts in four seconds");
    weir.signal("INT");
    assert!(weir.ends(Duration::from_secs(5)).is_some());
}

#[test]
fn c108_c109_noise_and_floods_are_no_harm() {
    let weir = with(
        &(child("noise", "noise", "") + &child("flood", "flood", "") + &child("both", "modern noise", "")),
    );
    let client = weir.modern();
    for name in ["noise", "flood", "both"] {
        let begun = Instant::now();
        assert_eq!(said(&client, &format!("{name}__echo"), "{\"text\":\"hi\"}"), "hi", "{name}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{name}: {:?}", begun.elapsed());
    }
    eventually!(weir.log().contains("stdio.noise"));
    let log = weir.log();
    assert!(log.contains("stdio.noise") && log.contains("Server started!"), "{log}");
    assert!(log.len() < 256 * 1024 && !log.contains('\u{1b}'), "bounded and escaped: {} bytes", log.len());
}

#[test]
fn c110_a_crash_ends_its_calls_at_once_and_the_next_call_works() {
    for modes in ["", "modern", "dies"] {
        let weir = with(&child("alpha", modes, ""));
        let client = weir.modern();
        let before = pid(&client, "alpha");
        let took = std::thread::scope(|scope| {
            let hung: Vec<_> = (0..2).map(|_| scope.spawn(|| client.call("alpha__hang", "{}"))).collect();
            eventually!(said(&client, "alpha__lines", "{}").matches("\"hang\"").count() == 2);
            let begun = Instant::now();
            assert!(client.call("alpha__crash", "{}").is_failure(), "{modes}");
            assert!(hung.into_iter().all(|call| call.join().expect("an answer").is_failure()), "{modes}");
            begun.elapsed()
        });
        assert!(took < Duration::from_secs(1), "{modes}: {took:?}");
        assert_eq!(client.names().len(), 10, "{modes}: what it had stays listed");
        eventually!(!client.call("alpha__echo", "{\"text\":\"x\"}").is_failure(), "{modes}: it comes back");
        assert_ne!(pid(&client, "alpha"), before);
        assert!(!is_zombie(before), "{modes}");
        let started = || weir.log().lines().filter(|line| line.contains("stdio.started")).count();
        eventually!(started() == if modes == "dies" { 3 } else { 2 }, "{modes}: {}", weir.log());
    }
}

#[test]
fn c111_a_message_is_one_line_whatever_it_looked_like() {
    let weir = with(&child("alpha", "", ""));
    let client = weir.legacy();
    let pretty = "{\r\n\t\"text\": \"a\\nb\u{2028}c\\u000ad\"\r\n}";
    assert_eq!(said(&client, "alpha__echo", pretty), "a\nb\u{2028}c\nd");
    let lines = said(&client, "alpha__lines", "{}");
    assert!(lines.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()), "{lines}");
}

#[test]
fn c074_what_a_child_announces_reaches_clients() {
    for modes in ["", "modern"] {
        let weir = with(&child("alpha", modes, ""));
        for side in [Side::Legacy, Side::Modern] {
            let client = weir.client(side);
            let before = client.names().len();
            let mut stream = client.listen();
            assert_eq!(said(&client, "alpha__grow", "{}"), "grown");
            let told = stream.next(Duration::from_secs(5)).expect("a change");
            assert_eq!(told.method(), "notifications/tools/list_changed", "{modes}");
            assert!(
                client.names().len() > before || client.names().iter().any(|name| name.ends_with("grown"))
            );
        }
    }
}

#[test]
fn a_call_that_is_given_up_is_cancelled_in_both_eras() {
    for modes in ["", "modern"] {
        let weir = with(&child("alpha", modes, ", timeout: { tools: { hang: 300ms } }"));
        let client = weir.modern();
        assert!(client.call("alpha__hang", "{}").is_failure());
        eventually!(said(&client, "alpha__lines", "{}").contains("notifications/cancelled"), "{modes}");
    }
}

#[test]
fn c106_a_child_that_will_not_end_is_ended() {
    for modes in ["", "deaf", "deaf modern"] {
        let mut weir = with(&(child("alpha", modes, "") + &child("own", modes, ", sessions: client")));
        let client = weir.legacy();
        let pids = [pid(&client, "alpha"), pid(&client, "own")];
        assert!(pids.iter().all(|pid| lives(*pid)));
        weir.signal("INT");
        assert!(weir.ends(Duration::from_secs(6)).is_some(), "{modes}");
        eventually!(pids.iter().all(|pid| !lives(*pid)), "{modes}");
    }
}

#[test]
fn c106_children_end_when_the_gateway_is_killed() {
    let mut weir = with(&child("alpha", "", ""));
    let pid = pid(&weir.modern(), "alpha");
    weir.signal("KILL");
    weir.ends(Duration::from_secs(5)).expect("it ends");
    eventually!(!lives(pid), "its input has ended");
}

#[test]
fn t093_one_place_is_enough_for_a_child_whatever_it_dies_of() {
    for modes in ["", "dies", "choosy", "modern"] {
        let weir = with(&child("alpha", modes, ", processes: 1"));
        let client = weir.modern();
        assert_eq!(said(&client, "alpha__echo", "{\"text\":\"x\"}"), "x", "{modes}: {}", weir.log());
        client.call("alpha__crash", "{}");
        eventually!(!client.call("alpha__echo", "{\"text\":\"x\"}").is_failure(), "{modes}: {}", weir.log());
    }
}

#[test]
fn c107_a_child_that_cannot_be_understood_leaves_none_behind() {
    let weir = with(&(child("alpha", "strange", "") + &child("beta", "", "")));
    let client = weir.modern();
    for _ in 0..5 {
        assert!(client.call("alpha__echo", "{}").is_failure() || !weir.missing().is_empty());
    }
    let count =
        |word: &str| weir.log().lines().filter(|line| line.contains(word) && line.contains("=alpha")).count();
    eventually!(count("stdio.started") == count("stdio.stopped"), "{}", weir.log());
}

#[test]
fn c076_what_a_child_for_all_says_to_nobody_reaches_nobody() {
    for (modes, keys) in [("", ""), ("modern", ""), ("modern", ", sessions: client")] {
        let weir = with(&child("alpha", modes, keys));
        let client = weir.modern();
        let ask = Ask::call("alpha__chat", "{\"text\":\"canary-log\"}");
        let answer = client.ask(ask.meta("io.modelcontextprotocol/logLevel", "\"debug\""));
        assert_eq!((answer.said().as_str(), answer.before.len()), ("said", 0), "{modes}{keys}");
    }
}

#[test]
fn c074_the_next_child_is_heard_too() {
    for modes in ["", "modern"] {
        let weir = with(&child("alpha", modes, ""));
        let client = weir.modern();
        client.call("alpha__crash", "{}");
        eventually!(!client.call("alpha__echo", "{\"text\":\"x\"}").is_failure(), "{modes}");
        eventually!(weir.missing().is_empty());
        let before = client.names().len();
        eventually!(said(&client, "alpha__grow", "{}") == "grown");
        eventually!(client.names().len() > before, "{modes}: {}", weir.log());
    }
}

#[test]
fn t093_a_line_above_the_limit_ends_its_child_only() {
    let weir = with(&(child("alpha", "", ", limits: { answer: 1MiB }") + &child("beta", "", "")));
    let client = weir.modern();
    let (alpha, beta) = (pid(&client, "alpha"), pid(&client, "beta"));
    let text = format!("{{\"text\":\"{}\"}}", "x".repeat(2 * 1024 * 1024));
    let lost = client.call("alpha__echo", &text);
    assert!(lost.is_failure() && lost.said().contains("alpha"), "{}", lost.said());
    assert!(!client.call("beta__echo", &text).is_failure(), "below its limit");
    eventually!(!lives(alpha));
    eventually!(!client.call("alpha__echo", "{}").is_failure(), "another one is started");
    assert_eq!(pid(&client, "beta"), beta);
    eventually!(weir.log().contains("longer than limits.answer"), "{}", weir.log());
}

#[test]
fn what_a_shared_child_logs_goes_to_the_log_of_the_gateway() {
    let weir = with(&child("alpha", "", ""));
    let client = weir.legacy();
    let mut stream = client.listen();
    assert!(!client.call("alpha__chat", "{\"text\":\"hello from the child\"}").is_failure());
    eventually!(
        weir.log().contains("upstream.log") && weir.log().contains("hello from the child"),
        "{}",
        weir.log()
    );
    assert!(stream.until_quiet(Duration::from_millis(300)).is_empty(), "to no client");
}
