//! The planner: order, limits, turns, and whatever happens beside a model.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::DueKind::{First, Redelivery, Retry};
use call_assistant::webhook::sender::{
    Added, DueDelivery, DueKind, LimitOf, Outcome, Planner, Rate, SenderLimits, shard_of,
};
use http::StatusCode;
use proptest::prelude::*;

use super::{at, start};

const DONE: Outcome = Outcome::Answered(StatusCode::NO_CONTENT);
const WIDE: SenderLimits = SenderLimits { overall: u32::MAX, per_endpoint: u32::MAX };

/// Each endpoint is of an account of its own.
pub(super) fn pending(delivery: u64, endpoint: u32, due: Timestamp) -> DueDelivery {
    let (event_created_at, kind) = (start(), First);
    DueDelivery { delivery, endpoint, account: endpoint, shard: 0, event_created_at, due, kind }
}

fn next(planner: &mut Planner, now: Timestamp) -> Option<(u64, u32)> {
    planner.next(now).map(|planned| (planned.delivery, planned.endpoint))
}

fn add(planner: &mut Planner, delivery: u64, endpoint: u32, due: Timestamp) {
    planner.add(pending(delivery, endpoint, due));
}

/// At once, and well.
fn finish(planner: &mut Planner, endpoint: u32) {
    planner.finished(endpoint, DONE, Duration::ZERO);
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

/// One account has at most half, however many endpoints it has and however little else waits, and
/// leaves as much free as it has. (D-89)
#[test]
fn an_account_leaves_as_much_free_as_it_has_in_flight() {
    for (overall, held) in [(1, 1), (2, 1), (3, 1), (4, 2), (9, 4), (100, 50), (448, 224)] {
        let mut planner = Planner::new(SenderLimits { overall, per_endpoint: 8 });
        for endpoint in 0..1_000 {
            let number = endpoint.into();
            planner.add(DueDelivery { account: 7, ..pending(number, endpoint, start()) });
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
            planner.add(DueDelivery { account, ..pending(number, endpoint, start()) });
        }
        let mut held = vec![0; accounts as usize];
        while let Some((_, endpoint)) = next(&mut planner, start()) {
            held[(endpoint % accounts) as usize] += 1;
        }
        let seen = (held.iter().min(), held.iter().max());
        assert_eq!(seen, (Some(&each), Some(&each)), "{accounts}");
        assert_eq!(448 - planner.in_flight(), free, "{accounts}");
    }
    // Second and further attempts of its endpoints have a quarter, the first of another has room.
    let mut planner = Planner::new(SenderLimits { overall: 40, per_endpoint: 6 });
    let own = |number, of| DueDelivery { account: 7, ..pending(number, of, start()) };
    for (number, endpoint) in (0..12).zip([0, 1].into_iter().cycle()) {
        planner.add(own(number, endpoint));
    }
    assert_eq!(drain(&mut planner, start()).len(), 12);
    (12..14).for_each(|number| _ = planner.add(own(number, 2)));
    assert_eq!(drain(&mut planner, start()), [12]);
}

/// An endpoint does not change its account and its shard, whatever is said later.
#[test]
fn an_endpoint_stays_in_its_account() {
    let mut planner = Planner::new(SenderLimits { overall: 4, per_endpoint: 4 });
    for (delivery, account, shard) in [(1, 5, 7), (2, 6, 8), (3, 0, 0)] {
        planner.add(DueDelivery { account, shard, ..pending(delivery, 0, start()) });
    }
    assert_eq!(drain(&mut planner, start()), [1, 2]);
    assert_eq!([0, 7, 8].map(|shard| planner.in_hand(Some(shard))), [0, 2, 0]);
    (0..2).for_each(|_| finish(&mut planner, 0));
    assert_eq!((drain(&mut planner, start()), planner.in_flight()), (vec![3], 1));
}

/// No more of one endpoint begin than can be counted, whatever the limits are.
#[test]
fn no_more_attempts_begin_than_can_be_counted() {
    let mut planner = Planner::new(WIDE);
    (0..=65_535).for_each(|delivery| add(&mut planner, delivery, 0, start()));
    assert_eq!(drain(&mut planner, start()).len(), 65_535);
    assert_eq!(planner.in_flight(), 65_535);
    finish(&mut planner, 0);
    assert_eq!(drain(&mut planner, start()), [65_535]);
    (0..65_536).for_each(|_| finish(&mut planner, 0));
    assert_eq!(planner.in_flight(), 0);
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
    finish(&mut planner, 0);
    assert!(planner.next_due().is_some_and(|due| due <= at(60)));
    assert_eq!(drain(&mut planner, at(60)), [2]);
}

/// Endpoints that have lines take turns, one delivery each, slow ones too.
#[test]
fn endpoints_in_line_take_turns() {
    for (accounts, outcome, each) in [
        (1, DONE, 3),
        (2, DONE, 3),
        (3, DONE, 3),
        (1, Outcome::TimedOut, 5),
        (3, Outcome::TimedOut, 5),
    ] {
        let mut planner = Planner::new(SenderLimits { overall: 1, per_endpoint: 1 });
        for delivery in 0..3 * each {
            let endpoint = u32::try_from(delivery / each).unwrap();
            let account = endpoint % accounts;
            planner.add(DueDelivery { account, ..pending(delivery, endpoint, start()) });
        }
        let mut order = Vec::new();
        while let Some((_, endpoint)) = next(&mut planner, start()) {
            order.push(endpoint);
            planner.finished(endpoint, outcome, Duration::ZERO);
        }
        assert_eq!(order.len() as u64, 3 * each);
        if accounts == 2 {
            // Accounts first: the one that has two endpoints has every second turn.
            assert_eq!(order, [0, 1, 2, 1, 0, 1, 2, 0, 2]);
            continue;
        }
        // After two attempts that timed out, an endpoint is slow.
        let rounds = if outcome == DONE { &order[1..] } else { &order[order.len() - 9..] };
        for round in rounds.windows(3).take(4) {
            assert_eq!(BTreeSet::from_iter(round).len(), 3, "{outcome:?}: {order:?}");
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
        finish(&mut planner, endpoint);
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

    let mut planner = Planner::new(SenderLimits { overall: 16, per_endpoint: 1 });
    let own = |number, of| DueDelivery { account: 7, ..pending(number, of, start()) };
    (1..=3).for_each(|delivery| _ = planner.add(own(delivery, 9)));
    for _ in 0..2 {
        assert!(next(&mut planner, start()).is_some());
        planner.finished(9, Outcome::TimedOut, Duration::ZERO);
    }
    for (delivery, endpoint) in [(15, 5), (13, 3), (11, 1)] {
        planner.add(own(delivery, endpoint));
    }
    let mut order = drain(&mut planner, start());
    order.retain(|delivery| *delivery > 3);
    assert_eq!(order, [15, 13, 11], "beside a slow endpoint of their account");
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
            planner.add(DueDelivery { account: 0, ..pending(number, endpoint, due(number)) });
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

/// A rate spaces the attempts of each endpoint, also for a clock that is set back, and wakes the
/// host in time.
#[test]
fn a_rate_spaces_the_attempts_of_each_endpoint() {
    for (rate, micros) in [(4, 250_000), (u32::MAX, 1)] {
        let mut planner = Planner::new(WIDE).with_rate(rate);
        for delivery in 0..3 {
            add(&mut planner, delivery, 0, at(100));
            add(&mut planner, 10 + delivery, 1, at(100));
        }
        let turn = |number| at(100).saturating_add(Duration::from_micros(micros * number));
        for round in 0..3_u64 {
            let row = format!("{rate} a second, round {round}");
            assert_eq!(planner.next_due(), Some(turn(round)), "{row}");
            let early = turn(round).saturating_sub(Duration::from_micros(1));
            assert_eq!(drain(&mut planner, early), [0; 0], "{row}");
            assert_eq!(drain(&mut planner, turn(round)), [round, 10 + round], "{row}");
        }
        add(&mut planner, 3, 0, at(10));
        assert_eq!(drain(&mut planner, at(10)), [3], "set back by more than the interval");
    }
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
    let failed = Outcome::Answered(StatusCode::INTERNAL_SERVER_ERROR);
    let outcome = prop_oneof![
        3 => Just(Outcome::TimedOut),
        2 => Just(DONE),
        1 => proptest::sample::select(vec![failed, Outcome::Reset, Outcome::Unsent]),
    ];
    // More than eight seconds are long.
    let took = prop_oneof![Just(8_000), Just(8_001), 7_000_u64..11_000];
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
        5 => (0_usize..8, outcome, took)
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
        DueDelivery { account, shard, kind, ..pending(number, endpoint, due) }
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
                    planner.finished(endpoint, outcome, Duration::from_millis(took));
                    let long = &mut model.long[endpoint as usize];
                    match outcome {
                        Outcome::Unsent => {}
                        Outcome::TimedOut => *long += 1,
                        _ if took > 8_000 => *long += 1,
                        Outcome::Answered(_) => *long = 0,
                        _ => {}
                    }
                }
                // Nothing is known of this endpoint.
                Op::Finish(..) => planner.finished(u32::MAX, DONE, Duration::ZERO),
                Op::Release(which, again) => {
                    let Some(number) = model.in_hand.keys().nth(which).copied() else {
                        prop_assert!(!planner.release(u64::MAX, None), "it is not in hand");
                        continue;
                    };
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

/// A number of another endpoint, or of an event of another instant, is another delivery's: nothing goes on
/// under it. (D-97)
#[test]
fn a_number_that_is_anothers_ends_what_had_it() {
    let known = pending(1, 0, at(10));
    let later = start().saturating_add(Duration::from_micros(1));
    for other in [pending(1, 1, at(10)), DueDelivery { event_created_at: later, ..known }] {
        let mut planner = Planner::new(WIDE);
        planner.add(known);
        assert_eq!(planner.add(other), Added::Other);
        let seen = (planner.pending(), drain(&mut planner, at(10)));
        assert_eq!(seen, (0, vec![]), "it is forgotten");

        planner.add(known);
        assert_eq!(drain(&mut planner, at(10)), [1]);
        assert_eq!([planner.add(other), planner.add(other)], [Added::Other, Added::InHand]);
        assert_eq!(planner.add(known), Added::InHand);
        assert!(planner.release(1, Some((at(20), Retry))), "what has the number is to be found");
        assert_eq!((planner.pending(), planner.in_hand(None)), (0, 0), "and is not planned again");
        assert_eq!(planner.add(other), Added::New);
    }
}

const fn a_second(number: u32) -> Rate {
    Rate::PerSecond(NonZeroU32::new(number).unwrap())
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
