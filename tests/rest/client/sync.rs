//! SYNC-1, SYNC-2, SYNC-3, LIST-7, D-70, D-71, D-91, D-101: from thousands of seeds, a customer ends with
//! exactly the service's calls, each returned once.
//!
//! `SIMULATION_WORLDS=50000` runs more worlds, `SIMULATION_SEED=17` the one that failed.

use std::collections::BTreeMap;
use std::time::Duration;

use call_assistant::id::CallId;
use call_assistant::model::{Call, CallList};
use call_assistant::rest::ListCalls;
use call_assistant::rest::client::{Batch, CallSync, PagingError};

use super::world::{self, Manner, Service, Written};
use crate::dice::{Dice, HOUR, MINUTE, SECOND, at};
use support::simulation::seeds;

const LAG: i64 = MINUTE;

/// Everything that a seed decides before the first request.
struct World {
    dice: Dice,
    service: Service,
    /// How far the customer's clock is ahead of the service's.
    clock: i64,
    /// Whether answers say what time it is at the service.
    dates: bool,
    /// Whether a page is applied with the time at which it was asked for, or at which it came.
    asked: bool,
    /// How many calls a page has.
    limit: u64,
    /// The longest time that a page takes.
    slow: i64,
    /// The longest time between two walks, and of anything else that takes a while.
    pause: i64,
    /// Of a hundred requests, so many fail one way or another.
    failing: u64,
    /// Of a hundred calls, so many are also delivered as events.
    events: u64,
    /// Of a hundred steps, so many end in a crash.
    crashing: u64,
}

fn world_of(seed: u64) -> World {
    let mut dice = Dice::new(seed);
    let staleness = if dice.chance(50) { 0 } else { dice.up_to(LAG) };
    let manner = Manner {
        transaction: LAG - staleness,
        staleness,
        precision: [1, SECOND, 20 * SECOND][dice.up_to(2) as usize],
        ids_upwards: dice.chance(50),
        terse: dice.chance(50),
        unreadable: [0, 0, 0, 5, 30][dice.up_to(4) as usize],
    };
    // A day of calls now and then, or all of them within minutes.
    let until = [8 * HOUR, HOUR, 5 * MINUTE][dice.up_to(2) as usize];
    let history = dice.span(6 * until);
    let count = dice.up_to(80);
    let service = Service::new(manner, count, (-history, until), until / 3, &mut dice);
    World {
        service,
        pause: until / 4,
        clock: match dice.up_to(5) {
            0..=2 => 0,
            3 => dice.up_to(4 * HOUR) - 2 * HOUR,
            4 => -dice.up_to(300 * HOUR),
            // A clock that has never been set.
            _ => -56 * 365 * 24 * HOUR,
        },
        dates: dice.chance(30),
        asked: false,
        limit: 1 + dice.span(20) as u64,
        slow: if dice.chance(30) { 0 } else { dice.span(until / 8) },
        failing: [0, 10, 40][dice.up_to(2) as usize],
        events: [0, 30, 100][dice.up_to(2) as usize],
        crashing: [0, 10, 40][dice.up_to(2) as usize],
        dice,
    }
}

/// The same with calls that are dated ahead of the service's clock. Without a `Date`, a
/// clock that is ahead, or that passes such a date while a page is on its way, would believe it.
fn world_with_false_dates(seed: u64) -> World {
    let mut world = world_of(seed);
    let dice = &mut world.dice;
    let percent = [2, 20, 80][dice.up_to(2) as usize];
    let by = [Some(10 * MINUTE), Some(4 * HOUR), None][dice.up_to(2) as usize];
    let by = by.filter(|_| world.dates || world.clock <= 0);
    world.asked = by.is_some() || dice.chance(50);
    world.service.date_ahead(percent, by, dice);
    world
}

/// What a customer keeps: the calls it processed, how often, and the state.
struct Store {
    processed: BTreeMap<CallId, u32>,
    state: CallSync,
    version: u64,
}

impl Store {
    fn new(state: CallSync) -> Self {
        Self { processed: BTreeMap::new(), state, version: 0 }
    }

    fn load(&self) -> (CallSync, u64) {
        (self.state.clone(), self.version)
    }

    /// As after a crash: through the text that was stored.
    fn reload(&mut self) -> (CallSync, u64) {
        let text = serde_json::to_string(&self.state).unwrap();
        self.state = serde_json::from_str(&text).unwrap();
        self.load()
    }

    /// One transaction: the calls, and the state over the version that was read.
    fn save(&mut self, calls: &[CallId], next: &CallSync, read: u64) -> bool {
        if read != self.version {
            return false;
        }
        for id in calls {
            *self.processed.entry(id.clone()).or_default() += 1;
        }
        self.state = next.clone();
        self.version += 1;
        true
    }
}

/// Lets a world run until the service has settled and the customer has walked once more.
fn run(world: &mut World) -> Store {
    let World { dice, service, clock, dates, asked, limit, slow, pause, .. } = world;
    let World { failing, events, crashing, .. } = world;
    let mut now = 0;
    let mut store = Store::new(CallSync::new());
    // Two workers on one sync, each with what it read last.
    let mut workers = [store.load(), store.load()];

    let mut announced: Vec<(i64, Call)> = Vec::new();
    for written in service.calls() {
        while service.is_readable(&written.call) && dice.chance(*events) {
            // At least once, in any order, some before anybody asked, some after many retries.
            announced.push((written.visible + dice.span(2 * *pause), written.call.clone()));
            *events = (*events).min(80);
        }
    }
    announced.sort_by_key(|(when, _)| *when);
    let mut announced = announced.into_iter().peekable();

    let settled = service.settled();
    // The walk that was under way when everything had settled, and a whole one after it.
    let mut walks_left = 2;
    loop {
        while announced.peek().is_some_and(|(when, _)| *when <= now) {
            let (_, call) = announced.next().unwrap();
            let (sync, read) = store.load();
            if let Some(next) = sync.take_call(&call) {
                assert!(store.save(&[call.id], &next, read));
            }
        }
        let calm = now > settled && announced.peek().is_none();
        if dice.chance(1) {
            service.epoch += 1;
        }
        let index = if calm { 0 } else { dice.up_to(1) as usize };
        let (sync, read) = &mut workers[index];
        let page_limit = (*limit).min(100) as usize;
        let sent = now;
        // The answer leaves the service somewhere between the request and its arrival.
        now += dice.up_to(*slow);
        let answer = service.list(&sync.query().with_limit(page_limit), now, dice);
        let date = dates.then(|| at(now.div_euclid(SECOND) * SECOND));
        now += dice.up_to(*slow);
        if !calm && dice.chance(*failing) {
            // A 429, a 500, a lost answer, a body that broke off: nothing to take.
            now += dice.span(MINUTE);
            continue;
        }
        let step = match answer {
            None => {
                *sync = sync.restarted();
                continue;
            }
            Some(page) => {
                let read = if *asked { sent } else { now };
                sync.apply(&page, date, at(read + *clock)).unwrap()
            }
        };
        let handed = world::handed(&step.calls, &step.unreadable);
        if !calm && dice.chance(*crashing) {
            // Before or after saving; what was in memory is gone either way.
            if dice.chance(50) {
                store.save(&handed, &step.next, *read);
            }
            now += dice.span(*pause);
            workers[index] = store.reload();
            continue;
        }
        let saved = store.save(&handed, &step.next, *read);
        if saved && !step.next.is_walking() {
            // After a while, or as soon as it is told of a call.
            now = match service.next_visible(now) {
                Some(visible) if dice.chance(30) => visible,
                _ => now + dice.span(*pause),
            };
            walks_left -= i32::from(calm);
            if walks_left == 0 {
                return store;
            }
        }
        workers[index] = store.load();
    }
}

/// The calls of a world that a customer has not processed exactly once.
fn wrong(world: &mut World) -> Vec<(Written, u32)> {
    let store = run(world);
    let calls = world.service.calls();
    let times = |written: &Written| store.processed.get(&written.call.id).copied().unwrap_or(0);
    assert!(store.processed.len() <= calls.len(), "calls that the service does not have");
    let counted = calls.iter().map(|written| (written.clone(), times(written)));
    counted.filter(|(_, times)| *times != 1).collect()
}

#[test]
fn every_call_exactly_once() {
    for seed in seeds(2_000) {
        assert_eq!(wrong(&mut world_of(seed)), [], "seed {seed}");
    }
}

/// D-91, D-78, D-101: calls dated ahead of the service's clock, among others that show only later, with and
/// without `Date`, by clocks that are right and behind, and with `Date` also by clocks that are ahead.
#[test]
fn a_date_that_nobody_believes_loses_no_call() {
    for seed in seeds(2_000) {
        assert_eq!(wrong(&mut world_with_false_dates(seed)), [], "seed {seed}");
    }
}

pub(super) fn call(id: u32, started: i64, created: i64) -> Call {
    let id = CallId::parse(&format!("call_{id:03}")).unwrap();
    Call::new(id, at(started * SECOND), at(created * SECOND))
}

pub(super) fn page(calls: &[&Call], cursor: Option<&str>) -> CallList {
    CallList::new(calls.iter().map(|call| (*call).clone()).collect(), cursor.map(Into::into))
}

pub(super) fn fresh(step: &Batch<CallSync>) -> Vec<&str> {
    step.calls.iter().map(|call| call.id.as_str()).collect()
}

pub(super) const NOW: i64 = 10_000 * SECOND;

/// Applies a page that comes now.
fn walk(sync: &CallSync, calls: &[&Call], cursor: Option<&str>) -> Batch<CallSync> {
    sync.apply(&page(calls, cursor), None, at(NOW)).unwrap()
}

/// The story of the simulation's plain rule, in six lines.
#[test]
fn what_a_later_page_shows_does_not_move_the_watermark() {
    let (one, two) = (call(1, 100, 200), call(2, 50, 150));
    // Written while the first page was on its way, 300 seconds before the second was asked for.
    let long = call(3, 40, 900);
    let step = walk(&CallSync::new(), &[&one], Some("c"));
    let step = walk(&step.next, &[&two, &long], None);
    assert_eq!(fresh(&step), ["call_002", "call_003"]);
    assert_eq!(step.next.watermark(), Some(at(200 * SECOND)));

    // So a call that was being written at that time is found, and nothing comes twice.
    let late = call(4, 120, 500);
    let step = walk(&step.next, &[&late, &one, &long], None);
    assert_eq!(fresh(&step), ["call_004"]);
}

/// SYNC-2, D-71: the lag is subtracted in the query only, and ids are kept from there on.
#[test]
fn the_lag_is_in_the_query_and_in_the_ids_kept() {
    let calls = [call(1, 990, 1_000), call(2, 930, 940), call(3, 900, 939)];
    let list = page(&[&calls[0], &calls[1], &calls[2]], None);
    let sync = CallSync::new().apply(&list, None, at(NOW)).unwrap().next;
    assert_eq!(sync.watermark(), Some(at(1_000 * SECOND)));
    assert_eq!(sync.query().filter.created_after, Some(at(940 * SECOND)));
    assert_eq!(sync.ids(), 2);
    assert_eq!(sync.query().filter.created_before, None);
    assert_eq!(sync.query().limit, ListCalls::MAX_LIMIT);

    let wide = CallSync::new().with_lag(Duration::from_secs(61));
    let wide = wide.apply(&list, None, at(NOW)).unwrap().next;
    assert_eq!(wide.query().filter.created_after, Some(at(939 * SECOND)));
    assert_eq!(wide.ids(), 3);
}

#[test]
fn the_watermark_moves_after_the_last_page_only() {
    let (one, two) = (call(1, 990, 1_000), call(2, 930, 940));
    let step = walk(&CallSync::new(), &[&one], Some("c"));
    assert!(step.next.is_walking());
    assert_eq!(step.next.watermark(), None);
    assert_eq!(step.next.query().cursor.as_deref(), Some("c"));
    let step = walk(&step.next, &[&two], None);
    assert!(!step.next.is_walking());
    assert_eq!(step.next.watermark(), Some(at(1_000 * SECOND)));
    assert_eq!(step.next.query().cursor, None);
    // An empty walk leaves it where it is, and keeps no id.
    let empty = walk(&CallSync::new(), &[], Some("c")).next;
    assert_eq!((empty.is_walking(), empty.ids()), (true, 0));
    let step = walk(&step.next, &[], None);
    assert_eq!(step.next.watermark(), Some(at(1_000 * SECOND)));
}

/// D-70: a record that is dated to the future is returned, but moves nothing.
#[test]
fn a_call_from_the_future_does_not_end_the_sync() {
    let (wrong, right) = (call(9, 1_500, 9_999_999), call(1, 990, 1_000));
    let step = walk(&CallSync::new(), &[&wrong, &right], None);
    assert_eq!(fresh(&step), ["call_009", "call_001"]);
    assert_eq!(step.next.watermark(), Some(at(1_000 * SECOND)));
    let step = walk(&step.next, &[&wrong, &right], None);
    assert_eq!(fresh(&step), Vec::<&str>::new());
}

#[test]
fn a_page_out_of_order_is_refused_and_changes_nothing() {
    let calls = [call(1, 300, 310), call(2, 200, 210), call(3, 400, 410)];
    let sync = CallSync::new();
    let wrong = page(&[&calls[0], &calls[1], &calls[2]], None);
    let refused = sync.apply(&wrong, None, at(NOW));
    assert!(matches!(refused, Err(PagingError::Order { index: 2, .. })), "{refused:?}");

    // The page before once more, after the next one was asked for.
    let first = page(&[&calls[0]], Some("c"));
    let step = sync.apply(&first, None, at(NOW)).unwrap();
    assert_eq!(step.next.apply(&first, None, at(NOW)), Err(PagingError::Cycle));
    let step = walk(&step.next, &[&calls[1]], None);
    assert_eq!(fresh(&step), ["call_002"]);
}

/// What was written a lag before the walk began was there to be seen, and has been returned if the
/// walk has passed its place. What was written later is fresh unless its id is known.
#[test]
fn an_event_of_what_a_walk_has_passed_by() {
    let step = walk(&CallSync::new(), &[&call(1, 900, 1_000)], Some("c"));
    assert_eq!(step.next.take_call(&call(2, 920, 939)), None);
    assert!(step.next.take_call(&call(2, 920, 940)).is_some());
}

/// A service whose database went back writes a call again, with its old id and a new `created_at`. The
/// walk that sees it remembers it for as long as the new one is listed: SYNC-2.
#[test]
fn a_call_that_is_written_again_is_returned_once() {
    let (one, again, two) = (call(1, 990, 1_000), call(1, 990, 1_035), call(2, 1_085, 1_090));
    let step = walk(&CallSync::new(), &[&one], None);
    assert_eq!(fresh(&step), ["call_001"]);
    let step = walk(&step.next, &[&two, &again], None);
    assert_eq!(fresh(&step), ["call_002"]);
    // The query begins after the first time that it was written, and before the second.
    assert_eq!(step.next.query().filter.created_after, Some(at(1_030 * SECOND)));
    let step = walk(&step.next, &[&two, &again], None);
    assert_eq!(fresh(&step), Vec::<&str>::new());
    assert_eq!(step.next.take_call(&again), None);
}

/// SYNC-3: events and walks together give each call once, whichever comes first.
#[test]
fn events_and_walks_share_what_is_known() {
    let (one, two) = (call(1, 990, 1_000), call(2, 500, 510));
    // The event first.
    let sync = CallSync::new().take_call(&one).unwrap();
    assert_eq!(sync.take_call(&one), None);
    let step = walk(&sync, &[&one], Some("c"));
    assert_eq!(fresh(&step), Vec::<&str>::new());
    // An old call's event in the middle of a walk that has not come to it yet, and again.
    let sync = step.next.take_call(&two).unwrap();
    assert_eq!(sync.take_call(&two), None);
    let step = walk(&sync, &[&two], None);
    assert_eq!(fresh(&step), Vec::<&str>::new());
    // Long after: no id of it is kept, and yet it is known.
    assert_eq!(step.next.ids(), 1);
    assert_eq!(step.next.take_call(&two), None);
    assert_eq!(step.next.take_call(&one), None);
    // A call that a walk has passed by is known while the walk goes on, too.
    let step = walk(&CallSync::new(), &[&one, &two], Some("c"));
    assert_eq!(step.next.take_call(&two), None);
}

#[test]
fn a_sync_since_an_instant_leaves_older_calls_alone() {
    let (old, new) = (call(1, 900, 999), call(2, 990, 1_000));
    let sync = CallSync::since(at(1_000 * SECOND));
    assert_eq!(sync.query().filter.created_after, Some(at(1_000 * SECOND)));
    let step = walk(&sync, &[&new, &old], None);
    assert_eq!(fresh(&step), ["call_002"]);
    assert_eq!(step.next.query().filter.created_after, Some(at(1_000 * SECOND)));
    // Its event is no walk's business.
    assert_eq!(step.next.take_call(&old), Some(step.next.clone()));
    // One of that very instant is a walk's business, and remembered.
    let taken = sync.take_call(&new).unwrap();
    assert_eq!(taken.ids(), 1);
    assert_eq!(taken.take_call(&new), None);
}

/// What is stored today is read by a later version: the form of the state. What is not null is required
/// (D-99).
#[test]
fn the_state_as_it_is_stored() {
    let list = page(&[&call(1, 990, 1_000)], Some("c"));
    let walking = CallSync::since(at(0)).apply(&list, None, at(NOW)).unwrap().next;
    let done = walk(&walking, &[], None).next;
    assert_eq!(CallSync::default(), CallSync::new());
    for (state, text) in [
        (
            CallSync::new(),
            r#"{"lag":{"secs":60,"nanos":0},"since":null,"watermark":null,"recent":{},"kept":null,"unreadable":{},"walk":null}"#,
        ),
        (
            walking.clone(),
            r#"{"lag":{"secs":60,"nanos":0},"since":"2026-01-01T00:00:00Z","watermark":null,"recent":{"call_001":"2026-01-01T00:16:40Z"},"kept":null,"unreadable":{},"walk":{"paging":{"cursor":"c","anchor":null,"pages":1,"empty":0},"place":{"started_at":"2026-01-01T00:16:30Z","ids":["call_001"]},"frontier":null,"goal":"2026-01-01T00:16:40Z","kept":null,"opening":null}}"#,
        ),
        (
            done,
            r#"{"lag":{"secs":60,"nanos":0},"since":"2026-01-01T00:00:00Z","watermark":"2026-01-01T00:16:40Z","recent":{"call_001":"2026-01-01T00:16:40Z"},"kept":null,"unreadable":{},"walk":null}"#,
        ),
    ] {
        assert_eq!(serde_json::to_string(&state).unwrap(), text);
        assert_eq!(serde_json::from_str::<CallSync>(text).unwrap(), state);
        // What is null may be left out.
        let nulls = ["anchor", "frontier", "since", "watermark", "walk", "kept", "opening"];
        let short = nulls.iter().fold(text.to_owned(), |text, name| {
            let null = format!(r#""{name}":null"#);
            text.replace(&format!("{null},"), "").replace(&format!(",{null}"), "")
        });
        assert_eq!(serde_json::from_str::<CallSync>(&short).unwrap(), state, "{short}");
        for part in [r#","unreadable":{}"#, r#","pages":1"#, r#","empty":0"#] {
            let without = text.replace(part, "");
            let read = serde_json::from_str::<CallSync>(&without);
            assert_eq!(read.is_ok(), without == text, "{without}");
        }
        // A lag that no sync has.
        let wrong = text.replace(r#""secs":60"#, r#""secs":86401"#);
        let error = serde_json::from_str::<CallSync>(&wrong).unwrap_err().to_string();
        assert!(error.starts_with("lag is more than a day"), "{error}");
    }
    let longest = CallSync::new().with_lag(CallSync::MAX_LAG);
    assert_eq!(CallSync::new().with_lag(Duration::MAX), longest);
}
