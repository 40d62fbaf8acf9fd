//! Clients that take no events.

use std::time::Duration;

use futures_util::StreamExt as _;

use super::server::{Answer, Piece, Seen, events};
use super::support::{Fixture, call, legacy, modern};
use crate::config::Upstream;
use crate::exchange::{Call, Event, Failure, Reason};

/// A tool that reports progress twice and hangs, beside one that answers.
fn hanging(seen: &Seen, of_era: fn(&Seen) -> Answer) -> Answer {
    if seen.method() != "tools/call" || seen.body["params"]["arguments"] != "hang" {
        return of_era(seen);
    }
    let progress = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{},"progress":1}}}}"#,
        seen.id()
    );
    events(&[&progress, &progress], Some(Piece::Hold))
}

fn narrow(upstream: &mut Upstream) {
    upstream.timeout.call = Duration::from_millis(300);
    upstream.concurrency.calls = Some(1);
}

#[tokio::test]
async fn c114_a_call_whose_client_takes_nothing_ends_at_its_time_all_the_same() {
    for (of_era, cancellations) in [(legacy as fn(&Seen) -> Answer, 1), (modern, 0)] {
        let fixture = Fixture::with(move |seen| hanging(seen, of_era), narrow).await;
        fixture.up().await;
        let mut reply =
            fixture.link.call(Call { progress_token: Some("1".to_owned()), ..call("echo", "\"hang\"") });
        assert!(matches!(reply.next().await, Some(Event::Progress(_))));
        // Nobody polls the reply any more, and its place is free all the same.
        let patient = Call { timeout: Some(Duration::from_secs(5)), ..call("echo", "{}") };
        fixture.result(patient).await;
        fixture.server.saw("notifications/cancelled", cancellations).await;
        let rest: Vec<Event> = reply.collect().await;
        match &rest[..] {
            [Event::Progress(_), Event::Failed(Failure::Upstream(lost))] => {
                assert_eq!((&lost.reason, lost.may_have_run), (&Reason::TimedOut, true));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_client_that_comes_back_in_time_misses_nothing() {
    let fixture =
        Fixture::with(|seen| hanging(seen, modern), |up| up.timeout.call_max = Duration::from_secs(1)).await;
    fixture.up().await;
    let asked = Call {
        progress_token: Some("1".to_owned()),
        timeout: Some(Duration::from_millis(600)),
        ..call("echo", "\"hang\"")
    };
    let mut reply = fixture.link.call(asked);
    assert!(matches!(reply.next().await, Some(Event::Progress(_))));
    fixture.result(call("echo", "{}")).await;
    assert!(matches!(reply.next().await, Some(Event::Progress(_))));
    let last = tokio::time::timeout(Duration::from_secs(5), reply.next()).await.unwrap();
    assert!(matches!(last, Some(Event::Failed(_))), "the one who waits is woken: {last:?}");
    assert!(reply.next().await.is_none());
}
