//! The planner: order, limits, turns, and being rebuilt.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::DueKind::{First, Redelivery, Retry};
use call_assistant::webhook::sender::{
    ATTEMPT_TIMEOUT, Added, DueDelivery, DueKind, LimitOf, Outcome, Planner, RETRY_WAITS, Rate,
    SenderLimits, shard_of,
};
use http::StatusCode;
use proptest::prelude::*;

use super::{at, longest_wait, start};

const DONE: Outcome = Outcome::Answered(StatusCode::NO_CONTENT);
const WIDE: SenderLimits = SenderLimits { overall: u32::MAX, per_endpoint: u32::MAX };

/// Each endpoint is of an account of its own.
fn pending(delivery: u64, endpoint: u32, due: Timestamp, is_retry: bool) -> DueDelivery {
    let kind = if is_retry { Retry } else { First };
    let event_created_at = start();
    DueDelivery { delivery, endpoint, account: endpoint, shard: 0, event_created_at, due, kind }
}

fn next(planner: &mut Planner, now: Timestamp) -> Option<(u64, u32)> {
    planner.next(now).map(|planned| (planned.delivery, planned.endpoint))
}

fn add(planner: &mut Planner, delivery: u64, endpoint: u32, due: Timestamp) {
    planner.add(pending(delivery, endpoint, due, false));
}

fn add_retry(planner: &mut Planner, delivery: u64, endpoint: u32, due: Timestamp) {
    planner.add(pending(delivery, endpoint, due, true));
}

/// At once, or after as long as it may take.
fn finish(planner: &mut Planner, endpoint: u32, outcome: Outcome) {
    let took = if outcome == Outcome::TimedOut { ATTEMPT_TIMEOUT } else { Duration::ZERO };
    planner.finished(endpoint, outcome, took);
}

fn drain(planner: &mut Planner, now: Timestamp) -> Vec<u64> {
    std::iter::from_fn(|| next(planner, now).map(|(delivery, _)| delivery)).collect()
}

#[test]
fn nothing_is_planned_before_it_is_due() {
    let mut planner = Planner::new(WIDE);
    let nano = Duration::from_nanos(1);
    add(&mut planner, 1, 0, at(10));
    add(&mut planner, 2, 1, at(10).saturating_add(nano));
    assert_eq!(planner.next_due(), Some(at(10)));
    assert_eq!(next(&mut planner, at(10).saturating_sub(nano)), None);
    assert_eq!(next(&mut planner, at(10)), Some((1, 0)));
    // Never early, and less than a microsecond late.
    assert_eq!(next(&mut planner, at(10).saturating_add(nano)), None);
    let later = at(10).saturating_add(Duration::from_micros(1));
    assert_eq!(planner.next_due(), Some(later));
    assert_eq!(next(&mut planner, later), Some((2, 1)));
    assert_eq!((planner.next_due(), planner.pending(), planner.in_flight()), (None, 0, 2));
}

// D-95
#[test]
fn who_waits_for_a_limit_of_its_own_is_not_late() {
    let mut planner = Planner::new(SenderLimits { overall: 3, per_endpoint: 2 });
    let now = at(10);
    let state = |planner: &Planner| (planner.limited(), planner.is_behind(now));
    assert_eq!(state(&planner), (0, false), "empty");
    for delivery in 0..4 {
        add(&mut planner, delivery, 0, now);
    }
    add(&mut planner, 4, 1, at(11));
    assert_eq!(state(&planner), (0, true), "nobody has asked yet");
    assert_eq!(drain(&mut planner, now).len(), 1, "an account leaves room to others");
    assert_eq!(state(&planner), (3, false), "the others wait for their own account");
    for endpoint in [2, 3] {
        add(&mut planner, 20 + u64::from(endpoint), endpoint, now);
    }
    assert_eq!(drain(&mut planner, now).len(), 2);
    assert_eq!(state(&planner), (3, true), "all room is taken");
    add(&mut planner, 9, 9, now);
    assert!(drain(&mut planner, now).is_empty());
    assert_eq!(state(&planner), (4, true), "all room is taken for one more");
    planner.clear();
    assert_eq!(state(&planner), (0, false), "nothing is left");
}

#[test]
fn the_limits_hold_and_what_waits_for_them_is_not_forgotten() {
    let mut planner = Planner::new(SenderLimits { overall: 3, per_endpoint: 2 });
    for delivery in 0..4 {
        add(&mut planner, delivery, 0, start());
    }
    add(&mut planner, 10, 1, start());
    add(&mut planner, 20, 2, start());
    assert_eq!(drain(&mut planner, start()), [0, 10, 20]);
    assert_eq!((planner.in_flight(), planner.pending()), (3, 3));
    finish(&mut planner, 1, DONE);
    assert_eq!(drain(&mut planner, start()), [0; 0], "two are more than half of three");
    finish(&mut planner, 0, DONE);
    assert_eq!(drain(&mut planner, start()), [1]);
    // An endpoint that has nothing in flight cannot finish.
    finish(&mut planner, 7, DONE);
    finish(&mut planner, 1, DONE);
    assert_eq!(planner.in_flight(), 2);
    for left in [[2], [3]] {
        finish(&mut planner, 0, DONE);
        assert_eq!(drain(&mut planner, start()), left);
    }
    // Where there is room, the endpoint's own limit holds.
    let mut planner = Planner::new(SenderLimits { overall: 100, per_endpoint: 2 });
    (0..4).for_each(|delivery| add(&mut planner, delivery, 0, start()));
    assert_eq!(drain(&mut planner, start()), [0, 1]);
    finish(&mut planner, 0, DONE);
    assert_eq!(drain(&mut planner, start()), [2]);
}

/// One account has at most half, however many endpoints it has and however little else waits, and
/// leaves as much free as it has. (D-89)
#[test]
fn an_account_leaves_as_much_free_as_it_has_in_flight() {
    for (overall, held) in [(1, 1), (2, 1), (3, 1), (4, 2), (9, 4), (100, 50), (448, 224)] {
        let mut planner = Planner::new(SenderLimits { overall, per_endpoint: 8 });
        for endpoint in 0..1_000 {
            let number = endpoint.into();
            planner.add(DueDelivery { account: 7, ..pending(number, endpoint, start(), false) });
        }
        assert_eq!(drain(&mut planner, start()).len(), held, "of {overall}");
    }
    // Of several accounts, each has as much as is left free, but for an eighth.
    for (accounts, each, free) in
        [(2, 149, 150), (3, 112, 112), (6, 64, 64), (7, 56, 56), (8, 49, 56)]
    {
        let mut planner = Planner::new(SenderLimits { overall: 448, per_endpoint: 8 });
        for endpoint in 0..3_000 {
            let account = endpoint % accounts;
            let number = endpoint.into();
            planner.add(DueDelivery { account, ..pending(number, endpoint, start(), false) });
        }
        let mut held = vec![0; accounts as usize];
        while let Some((_, endpoint)) = next(&mut planner, start()) {
            held[(endpoint % accounts) as usize] += 1;
        }
        assert_eq!(
            (held.iter().min(), held.iter().max()),
            (Some(&each), Some(&each)),
            "{accounts}"
        );
        assert_eq!(448 - planner.in_flight(), free, "{accounts}");
    }
}

/// An endpoint does not change its account and its shard, whatever is said later.
#[test]
fn an_endpoint_stays_in_its_account() {
    let mut planner = Planner::new(SenderLimits { overall: 4, per_endpoint: 4 });
    for (delivery, account, shard) in [(1, 5, 7), (2, 6, 8), (3, 0, 0)] {
        planner.add(DueDelivery { account, shard, ..pending(delivery, 0, start(), false) });
    }
    assert_eq!(drain(&mut planner, start()), [1, 2]);
    assert_eq!([0, 7, 8].map(|shard| planner.in_hand(Some(shard))), [0, 2, 0]);
    (0..2).for_each(|_| finish(&mut planner, 0, DONE));
    assert_eq!((drain(&mut planner, start()), planner.in_flight()), (vec![3], 1));
}

/// No more of one endpoint begin than can be counted, whatever the limits are.
#[test]
fn no_more_attempts_begin_than_can_be_counted() {
    let mut planner = Planner::new(WIDE);
    (0..=65_535).for_each(|delivery| add(&mut planner, delivery, 0, start()));
    assert_eq!(drain(&mut planner, start()).len(), 65_535);
    assert_eq!(planner.in_flight(), 65_535);
    finish(&mut planner, 0, DONE);
    assert_eq!(drain(&mut planner, start()), [65_535]);
    (0..65_536).for_each(|_| finish(&mut planner, 0, DONE));
    assert_eq!(planner.in_flight(), 0);
}

/// One endpoint that takes ten seconds a try and has a hundred thousand deliveries due does not
/// hold up a thousand others.
#[test]
fn a_slow_endpoint_starves_nobody() {
    let mut planner = Planner::new(SenderLimits { overall: 64, per_endpoint: 8 });
    for delivery in 0..100_000 {
        add(&mut planner, delivery, 0, start());
    }
    for endpoint in 1..=1_000 {
        add(&mut planner, 1_000_000 + u64::from(endpoint), endpoint, start());
    }
    let mut now = start();
    let mut slow = std::collections::VecDeque::new();
    let mut served = BTreeSet::new();
    while served.len() < 1_000 {
        let mut fast = Vec::new();
        while let Some((_, endpoint)) = next(&mut planner, now) {
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
        fast.into_iter().for_each(|endpoint| finish(&mut planner, endpoint, DONE));
        while slow.front().is_some_and(|end| *end <= now) {
            slow.pop_front();
            finish(&mut planner, 0, DONE);
        }
    }
    // 56 at a time, a hundred times a second: a thousand take eighteen rounds.
    assert!(now.since(start()) <= Duration::from_millis(200), "{:?}", now.since(start()));
}

/// A host that sleeps as it is told to does not wake in vain: what is due long ago and waits for
/// room is no reason to.
#[test]
fn while_there_is_no_room_only_the_end_of_an_attempt_wakes() {
    let mut planner = Planner::new(SenderLimits { overall: 1, per_endpoint: 1 });
    add(&mut planner, 1, 0, start());
    add(&mut planner, 2, 0, at(10));
    assert_eq!(drain(&mut planner, start()), [1]);
    assert_eq!(planner.next_due(), None);
    assert_eq!((next(&mut planner, at(60)), planner.next_due()), (None, None));
    finish(&mut planner, 0, DONE);
    assert!(planner.next_due().is_some_and(|due| due <= at(60)));
    assert_eq!(drain(&mut planner, at(60)), [2]);
}

/// An endpoint that was never heard of takes no room, however great its number.
#[test]
fn nothing_finishes_at_an_endpoint_that_is_not_known() {
    let mut planner = Planner::new(WIDE);
    finish(&mut planner, u32::MAX, DONE);
    add(&mut planner, 1, 0, start());
    assert_eq!(drain(&mut planner, start()), [1]);
    finish(&mut planner, u32::MAX, DONE);
    assert_eq!(planner.in_flight(), 1);
}

/// Endpoints that have lines take turns, one delivery each.
#[test]
fn endpoints_in_line_take_turns() {
    for accounts in [1, 2, 3] {
        let mut planner = Planner::new(SenderLimits { overall: 1, per_endpoint: 1 });
        for delivery in 0..9_u64 {
            let endpoint = u32::try_from(delivery / 3).unwrap();
            let account = endpoint % accounts;
            planner.add(DueDelivery { account, ..pending(delivery, endpoint, start(), false) });
        }
        let mut order = Vec::new();
        while let Some((_, endpoint)) = next(&mut planner, start()) {
            order.push(endpoint);
            finish(&mut planner, endpoint, DONE);
        }
        assert_eq!(order.len(), 9);
        if accounts == 2 {
            // Accounts first: the one that has two endpoints has every second turn.
            assert_eq!(order, [0, 1, 2, 1, 0, 1, 2, 0, 2]);
            continue;
        }
        for round in order[1..].windows(3).take(4) {
            assert_eq!(BTreeSet::from_iter(round).len(), 3, "{order:?}");
        }
    }
}

/// An endpoint that has a turn gets no second one when an attempt of it finishes.
#[test]
fn who_finishes_early_takes_no_turn_of_anothers() {
    let mut planner = Planner::new(SenderLimits { overall: 9, per_endpoint: 2 });
    for (delivery, endpoint) in [(1, 0), (2, 0), (3, 0), (4, 1), (5, 1), (6, 1)] {
        add(&mut planner, delivery, endpoint, start());
    }
    let mut order = Vec::new();
    while let Some((delivery, endpoint)) = next(&mut planner, start()) {
        order.push(delivery);
        finish(&mut planner, endpoint, DONE);
    }
    assert_eq!(order, [1, 4, 2, 5, 3, 6]);
}

/// Those whose time came at different instants, long ago, take turns as well.
#[test]
fn turns_are_taken_however_late_it_is() {
    let mut planner = Planner::new(SenderLimits { overall: 8, per_endpoint: 3 });
    for (second, (delivery, endpoint)) in [(10, 0), (11, 0), (12, 0), (20, 1)].iter().enumerate() {
        add(&mut planner, *delivery, *endpoint, at(second.try_into().unwrap()));
    }
    assert_eq!(drain(&mut planner, at(60)), [10, 20, 11, 12]);
}

/// A flood does not stop the process: a step wakes 256 endpoints of those that are due, also while
/// nobody can be sent to, and the next one more.
#[test]
fn a_step_is_short_however_much_is_due() {
    for overall in [1, 3] {
        let mut planner = Planner::new(SenderLimits { overall, per_endpoint: 1 });
        assert_eq!(planner.next(start()), None);
        let due = |number| start().saturating_add(Duration::from_micros(1 + number));
        for number in 0..1_000 {
            let endpoint = u32::try_from(number).unwrap();
            planner
                .add(DueDelivery { account: 0, ..pending(number, endpoint, due(number), false) });
        }
        assert_eq!(next(&mut planner, at(60)), Some((0, 0)));
        for woken in [256, 512, 768] {
            assert_eq!((planner.next_due(), planner.is_behind(at(60))), (Some(due(woken)), true));
            assert_eq!(next(&mut planner, at(60)), None);
        }
        assert_eq!((planner.next_due(), planner.pending()), (None, 999));
        // What is due when it is added is awake at once, whatever still sleeps.
        add(&mut planner, 1_000, 1_000, due(150));
        let at_once = (overall == 3).then_some((1_000, 1_000));
        assert_eq!(next(&mut planner, at(60)), at_once);
    }
}

/// More orders than there are queues: nothing comes early, and what is due at once goes first come,
/// first served.
#[test]
fn what_comes_in_no_order_goes_in_the_order_of_time() {
    let mut planner = Planner::new(WIDE);
    add(&mut planner, 100, 0, at(100));
    for second in (101..=108).rev() {
        add(&mut planner, second, 0, at(second));
    }
    // All queues end later by now.
    for (delivery, second) in [(200, 100), (99, 99), (201, 100), (50, 50), (98, 98)] {
        add(&mut planner, delivery, 0, at(second));
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
        let wait = RETRY_WAITS[usize::try_from(delivery).unwrap() % RETRY_WAITS.len()];
        let due = at(delivery).saturating_add(wait);
        let endpoint = u32::try_from(delivery % 77).unwrap();
        add(&mut planner, delivery, endpoint, due);
        stored.insert(delivery, (endpoint, due));
    }
    let mut rebuilt = Planner::new(WIDE);
    for (delivery, (endpoint, due)) in stored.iter().rev() {
        add(&mut rebuilt, *delivery, *endpoint, *due);
    }
    assert_eq!((planner.pending(), planner.next_due()), (rebuilt.pending(), rebuilt.next_due()));
    for second in (0..=5_000 + longest_wait().as_secs()).step_by(50) {
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

/// Two attempts that last long, without a quick response between them: from then on one attempt at a
/// time, until the next quick response, and retries before first attempts. (D-89)
#[test]
fn two_long_attempts_make_an_endpoint_slow_until_it_answers_quickly() {
    let failed = Outcome::Answered(StatusCode::INTERNAL_SERVER_ERROR);
    let long = [
        (Outcome::TimedOut, 10_000),
        (Outcome::TimedOut, 0),
        (DONE, 8_001),
        (failed, 9_900),
        (Outcome::Reset, 9_000),
    ];
    let between = [None, Some(Outcome::Refused), Some(Outcome::Unsent)];
    for (first, second, between) in long
        .into_iter()
        .zip(long.into_iter().cycle().skip(1))
        .zip(between.into_iter().cycle())
        .map(|((first, second), between)| (first, second, between))
    {
        let mut planner = Planner::new(SenderLimits { overall: 80, per_endpoint: 4 });
        let outcomes = [Some(first), between.map(|outcome| (outcome, 8_000)), Some(second)];
        for (outcome, took) in outcomes.into_iter().flatten() {
            planner.release(0, None);
            add(&mut planner, 0, 0, start());
            assert_eq!(drain(&mut planner, start()), [0], "{between:?}");
            planner.finished(0, outcome, Duration::from_millis(took));
        }
        for delivery in 1..=6 {
            add(&mut planner, delivery, 0, start());
        }
        add_retry(&mut planner, 7, 0, start());
        assert_eq!(drain(&mut planner, start()), [7], "{between:?}");
        finish(&mut planner, 0, Outcome::Reset);
        assert_eq!(drain(&mut planner, start()), [1], "{between:?}: a reset is no response");
        planner.finished(0, DONE, Duration::from_millis(8_001));
        assert_eq!(drain(&mut planner, start()), [2], "{between:?}: late is not quick");
        planner.finished(0, failed, Duration::from_secs(8));
        assert_eq!(drain(&mut planner, start()), [3, 4, 5, 6], "{between:?}");
    }
    // A quick response in between: not in a row. What was not sent is no attempt.
    for (between, took) in [(DONE, 8_000), (Outcome::Unsent, 60_000)] {
        let mut planner = Planner::new(SenderLimits { overall: 80, per_endpoint: 4 });
        let last = if between == DONE { Outcome::TimedOut } else { Outcome::Reset };
        for (outcome, took) in [(Outcome::TimedOut, 10_000), (between, took), (last, 1_000)] {
            planner.release(0, None);
            add(&mut planner, 0, 0, start());
            assert_eq!(drain(&mut planner, start()), [0]);
            planner.finished(0, outcome, Duration::from_millis(took));
        }
        (1..=4).for_each(|delivery| add(&mut planner, delivery, 0, start()));
        assert_eq!(drain(&mut planner, start()), [1, 2, 3, 4], "{between:?}");
    }
}

/// Slow endpoints have an eighth, and take turns in it; second attempts have a quarter; the rest is for
/// those that have nothing in flight.
#[test]
fn each_kind_of_endpoint_has_its_part() {
    let mut planner = Planner::new(SenderLimits { overall: 16, per_endpoint: 16 });
    for endpoint in 0..5_u32 {
        for _ in 0..2 {
            add(&mut planner, 0, endpoint, start());
            assert_eq!(drain(&mut planner, start()), [0]);
            planner.release(0, None);
            finish(&mut planner, endpoint, Outcome::TimedOut);
        }
    }
    (0..5)
        .for_each(|endpoint| add_retry(&mut planner, 100 + u64::from(endpoint), endpoint, start()));
    for delivery in 0..20 {
        add(&mut planner, 200 + delivery, 10, start());
    }
    for endpoint in 11..=20 {
        add(&mut planner, 300 + u64::from(endpoint), endpoint, start());
    }
    let first = drain(&mut planner, start());
    let of = |hundred: u64| first.iter().filter(|delivery| **delivery / 100 == hundred).count();
    assert_eq!((of(1), of(2), of(3)), (2, 2, 10), "{first:?}");
    // Everybody else has ended: the slow ones still have two, and the one endpoint a quarter more.
    (11..=20).for_each(|endpoint| finish(&mut planner, endpoint, DONE));
    let second = drain(&mut planner, start());
    assert_eq!(second, (202..205).collect::<Vec<_>>());
    finish(&mut planner, 0, Outcome::TimedOut);
    finish(&mut planner, 1, Outcome::TimedOut);
    assert_eq!(drain(&mut planner, start()), [102, 103]);
    assert_eq!((planner.in_flight(), planner.pending()), (7, 16));
}

/// A rate spaces the attempts of each endpoint, also for a clock that is set back, and wakes the
/// host in time.
#[test]
fn a_rate_spaces_the_attempts_of_each_endpoint() {
    let mut planner = Planner::new(WIDE).with_rate(4);
    for delivery in 0..3 {
        add(&mut planner, delivery, 0, at(100));
        add(&mut planner, 10 + delivery, 1, at(100));
    }
    let quarter = |number| at(100).saturating_add(Duration::from_millis(250 * number));
    for round in 0..3_u64 {
        assert_eq!(planner.next_due(), Some(quarter(round)), "round {round}");
        let early = quarter(round).saturating_sub(Duration::from_micros(1));
        assert_eq!(drain(&mut planner, early), [0; 0], "round {round}");
        assert_eq!(drain(&mut planner, quarter(round)), [round, 10 + round], "round {round}");
    }
    add(&mut planner, 3, 0, at(10));
    assert_eq!(drain(&mut planner, at(10)), [3], "set back by more than the interval");
    // Nothing waits for what nobody limits.
    let mut planner = Planner::new(WIDE).with_rate(4).with_rate(0);
    (0..3).for_each(|delivery| add(&mut planner, delivery, 0, start()));
    assert_eq!(drain(&mut planner, start()), [0, 1, 2]);
    assert_eq!(planner.next_due(), None);
}

#[derive(Clone, Debug)]
enum Op {
    Add { number: u64, endpoint: u32, wait: u64, kind: DueKind },
    Next,
    Finish(usize, Outcome, u64),
    Release(usize, Option<(u64, DueKind)>),
    Pass(u64),
    Limit(LimitOf, Rate),
    Forget(u32),
    ForgetShard(u16),
    Clear,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let kind = || prop_oneof![Just(First), Just(Retry), Just(Redelivery)];
    let wait = || prop_oneof![Just(0), Just(10), Just(60), Just(600), 0_u64..700];
    let outcome =
        prop_oneof![3 => Just(Outcome::TimedOut), 1 => Just(Outcome::Reset), 2 => Just(DONE)];
    let of = prop_oneof![
        Just(LimitOf::All),
        (0_u32..3).prop_map(LimitOf::Account),
        (0_u32..6).prop_map(LimitOf::Endpoint),
    ];
    let rate = prop_oneof![
        2 => Just(Rate::Unlimited),
        1 => Just(Rate::Paused),
        2 => (1_u32..30).prop_map(a_second),
    ];
    let op = prop_oneof![
        8 => (0_u64..80, 0_u32..6, wait(), kind())
            .prop_map(|(number, endpoint, wait, kind)| Op::Add { number, endpoint, wait, kind }),
        8 => Just(Op::Next),
        5 => (0_usize..8, outcome, 7_u64..11)
            .prop_map(|(which, outcome, took)| Op::Finish(which, outcome, took)),
        5 => (0_usize..8, proptest::option::of((wait(), kind())))
            .prop_map(|(which, again)| Op::Release(which, again)),
        4 => prop_oneof![0_u64..200, 0_u64..90_000].prop_map(Op::Pass),
        1 => (of, rate).prop_map(|(of, rate)| Op::Limit(of, rate)),
        1 => (0_u32..7).prop_map(Op::Forget),
        1 => (0_u16..2).prop_map(Op::ForgetShard),
        1 => Just(Op::Clear),
    ];
    proptest::collection::vec(op, 0..400)
}

/// Endpoint, due time, kind.
type Planned = (u32, Timestamp, DueKind);

/// What a planner should do, said naively: it looks at everything each time.
struct Model {
    limits: SenderLimits,
    per_account: u32,
    now: Timestamp,
    waiting: BTreeMap<u64, Planned>,
    /// The planned delivery, whether it was added again, and whether its number was found on another.
    in_hand: BTreeMap<u64, (Planned, bool, bool)>,
    in_flight: Vec<u32>,
    long: [u8; 7],
    /// The rate, and when it allows the next attempt.
    rates: BTreeMap<LimitOf, (Rate, Timestamp)>,
}

impl Model {
    fn count(&self, endpoint: u32) -> usize {
        self.in_flight.iter().filter(|of| **of == endpoint).count()
    }

    fn is_slow(&self, endpoint: u32) -> bool {
        self.long[endpoint as usize] >= 2
    }

    fn of_account(&self, endpoint: u32) -> impl Iterator<Item = u32> {
        let account = move |endpoint| endpoint / self.per_account;
        (0..7).filter(move |of| account(*of) == account(endpoint))
    }

    fn held(&self, endpoint: u32) -> usize {
        self.of_account(endpoint).map(|of| self.count(of)).sum()
    }

    fn limits_of(&self, endpoint: u32) -> [LimitOf; 3] {
        let account = LimitOf::Account(endpoint / self.per_account);
        [LimitOf::All, account, LimitOf::Endpoint(endpoint)]
    }

    fn is_allowed(&self, endpoint: u32, now: Timestamp) -> bool {
        self.limits_of(endpoint).iter().all(|of| match self.rates.get(of) {
            Some((Rate::Paused, _)) => false,
            Some((Rate::PerSecond(_), next)) => *next <= now,
            _ => true,
        })
    }

    fn use_up(&mut self, endpoint: u32) {
        for of in self.limits_of(endpoint) {
            if let Some((Rate::PerSecond(number), next)) = self.rates.get_mut(&of) {
                let from = self.now.saturating_sub(Duration::from_millis(100));
                let interval = Duration::from_micros(1_000_000 / u64::from(number.get()));
                *next = from.max(*next).saturating_add(interval);
            }
        }
    }

    /// Whether a delivery may be sent then, if nothing else happens.
    fn may_go(&self, (endpoint, due, kind): Planned, then: Timestamp) -> bool {
        let SenderLimits { overall, per_endpoint } = self.limits;
        let (overall, per_endpoint) = (overall as usize, per_endpoint as usize);
        let slow = self.in_flight.iter().filter(|of| self.is_slow(**of)).count();
        let further: usize =
            self.of_account(endpoint).map(|of| self.count(of).saturating_sub(1)).sum();
        let has_room = match self.count(endpoint) {
            0 if self.is_slow(endpoint) => slow < (overall / 8).max(1),
            0 => true,
            own if self.is_slow(endpoint) || own >= per_endpoint => false,
            _ => further < overall.div_ceil(4),
        };
        let left = overall.checked_sub(self.in_flight.len() + 1);
        let held = self.held(endpoint);
        let leaves = left.is_some_and(|left| held == 0 || left > held && left >= overall / 8);
        let in_hand = self.in_hand.values().map(|(of, ..)| of);
        let redelivers = in_hand.filter(|of| of.0 == endpoint && of.2 == Redelivery).count();
        let shares = kind != Redelivery || redelivers < (per_endpoint * 3).div_ceil(4);
        due <= then && has_room && leaves && shares && self.is_allowed(endpoint, then)
    }

    fn pending(&self, number: u64, of: Planned) -> DueDelivery {
        let (endpoint, due, kind) = of;
        let (account, shard) = (endpoint / self.per_account, u16::from(endpoint > 2));
        DueDelivery { account, shard, kind, ..pending(number, endpoint, due, false) }
    }

    fn add(&mut self, number: u64, of: Planned) -> Added {
        let added = match (self.waiting.get(&number), self.in_hand.get_mut(&number)) {
            (_, Some((known, _, is_others))) if known.0 != of.0 && !*is_others => {
                *is_others = true;
                return Added::Other;
            }
            (_, Some((_, is_found, _))) => {
                *is_found = true;
                return Added::InHand;
            }
            (None, None) => Added::New,
            (Some(known), _) if known.0 != of.0 => {
                self.waiting.remove(&number);
                return Added::Other;
            }
            (Some(known), _) if of.1 < known.1 => Added::Earlier,
            _ => return Added::Known,
        };
        self.waiting.insert(number, of);
        added
    }

    fn expect(&mut self, planned: Option<DueDelivery>, planner: &Planner) {
        let now = self.now;
        let Some(planned) = planned else {
            assert!(!self.waiting.values().any(|of| self.may_go(*of, now)), "held back");
            // It wakes the host before anything may go, and not at once.
            let due = planner.next_due();
            assert!(due.is_none_or(|due| due > now), "{due:?} at {now}");
            let then = due.map_or(now.saturating_add(Duration::from_secs(10_000)), |due| {
                due.saturating_sub(Duration::from_micros(1))
            });
            assert!(!self.waiting.values().any(|of| self.may_go(*of, then)), "not before {due:?}");
            return;
        };
        let row = self.waiting[&planned.delivery];
        assert_eq!(planned, self.pending(planned.delivery, row));
        assert!(self.may_go(row, now), "{planned:?}");
        let endpoint = row.0;
        let may_go = || self.waiting.values().filter(|of| self.may_go(**of, now));
        let fewest = may_go().filter(|of| self.is_slow(of.0) == self.is_slow(endpoint));
        assert_eq!(fewest.map(|of| self.held(of.0)).min(), Some(self.held(endpoint)));
        let first = may_go().filter(|of| of.0 == endpoint).map(|of| (of.2 != Retry, of.1)).min();
        assert_eq!(first, Some((row.2 != Retry, row.1)), "retries, then in the order of time");
        self.waiting.remove(&planned.delivery);
        self.in_hand.insert(planned.delivery, (row, false, false));
        self.in_flight.push(endpoint);
        self.use_up(endpoint);
    }
}

proptest! {
    /// Against a model that looks at everything each time: what is planned is due, within the limits,
    /// exactly once, and of who has the fewest in flight; nothing is held back that could go; and the
    /// host is woken in time. (D-89)
    #[test]
    fn whatever_happens_it_plans_what_may_go(
        ops in ops(),
        overall in prop_oneof![1_u32..9, Just(17)],
        per_endpoint in 1_u32..5,
        // Endpoints of one account.
        per_account in 1_u32..5,
    ) {
        let limits = SenderLimits { overall, per_endpoint };
        let mut planner = Planner::new(limits);
        let mut model = Model {
            limits,
            per_account,
            now: start(),
            waiting: BTreeMap::new(),
            in_hand: BTreeMap::new(),
            in_flight: Vec::new(),
            long: [0; 7],
            rates: BTreeMap::new(),
        };
        assert_eq!(planner.next(start()), None);
        let mut heard = start();
        for op in ops {
            match op {
                Op::Add { number, endpoint, wait, kind } => {
                    let of = (endpoint, model.now.saturating_add(Duration::from_secs(wait)), kind);
                    let added = planner.add(model.pending(number, of));
                    prop_assert_eq!(added, model.add(number, of));
                }
                Op::Next => {
                    heard = model.now;
                    let planned = planner.next(model.now);
                    model.expect(planned, &planner);
                }
                Op::Finish(which, outcome, took) if which < model.in_flight.len() => {
                    let endpoint = model.in_flight.swap_remove(which);
                    planner.finished(endpoint, outcome, Duration::from_secs(took));
                    let long = &mut model.long[endpoint as usize];
                    match outcome {
                        Outcome::TimedOut => *long += 1,
                        _ if took > 8 => *long += 1,
                        Outcome::Answered(_) => *long = 0,
                        _ => {}
                    }
                }
                Op::Finish(..) => {}
                Op::Release(which, again) => {
                    let Some(number) = model.in_hand.keys().nth(which).copied() else { continue };
                    let (planned, is_found, is_others) = model.in_hand.remove(&number).unwrap();
                    let due = |wait| model.now.saturating_add(Duration::from_secs(wait));
                    let again = again.map(|(wait, kind)| (due(wait), kind));
                    prop_assert_eq!(planner.release(number, again), is_others);
                    let again = again.map(|(due, kind)| (planned.0, due, kind));
                    if let Some(waits) = again.or(is_found.then_some(planned)).filter(|_| !is_others) {
                        model.waiting.insert(number, waits);
                    }
                }
                Op::Pass(millis) => {
                    model.now = model.now.saturating_add(Duration::from_millis(millis));
                }
                Op::Limit(of, rate) => {
                    planner.limit(of, rate);
                    if model.rates.get(&of).is_none_or(|set| set.0 != rate) {
                        model.rates.insert(of, (rate, heard));
                    }
                }
                Op::Forget(endpoint) => {
                    planner.forget(endpoint);
                    model.waiting.retain(|_, of| of.0 != endpoint);
                }
                Op::ForgetShard(shard) => {
                    planner.forget_shard(shard);
                    model.waiting.retain(|_, of| u16::from(of.0 > 2) != shard);
                }
                Op::Clear => {
                    planner.clear();
                    model.waiting.clear();
                }
            }
            prop_assert_eq!(planner.pending(), model.waiting.len());
            prop_assert_eq!(planner.in_flight() as usize, model.in_flight.len());
            prop_assert_eq!(planner.in_hand(None), model.in_hand.len());
            let of_shard = model.in_hand.values().filter(|(of, ..)| of.0 > 2).count();
            prop_assert_eq!(planner.in_hand(Some(1)), of_shard);
            let due = model.waiting.values().filter(|of| of.1 <= heard).count();
            prop_assert_eq!(planner.limited(), due);
        }
    }
}

/// Endpoints and shards go to another owner, wherever their deliveries are. What is in hand stays so.
#[test]
fn what_another_owns_is_forgotten() {
    let mut planner = Planner::new(SenderLimits { overall: 10, per_endpoint: 1 });
    for delivery in 0..40 {
        let due = if delivery < 20 { start() } else { at(40 - delivery) };
        let endpoint = u32::try_from(delivery % 4).unwrap();
        let shard = u16::from(endpoint > 1);
        planner.add(DueDelivery { shard, ..pending(delivery, endpoint, due, false) });
    }
    // Each has one in flight, and more that is due.
    assert_eq!(drain(&mut planner, start()), [0, 1, 2, 3]);
    planner.forget(0);
    assert_eq!((planner.pending(), planner.limited(), planner.in_flight()), (27, 12, 4));
    planner.forget_shard(1);
    assert_eq!((planner.pending(), planner.limited(), planner.in_flight()), (9, 4, 4));
    let in_hand = [None, Some(0), Some(1), Some(2)].map(|shard| planner.in_hand(shard));
    assert_eq!(in_hand, [4, 2, 2, 0]);
    for endpoint in 0..4 {
        finish(&mut planner, endpoint, DONE);
        planner.release(endpoint.into(), None);
    }
    assert_eq!(planner.in_hand(None), 0);
    assert_eq!(drain(&mut planner, at(60)), [5]);
    planner.clear();
    assert_eq!((planner.pending(), planner.in_hand(None), planner.next_due()), (0, 1, None));
    finish(&mut planner, 1, DONE);
    assert_eq!(drain(&mut planner, at(60)), [0; 0]);
}

/// A delivery is planned once by its number, and its earliest due time counts.
#[test]
fn a_delivery_that_is_found_again_is_planned_once() {
    let mut planner = Planner::new(WIDE);
    let of = |endpoint, second| pending(1, endpoint, at(second), false);
    assert_eq!(planner.add(of(0, 20)), Added::New);
    assert_eq!(planner.add(of(0, 30)), Added::Known);
    assert_eq!(planner.add(DueDelivery { kind: Retry, ..of(0, 10) }), Added::Earlier);
    let planned = DueDelivery { kind: Retry, ..of(0, 10) };
    assert_eq!((planner.next(at(10)), planner.pending()), (Some(planned), 0));
    for second in [5, 10, 60] {
        assert_eq!(planner.add(of(0, second)), Added::InHand);
    }
    assert_eq!((planner.next(at(60)), planner.in_hand(None)), (None, 1));
    // The two ends come in any order, and each counts once.
    assert!(!planner.release(1, Some((at(70), Retry))));
    assert!(!planner.release(1, None), "it is not in hand");
    assert_eq!((planner.pending(), planner.in_hand(None), planner.in_flight()), (1, 0, 1));
    finish(&mut planner, 0, DONE);
    assert_eq!((next(&mut planner, at(69)), planner.next_due()), (None, Some(at(70))));
    assert_eq!(next(&mut planner, at(70)), Some((1, 0)));
    planner.release(1, None);
    assert_eq!((planner.pending(), planner.in_hand(None)), (0, 0));
    assert_eq!(planner.add(of(0, 80)), Added::New, "it is forgotten");
}

/// A delivery that becomes pending while it is in hand is not lost, whatever was read of it before.
#[test]
fn a_delivery_that_is_found_in_hand_does_not_end_unread() {
    let mut planner = Planner::new(WIDE);
    let of = pending(1, 0, at(10), false);
    planner.add(of);
    assert_eq!(planner.next(at(10)), Some(of));
    assert_eq!(planner.add(of), Added::InHand);
    finish(&mut planner, 0, Outcome::Unsent);
    assert!(!planner.release(1, None));
    assert_eq!((planner.pending(), planner.next(at(10))), (1, Some(of)), "it is read once more");
    finish(&mut planner, 0, Outcome::Unsent);
    assert!(!planner.release(1, None));
    assert_eq!((planner.pending(), planner.next(at(10))), (0, None), "and ends");
}

/// A number of another endpoint, or of an event of another instant, is another delivery's: nothing goes on
/// under it. (D-97)
#[test]
fn a_number_that_is_anothers_ends_what_had_it() {
    let known = pending(1, 0, at(10), false);
    let later = start().saturating_add(Duration::from_micros(1));
    for other in [pending(1, 1, at(10), false), DueDelivery { event_created_at: later, ..known }] {
        let mut planner = Planner::new(WIDE);
        planner.add(known);
        assert_eq!(planner.add(other), Added::Other);
        assert_eq!(
            (planner.pending(), drain(&mut planner, at(10))),
            (0, vec![]),
            "it is forgotten"
        );

        planner.add(known);
        assert_eq!(drain(&mut planner, at(10)), [1]);
        assert_eq!([planner.add(other), planner.add(other)], [Added::Other, Added::InHand]);
        assert_eq!(planner.add(known), Added::InHand);
        assert!(planner.release(1, Some((at(20), Retry))), "what has the number is to be found");
        assert_eq!((planner.pending(), planner.in_hand(None)), (0, 0), "and is not planned again");
        assert_eq!(planner.add(other), Added::New);
    }
}

/// Redeliveries have at most three quarters of an endpoint's slots, until they are stored.
#[test]
fn redeliveries_leave_room_to_new_events() {
    for (per_endpoint, most) in [(1, 1), (2, 2), (4, 3), (8, 6), (9, 7)] {
        let mut planner = Planner::new(SenderLimits { overall: 448, per_endpoint });
        for delivery in 0..20 {
            planner.add(DueDelivery { kind: Redelivery, ..pending(delivery, 0, start(), false) });
        }
        let redelivered = (0..most).collect::<Vec<_>>();
        assert_eq!(drain(&mut planner, start()), redelivered, "of {per_endpoint}");
        assert_eq!((planner.next_due(), planner.is_behind(start())), (None, false));
        (100..110).for_each(|delivery| add(&mut planner, delivery, 0, at(1)));
        let rest = u64::from(per_endpoint) - most;
        assert_eq!(drain(&mut planner, at(1)), (100..100 + rest).collect::<Vec<_>>());
        // One is stored, so the next redelivery may go, before what is due later.
        finish(&mut planner, 0, DONE);
        planner.release(0, None);
        assert_eq!(drain(&mut planner, at(1)), [most], "of {per_endpoint}");
    }
}

const fn a_second(number: u32) -> Rate {
    Rate::PerSecond(NonZeroU32::new(number).unwrap())
}

/// Each limit that applies is asked and used up: a hundred a second are a hundred, however many accounts
/// have a limit of their own.
#[test]
fn each_limit_that_applies_is_used_up() {
    let mut planner = Planner::new(SenderLimits { overall: 448, per_endpoint: 8 });
    assert_eq!(planner.next(start()), None);
    planner.limit(LimitOf::All, a_second(100));
    for account in 0..10 {
        planner.limit(LimitOf::Account(account), a_second(60));
    }
    planner.limit(LimitOf::Endpoint(9), a_second(2));
    for number in 0..5_000 {
        add(&mut planner, number, u32::try_from(number % 10).unwrap(), start());
    }
    let mut begun = [0; 10];
    for milli in 0..1_000 {
        let now = start().saturating_add(Duration::from_millis(milli));
        assert!(planner.next_due().is_some_and(|due| due <= at(1)), "it knows when");
        while let Some((_, endpoint)) = next(&mut planner, now) {
            begun[endpoint as usize] += 1;
            finish(&mut planner, endpoint, DONE);
        }
        assert!(!planner.is_behind(now), "who waits for an operator is not late");
    }
    let all = begun.iter().sum::<u32>();
    assert!((99..=101).contains(&all), "{begun:?}");
    assert_eq!(begun[9], 2, "{begun:?}");
    assert!(begun[..9].iter().all(|each| (10..=12).contains(each)), "{begun:?}");

    // What was not used for long may be used for a tenth of a second.
    assert_eq!(drain(&mut planner, at(60)).len(), 11);
    // A pause has no end, and another limit begins anew.
    planner.limit(LimitOf::All, Rate::Paused);
    assert_eq!((drain(&mut planner, at(70)).len(), planner.next_due()), (0, None));
    planner.limit(LimitOf::All, Rate::Unlimited);
    (0..9).for_each(|account| planner.limit(LimitOf::Account(account), Rate::Paused));
    assert_eq!(drain(&mut planner, at(80)), [39], "9 and 19 went in the first second, 29 at 60");
    assert!(planner.next_due().is_some_and(|due| due > at(80)), "for the endpoint");
    planner.limit(LimitOf::Account(3), Rate::Unlimited);
    assert!(planner.next_due().is_some_and(|due| due <= at(80)), "at once");
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
        let shards = NonZeroU32::new(shards).unwrap();
        assert_eq!(shard_of(endpoint, shards), shard, "{endpoint} of {shards}");
    }
    let shards = NonZeroU32::new(64).unwrap();
    let mut each = [0_u32; 64];
    for number in 0..6_400 {
        each[shard_of(format!("whep_{number}"), shards) as usize] += 1;
    }
    assert!(each.iter().all(|endpoints| (60..150).contains(endpoints)), "{each:?}");
}
