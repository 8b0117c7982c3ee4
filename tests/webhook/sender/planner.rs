//! The planner: order, limits, turns, and being rebuilt.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{Limits, Outcome, Planner, RETRY_WAITS, shard_of};
use http::StatusCode;
use proptest::prelude::*;

use super::{at, start};

const DONE: Outcome = Outcome::Answered(StatusCode::NO_CONTENT);
const WIDE: Limits = Limits { overall: u32::MAX, per_endpoint: u32::MAX };

fn drain(planner: &mut Planner, now: Timestamp) -> Vec<u64> {
    std::iter::from_fn(|| planner.next(now).map(|(delivery, _)| delivery)).collect()
}

#[test]
fn nothing_is_planned_before_it_is_due() {
    let mut planner = Planner::new(WIDE);
    let nano = Duration::from_nanos(1);
    planner.add(1, 0, at(10));
    planner.add(2, 1, at(10).saturating_add(nano));
    assert_eq!(planner.next_due(), Some(at(10)));
    assert_eq!(planner.next(at(10).saturating_sub(nano)), None);
    assert_eq!(planner.next(at(10)), Some((1, 0)));
    // Never early, and less than a microsecond late.
    assert_eq!(planner.next(at(10).saturating_add(nano)), None);
    let next = at(10).saturating_add(Duration::from_micros(1));
    assert_eq!(planner.next_due(), Some(next));
    assert_eq!(planner.next(next), Some((2, 1)));
    assert_eq!((planner.next_due(), planner.pending(), planner.in_flight()), (None, 0, 2));
}

#[test]
fn the_limits_hold_and_what_waits_for_them_is_not_forgotten() {
    let mut planner = Planner::new(Limits { overall: 3, per_endpoint: 2 });
    for delivery in 0..4 {
        planner.add(delivery, 0, start());
    }
    planner.add(10, 1, start());
    planner.add(20, 2, start());
    assert_eq!(drain(&mut planner, start()), [0, 10, 20]);
    assert_eq!((planner.in_flight(), planner.pending()), (3, 3));
    planner.finished(1, DONE);
    assert_eq!(drain(&mut planner, start()), [1]);
    planner.finished(2, DONE);
    assert_eq!(drain(&mut planner, start()), [0; 0]);
    planner.finished(0, DONE);
    assert_eq!(drain(&mut planner, start()), [2]);
    // An endpoint that has nothing in flight cannot finish.
    planner.finished(7, DONE);
    planner.finished(2, DONE);
    assert_eq!(planner.in_flight(), 2);
    planner.finished(0, DONE);
    assert_eq!(drain(&mut planner, start()), [3]);
}

/// One endpoint that takes ten seconds a try and has a hundred thousand deliveries due does not
/// hold up a thousand others.
#[test]
fn a_slow_endpoint_starves_nobody() {
    let mut planner = Planner::new(Limits { overall: 64, per_endpoint: 8 });
    for delivery in 0..100_000 {
        planner.add(delivery, 0, start());
    }
    for endpoint in 1..=1_000 {
        planner.add(1_000_000 + u64::from(endpoint), endpoint, start());
    }
    let mut now = start();
    let mut slow = std::collections::VecDeque::new();
    let mut served = BTreeSet::new();
    while served.len() < 1_000 {
        let mut fast = Vec::new();
        while let Some((_, endpoint)) = planner.next(now) {
            match endpoint {
                0 => slow.push_back(now.saturating_add(Duration::from_secs(10))),
                endpoint => {
                    assert!(served.insert(endpoint), "{endpoint} twice");
                    fast.push(endpoint);
                }
            }
            assert!(slow.len() <= 8, "at {now}");
        }
        // Everybody else answers within a hundredth of a second.
        now = now.saturating_add(Duration::from_millis(10));
        fast.into_iter().for_each(|endpoint| planner.finished(endpoint, DONE));
        while slow.front().is_some_and(|end| *end <= now) {
            slow.pop_front();
            planner.finished(0, DONE);
        }
    }
    // 56 at a time, a hundred times a second: a thousand take eighteen rounds.
    assert!(now.since(start()) <= Duration::from_millis(200), "{:?}", now.since(start()));
}

/// A host that sleeps as it is told to does not wake in vain: what is due long ago and waits for
/// room is no reason to.
#[test]
fn while_there_is_no_room_only_the_end_of_an_attempt_wakes() {
    let mut planner = Planner::new(Limits { overall: 1, per_endpoint: 1 });
    planner.add(1, 0, start());
    planner.add(2, 0, at(10));
    assert_eq!(drain(&mut planner, start()), [1]);
    assert_eq!(planner.next_due(), None);
    assert_eq!((planner.next(at(60)), planner.next_due()), (None, None));
    planner.finished(0, DONE);
    assert_eq!(planner.next_due(), Some(at(10)));
    assert_eq!(drain(&mut planner, at(60)), [2]);
}

/// An endpoint that was never heard of takes no room, however great its number.
#[test]
fn nothing_finishes_at_an_endpoint_that_is_not_known() {
    let mut planner = Planner::new(WIDE);
    planner.finished(u32::MAX, DONE);
    planner.add(1, 0, start());
    assert_eq!(drain(&mut planner, start()), [1]);
    planner.finished(u32::MAX, DONE);
    assert_eq!(planner.in_flight(), 1);
}

/// Endpoints that have lines take turns, one delivery each.
#[test]
fn endpoints_in_line_take_turns() {
    let mut planner = Planner::new(Limits { overall: 1, per_endpoint: 1 });
    for delivery in 0..9_u64 {
        planner.add(delivery, u32::try_from(delivery / 3).unwrap(), start());
    }
    let mut order = Vec::new();
    while let Some((_, endpoint)) = planner.next(start()) {
        order.push(endpoint);
        planner.finished(endpoint, DONE);
    }
    assert_eq!(order.len(), 9);
    for round in order[1..].windows(3).take(4) {
        assert_eq!(BTreeSet::from_iter(round).len(), 3, "{order:?}");
    }
}

/// An endpoint that has a turn gets no second one when an attempt of it finishes.
#[test]
fn who_finishes_early_takes_no_turn_of_anothers() {
    let mut planner = Planner::new(Limits { overall: 9, per_endpoint: 2 });
    for (delivery, endpoint) in [(1, 0), (2, 0), (3, 0), (4, 1), (5, 1), (6, 1)] {
        planner.add(delivery, endpoint, start());
    }
    let mut order = Vec::new();
    while let Some((delivery, endpoint)) = planner.next(start()) {
        order.push(delivery);
        planner.finished(endpoint, DONE);
    }
    assert_eq!(order, [1, 4, 2, 5, 3, 6]);
}

/// Those whose time came at different instants, long ago, take turns as well.
#[test]
fn turns_are_taken_however_late_it_is() {
    let mut planner = Planner::new(Limits { overall: 4, per_endpoint: 3 });
    for (second, (delivery, endpoint)) in [(10, 0), (11, 0), (12, 0), (20, 1)].iter().enumerate() {
        planner.add(*delivery, *endpoint, at(second.try_into().unwrap()));
    }
    assert_eq!(drain(&mut planner, at(60)), [10, 20, 11, 12]);
}

/// A flood does not stop the process: a step looks at 64 of what is due, and the next at more.
#[test]
fn a_step_is_short_however_much_is_due() {
    let mut planner = Planner::new(Limits { overall: 3, per_endpoint: 1 });
    let due = |number| start().saturating_add(Duration::from_micros(number));
    for number in 0..200 {
        planner.add(number, 0, due(number));
    }
    assert_eq!(planner.next(at(60)).map(|(delivery, _)| delivery), Some(0));
    assert_eq!(planner.next_due(), Some(due(64)));
    // Nobody can be sent to, so it looks on until somebody can.
    planner.add(1_000, 1, due(150));
    assert_eq!(planner.next(at(60)).map(|(delivery, _)| delivery), Some(1_000));
    assert_eq!(planner.pending(), 199);
}

/// More orders than there are queues: nothing comes early, and what is due at once goes first come,
/// first served.
#[test]
fn what_comes_in_no_order_goes_in_the_order_of_time() {
    let mut planner = Planner::new(WIDE);
    planner.add(100, 0, at(100));
    for second in (101..=108).rev() {
        planner.add(second, 0, at(second));
    }
    // All queues end later by now.
    for (delivery, second) in [(200, 100), (99, 99), (201, 100), (50, 50), (98, 98)] {
        planner.add(delivery, 0, at(second));
    }
    assert_eq!(planner.pending(), 14);
    let shown = format!("{planner:?}");
    assert!(shown.contains("pending: 14, in_flight: 0"), "{shown}");
    let mut order = Vec::new();
    for second in 0..=110 {
        assert!(planner.next_due().is_none_or(|due| due >= at(second)), "at {second}");
        order.extend(drain(&mut planner, at(second)).into_iter().map(|next| (second, next)));
    }
    let mut expected = vec![(50, 50), (98, 98), (99, 99), (100, 100), (100, 200), (100, 201)];
    expected.extend((101..=108).map(|second| (second, second)));
    assert_eq!(order, expected);
}

/// It can be made from what is stored at any time, and then plans as before.
#[test]
fn a_rebuilt_planner_plans_the_same() {
    let mut planner = Planner::new(WIDE);
    let mut stored = BTreeMap::new();
    for delivery in 0..5_000_u64 {
        let wait = RETRY_WAITS[usize::try_from(delivery % 5).unwrap()];
        let due = at(delivery).saturating_add(wait);
        let endpoint = u32::try_from(delivery % 77).unwrap();
        planner.add(delivery, endpoint, due);
        stored.insert(delivery, (endpoint, due));
    }
    let rows =
        stored.iter().rev().map(|(delivery, (endpoint, due))| (*delivery, *endpoint, *due, false));
    let mut rebuilt = Planner::rebuild(WIDE, rows);
    assert_eq!((planner.pending(), planner.next_due()), (rebuilt.pending(), rebuilt.next_due()));
    for second in (0..30_000).step_by(50) {
        let (one, other) = (drain(&mut planner, at(second)), drain(&mut rebuilt, at(second)));
        let set = |all: &[u64]| BTreeSet::from_iter(all.iter().copied());
        assert_eq!(set(&one), set(&other), "at {second}");
        // Turns are between endpoints; those of one go in the order of time.
        for all in [one, other] {
            let mut last = BTreeMap::new();
            for delivery in all {
                let (endpoint, due) = stored[&delivery];
                let before = last.insert(endpoint, due);
                assert!(before.is_none_or(|before| before <= due), "{delivery} at {second}");
            }
        }
    }
    assert_eq!((planner.pending(), rebuilt.pending()), (0, 0));
}

/// Two timeouts without a response between them: from then on one attempt at a time, until the next
/// response, and retries before first attempts.
#[test]
fn two_timeouts_make_an_endpoint_slow_until_it_answers() {
    for between in [None, Some(Outcome::Refused), Some(Outcome::Unsent)] {
        let mut planner = Planner::new(Limits { overall: 80, per_endpoint: 4 });
        let outcomes = [Some(Outcome::TimedOut), between, Some(Outcome::TimedOut)];
        for outcome in outcomes.into_iter().flatten() {
            planner.add(0, 0, start());
            assert_eq!(drain(&mut planner, start()), [0], "{between:?}");
            planner.finished(0, outcome);
        }
        for delivery in 1..=6 {
            planner.add(delivery, 0, start());
        }
        planner.add_retry(7, 0, start());
        assert_eq!(drain(&mut planner, start()), [7], "{between:?}");
        planner.finished(0, Outcome::Reset);
        assert_eq!(drain(&mut planner, start()), [1], "{between:?}: a reset is no response");
        planner.finished(0, Outcome::Answered(StatusCode::INTERNAL_SERVER_ERROR));
        assert_eq!(drain(&mut planner, start()), [2, 3, 4, 5], "{between:?}");
    }
    // A response in between: not in a row.
    let mut planner = Planner::new(Limits { overall: 80, per_endpoint: 4 });
    for outcome in [Outcome::TimedOut, DONE, Outcome::TimedOut] {
        planner.add(0, 0, start());
        assert_eq!(drain(&mut planner, start()), [0]);
        planner.finished(0, outcome);
    }
    (1..=4).for_each(|delivery| planner.add(delivery, 0, start()));
    assert_eq!(drain(&mut planner, start()), [1, 2, 3, 4]);
}

/// Slow endpoints have an eighth, and take turns in it; second attempts have half; the rest is for
/// those that have nothing in flight.
#[test]
fn each_kind_of_endpoint_has_its_part() {
    let mut planner = Planner::new(Limits { overall: 16, per_endpoint: 16 });
    for endpoint in 0..5_u32 {
        for _ in 0..2 {
            planner.add(0, endpoint, start());
            assert_eq!(drain(&mut planner, start()), [0]);
            planner.finished(endpoint, Outcome::TimedOut);
        }
    }
    (0..5).for_each(|endpoint| planner.add_retry(100 + u64::from(endpoint), endpoint, start()));
    for delivery in 0..20 {
        planner.add(200 + delivery, 10, start());
    }
    for endpoint in 11..=20 {
        planner.add(300 + u64::from(endpoint), endpoint, start());
    }
    let first = drain(&mut planner, start());
    let of = |hundred: u64| first.iter().filter(|delivery| **delivery / 100 == hundred).count();
    assert_eq!((of(1), of(2), of(3)), (2, 4, 10), "{first:?}");
    // Everybody else has ended: the slow ones still have two, and the one endpoint half of the rest.
    (11..=20).for_each(|endpoint| planner.finished(endpoint, DONE));
    let second = drain(&mut planner, start());
    assert_eq!(second, (204..209).collect::<Vec<_>>());
    planner.finished(0, Outcome::TimedOut);
    planner.finished(1, Outcome::TimedOut);
    assert_eq!(drain(&mut planner, start()), [102, 103]);
    assert_eq!((planner.in_flight(), planner.pending()), (11, 12));
}

/// A rate spaces the attempts of each endpoint, also for a clock that is set back, and wakes the
/// host in time.
#[test]
fn a_rate_spaces_the_attempts_of_each_endpoint() {
    let mut planner = Planner::new(WIDE).with_rate(4);
    for delivery in 0..3 {
        planner.add(delivery, 0, at(100));
        planner.add(10 + delivery, 1, at(100));
    }
    let quarter = |number| at(100).saturating_add(Duration::from_millis(250 * number));
    for round in 0..3_u64 {
        assert_eq!(planner.next_due(), Some(quarter(round)), "round {round}");
        let early = quarter(round).saturating_sub(Duration::from_micros(1));
        assert_eq!(drain(&mut planner, early), [0; 0], "round {round}");
        assert_eq!(drain(&mut planner, quarter(round)), [round, 10 + round], "round {round}");
    }
    planner.add(3, 0, at(10));
    assert_eq!(drain(&mut planner, at(10)), [3], "set back by more than the interval");
    // Nothing waits for what nobody limits.
    let mut planner = Planner::new(WIDE).with_rate(4).with_rate(0);
    (0..3).for_each(|delivery| planner.add(delivery, 0, start()));
    assert_eq!(drain(&mut planner, start()), [0, 1, 2]);
    assert_eq!(planner.next_due(), None);
}

#[derive(Clone, Debug)]
enum Op {
    Add { endpoint: u32, wait: u64, is_retry: bool },
    Next,
    Finish(usize, Outcome),
    Pass(u64),
    Rebuild { lost: bool },
    Forget(u32),
    Began(u32),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let wait = prop_oneof![Just(0), Just(10), Just(60), Just(600), 0_u64..700];
    let outcome =
        prop_oneof![3 => Just(Outcome::TimedOut), 1 => Just(Outcome::Reset), 2 => Just(DONE)];
    let op = prop_oneof![
        4 => (0_u32..6, wait, any::<bool>())
            .prop_map(|(endpoint, wait, is_retry)| Op::Add { endpoint, wait, is_retry }),
        4 => Just(Op::Next),
        3 => (0_usize..8, outcome).prop_map(|(which, outcome)| Op::Finish(which, outcome)),
        2 => (0_u64..90).prop_map(Op::Pass),
        1 => any::<bool>().prop_map(|lost| Op::Rebuild { lost }),
        1 => (0_u32..7).prop_map(Op::Forget),
        1 => (0_u32..7).prop_map(Op::Began),
    ];
    proptest::collection::vec(op, 0..300)
}

proptest! {
    /// Against a model that looks at everything each time: what is planned is due, within the
    /// limits, exactly once; and nothing is held back that could go.
    #[test]
    fn whatever_happens_it_plans_what_may_go(
        ops in ops(),
        overall in prop_oneof![1_u32..5, Just(17)],
        each in 1_u32..4,
    ) {
        let limits = Limits { overall, per_endpoint: each };
        let mut planner = Planner::new(limits);
        let mut waiting: BTreeMap<u64, (u32, Timestamp, bool)> = BTreeMap::new();
        let mut in_flight: Vec<u32> = Vec::new();
        let mut timeouts = [0_u8; 7];
        let (mut now, mut number) = (start(), 0);
        for op in ops {
            match op {
                Op::Add { endpoint, wait, is_retry } => {
                    let due = now.saturating_add(Duration::from_secs(wait));
                    match is_retry {
                        false => planner.add(number, endpoint, due),
                        true => planner.add_retry(number, endpoint, due),
                    }
                    waiting.insert(number, (endpoint, due, is_retry));
                    number += 1;
                }
                Op::Next => {
                    let count = |endpoint| in_flight.iter().filter(|e| **e == endpoint).count();
                    let is_slow = |endpoint: u32| timeouts[endpoint as usize] >= 2;
                    let slow = in_flight.iter().filter(|e| is_slow(**e)).count();
                    let further: usize = (0..7).map(|e| count(e).saturating_sub(1)).sum();
                    let may_go = |(endpoint, due, _): &(u32, Timestamp, bool)| {
                        let room = match count(*endpoint) {
                            0 if is_slow(*endpoint) => slow < (overall as usize / 8).max(1),
                            0 => true,
                            own if is_slow(*endpoint) || own >= each as usize => false,
                            _ => further < (overall as usize).div_ceil(2),
                        };
                        *due <= now && room
                    };
                    let room = in_flight.len() < overall as usize;
                    match planner.next(now) {
                        Some((delivery, endpoint)) => {
                            let row = waiting.get(&delivery).copied();
                            let may = row
                                .is_some_and(|row| row.0 == endpoint && room && may_go(&row));
                            prop_assert!(may);
                            // As far as a batch has been looked at, retries go first.
                            let due = || waiting.values().filter(|row| row.1 <= now);
                            let retry = due().any(|row| row.0 == endpoint && row.2);
                            let all_seen = due().count() <= 64;
                            let row = waiting.remove(&delivery).unwrap();
                            prop_assert!(row.2 == retry || !all_seen);
                            in_flight.push(endpoint);
                        }
                        None => {
                            prop_assert!(!room || !waiting.values().any(may_go));
                            prop_assert!(planner.next_due().is_none_or(|due| room && due > now));
                        }
                    }
                }
                Op::Finish(which, outcome) if which < in_flight.len() => {
                    let endpoint = in_flight.swap_remove(which);
                    planner.finished(endpoint, outcome);
                    let timeouts = &mut timeouts[endpoint as usize];
                    match outcome {
                        Outcome::TimedOut => *timeouts += 1,
                        Outcome::Answered(_) => *timeouts = 0,
                        _ => {}
                    }
                }
                Op::Finish(..) => {}
                Op::Pass(seconds) => now = now.saturating_add(Duration::from_secs(seconds)),
                // Of an owner that has lost the endpoint.
                Op::Forget(endpoint) => {
                    planner.forget(endpoint);
                    waiting.retain(|_, row| row.0 != endpoint);
                }
                Op::Began(endpoint) => {
                    planner.began(endpoint);
                    in_flight.push(endpoint);
                }
                Op::Rebuild { lost } => {
                    let rows = waiting
                        .iter()
                        .map(|(delivery, row)| (*delivery, row.0, row.1, row.2));
                    planner = Planner::rebuild(limits, rows);
                    timeouts = [0; 7];
                    if lost {
                        in_flight.clear();
                    }
                    in_flight.iter().for_each(|endpoint| planner.began(*endpoint));
                }
            }
            prop_assert_eq!(planner.pending(), waiting.len());
            prop_assert_eq!(planner.in_flight() as usize, in_flight.len());
        }
    }
}

/// Several endpoints go to another owner in one pass, wherever their deliveries are.
#[test]
fn what_another_owns_is_forgotten() {
    let mut planner = Planner::new(Limits { overall: 10, per_endpoint: 1 });
    for delivery in 0..40 {
        let due = if delivery < 20 { start() } else { at(40 - delivery) };
        planner.add(delivery, u32::try_from(delivery % 4).unwrap(), due);
    }
    // Endpoint 1 has one in flight, and a line.
    let begun: Vec<_> = std::iter::from_fn(|| planner.next(start())).collect();
    assert_eq!(begun.len(), 4);
    planner.retain(|delivery, endpoint| endpoint == 1 || endpoint == 2 && delivery > 30);
    assert_eq!((planner.pending(), planner.in_flight()), (9 + 2, 4));
    for (_, endpoint) in begun {
        planner.finished(endpoint, DONE);
    }
    let rest: BTreeSet<_> = std::iter::from_fn(|| {
        let (delivery, endpoint) = planner.next(at(60))?;
        planner.finished(endpoint, DONE);
        Some(delivery)
    })
    .collect();
    assert_eq!(rest, BTreeSet::from([5, 9, 13, 17, 21, 25, 29, 33, 37, 34, 38]));
    assert_eq!((planner.pending(), planner.in_flight()), (0, 0));
}

/// What is in flight counts in a planner that is rebuilt, even beyond the limits.
#[test]
fn a_rebuilt_planner_counts_what_is_in_flight() {
    let limits = Limits { overall: 10, per_endpoint: 2 };
    let mut planner =
        Planner::rebuild(limits, (0..4).map(|delivery| (delivery, 7, start(), false)));
    for _ in 0..3 {
        planner.began(7);
    }
    for (finished, begun) in [(1, None), (1, Some((0, 7))), (1, Some((1, 7))), (0, None)] {
        (0..finished).for_each(|_| planner.finished(7, DONE));
        assert_eq!(planner.next(start()), begun, "{} in flight", planner.in_flight());
    }
}

/// The shard of an endpoint is a column: computed here with another implementation.
#[test]
fn the_shard_of_an_endpoint_never_changes() {
    for (endpoint, shards, shard) in [
        ("whep_1", 1, 0),
        ("whep_1", 64, 54),
        ("whep_2", 64, 59),
        ("", 64, 20),
        ("whep_1", 256, 246),
        ("whep_1", 4294967295, 718449558),
    ] {
        let shards = std::num::NonZeroU32::new(shards).unwrap();
        assert_eq!(shard_of(endpoint, shards), shard, "{endpoint} of {shards}");
    }
    let shards = std::num::NonZeroU32::new(64).unwrap();
    let mut each = [0_u32; 64];
    for number in 0..6_400 {
        each[shard_of(format!("whep_{number}"), shards) as usize] += 1;
    }
    assert!(each.iter().all(|endpoints| (60..150).contains(endpoints)), "{each:?}");
}
