//! The stream of a call: what is kept, for whom, and how much of it.

use bytes::Bytes;
use http::StatusCode;
use tokio_util::sync::CancellationToken;

use super::engine::Engine;
use super::line::{Account, BUDGET, Ending, Head, Line, Lost, Next};
use crate::task::TaskGroup;

const LOST: &str = "lost";
const DONE: Ending = Ending { status: StatusCode::OK, challenge: None };

fn line_of(account: Account) -> Line {
    let engine = Engine::new(&TaskGroup::new("calls"));
    let lost = Lost(Box::new(|| Bytes::from_static(LOST.as_bytes())));
    Line::new(1, (CancellationToken::new(), engine), (account, lost))
}

fn line() -> Line {
    line_of(Account::default())
}

async fn write(line: &Line, text: &str, last: bool) {
    line.write(vec![Bytes::from(text.to_owned())], last.then_some(DONE), || BUDGET).await;
}

/// Everything that a reader gets without waiting.
async fn read(line: &Line, epoch: u64) -> Vec<String> {
    let mut read = Vec::new();
    while let Some(Next::Message(sent)) = futures_util::FutureExt::now_or_never(line.next(epoch)) {
        read.push(String::from_utf8(sent.pieces.concat()).expect("text"));
    }
    read
}

#[tokio::test]
async fn an_only_message_is_the_whole_answer() {
    let line = line();
    write(&line, "result", true).await;
    assert!(matches!(line.head().await, Head::Whole(sent) if sent.pieces.concat() == b"result"));
    let cancelled = self::line();
    cancelled.close();
    assert!(matches!(cancelled.head().await, Head::Nothing));
}

#[tokio::test]
async fn what_was_handed_out_can_be_had_again() {
    let line = line();
    let first = line.attach(1);
    write(&line, "progress", false).await;
    write(&line, "result", true).await;
    assert_eq!(read(&line, first).await, ["progress", "result"]);
    assert!(!line.detach(first, BUDGET), "it may not have arrived");
    let second = line.attach(2);
    assert_eq!(read(&line, second).await, ["result"]);
}

#[tokio::test]
async fn a_newer_reader_displaces_an_older_one() {
    let line = line();
    let (old, new) = (line.attach(1), line.attach(1));
    write(&line, "result", true).await;
    assert!(matches!(line.next(old).await, Next::End));
    line.detach(old, 0);
    assert_eq!(read(&line, new).await, ["result"], "the end of the old one is no break of the new one");
}

#[tokio::test]
async fn t054_an_event_id_from_the_future_is_clamped() {
    let line = line();
    let reader = line.attach(u64::MAX);
    write(&line, "result", true).await;
    assert_eq!(read(&line, reader).await, ["result"]);
}

#[tokio::test]
async fn a_result_that_is_too_large_to_be_kept_is_replaced() {
    let large = "x".repeat(BUDGET + 1);
    let before = line();
    let reader = before.attach(1);
    before.detach(reader, BUDGET);
    write(&before, &large, true).await;
    assert_eq!(before.kept(), LOST.len(), "written while nobody was there");
    let after = line();
    let reader = after.attach(1);
    write(&after, &large, true).await;
    after.detach(reader, BUDGET);
    let again = after.attach(1);
    assert_eq!(read(&after, again).await, [LOST], "written before the stream broke");
}

#[tokio::test]
async fn a_writer_waits_for_an_attached_reader() {
    let line = line();
    let reader = line.attach(1);
    write(&line, &"x".repeat(300 * 1024), false).await;
    let mut next = Box::pin(write(&line, "more", false));
    assert!(futures_util::FutureExt::now_or_never(next.as_mut()).is_none());
    assert_eq!(read(&line, reader).await.len(), 1);
    next.await;
    assert_eq!(read(&line, reader).await, ["more"]);
}

#[tokio::test]
async fn what_broken_streams_keep_is_counted_for_all_of_a_session() {
    let account = Account::default();
    let (one, two) = (line_of(account.clone()), line_of(account.clone()));
    for line in [&one, &two] {
        let reader = line.attach(1);
        write(line, &"x".repeat(1000), true).await;
        assert!(!line.detach(reader, BUDGET));
    }
    assert_eq!(account.room(), BUDGET - one.kept() - two.kept());
    assert_eq!(account.room(), BUDGET - 2000);
    two.attach(1);
    assert_eq!(account.room(), BUDGET - 1000, "one that is read costs nothing");
    drop((one, two));
    assert_eq!(account.room(), BUDGET);
}
