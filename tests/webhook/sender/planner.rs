//! The planner: order, limits, turns, and being rebuilt.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    ATTEMPT_TIMEOUT, DueDelivery, Outcome, Planner, RETRY_WAITS, SenderLimits, shard_of,
};
use http::StatusCode;
use proptest::prelude::*;

use super::{at, start};

const DONE: Outcome = Outcome::Answered(StatusCode::NO_CONTENT);
const WIDE: SenderLimits = SenderLimits { overall: u32::MAX, per_endpoint: u32::MAX };

/// Each endpoint is of an account of its own.
fn pending(delivery: u64, endpoint: u32, due: Timestamp, is_retry: bool) -> DueDelivery {
    DueDelivery { delivery, endpoint, account: endpoint, due, is_retry }
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
    std::iter::from_fn(|| planner.next(now).map(|(delivery, _)| delivery)).collect()
}

#[test]
fn nothing_is_planned_before_it_is_due() {
    let mut planner = Planner::new(WIDE);
    let nano = Duration::from_nanos(1);
    add(&mut planner, 1, 0, at(10));
    add(&mut planner, 2, 1, at(10).saturating_add(nano));
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
        add(&mut planner, endpoint.into(), endpoint, now);
    }
    assert_eq!(drain(&mut planner, now).len(), 2);
    assert_eq!(state(&planner), (3, true), "all room is taken");
    add(&mut planner, 9, 9, now);
    assert!(drain(&mut planner, now).is_empty());
    assert_eq!(state(&planner), (3, true), "nobody looks at more");
    planner.retain(|_, _| false);
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
            planner.add(DueDelivery { account: 7, ..pending(1, endpoint, start(), false) });
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
            planner.add(DueDelivery { account, ..pending(1, endpoint, start(), false) });
        }
        let mut held = vec![0; accounts as usize];
        while let Some((_, endpoint)) = planner.next(start()) {
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

/// An endpoint does not change its account, whatever is said later.
#[test]
fn an_endpoint_stays_in_its_account() {
    let mut planner = Planner::new(SenderLimits { overall: 4, per_endpoint: 4 });
    for (delivery, account) in [(1, 5), (2, 6), (3, 0)] {
        planner.add(DueDelivery { account, ..pending(delivery, 0, start(), false) });
    }
    assert_eq!(drain(&mut planner, start()), [1, 2]);
    planner.began(0, 9);
    (0..3).for_each(|_| finish(&mut planner, 0, DONE));
    assert_eq!((drain(&mut planner, start()), planner.in_flight()), (vec![3], 1));
}

/// More of one endpoint than can be counted are not counted, and all of them end.
#[test]
fn more_attempts_in_flight_than_fit_are_counted_as_what_fits() {
    let mut planner = Planner::new(WIDE);
    (0..65_536).for_each(|_| planner.began(0, 0));
    assert_eq!(planner.in_flight(), 65_535);
    add(&mut planner, 1, 0, start());
    assert_eq!(planner.next(start()), None);
    (0..65_536).for_each(|_| finish(&mut planner, 0, DONE));
    assert_eq!(planner.in_flight(), 0);
    assert_eq!(planner.next(start()), Some((1, 0)));
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
    assert_eq!((planner.next(at(60)), planner.next_due()), (None, None));
    finish(&mut planner, 0, DONE);
    assert_eq!(planner.next_due(), Some(at(10)));
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
        while let Some((_, endpoint)) = planner.next(start()) {
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
    while let Some((delivery, endpoint)) = planner.next(start()) {
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

/// A flood does not stop the process: a step looks at 64 of what is due, and the next at more.
#[test]
fn a_step_is_short_however_much_is_due() {
    let mut planner = Planner::new(SenderLimits { overall: 3, per_endpoint: 1 });
    let due = |number| start().saturating_add(Duration::from_micros(number));
    for number in 0..200 {
        add(&mut planner, number, 0, due(number));
    }
    assert_eq!(planner.next(at(60)).map(|(delivery, _)| delivery), Some(0));
    assert_eq!(planner.next_due(), Some(due(64)));
    // Nobody can be sent to, so it looks on until somebody can.
    add(&mut planner, 1_000, 1, due(150));
    assert_eq!(planner.next(at(60)).map(|(delivery, _)| delivery), Some(1_000));
    assert_eq!(planner.pending(), 199);
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
        let wait = RETRY_WAITS[usize::try_from(delivery % 5).unwrap()];
        let due = at(delivery).saturating_add(wait);
        let endpoint = u32::try_from(delivery % 77).unwrap();
        add(&mut planner, delivery, endpoint, due);
        stored.insert(delivery, (endpoint, due));
    }
    let rows = stored
        .iter()
        .rev()
        .map(|(delivery, (endpoint, due))| pending(*delivery, *endpoint, *due, false));
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
    Add { endpoint: u32, wait: u64, is_retry: bool },
    Next,
    Finish(usize, Outcome, u64),
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
        3 => (0_usize..8, outcome, 7_u64..11)
            .prop_map(|(which, outcome, took)| Op::Finish(which, outcome, took)),
        2 => (0_u64..90).prop_map(Op::Pass),
        1 => any::<bool>().prop_map(|lost| Op::Rebuild { lost }),
        1 => (0_u32..7).prop_map(Op::Forget),
        1 => (0_u32..7).prop_map(Op::Began),
    ];
    proptest::collection::vec(op, 0..300)
}

proptest! {
    /// Against a model that looks at everything each time: what is planned is due, within the
    /// limits, exactly once, and of who has the fewest in flight; and nothing is held back that could
    /// go. (D-89)
    #[test]
    fn whatever_happens_it_plans_what_may_go(
        ops in ops(),
        overall in prop_oneof![1_u32..9, Just(17)],
        each in 1_u32..4,
        // Endpoints of one account.
        per_account in 1_u32..5,
    ) {
        let limits = SenderLimits { overall, per_endpoint: each };
        let mut planner = Planner::new(limits);
        let mut waiting: BTreeMap<u64, (u32, Timestamp, bool)> = BTreeMap::new();
        let mut in_flight: Vec<u32> = Vec::new();
        let mut long = [0_u8; 7];
        let (mut now, mut number) = (start(), 0);
        let of_account = |number, (endpoint, due, is_retry)| DueDelivery {
            account: endpoint / per_account,
            ..pending(number, endpoint, due, is_retry)
        };
        for op in ops {
            match op {
                Op::Add { endpoint, wait, is_retry } => {
                    let due = now.saturating_add(Duration::from_secs(wait));
                    planner.add(of_account(number, (endpoint, due, is_retry)));
                    waiting.insert(number, (endpoint, due, is_retry));
                    number += 1;
                }
                Op::Next => {
                    let count = |endpoint| in_flight.iter().filter(|e| **e == endpoint).count();
                    let is_slow = |endpoint: u32| long[endpoint as usize] >= 2;
                    let slow = in_flight.iter().filter(|e| is_slow(**e)).count();
                    let account = |endpoint: u32| endpoint / per_account;
                    let all = || 0_u32..7;
                    let of = |endpoint| all().filter(move |e| account(*e) == account(endpoint));
                    let held = |endpoint| of(endpoint).map(count).sum::<usize>();
                    let may_go = |(endpoint, due, _): &(u32, Timestamp, bool)| {
                        let further: usize =
                            of(*endpoint).map(|e| count(e).saturating_sub(1)).sum();
                        let room = match count(*endpoint) {
                            0 if is_slow(*endpoint) => slow < (overall as usize / 8).max(1),
                            0 => true,
                            own if is_slow(*endpoint) || own >= each as usize => false,
                            _ => further < (overall as usize).div_ceil(4),
                        };
                        let (held, left) =
                            (held(*endpoint), (overall as usize).saturating_sub(in_flight.len() + 1));
                        let leaves = held == 0 || left > held && left >= overall as usize / 8;
                        *due <= now && room && leaves
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
                            let fewest = due()
                                .filter(|row| is_slow(row.0) == is_slow(endpoint) && may_go(row))
                                .map(|row| held(row.0))
                                .min();
                            prop_assert!(fewest == Some(held(endpoint)) || !all_seen);
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
                Op::Finish(which, outcome, took) if which < in_flight.len() => {
                    let endpoint = in_flight.swap_remove(which);
                    planner.finished(endpoint, outcome, Duration::from_secs(took));
                    let long = &mut long[endpoint as usize];
                    match outcome {
                        Outcome::TimedOut => *long += 1,
                        _ if took > 8 => *long += 1,
                        Outcome::Answered(_) => *long = 0,
                        _ => {}
                    }
                }
                Op::Finish(..) => {}
                Op::Pass(seconds) => now = now.saturating_add(Duration::from_secs(seconds)),
                // Of an owner that has lost the endpoint.
                Op::Forget(endpoint) => {
                    planner.retain(|_, of| of != endpoint);
                    waiting.retain(|_, row| row.0 != endpoint);
                }
                Op::Began(endpoint) => {
                    planner.began(endpoint, endpoint / per_account);
                    in_flight.push(endpoint);
                }
                Op::Rebuild { lost } => {
                    let rows = waiting.iter().map(|(delivery, row)| of_account(*delivery, *row));
                    planner = Planner::rebuild(limits, rows);
                    long = [0; 7];
                    if lost {
                        in_flight.clear();
                    }
                    for endpoint in &in_flight {
                        planner.began(*endpoint, endpoint / per_account);
                    }
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
    let mut planner = Planner::new(SenderLimits { overall: 10, per_endpoint: 1 });
    for delivery in 0..40 {
        let due = if delivery < 20 { start() } else { at(40 - delivery) };
        add(&mut planner, delivery, u32::try_from(delivery % 4).unwrap(), due);
    }
    // EndpointHealth 1 has one in flight, and a line.
    let begun: Vec<_> = std::iter::from_fn(|| planner.next(start())).collect();
    assert_eq!(begun.len(), 4);
    planner.retain(|delivery, endpoint| endpoint == 1 || endpoint == 2 && delivery > 30);
    assert_eq!((planner.pending(), planner.in_flight()), (9 + 2, 4));
    for (_, endpoint) in begun {
        finish(&mut planner, endpoint, DONE);
    }
    let rest: BTreeSet<_> = std::iter::from_fn(|| {
        let (delivery, endpoint) = planner.next(at(60))?;
        finish(&mut planner, endpoint, DONE);
        Some(delivery)
    })
    .collect();
    assert_eq!(rest, BTreeSet::from([5, 9, 13, 17, 21, 25, 29, 33, 37, 34, 38]));
    assert_eq!((planner.pending(), planner.in_flight()), (0, 0));
}

/// What is in flight counts in a planner that is rebuilt, even beyond the limits.
#[test]
fn a_rebuilt_planner_counts_what_is_in_flight() {
    let limits = SenderLimits { overall: 10, per_endpoint: 2 };
    let mut planner =
        Planner::rebuild(limits, (0..4).map(|delivery| pending(delivery, 7, start(), false)));
    for _ in 0..3 {
        planner.began(7, 7);
    }
    for (finished, begun) in [(1, None), (1, Some((0, 7))), (1, Some((1, 7))), (0, None)] {
        (0..finished).for_each(|_| finish(&mut planner, 7, DONE));
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
