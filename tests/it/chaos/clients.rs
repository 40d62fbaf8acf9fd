//! Those who call, and those who listen.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::dice::Dice;
use crate::support::client::Answer;
use crate::support::eventually::holds;
use crate::support::{Client, Side, Weir, json};

const TOOLS: [&str; 6] = ["ann__echo", "bob__echo", "cat__echo", "dan__echo", "eve__echo", "fay__echo"];
/// How long after the end everybody must know the truth.
const SOON: Duration = Duration::from_secs(60);

/// What came of the calls of a client.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) good: usize,
    pub(super) failed: usize,
    /// What the latest failure said.
    last: String,
    pub(super) wrong: Vec<String>,
}

impl Tally {
    pub(super) fn and(mut self, other: Self) -> Self {
        self.good += other.good;
        self.failed += other.failed;
        self.wrong.extend(other.wrong);
        self
    }

    fn judge(&mut self, name: &str, marker: &str, answer: &Answer) {
        let upstream = name.split("__").next().unwrap_or_default();
        // What a server says of a session that it has forgotten twice in a row, or that it never named, passes as it is.
        let forgotten = ["Session not found", "before initialization was complete"];
        let is_passed = answer.code() < 0 && forgotten.iter().any(|text| answer.body().contains(text));
        let has_result = answer.raw(&["result"]).is_some();
        let text = if has_result { answer.said() } else { String::new() };
        let is_said = answer.is_failure() && text.contains(upstream);
        // While an upstream is withdrawn its tools do not exist.
        let is_withdrawn = answer.code() == -32602 && answer.body().contains("Unknown tool");
        if !answer.is_failure() && text == marker {
            self.good += 1;
        } else if answer.status() == 200 && (is_said || is_withdrawn || is_passed) {
            self.failed += 1;
            holds(Duration::from_millis(20), || false);
            answer.body().clone_into(&mut self.last);
        } else {
            self.wrong.push(format!("{name} {marker}: {answer:?}"));
        }
    }
}

fn client(weir: &Weir, side: Side) -> Client {
    weir.client(side).unchecked()
}

/// Calls tools at random until it is done; then every one of them must work again.
pub(super) fn call_on(weir: &Weir, side: Side, (number, dice): (usize, Dice), done: &AtomicBool) -> Tally {
    let client = client(weir, side);
    let mut tally = Tally::default();
    let mut turn = 0;
    let mut call = |name: &str, tally: &mut Tally| {
        turn += 1;
        let marker = format!("m-{number}-{turn}");
        let answer = client.call(name, &format!("{{\"text\":{}}}", json::quote(&marker)));
        tally.judge(name, &marker, &answer);
    };
    while !done.load(Ordering::Relaxed) {
        call(TOOLS[dice.below(TOOLS.len())], &mut tally);
    }
    let deadline = Instant::now() + SOON;
    for name in TOOLS {
        let before = tally.good;
        while tally.good == before && tally.wrong.is_empty() {
            assert!(Instant::now() < deadline, "{name} does not come back: {tally:?}");
            call(name, &mut tally);
        }
    }
    if side == Side::Legacy {
        assert_eq!(client.delete(), 204);
    }
    tally
}

/// Holds a list, and asks for it again only when it is told of a change. In the end it is the true one.
pub(super) fn listen_on(weir: &Weir, side: Side, done: &AtomicBool) {
    let client = client(weir, side);
    let mut stream = client.listen();
    let mut known = client.names();
    let mut ends: Option<Instant> = None;
    loop {
        if stream.next(Duration::from_millis(200)).is_some() {
            known = client.names();
        }
        assert_eq!(stream.broken(), None, "the stream stands");
        if done.load(Ordering::Relaxed) {
            let deadline = *ends.get_or_insert_with(|| Instant::now() + SOON);
            let truth = weir.modern().unchecked().names();
            if truth == known && weir.missing().is_empty() {
                break;
            }
            assert!(Instant::now() < deadline, "it believes in {known:?}, the truth is {truth:?}");
        }
    }
    drop(stream);
    if side == Side::Legacy {
        assert_eq!(client.delete(), 204);
    }
}
