//! Many clients at once, all with the same ids and tokens: nobody hears what is another one's.

use std::sync::{Barrier, Mutex, PoisonError};
use std::thread;

use super::{EVERYTHING, able, ask};
use crate::support::client::Question;
use crate::support::{Client, Pair, Proxy, Side, eras, pairs};

pairs! { answers_never_cross_between_two_hundred_clients }

eras! { answers_never_cross_in_one_session_of_a_principal }

const CLIENTS: usize = 200;

fn answers_never_cross_between_two_hundred_clients(pair: Pair) {
    crowd(pair, "");
}

/// All of them share one session of the upstream.
fn answers_never_cross_in_one_session_of_a_principal(client: Side) {
    crowd(Pair { client, upstream: Side::Legacy }, "sessions: principal");
}

/// One crowd at a time: they are a load for the tests beside them.
static TURN: Mutex<()> = Mutex::new(());

fn crowd(pair: Pair, keys: &str) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let alpha = pair.fake().asking().start();
    let keys = &format!("concurrency: {{ calls: 0 }}\n{keys}");
    let weir = Proxy::new()
        .listen("limits: { parked_per_principal: 1000 }")
        .upstream_with("alpha", &alpha, keys)
        .run();
    let (alpha, weir, barrier) = (&alpha, &weir, &Barrier::new(CLIENTS));
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            scope.spawn(move || {
                let client = able(weir, pair.client, EVERYTHING);
                barrier.wait();
                own_only(&client, &format!("canary {number}"));
            });
        }
    });
    assert_eq!(alpha.violations(), Vec::<String>::new());
}

/// A call in which everything that comes back must be the client's own.
fn own_only(client: &Client, own: &str) {
    let talk = client.converse(ask("alpha", "form,sampling;form", own).id("1").progress("1"));
    assert_eq!(talk.asked.len(), 3);
    assert!(talk.asked.iter().all(|question| question.marker() == own), "{own}: {:?}", talk.asked);
    let accepted: Vec<String> = talk.asked.iter().map(Question::accept).collect();
    assert_eq!(talk.answer.said(), format!("[{}]", accepted.join(",")));
    for progress in talk.answer.before.iter().filter(|m| m.method() == "notifications/progress") {
        assert_eq!(progress.raw(&["params", "progressToken"]), Some("1"));
        assert_eq!(progress.raw(&["params", "message"]), Some(format!("\"{own}\"").as_str()));
    }
}
