//! The store's steps and the sender over them, without a process around: what a test from outside
//! meets only when it is lucky.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, EventId};
use call_assistant::webhook::event::{ApiVersion, EventBody, NewEvent, Origin};
use call_assistant::webhook::sender::{DeliveryStatus, EndpointUrl, Outcome, RetrySchedule};
use http::StatusCode;
use serde_json::json;

use call_assistant_service::faults::Faults;
use call_assistant_service::sender::{Pace, Sender};
use call_assistant_service::store::{ClockStep, Store, Tables, ToSend};
use host::post::{self, Sent};
use host::rows::EndpointEdit;
use host::scale::Scale;
use host::{clock, data, shutdown};
use testing::receiver::{Receiver, Reply};
use testing::running::{File, Service, eventually, service};
use testing::shifted;
use tokio::runtime::Runtime;

/// Ten seconds in one millisecond.
const FAST: Scale = Scale { waits: 0.0001, timeouts: 1.0 };

const PACE: Pace = Pace { scale: FAST, per_second: 0 };

/// An attempt that ended so.
fn ended(outcome: Outcome, at: Timestamp) -> Sent {
    Sent::without_answer(outcome, at)
}

fn store(url: &str, now: Timestamp) -> Store {
    let store = Store::default();
    let endpoint =
        json!({ "id": "we_1", "url": url, "secret": "whsec_0123456789abcdefghijklmnopqrstuv" });
    let account = json!({ "id": "acct_1", "timezone": "UTC", "endpoints": [endpoint] });
    let data = data::read(&json!({ "accounts": [account] }), true, now).unwrap();
    let mut tables = store.lock();
    data.into_iter().for_each(|new| tables.load(new, now).unwrap());
    drop(tables);
    store
}

fn event(now: Timestamp) -> EventBody {
    let account = AccountId::parse("acct_1").unwrap();
    let version = ApiVersion::parse("2026-01-15").unwrap();
    let id = EventId::parse("evt_1").unwrap();
    NewEvent::new(id, account, version, Origin::voice(), now).ping("hello").unwrap()
}

fn accept(tables: &mut Tables, now: Timestamp) -> ToSend {
    tables.accept(&event(now), None, now).unwrap()[0]
}

fn after(now: Timestamp, millis: u64) -> Timestamp {
    now.saturating_add(Duration::from_millis(millis))
}

// D-90: the store moves the endpoint in one step with its URL.
#[test]
fn the_old_urls_answer_disables_nothing() {
    let now = clock::now();
    let store = store("http://127.0.0.1:9/hook", now);
    let mut tables = store.lock();
    for moves in [true, false] {
        let sent = accept(&mut tables, now);
        let begun = tables.begin(sent.delivery, now).unwrap();
        if moves {
            let target = EndpointUrl::parse_allowing_loopback("http://127.0.0.1:9/moved").unwrap();
            let edit = EndpointEdit { target: Some(target), description: None };
            tables.edit_endpoint("we_1", edit, now).unwrap();
        }
        let gone = ended(Outcome::Answered(StatusCode::GONE), now);
        assert_eq!(tables.finish(sent.delivery, &begun, &gone, &FAST.schedule()), None);
        let (_, endpoint) = tables.endpoint("we_1").unwrap();
        assert_eq!(endpoint.health.is_active(), moves);
    }
}

// An attempt begins in memory: until it has ended, the store has its delivery as it was read.
#[test]
fn an_attempt_in_flight_is_not_stored() {
    let now = clock::now();
    let store = store("http://127.0.0.1:9/hook", now);
    let mut tables = store.lock();
    let mut waits = accept(&mut tables, now);
    for attempt in 1..=2 {
        let row = tables.delivery(tables.delivery_id(0).unwrap().as_str()).unwrap().clone();
        let begun = tables.begin(waits.delivery, waits.due).unwrap();
        assert_eq!(u64::from(begun.attempt.number()), attempt);
        let stored = tables.delivery(row.id.as_str()).unwrap();
        assert_eq!((stored.state, stored.next_at()), (row.state, Some(waits.due)), "{attempt}");
        assert_eq!(tables.pending(now).collect::<Vec<_>>(), [waits], "attempt {attempt}");
        // The second wait is 10 seconds by the schedule, and a millisecond here.
        let refused = ended(Outcome::Refused, waits.due);
        waits = tables.finish(waits.delivery, &begun, &refused, &FAST.schedule()).unwrap();
        assert!(waits.due <= after(now, 10));
    }
}

// A retry goes before what is new. One that cannot begin yet stays a retry.
#[test]
fn a_retry_that_is_refused_stays_a_retry() {
    let now = clock::now();
    let store = store("http://127.0.0.1:9/hook", now);
    let mut tables = store.lock();
    let sent = accept(&mut tables, now);
    let early = now.saturating_sub(Duration::from_secs(1));
    assert_eq!(tables.begin(sent.delivery, early).unwrap_err(), Some(sent), "a first attempt");
    let begun = tables.begin(sent.delivery, now).unwrap();
    let refused = ended(Outcome::Refused, now);
    let retry = tables.finish(sent.delivery, &begun, &refused, &RetrySchedule::default()).unwrap();
    assert!(retry.is_retry);
    assert_eq!(tables.begin(sent.delivery, now).unwrap_err(), Some(retry));
}

// What is due is planned: asking again and again does not plan it again and again.
#[test]
fn what_is_due_is_made_due_once() {
    let now = clock::now();
    let store = store("http://127.0.0.1:9/hook", now);
    let mut tables = store.lock();
    let sent = accept(&mut tables, now);
    let id = tables.delivery_id(sent.delivery).unwrap().as_str().to_owned();
    assert_eq!(tables.send_now(&id, now), Ok(None), "it is due");
    let begun = tables.begin(sent.delivery, now).unwrap();
    let refused = ended(Outcome::Refused, now);
    tables.finish(sent.delivery, &begun, &refused, &RetrySchedule::default()).unwrap();
    let again = tables.send_now(&id, now).unwrap().unwrap();
    assert_eq!((again.delivery, again.due), (sent.delivery, now));
    for _ in 0..3 {
        assert_eq!(tables.send_now(&id, after(now, 1)), Ok(None), "it is due");
    }
    assert_eq!(tables.begin(sent.delivery, now).unwrap().attempt.number(), 2);
    assert_eq!(tables.send_now(&id, now), Ok(None), "it is being sent");
}

// What is planned anew is what it was: a redelivery by hand is no retry.
#[test]
fn a_redelivery_is_no_retry_however_it_is_planned() {
    let now = clock::now();
    let store = store("http://127.0.0.1:9/hook", now);
    let mut tables = store.lock();
    let sent = accept(&mut tables, now);
    for _ in 0..6 {
        let due = tables.pending(now).next().unwrap().due;
        let begun = tables.begin(sent.delivery, due).unwrap();
        tables.finish(sent.delivery, &begun, &ended(Outcome::Refused, due), &FAST.schedule());
    }
    assert_eq!(tables.pending(now).count(), 0);
    let id = tables.delivery_id(sent.delivery).unwrap().as_str().to_owned();
    let again = tables.redeliver(&id, now).unwrap();
    assert_eq!(tables.pending(now).collect::<Vec<_>>(), [again]);
    assert!(!again.is_retry);
}

// A day says that only its latest events were counted where there are more, and only there.
#[test]
fn a_day_that_was_counted_to_its_end_says_so() {
    let now = clock::now();
    let store = store("http://127.0.0.1:9/hook", now);
    let mut tables = store.lock();
    let from = now.saturating_sub(Duration::from_secs(3600));
    for (count, is_all) in [(20_000, true), (20_001, false)] {
        while accept(&mut tables, now).delivery + 1 < count {}
        let days = tables.day("acct_1", from).unwrap();
        let [(_, day)] = days.as_slice() else { panic!("{days:?}") };
        assert_eq!((day.counted, day.since.is_none()), (20_000, is_all), "{count}");
    }
}

// D-80: somebody sets the clock while it waits.
#[test]
fn a_clock_that_is_set_changes_no_wait() {
    let hour = Duration::from_secs(3600);
    for (step, moved) in [
        (ClockStep::Back(hour), clock::now().saturating_sub(hour)),
        (ClockStep::Forward(hour), clock::now().saturating_add(hour)),
    ] {
        let now = clock::now();
        let store = store("http://127.0.0.1:9/hook", now);
        let mut tables = store.lock();
        let sent = accept(&mut tables, now);
        let begun = tables.begin(sent.delivery, now).unwrap();
        let refused = ended(Outcome::Refused, now);
        let again =
            tables.finish(sent.delivery, &begun, &refused, &RetrySchedule::default()).unwrap();
        assert_eq!(again.due, after(now, 10_000));

        tables.clock_was_set(step);
        let due = step.moved(again.due);
        assert_eq!(tables.pending(moved).map(|each| each.due).collect::<Vec<_>>(), [due]);
        assert_eq!(tables.begin(sent.delivery, due).unwrap().attempt.number(), 2, "{step:?}");
    }
}

// Only what waited when the clock was set is moved, not what was written by the new clock before the sender looked.
#[test]
fn what_is_written_after_the_clock_was_set_is_not_moved() {
    let Some(library) = shifted::faketime() else {
        println!("skipped: there is no libfaketime");
        return;
    };
    let (file, receiver) = (File::new("clock", "+0s\n"), Receiver::start());
    let flags = ["--allow-loopback-endpoints", "--time-scale", "0.01", "--timeout-scale", "2.5"];
    let mut command = service(&flags);
    shifted::shift_as_told(&mut command, &library, Path::new(file.path()));
    let service = Service::of(&mut command);
    let tried_again = service.hook(&receiver.url("/old", &[Reply::Held(503), Reply::Status(204)]));
    service.ping(&tried_again);
    eventually("it is in flight", || (receiver.got("/old").len() == 1).then_some(()));
    let new = service.hook(&receiver.url("/new", &[Reply::Status(204)]));

    shifted::set(Path::new(file.path()), 3600);
    eventually("its clock is an hour ahead", || {
        let machine = service.show("/clock")["machine"].as_str().unwrap().parse::<Timestamp>();
        (machine.unwrap().since(clock::now()) > Duration::from_secs(3000)).then_some(())
    });
    service.ping(&new);
    receiver.release();
    for (path, times) in [("/new", 1), ("/old", 2)] {
        eventually(path, || (receiver.got(path).len() == times).then_some(()));
    }
    service.logged_times("the clock was set: Forward", 1);
}

// A thread that nobody waits for any more still counts against its endpoint's limit.
#[test]
fn a_look_up_holds_its_slot_until_its_thread_has_returned() {
    let runtime = Runtime::new().unwrap();
    let (answer, answered) = std::sync::mpsc::channel::<()>();
    let slot = Arc::new(());
    let look_up = post::on_thread(Arc::clone(&slot), move || answered.recv());
    let given_up = async { tokio::time::timeout(Duration::from_millis(10), look_up).await };
    assert!(runtime.block_on(given_up).is_err());
    assert_eq!(Arc::strong_count(&slot), 2, "its thread has not returned");
    answer.send(()).unwrap();
    eventually("it is free", || (Arc::strong_count(&slot) == 1).then_some(()));
}

// D-58: a late outcome of an attempt that was taken over moves nothing.
#[test]
fn a_late_failure_leaves_the_next_attempt_when_it_was() {
    let now = clock::now();
    let store = store("http://127.0.0.1:9/hook", now);
    let mut tables = store.lock();
    let sent = accept(&mut tables, now);
    let [lost, stored] = [0, 1].map(|_| tables.begin(sent.delivery, now).unwrap());
    let mut finish = |begun| {
        tables.finish(sent.delivery, begun, &ended(Outcome::Refused, now), &FAST.schedule())
    };
    let again = finish(&stored).unwrap();
    assert_eq!(finish(&lost), Some(again));
    assert_eq!(tables.pending(now).collect::<Vec<_>>(), [again]);
    assert!(tables.begin(sent.delivery, again.due).is_ok());
}

// An alert is stored with what it tells of, and how much was missed is counted after that: no result waits for a count.
#[test]
fn what_was_missed_is_counted_once_its_alert_is_stored() {
    let now = clock::now();
    let store = store("http://127.0.0.1:9/hook", now);
    let mut tables = store.lock();
    let sent = accept(&mut tables, now);
    let begun = tables.begin(sent.delivery, now).unwrap();
    let gone = ended(Outcome::Answered(StatusCode::GONE), now);
    tables.finish(sent.delivery, &begun, &gone, &FAST.schedule());
    for message in
        ["disabled: it answered 410", "disabled: it answered 410; it has missed 1 so far"]
    {
        let alerts = tables.alerts("acct_1");
        assert_eq!(alerts.iter().map(|alert| &alert.message).collect::<Vec<_>>(), [message]);
        tables.count_alerts();
    }
    tables.count_alerts();
    assert_eq!(tables.alerts("acct_1").len(), 1);
}

// D-55: it was in flight when its endpoint was disabled, and is no less parked for ending later.
#[test]
fn what_was_in_flight_when_its_endpoint_was_disabled_is_parked() {
    let now = clock::now();
    let store = store("http://127.0.0.1:9/hook", now);
    let mut tables = store.lock();
    let [slow, last] = [0, 1].map(|_| accept(&mut tables, now).delivery);
    let [slow_begun, last_begun] = [slow, last].map(|number| tables.begin(number, now).unwrap());
    let gone = Outcome::Answered(StatusCode::GONE);
    assert_eq!(tables.finish(last, &last_begun, &ended(gone, now), &FAST.schedule()), None);
    assert!(tables.enable("we_1", after(now, 1)).unwrap().is_some());

    let again =
        tables.finish(slow, &slow_begun, &ended(Outcome::Reset, after(now, 2)), &FAST.schedule());
    assert_eq!(again, None, "no attempt is to come");
    let id = tables.delivery_id(slow).unwrap().clone();
    let row = tables.delivery(id.as_str()).unwrap();
    assert_eq!((row.state.status(), row.next_at()), (DeliveryStatus::Parked, None));
    assert_eq!((row.log[0].entry.status, row.log[0].entry.next_at), (DeliveryStatus::Parked, None));
    assert!(tables.redeliver(id.as_str(), after(now, 3)).is_ok());
}

// The log of a delivery is bounded, and what the schedule did is the last to go.
#[test]
fn a_log_keeps_what_the_schedule_did() {
    let now = clock::now();
    let store = store("http://127.0.0.1:9/hook", now);
    let mut tables = store.lock();
    let number = accept(&mut tables, now).delivery;
    let id = tables.delivery_id(number).unwrap().clone();
    for attempt in 1..=70 {
        let now = after(now, attempt * 3_000);
        if attempt > 6 {
            tables.redeliver(id.as_str(), now).unwrap();
        }
        let begun = tables.begin(number, now).unwrap();
        tables.finish(number, &begun, &ended(Outcome::Refused, now), &FAST.schedule());
    }
    let log = &tables.delivery(id.as_str()).unwrap().log;
    assert_eq!((log.len(), log.iter().filter(|row| !row.entry.manual).count()), (50, 6));
    assert_eq!(log.last().unwrap().entry.began_at, after(now, 210_000));
}

// What is accepted before the sender's task gets to run is stored, and handed in, and sent once.
#[test]
fn accepted_before_the_sender_runs() {
    let receiver = Receiver::start();
    let url = receiver.url("/hook", &[Reply::Status(204)]);
    let store = Arc::new(store(&url, clock::now()));
    let before = accept(&mut store.lock(), clock::now());
    let (runtime, sender) = sender(&store);
    let told = accept(&mut store.lock(), clock::now());
    sender.outbox().send(vec![told]);
    let (trigger, stop) = shutdown::manual();
    let sending = runtime.spawn(sender.run(stop));
    [before, told].map(|sent| delivered(&store, sent));
    trigger.pull();
    runtime.block_on(sending).unwrap();
    assert_eq!(receiver.got("/hook").len(), 2);
}

// However often the sender is told of a delivery, it has one attempt at a time.
#[test]
fn what_is_in_flight_is_not_begun_again() {
    let receiver = Receiver::start();
    let url = receiver.url("/hook", &[Reply::Held(204)]);
    let store = Arc::new(store(&url, clock::now()));
    let (runtime, sender) = sender(&store);
    let (outbox, (trigger, stop)) = (sender.outbox(), shutdown::manual());
    let sending = runtime.spawn(sender.run(stop));
    let first = accept(&mut store.lock(), clock::now());
    outbox.send(vec![first]);
    eventually("it is in flight", || (receiver.got("/hook").len() == 1).then_some(()));
    let last = accept(&mut store.lock(), clock::now());
    outbox.send(vec![first, first, last]);
    eventually("the next is in flight", || (receiver.got("/hook").len() > 1).then_some(()));
    receiver.release();
    [first, last].map(|sent| delivered(&store, sent));
    trigger.pull();
    runtime.block_on(sending).unwrap();
    assert_eq!(receiver.got("/hook").len(), 2);
}

/// Returns a sender of a store, before it runs.
fn sender(store: &Arc<Store>) -> (Runtime, Sender) {
    let runtime = Runtime::new().unwrap();
    let entered = runtime.enter();
    let client = post::Client::new(None).unwrap();
    drop(entered);
    (runtime, Sender::new(Arc::clone(store), client, PACE, Faults::default()))
}

/// Waits until a delivery has reached its receiver, at its first attempt.
fn delivered(store: &Store, sent: ToSend) {
    eventually("it is delivered", || {
        let tables = store.lock();
        let id = tables.delivery_id(sent.delivery)?;
        let row = tables.delivery(id.as_str()).unwrap();
        (row.state.status() == DeliveryStatus::Delivered).then(|| assert_eq!(row.log.len(), 1))
    });
}
