//! The store's steps and the sender over them, without a process around: what a test from outside
//! meets only when it is lucky.

use std::sync::Arc;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::id::DeliveryId;
use call_assistant::webhook::sender::{Delivery, DeliveryStatus};
use serde_json::json;

use call_assistant_service::faults::Faults;
use call_assistant_service::sender::{Pace, Sender};
use call_assistant_service::store::{Rows, Store, Tables};
use host::post;
use host::program::scale::Scale;
use host::program::shutdown;
use host::program::watch::Watch;
use host::rows::Rows as _;
use host::{clock, data};
use testing::event::ping;
use testing::port;
use testing::receiver::{Receiver, Reply};
use testing::running::eventually;

/// Ten seconds in one millisecond.
const PACE: Pace = Pace { scale: Scale { waits: 0.0001, timeouts: 1.0 }, per_second: 0 };

fn store(url: &str, now: Timestamp) -> Arc<Store> {
    let store = Store::default();
    let endpoint =
        json!({ "id": "we_1", "url": url, "secret": "whsec_0123456789abcdefghijklmnopqrstuv" });
    let account = json!({ "id": "acct_1", "timezone": "UTC", "endpoints": [endpoint] });
    let data = data::read(&json!({ "accounts": [account] }), true, now).unwrap();
    let mut tables = store.lock();
    data.into_iter().for_each(|new| tables.load(new, now).unwrap());
    drop(tables);
    Arc::new(store)
}

fn accept(tables: &mut Tables, now: Timestamp) -> DeliveryId {
    tables.accept(&ping("evt_1", "acct_1", now), None, now).unwrap().remove(0)
}

/// Waits for a step of a store that waits for nothing.
fn done<T>(step: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.unwrap().block_on(step)
}

/// Returns what is pending, by ascending number.
async fn found(store: &Arc<Store>) -> Vec<Delivery> {
    let news = Rows(Arc::clone(store)).news(&[].into(), &mut false).await.unwrap();
    news.rows.into_iter().map(|row| row.delivery).collect()
}

// A day says that only its latest events were counted where there are more, and only there.
#[test]
fn a_day_that_was_counted_to_its_end_says_so() {
    let now = clock::now();
    let store = store("http://127.0.0.1:9/hook", now);
    let mut tables = store.lock();
    let from = now.saturating_sub(Duration::from_secs(3600));
    let mut have = 0;
    for (count, is_all) in [(20_000, true), (20_001, false)] {
        (have..count).for_each(|_| _ = accept(&mut tables, now));
        have = count;
        let days = tables.day("acct_1", from).unwrap();
        let [(_, day)] = days.as_slice() else { panic!("{days:?}") };
        assert_eq!((day.counted, day.since.is_none()), (20_000, is_all), "{count}");
    }
}

// A thread that nobody waits for any more still counts against its endpoint's limit.
#[test]
fn a_look_up_holds_its_slot_until_its_thread_has_returned() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (answer, answered) = std::sync::mpsc::channel::<()>();
    let slot = Arc::new(());
    let look_up = post::on_thread(Arc::clone(&slot), move || answered.recv());
    let given_up = async { tokio::time::timeout(Duration::from_millis(10), look_up).await };
    assert!(runtime.block_on(given_up).is_err());
    assert_eq!(Arc::strong_count(&slot), 2, "its thread has not returned");
    answer.send(()).unwrap();
    eventually("it is free", || (Arc::strong_count(&slot) == 1).then_some(()));
}

// What is accepted before the sender's task gets to run is stored, and handed in, and sent once.
#[test]
fn accepted_before_the_sender_runs() {
    let receiver = Receiver::start();
    let url = receiver.url("/hook", &[Reply::Status(204)]);
    let store = store(&url, clock::now());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (trigger, stop) = shutdown::manual();

    let before = accept(&mut store.lock(), clock::now());
    let entered = runtime.enter();
    let client = post::Client::new(None).unwrap();
    drop(entered);
    let sender = Sender::new(Arc::clone(&store), client, PACE, Faults::default());
    let told = accept(&mut store.lock(), clock::now());
    let sending = runtime.spawn(sender.run(Watch::new(trigger.clone(), stop)));
    for id in [before, told] {
        eventually("it is delivered", || {
            let tables = store.lock();
            let row = tables.delivery(id.as_str()).unwrap();
            (row.state.status() == DeliveryStatus::Delivered).then(|| assert_eq!(row.log.len(), 1))
        });
    }
    trigger.pull();
    runtime.block_on(sending).unwrap();
    assert_eq!(receiver.got("/hook").len(), 2);
}

/// A store with one endpoint.
struct World(Rows);

impl port::World for World {
    type Store = Rows;

    fn store(&self) -> &Rows {
        &self.0
    }

    async fn accept(&self) -> Delivery {
        accept(&mut self.0.0.lock(), self.now());
        found(&self.0.0).await.into_iter().max_by_key(Delivery::id).unwrap()
    }

    async fn attempts(&self, delivery: &Delivery) -> usize {
        let tables = self.0.0.lock();
        let account = tables.account("acct_1").unwrap();
        let row = tables.deliveries(account).find(|row| row.state.id() == delivery.id());
        row.unwrap().log.len()
    }

    fn now(&self) -> Timestamp {
        clock::now().floor_to_micros()
    }
}

#[test]
fn the_store_keeps_what_the_port_promises() {
    let world = World(Rows(store("http://127.0.0.1:9/hook", clock::now())));
    done(port::holds(&world));
}
