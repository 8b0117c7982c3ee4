//! What leads to the faults. Nothing here waits for a time: each step waits for the previous one.

use std::time::Duration;

use call_assistant_postgres::clock;
use call_assistant_postgres::queue::{self, Locked};

use crate::Fault;
use crate::host::Host;

/// A sender is paused while its request is answered, for longer than its lease, so that another
/// sends the same. The other one's result is stored first. It is the second attempt, for the first
/// to fail changes the endpoint, and then rows are locked and read again.
pub(crate) async fn sent_twice(host: &mut Host, first: u16, late: u16) {
    host.sender("a");
    host.accept(clock::now()).await;
    host.receiver.next().await.answer(503);
    let of_a = host.receiver.next().await;
    host.pause("a");
    host.sender("b");
    let of_b = host.receiver.next().await;
    of_b.answer(first);
    host.becomes("SELECT count(*) FROM attempts", 2).await;
    of_a.answer(late);
    host.resume("a");
    host.becomes("SELECT count(*) FROM attempts", 3).await;
}

/// A sender is paused for longer than its lease, with nothing in flight. Then an event comes for what
/// another owns by now.
pub(crate) async fn goes_on(host: &mut Host) {
    host.sender("a");
    host.pause("a");
    host.sender("b");
    host.becomes("SELECT count(*) FROM shards WHERE epoch = 2", 64).await;
    host.resume("a");
    let live = "SELECT count(*) FROM senders WHERE expires_at > clock_timestamp()";
    host.becomes(live, 2).await;
    host.accept(clock::now()).await;
    let mut requests = vec![host.receiver.next().await];
    if host.has(Fault::NoEpoch) {
        requests.push(host.receiver.next().await);
    }
    requests.into_iter().for_each(|request| request.answer(204));
}

/// A sender of the kind that stores what it begins has died.
pub(crate) async fn left_behind(host: &mut Host) {
    let (accepted, begun) = (Duration::from_secs(40), Duration::from_secs(29));
    let key = host.accept(clock::now().saturating_sub(accepted)).await;
    let mut session = host.database.session().await.unwrap();
    let change = session.transaction().await.unwrap();
    let mut row = queue::lock(&change, &[key]).await.unwrap()[&key.delivery].row;
    let endpoints = queue::read_endpoints(&change, &[key.endpoint]).await.unwrap();
    let _ = row.begin(&endpoints[&key.endpoint], clock::now().saturating_sub(begun)).unwrap();
    assert!(queue::write(&change, [(Locked::of(row), row)]).await.unwrap());
    change.commit().await.unwrap();
    session.keep();

    host.receiver.answer_all(204);
    host.sender("a");
    host.accept(clock::now()).await;
    host.becomes("SELECT least(count(*), 1) FROM attempts", 1).await;
}

/// A result cannot be stored for a while, since somebody has the row.
pub(crate) async fn cannot_be_stored(host: &mut Host) {
    host.sender("a");
    let key = host.accept(clock::now()).await;
    let request = host.receiver.next().await;
    let mut session = host.database.session().await.unwrap();
    let change = session.transaction().await.unwrap();
    queue::lock(&change, &[key]).await.unwrap();
    request.answer(503);
    let waits = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'";
    host.becomes(waits, 1).await;
    if host.has(Fault::BeforeCommit) {
        host.receiver.next().await.answer(503);
    }
    change.rollback().await.unwrap();
    session.keep();
}

/// An attempt fails, and the next one does not.
pub(crate) async fn fails_once(host: &mut Host) {
    host.sender("a");
    host.accept(clock::now()).await;
    host.receiver.next().await.answer(503);
    host.becomes("SELECT count(*) FROM attempts", 1).await;
}

/// An attempt begins when its endpoint is well, another one fails, and then the first does not.
pub(crate) async fn resets(host: &mut Host) {
    host.sender("a");
    host.accept(clock::now()).await;
    host.receiver.next().await.answer(204);
    host.becomes("SELECT count(*) FROM attempts", 1).await;
    host.accept(clock::now()).await;
    let long = host.receiver.next().await;
    host.accept(clock::now()).await;
    host.receiver.next().await.answer(503);
    host.becomes("SELECT count(*) FROM endpoints WHERE first_failures = 1", 1).await;
    host.look().await;
    long.answer(204);
    host.becomes("SELECT count(*) FROM attempts", 3).await;
}

/// A task that has to go on ends, with a request in flight: its process is not ready, stores the result
/// and ends. Another sender goes on.
pub(crate) async fn ends_by_itself(host: &mut Host) {
    host.sender("a");
    assert!(host.is_ready("a"));
    host.accept(clock::now()).await;
    let _first = host.receiver.next().await;
    host.accept(clock::now()).await;
    host.is_no_longer_ready("a").await;
    host.receiver.answer_all(204);
    host.has_ended("a", "the sender's poller ended");
    host.becomes("SELECT least(count(*), 1) FROM ended WHERE status = 'delivered'", 1).await;
    host.sender("b");
    host.becomes("SELECT count(*) FROM deliveries", 0).await;
}

/// An attempt panics: its process says so and ends, and the next sender makes the attempt.
pub(crate) async fn panics(host: &mut Host) {
    host.sender("a");
    host.accept(clock::now()).await;
    host.has_ended("a", "an attempt panicked");
    host.mend();
    host.receiver.answer_all(204);
    host.sender("b");
    host.becomes("SELECT count(*) FROM deliveries", 0).await;
}
