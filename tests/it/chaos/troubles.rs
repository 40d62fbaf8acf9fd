//! What upstreams do wrong.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::Executed;
use super::dice::Dice;
use crate::support::eventually::holds;
use crate::support::{Fake, Request, Upstream, Weir, Wire, json, tool};

/// How a server answers calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Well,
    /// Later than anybody waits.
    Stalled,
    /// With a page of a proxy.
    Page,
    /// It does what it is told and says nothing.
    Cut,
    /// With something that is no message.
    Garbage,
    /// With the answer to another call.
    Foreign,
}

const MANNERS: [Manner; 6] =
    [Manner::Well, Manner::Stalled, Manner::Page, Manner::Cut, Manner::Garbage, Manner::Foreign];

/// A server that can be troubled.
pub(super) struct Server {
    pub(super) name: &'static str,
    pub(super) upstream: Upstream,
    manner: Arc<AtomicUsize>,
}

impl Server {
    /// Legacy with sessions, modern, legacy without sessions, HTTP+SSE.
    pub(super) fn four(executed: &Executed) -> Vec<Self> {
        let fakes = [
            ("ann", Fake::legacy()),
            ("bob", Fake::modern()),
            ("cat", Fake::legacy().without_sessions()),
            ("dan", Fake::legacy().over_sse()),
        ];
        fakes.map(|(name, fake)| Self::start(name, fake, executed.clone())).into()
    }

    fn start(name: &'static str, fake: Fake, executed: Executed) -> Self {
        let manner = Arc::new(AtomicUsize::new(0));
        let now = Arc::clone(&manner);
        let script = move |request: &Request, wire: &mut Wire<'_>| {
            let manner = MANNERS[now.load(Ordering::Relaxed) % MANNERS.len()];
            answer(manner, request, wire, &executed);
        };
        let fake = fake.forgetful().label(name).tools([tool("echo")]).script("tools/call", script);
        Self { name, upstream: fake.start(), manner }
    }

    /// Makes trouble until it ends; then everything is well.
    pub(super) fn trouble(&self, dice: &Dice, ends: Instant) {
        let (mut number, begun) = (0, Instant::now());
        while Instant::now() < ends {
            rest(pause(dice, begun, (100, 900)));
            match dice.below(8) {
                0 => {
                    self.upstream.stop();
                    rest(dice.time(50, 1500));
                    self.upstream.restart();
                }
                1 => self.upstream.forget(),
                2 => self.upstream.close_streams(),
                3 | 4 => {
                    number += 1;
                    self.upstream.set_tools([tool("echo"), tool(&format!("extra{number}"))]);
                    self.upstream.announce();
                }
                _ => {
                    self.manner.store(1 + dice.below(MANNERS.len() - 1), Ordering::Relaxed);
                    rest(dice.time(50, 600));
                    self.manner.store(0, Ordering::Relaxed);
                }
            }
        }
        self.upstream.set_tools([tool("echo"), tool("last")]);
        self.upstream.announce();
    }
}

fn answer(manner: Manner, request: &Request, wire: &mut Wire<'_>, executed: &Executed) {
    let marker = json::text(&request.body, &["params", "arguments", "text"]).unwrap_or_default();
    executed.note(&marker);
    let result =
        |text: &str| format!("{{\"content\":[{{\"type\":\"text\",\"text\":{}}}]}}", json::quote(text));
    match manner {
        Manner::Well => wire.result(&result(&marker)),
        Manner::Stalled => {
            wire.pause(Duration::from_secs(3));
            wire.result(&result(&marker));
        }
        Manner::Page => wire.page(502, "text/html", "<h1>Bad Gateway</h1>"),
        Manner::Cut => wire.abort(),
        Manner::Garbage => wire.json(200, &[], "{\"jsonrpc\":\"2.0\",\"id\":"),
        Manner::Foreign => {
            let text = result("somebody else's");
            wire.json(200, &[], &format!("{{\"jsonrpc\":\"2.0\",\"id\":999999,\"result\":{text}}}"));
        }
    }
}

/// Kills the children of the gateway now and then.
pub(super) fn kill_children(weir: &Weir, dice: &Dice, ends: Instant) {
    let begun = Instant::now();
    while Instant::now() < ends {
        rest(pause(dice, begun, (300, 2500)));
        let children = weir.children();
        if let Some(child) = children.get(dice.below(children.len().max(1))) {
            let signal = ["-KILL", "-TERM", "-STOP"][dice.below(3)];
            let send = |signal: &str| Command::new("kill").args([signal, &child.to_string()]).status().ok();
            send(signal);
            if signal == "-STOP" {
                rest(dice.time(100, 1500));
                send("-CONT");
            }
        }
    }
}

/// How long nothing happens: in every other stretch of half a minute ten times as long, so that what was left alone for
/// failing too often comes back.
fn pause(dice: &Dice, begun: Instant, (from, to): (usize, usize)) -> Duration {
    let is_calm = begun.elapsed().as_secs() / 30 % 2 == 1;
    dice.time(from, to) * if is_calm { 10 } else { 1 }
}

fn rest(time: Duration) {
    holds(time, || false);
}
