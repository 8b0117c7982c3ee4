//! What the port promises of every store's transactions: a store's own tests run this over it.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    Delivery, DeliveryStatus, EndpointHealth, Outcome, RetrySchedule,
};
use host::post::Sent;
use host::rows::{Change, Changes, Done, Failure, Key, Lock, Locked, Names, Opened, Writes};
use host::sender::{Ended, How, park, settle};

/// A store with an endpoint.
pub trait World {
    type Store: Changes;

    fn store(&self) -> &Self::Store;

    /// Accepts an event for the endpoint, and returns its delivery.
    fn accept(&self) -> impl Future<Output = Delivery>;

    /// Returns how many entries the log of a delivery has.
    fn attempts(&self, delivery: &Delivery) -> impl Future<Output = usize>;

    fn now(&self) -> Timestamp;
}

/// Runs all of it.
pub async fn holds(world: &impl World) {
    a_row_is_written_under_the_version_that_was_read(world).await;
    a_transaction_that_is_dropped_leaves_nothing(world).await;
    a_commit_that_is_dropped_is_all_or_nothing(world).await;
    what_somebody_has_changed_is_settled_as_it_is_stored(world).await;
    an_enabled_endpoint_keeps_what_is_pending_and_a_disabled_one_parks_it(world).await;
}

async fn stored(world: &impl World, of: &Delivery) -> Delivery {
    let mut change = world.store().change().await.unwrap();
    let locked = change.lock(&[Key::of(of)]).await.unwrap();
    change.roll_back().await;
    locked[&of.id()].row
}

async fn health(world: &impl World, of: &Delivery) -> EndpointHealth {
    let number = Key::of(of).endpoint;
    let mut change = world.store().change().await.unwrap();
    let endpoints = change.endpoints(&[number], Lock::No).await.unwrap();
    change.roll_back().await;
    endpoints[&number]
}

/// Begins an attempt in memory, and ends it.
async fn ended(world: &impl World, row: &Delivery, outcome: Outcome) -> Ended {
    let (health, now) = (health(world, row).await, world.now());
    let mut begun = *row;
    let attempt = begun.begin(&health, now).unwrap();
    let names = Names { account: "acct_1".into(), endpoint: "we_1".into(), shard: 0 };
    let secret = call_assistant::webhook::SigningSecret::from_random([1; 32]);
    let signer = call_assistant::webhook::Signer::new(secret);
    let opened = std::sync::Arc::new(Opened { names, destination: None, signer });
    let (at, sent) = (now, Sent::without_answer(outcome, now));
    Ended { key: Key::of(row), row: begun, attempt, opened, at, sent }
}

async fn write(change: &mut impl Change, locked: Locked, now: Delivery, at: Timestamp) -> Done<()> {
    change.write(&Writes { deliveries: vec![(locked, now)], ..Writes::at(at) }).await
}

async fn a_row_is_written_under_the_version_that_was_read(world: &impl World) {
    let row = world.accept().await;
    let (now, health) = (world.now(), health(world, &row).await);
    let failed = |row: &Delivery| {
        let mut failed = *row;
        let attempt = failed.begin(&health, now).unwrap();
        let _ = failed.finish(&attempt, Outcome::Reset, now).unwrap();
        failed
    };
    let [first, second] = [failed(&row), failed(&row)];
    let mut change = world.store().change().await.unwrap();
    write(&mut change, Locked::of(row), first, now).await.unwrap();
    change.commit().await.unwrap();
    // Both had read the same row.
    let mut change = world.store().change().await.unwrap();
    let written = write(&mut change, Locked::of(row), second, now).await;
    change.roll_back().await;
    assert!(matches!(written, Err(Failure::Outdated)), "{written:?}");
    assert_eq!(stored(world, &row).await.version(), first.version());
    // A row whose number alone is the same is another's.
    let other =
        Key { event_created_at: now.saturating_add(Duration::from_secs(1)), ..Key::of(&row) };
    let mut change = world.store().change().await.unwrap();
    assert!(change.lock(&[other]).await.unwrap().is_empty());
    change.roll_back().await;
}

/// Polls a future so many times, and drops it then.
async fn polled<F: Future>(future: F, times: usize) -> Option<F::Output> {
    let (mut future, mut left) = (pin!(future), times);
    poll_fn(|context| match left.checked_sub(1) {
        None => Poll::Ready(None),
        Some(fewer) => {
            left = fewer;
            future.as_mut().poll(context).map(Some)
        }
    })
    .await
}

async fn a_transaction_that_is_dropped_leaves_nothing(world: &impl World) {
    let row = world.accept().await;
    let (now, before) = (world.now(), health(world, &row).await);
    for times in 0.. {
        let dropped = async {
            let mut change = world.store().change().await.unwrap();
            let locked = change.lock(&[Key::of(&row)]).await.unwrap();
            change.endpoints(&[Key::of(&row).endpoint], Lock::Yes).await.unwrap();
            let mut health = before;
            let _ = health.pause(now);
            let mut parked = locked[&row.id()].row;
            assert!(parked.park(&health, now));
            let endpoints = [(Key::of(&row).endpoint, health)];
            let deliveries = vec![(locked[&row.id()], parked)];
            change.write(&Writes { deliveries, endpoints: &endpoints, ..Writes::at(now) }).await
        };
        let whole = polled(dropped, times).await;
        assert_eq!(stored(world, &row).await, row, "dropped at await {times}");
        assert_eq!(health_version(world, &row).await, before.version(), "dropped at await {times}");
        if let Some(written) = whole {
            return written.unwrap();
        }
    }
}

async fn health_version(world: &impl World, row: &Delivery) -> u32 {
    health(world, row).await.version()
}

async fn a_commit_that_is_dropped_is_all_or_nothing(world: &impl World) {
    for times in 0.. {
        let row = world.accept().await;
        let batch = [ended(world, &row, Outcome::Reset).await];
        let schedule = RetrySchedule::default();
        let settling = settle(world.store(), schedule, &batch, How::Quick, world.now());
        let whole = polled(settling, times).await;
        // A connection that is closed half way through may have its COMMIT under way.
        let is_stored = stored(world, &row).await.attempts() == 1;
        let logged = world.attempts(&row).await;
        assert_eq!(logged, usize::from(is_stored), "dropped at await {times}");
        if let Some(settled) = whole {
            assert!(is_stored && settled.is_ok(), "{settled:?}");
            return;
        }
        // Whoever finds it settles it again, and it is stored once.
        let again = settle(world.store(), schedule, &batch, How::Sure, world.now()).await;
        assert!(again.is_ok(), "{again:?}");
        assert_eq!(stored(world, &row).await.attempts(), 1, "dropped at await {times}");
        assert_eq!(world.attempts(&row).await, 1, "dropped at await {times}");
    }
}

async fn what_somebody_has_changed_is_settled_as_it_is_stored(world: &impl World) {
    let row = world.accept().await;
    let schedule = RetrySchedule::default();
    let [first, late] =
        [ended(world, &row, Outcome::Reset).await, ended(world, &row, Outcome::TimedOut).await];
    let settled = settle(world.store(), schedule, &[first], How::Quick, world.now()).await.unwrap();
    let [(_, _, due)] = settled.again.as_slice() else { panic!("{settled:?}") };
    let batch = [late];
    let quick = settle(world.store(), schedule, &batch, How::Quick, world.now()).await;
    // Where its endpoint changes as well, it is settled with locks at once.
    let sure = match quick {
        Err(Failure::Outdated) => {
            settle(world.store(), schedule, &batch, How::Sure, world.now()).await
        }
        quick => quick,
    };
    let sure = sure.unwrap();
    assert!(sure.deliveries.is_empty() && sure.log[0].1.late, "{sure:?}");
    let row = stored(world, &row).await;
    assert_eq!((row.attempts(), row.due(world.now())), (1, Some(*due)));
}

async fn an_enabled_endpoint_keeps_what_is_pending_and_a_disabled_one_parks_it(world: &impl World) {
    let row = world.accept().await;
    let number = Key::of(&row).endpoint;
    park(world.store(), number, world.now()).await.unwrap();
    assert_eq!(stored(world, &row).await.status(), DeliveryStatus::Waiting);
    let mut paused = health(world, &row).await;
    let _ = paused.pause(world.now());
    let mut change = world.store().change().await.unwrap();
    let endpoints = [(number, paused)];
    change.write(&Writes { endpoints: &endpoints, ..Writes::at(world.now()) }).await.unwrap();
    change.commit().await.unwrap();
    park(world.store(), number, world.now()).await.unwrap();
    assert_eq!(stored(world, &row).await.status(), DeliveryStatus::Parked);
}
