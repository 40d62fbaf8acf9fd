//! One upstream at several addresses: shared by load, and none is needed.

use crate::support::{Client, Fake, Proxy, Side, Upstream, Weir, eras, eventually, json};

eras! { calls_are_shared_among_addresses, a_lost_address_fails_no_call_and_comes_back }

fn set_up(side: Side) -> (Upstream, Upstream, Weir) {
    let [one, two] = ["one", "two"].map(|label| Fake::of(side).label(label).start());
    let urls: Vec<String> = [&one, &two].iter().map(|upstream| json::quote(&upstream.url())).collect();
    let entry = format!("  alpha: {{ url: [{}], timeout: {{ connect: 1s }} }}\n", urls.join(", "));
    let weir = Proxy::new().entries(&entry).run();
    (one, two, weir)
}

fn calls(upstreams: [&Upstream; 2]) -> [usize; 2] {
    upstreams.map(|upstream| upstream.seen("tools/call").len())
}

fn calls_are_shared_among_addresses(side: Side) {
    let (one, two, weir) = set_up(side);
    let clients: Vec<Client> = (0..10).map(|_| weir.client(side)).collect();
    for client in &clients {
        for turn in 1..=4 {
            let answer = client.call("alpha__incr", "{}");
            if side == Side::Legacy {
                assert_eq!(answer.said(), turn.to_string(), "a session stays with its address");
            }
        }
    }
    let [at_one, at_two] = calls([&one, &two]);
    assert_eq!(at_one + at_two, 40);
    assert!(at_one.min(at_two) >= 12, "{at_one} and {at_two}");
    assert_eq!([one.violations(), two.violations()].concat(), Vec::<String>::new());
}

fn a_lost_address_fails_no_call_and_comes_back(side: Side) {
    let (one, two, weir) = set_up(side);
    let clients: Vec<Client> = (0..6).map(|_| weir.client(side)).collect();
    let mut stream = clients[0].listen();
    let all_answer = || clients.iter().all(|client| !client.call("alpha__echo", "{}").is_failure());
    assert!(all_answer());
    one.stop();
    assert!((0..5).all(|_| all_answer()), "{}", weir.log());
    assert_eq!(weir.missing(), Vec::<String>::new());
    let before = calls([&one, &two]);
    one.restart();
    eventually!({
        let news: Vec<Client> = (0..2).map(|_| weir.client(side)).collect();
        news.iter().for_each(|client| assert!(!client.call("alpha__echo", "{}").is_failure()));
        calls([&one, &two])[0] > before[0]
    });
    two.stop();
    assert!((0..5).all(|_| all_answer()), "{}", weir.log());
    let told = stream.until_quiet(std::time::Duration::from_millis(500));
    assert!(told.is_empty(), "no list has changed: {told:?}");
}
