//! The planner with endpoints that fail, in virtual time: nobody is held up by another's silence,
//! and who is silent is disabled in time.

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    Attempt, Delivery, DueDelivery, DueKind, EndpointChange, EndpointHealth, LONGEST_DELIVERY,
    Outcome, Planner, RETRY_WAITS, SenderLimits,
};

use super::{answered, event, start};
use support::millis as at;
use support::simulation::Agenda;

const LIMITS: SenderLimits = SenderLimits { overall: 448, per_endpoint: 8 };
const HOUR: u64 = 3_600_000;
const TIMEOUT: u64 = 10_000;
/// What one turn of the slow part takes `dead` endpoints.
const fn turn(dead: u64) -> u64 {
    dead.div_ceil(LIMITS.overall as u64 / 8) * TIMEOUT
}

/// Milliseconds since the start.
type Millis = u64;

/// How long an endpoint takes to answer 200. `None`: it never answers.
type Manner = Option<Millis>;

/// Each endpoint's manner, how often it has an event, and when the first comes.
struct Plan {
    manner: Manner,
    every: Millis,
    first: Millis,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Happens {
    Event(u32),
    Outcome(usize),
    Wake,
}

#[derive(Default)]
struct Seen {
    /// How late each first attempt began, and each retry.
    firsts: Vec<Millis>,
    retries: Vec<Millis>,
    first_failure: Option<Millis>,
    disabled: Option<Millis>,
    delivered: usize,
}

struct World {
    limits: SenderLimits,
    /// How many endpoints an account has.
    per_account: u32,
    plans: Vec<Plan>,
    until: Millis,
    agenda: Agenda<Happens>,
    planner: Planner,
    endpoints: Vec<EndpointHealth>,
    deliveries: Vec<(Delivery, u32)>,
    attempts: Vec<(usize, Attempt)>,
    seen: Vec<Seen>,
}

/// Events come until then; then everything is followed to its end.
fn run(limits: SenderLimits, plans: Vec<Plan>, until: Millis) -> Vec<Seen> {
    run_accounts(limits, 1, plans, until)
}

/// The same where neighbours are of one account.
fn run_accounts(
    limits: SenderLimits,
    per_account: u32,
    plans: Vec<Plan>,
    until: Millis,
) -> Vec<Seen> {
    let mut world = World {
        limits,
        per_account,
        until,
        agenda: Agenda::new([]),
        planner: Planner::new(limits),
        endpoints: plans.iter().map(|_| EndpointHealth::new(1, start())).collect(),
        deliveries: Vec::new(),
        attempts: Vec::new(),
        seen: plans.iter().map(|_| Seen::default()).collect(),
        plans,
    };
    for endpoint in 0..world.plans.len() {
        world.agenda.plan(world.plans[endpoint].first, Happens::Event(endpoint as u32));
    }
    while let Some((now, what)) = world.agenda.pop() {
        match what {
            Happens::Event(endpoint) => world.event(endpoint, now),
            Happens::Outcome(attempt) => world.finish(attempt, now),
            Happens::Wake => {}
        }
        // Everything of one instant is heard first.
        if world.agenda.is_past(now) {
            world.send(now);
        }
    }
    assert_eq!((world.planner.pending(), world.planner.in_flight()), (0, 0), "all has ended");
    world.seen
}

impl World {
    fn event(&mut self, endpoint: u32, now: Millis) {
        let value = &self.endpoints[endpoint as usize];
        let delivery = Delivery::accept(&event(start()), value, at(now));
        if let Some(due) = delivery.due(at(now)) {
            self.plan(self.deliveries.len(), endpoint, due);
            self.deliveries.push((delivery, endpoint));
        }
        let next = now + self.plans[endpoint as usize].every;
        if next < self.until {
            self.agenda.plan(next, Happens::Event(endpoint));
        }
    }

    fn send(&mut self, now: Millis) {
        while let Some(planned) = self.planner.next(at(now)) {
            let (number, at_endpoint) = (planned.delivery, planned.endpoint);
            assert!(self.planner.in_flight() <= self.limits.overall);
            let (number, endpoint) = (number as usize, at_endpoint as usize);
            let (delivery, _) = &mut self.deliveries[number];
            let due = delivery.due(at(now)).unwrap();
            let is_retry = delivery.attempts() > 0;
            let Ok(attempt) = delivery.begin(&self.endpoints[endpoint], at(now)) else {
                self.planner.finished(at_endpoint, Outcome::Unsent, Duration::ZERO);
                self.planner.release(planned.delivery, None);
                continue;
            };
            let late = at(now).since(due).as_millis() as Millis;
            let seen = &mut self.seen[endpoint];
            if is_retry {
                seen.retries.push(late)
            } else {
                seen.firsts.push(late)
            }
            self.attempts.push((number, attempt));
            let takes = self.plans[endpoint].manner.unwrap_or(TIMEOUT);
            self.agenda.plan(now + takes, Happens::Outcome(self.attempts.len() - 1));
        }
        if let Some(due) = self.planner.next_due() {
            self.agenda.plan(due.since(start()).as_micros().div_ceil(1_000) as u64, Happens::Wake);
        }
    }

    fn finish(&mut self, attempt: usize, now: Millis) {
        let (number, attempt) = &self.attempts[attempt];
        let (delivery, endpoint) = &mut self.deliveries[*number];
        let at_endpoint = *endpoint as usize;
        let outcome = match self.plans[at_endpoint].manner {
            Some(_) => answered(200),
            None => Outcome::TimedOut,
        };
        let report = delivery.finish(attempt, outcome, at(now)).unwrap();
        let change = self.endpoints[at_endpoint].record(report, at(now)).unwrap();
        let seen = &mut self.seen[at_endpoint];
        seen.delivered += usize::from(outcome.is_success());
        if !outcome.is_success() {
            seen.first_failure.get_or_insert(now);
        }
        if matches!(change, EndpointChange::Disabled(_)) {
            seen.disabled = Some(now);
        }
        let took = at(now).since(attempt.began_at());
        let (number, endpoint, due) = (*number, *endpoint, delivery.due(at(now)));
        self.planner.finished(endpoint, outcome, took);
        let again = due.map(|due| (due, DueKind::Retry));
        self.planner.release(number as u64, again);
    }

    fn plan(&mut self, number: usize, endpoint: u32, due: Timestamp) {
        self.planner.add(DueDelivery {
            delivery: number as u64,
            endpoint,
            account: endpoint / self.per_account,
            shard: 0,
            event_created_at: start(),
            due,
            kind: DueKind::First,
        });
    }
}

pub(super) fn p99(mut all: Vec<Millis>) -> Millis {
    all.sort_unstable();
    all[all.len() * 99 / 100]
}

fn firsts(seen: &[Seen], of: std::ops::Range<usize>) -> Vec<Millis> {
    seen[of].iter().flat_map(|seen| seen.firsts.iter().copied()).collect()
}

fn healthy(number: u64) -> Plan {
    Plan { manner: Some(20), every: 1_000, first: number * 5 }
}

fn dead(every: Millis, number: u64) -> Plan {
    Plan { manner: None, every, first: number * 5 }
}

/// From the first moment on, in which nobody is known to be slow.
#[test]
fn two_hundred_dead_endpoints_of_four_hundred_hold_up_no_healthy_one() {
    let with = |dead: Vec<Plan>| {
        let healthy = (0..200).map(healthy);
        run(LIMITS, healthy.chain(dead).collect(), HOUR / 6)
    };
    let without = p99(firsts(&with(Vec::new()), 0..200));
    let seen = with((0..200).map(|number| dead(1_000, number)).collect());
    let all = firsts(&seen, 0..200);
    let (worst, late) = (all.iter().max().copied().unwrap(), p99(all));
    println!(
        "healthy first attempts: p99 {without} ms without, {late} ms and at most {worst} ms with"
    );
    assert!(late <= (3 * without).max(50) && worst <= 50, "{late} {worst}");
    assert!(seen[..200].iter().all(|seen| seen.delivered == 600));
}

/// Within one account as well: up to a quarter of all attempts may be held by silence.
#[test]
fn a_hundred_dead_endpoints_of_an_account_hold_up_none_of_its_healthy_ones() {
    let plans = (0..100).map(healthy).chain((0..100).map(|number| dead(1_000, number)));
    let seen = run_accounts(LIMITS, 200, plans.collect(), HOUR / 6);
    let all = firsts(&seen, 0..100);
    let worst = all.iter().max().copied().unwrap();
    println!("within one account: healthy first attempts at most {worst} ms late");
    assert!(worst <= 50, "{worst}");
    assert!(seen[..100].iter().all(|seen| seen.delivered == 600));
}

/// However much arrives meanwhile, and in whatever company.
#[test]
fn a_dead_endpoint_is_disabled_two_hours_after_its_first_failed_delivery() {
    let bound = u64::try_from(LONGEST_DELIVERY.as_millis()).unwrap() + 2 * HOUR;
    for (dead_ones, every) in [(1, 200), (1, 60_000), (200, 60_000)] {
        let plans = (0..dead_ones).map(|number| dead(every, number)).collect();
        let seen = run(LIMITS, plans, bound);
        let took = seen.iter().map(|seen| seen.disabled.unwrap() - seen.first_failure.unwrap());
        let (worst, retry) =
            (took.max().unwrap(), seen.iter().flat_map(|seen| &seen.retries).max());
        println!(
            "{dead_ones} dead, an event each {every} ms: disabled after {:.2} h, retries at most {:.0} s late",
            worst as f64 / HOUR as f64,
            *retry.unwrap() as f64 / 1_000.0
        );
        assert!(worst <= bound, "{dead_ones} dead, an event each {every} ms: {worst} ms");
    }
}

/// All fail at the same times: the worst case.
#[test]
fn dead_endpoints_with_one_event_get_each_attempt_at_most_one_turn_late() {
    for dead_ones in [40, 200, 400] {
        let plan = |_| Plan { manner: None, every: 100 * HOUR, first: 0 };
        let seen = run(LIMITS, (0..dead_ones).map(plan).collect(), HOUR);
        let worst = seen.iter().flat_map(|seen| &seen.retries).max().unwrap();
        println!(
            "{dead_ones} dead with one event: at most {worst} ms late, a turn is {} ms",
            turn(dead_ones)
        );
        assert!(*worst <= turn(dead_ones), "{dead_ones} dead: {worst} ms");
        for (number, seen) in seen.iter().enumerate() {
            assert_eq!(
                (seen.firsts.as_slice(), seen.retries.len()),
                (&[0][..], RETRY_WAITS.len()),
                "{number}"
            );
        }
    }
}

/// It answers in time, so it is not slow: eight at a time, a delivery a second.
#[test]
fn an_endpoint_that_takes_eight_seconds_neither_starves_nor_starves_others() {
    for dead_ones in [0, 200] {
        let eight = |number| Plan { manner: Some(8_000), every: 1_000, first: number };
        let plans = (0..200).map(healthy).chain((0..20).map(eight));
        let plans = plans.chain((0..dead_ones).map(|number| dead(1_000, number))).collect();
        let seen = run(LIMITS, plans, HOUR / 6);
        let (fast, eight) = (firsts(&seen, 0..200), firsts(&seen, 200..220));
        let (fast, eight) = (fast.into_iter().max().unwrap(), eight.into_iter().max().unwrap());
        println!("beside {dead_ones} dead: healthy at most {fast} ms late, 8 s at most {eight} ms");
        assert!(fast <= 50, "beside {dead_ones} dead: {fast} ms");
        assert!(eight <= 3 * TIMEOUT, "beside {dead_ones} dead: {eight} ms");
        assert!(seen[..220].iter().all(|seen| seen.delivered == 600), "{dead_ones} dead");
    }
}
