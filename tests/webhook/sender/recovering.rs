//! Ten thousand missed deliveries recovered, in virtual time, next to healthy endpoints: nobody
//! notices, and wherever the processes die, each delivery is redelivered once.

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    Attempt, Delivery, DueDelivery, DueKind, EndpointHealth, Outcome, Planner, Recovery,
    RecoveryBy, RecoveryStatus, RecoveryStep, SenderLimits, WebhookPlan,
};

use super::isolation::p99;
use super::{answered, event, start};
use crate::dice::Dice;
use support::millis as at;
use support::simulation::Agenda;

const LIMITS: SenderLimits = SenderLimits { overall: 448, per_endpoint: 8 };
const MISSED: usize = 10_000;
const HEALTHY: u32 = 200;
/// What every endpoint takes to answer 200.
const ANSWER: Millis = 20;
const PLAN: WebhookPlan = WebhookPlan::Pro;

/// Milliseconds since the start.
type Millis = u64;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Happens {
    Answer { delivery: usize, of: usize },
    Event(u32),
    Step,
    Wake,
    Kill,
}

/// A step that is not stored yet, with the versions that it was made of.
type Step = (Recovery<usize>, Vec<(usize, Delivery)>);

struct World {
    until: Millis,
    agenda: Agenda<Happens>,
    /// The store.
    endpoints: Vec<EndpointHealth>,
    deliveries: Vec<(Delivery, u32)>,
    recovery: Recovery<usize>,
    /// The process.
    planner: Planner,
    attempts: Vec<Option<Attempt>>,
    late: Option<Step>,
    dice: Dice,
    /// How late the first attempts of new events began: of healthy endpoints, and of the recovered.
    firsts: [Vec<Millis>; 2],
    redelivered: Vec<u32>,
    attempted: Vec<u32>,
    refused: usize,
    kills: usize,
}

impl World {
    /// The last endpoint has missed everything of an outage.
    fn new(until: Millis, seed: u64) -> Self {
        let mut endpoints: Vec<_> =
            (0..=HEALTHY).map(|_| EndpointHealth::new(1, start())).collect();
        let endpoint = endpoints.last_mut().unwrap();
        let _ = endpoint.pause(start());
        let skipped = Delivery::accept(&event(start()), endpoint, start());
        let missed = endpoint.enable(start()).unwrap();
        let deliveries = vec![(skipped, HEALTHY); MISSED];
        let counted = deliveries.iter().filter(|(row, _)| missed.includes(row)).count() as u64;
        let by = RecoveryBy::Dashboard;
        let recovery = missed.recover(by, PLAN, endpoint, start()).unwrap().with_counted(counted);
        Self {
            until,
            agenda: Agenda::new([]),
            endpoints,
            deliveries,
            recovery,
            planner: Planner::new(LIMITS),
            attempts: Vec::new(),
            late: None,
            dice: Dice::new(seed),
            firsts: [Vec::new(), Vec::new()],
            redelivered: vec![0; MISSED],
            attempted: vec![0; MISSED],
            refused: 0,
            kills: 0,
        }
    }

    fn run(mut self, recovers: bool, kills: bool) -> Self {
        for endpoint in 0..=HEALTHY {
            self.agenda.plan(u64::from(endpoint) * 5, Happens::Event(endpoint));
        }
        if recovers {
            self.agenda.plan(7, Happens::Step);
        }
        if kills {
            self.agenda.plan(1_000, Happens::Kill);
        }
        while let Some((now, what)) = self.agenda.pop() {
            match what {
                Happens::Event(endpoint) => self.event(endpoint, now),
                Happens::Answer { delivery, of } => self.finish(delivery, of, now),
                Happens::Step => self.step(kills, now),
                Happens::Kill => self.kill(now),
                Happens::Wake => {}
            }
            // Everything of one instant is heard first.
            if self.agenda.is_past(now) {
                self.send(now);
            }
        }
        self
    }

    fn event(&mut self, endpoint: u32, now: Millis) {
        let delivery =
            Delivery::accept(&event(start()), &self.endpoints[endpoint as usize], at(now));
        self.planner.add(pending(self.deliveries.len(), endpoint, at(now), DueKind::First));
        self.deliveries.push((delivery, endpoint));
        let next = now + if endpoint == HEALTHY { 100 } else { 1_000 };
        if next < self.until {
            self.agenda.plan(next, Happens::Event(endpoint));
        }
    }

    fn send(&mut self, now: Millis) {
        while let Some(DueDelivery { delivery: number, endpoint, .. }) = self.planner.next(at(now))
        {
            let delivery = number as usize;
            let (row, _) = &mut self.deliveries[delivery];
            let due = row.due(at(now)).unwrap_or(at(now));
            let is_first = row.version() == 0;
            let Ok(attempt) = row.begin(&self.endpoints[endpoint as usize], at(now)) else {
                self.planner.finished(endpoint, Outcome::Unsent, Duration::ZERO);
                self.planner.release(number, None);
                continue;
            };
            if is_first {
                let late = at(now).since(due).as_millis() as Millis;
                self.firsts[usize::from(endpoint == HEALTHY)].push(late);
            }
            self.attempts.push(Some(attempt));
            self.agenda
                .plan(now + ANSWER, Happens::Answer { delivery, of: self.attempts.len() - 1 });
        }
        if let Some(due) = self.planner.next_due() {
            let due = due.since(start()).as_micros().div_ceil(1_000) as Millis;
            self.agenda.plan(due.max(now + 1), Happens::Wake);
        }
    }

    /// Nothing is heard of an attempt whose process has died.
    fn finish(&mut self, delivery: usize, of: usize, now: Millis) {
        let Some(attempt) = self.attempts[of] else { return };
        let (row, endpoint) = &mut self.deliveries[delivery];
        let report = row.finish(&attempt, answered(200), at(now)).unwrap();
        assert!(!report.is_late(), "{delivery} was delivered twice");
        let _ = self.endpoints[*endpoint as usize].record(report, at(now)).unwrap();
        self.planner.finished(*endpoint, answered(200), Duration::from_millis(ANSWER));
        self.planner.release(delivery as u64, None);
        if let Some(count) = self.attempted.get_mut(delivery) {
            *count += 1;
        }
    }

    /// Two processes: one of them may be so slow that the other has made the same step meanwhile.
    fn step(&mut self, kills: bool, now: Millis) {
        let late = self.late.take();
        let step = self.look(now);
        if kills && step.is_some() && self.dice.bits().is_multiple_of(3) {
            self.late = step;
        } else if let Some(step) = step {
            self.store(step);
        }
        if let Some(step) = late {
            self.store(step);
        }
        let running = self.recovery.status() == RecoveryStatus::Running;
        if running || self.late.is_some() {
            self.agenda.plan(now + 100, Happens::Step);
        }
    }

    fn look(&mut self, now: Millis) -> Option<Step> {
        let missed = || self.deliveries.iter().take(MISSED);
        let pending = missed().filter(|(row, _)| row.is_manual() && row.is_pending()).count();
        let room = self.recovery.room(pending as u32, LIMITS.per_endpoint / 2);
        let after = self.recovery.after().map_or(0, |after| after + 1);
        let found: Vec<_> = (after..)
            .zip(self.deliveries.iter().skip(after))
            .filter(|(_, (row, of))| *of == HEALTHY && self.recovery.missed().includes(row))
            .map(|(id, (row, _))| (id, row.into_stored()))
            .take(room as usize)
            .collect();
        let mut recovery = self.recovery.clone();
        let endpoint = &self.endpoints[HEALTHY as usize];
        let step = RecoveryStep { room, found: &found, endpoint, plan: PLAN };
        let writes = recovery.step(step, at(now)).unwrap();
        recovery.if_version()?;
        Some((recovery, writes))
    }

    /// One transaction: all of it, or nothing.
    fn store(&mut self, (recovery, writes): Step) {
        let is = |version: u32, expected: Option<i32>| expected == i32::try_from(version).ok();
        let fits =
            writes.iter().all(|(id, row)| is(self.deliveries[*id].0.version(), row.if_version()));
        if !fits || !is(self.recovery.version(), recovery.if_version()) {
            self.refused += 1;
            return;
        }
        self.recovery = recovery.into_stored();
        for (id, row) in writes {
            self.deliveries[id].0 = row.into_stored();
            self.redelivered[id] += 1;
            // To the planner of a process that may die before.
            let due = row.due(start()).unwrap();
            self.planner.add(pending(id, HEALTHY, due, DueKind::Redelivery));
        }
    }

    fn kill(&mut self, now: Millis) {
        self.kills += 1;
        self.attempts.fill(None);
        self.late = None;
        self.planner = Planner::new(LIMITS);
        for (id, (row, endpoint)) in self.deliveries.iter().enumerate() {
            let kind = match row.is_manual() {
                true => DueKind::Redelivery,
                false => DueKind::First,
            };
            if let Some(due) = row.due(at(now)) {
                self.planner.add(pending(id, *endpoint, due, kind));
            }
        }
        if self.recovery.status() == RecoveryStatus::Running {
            let pause = 100 + self.dice.below(8_000);
            self.agenda.plan(now + pause, Happens::Kill);
        }
    }
}

/// All are of one account.
fn pending(id: usize, endpoint: u32, due: Timestamp, kind: DueKind) -> DueDelivery {
    let (delivery, event_created_at) = (id as u64, start());
    DueDelivery { delivery, endpoint, account: 0, shard: 0, event_created_at, due, kind }
}

const TEN_MINUTES: Millis = 600_000;

#[test]
fn ten_thousand_are_recovered_and_no_healthy_endpoint_notices() {
    let without = World::new(TEN_MINUTES, 1).run(false, false);
    let with = World::new(TEN_MINUTES, 1).run(true, false);
    assert_eq!(with.recovery.status(), RecoveryStatus::Completed);
    assert_eq!((with.recovery.counted(), with.recovery.redelivered()), (10_000, 10_000));
    assert!(with.attempted.iter().all(|count| *count == 1), "one manual attempt each");
    let last = with.deliveries[MISSED - 1].0.ended_at().unwrap().since(start());
    for (name, which) in [("healthy", 0), ("the recovered one's new events", 1)] {
        let [before, after] = [&without, &with].map(|world| p99(world.firsts[which].clone()));
        let worst = with.firsts[which].iter().max().unwrap();
        println!("{name}: p99 {before} ms without, {after} ms and at most {worst} ms with");
        assert!(after <= (3 * before).max(50), "{name}: {after} ms");
    }
    println!("{} s in all", last.as_secs());
    // Paced: four at a time, looked at ten times a second.
    assert!((240..300).contains(&last.as_secs()), "{last:?}");
}

#[test]
fn wherever_it_is_killed_each_is_redelivered_once() {
    let (mut kills, mut refused) = (0, 0);
    for seed in 0..2 {
        let world = World::new(1_000, seed).run(true, true);
        assert_eq!(world.recovery.status(), RecoveryStatus::Completed, "seed {seed}");
        assert_eq!(world.recovery.redelivered(), 10_000, "seed {seed}");
        let twice = world.redelivered.iter().filter(|count| **count != 1).count();
        assert_eq!(twice, 0, "seed {seed}: redelivered twice or never");
        let ends = world.attempted.iter().filter(|count| **count != 1).count();
        assert_eq!(ends, 0, "seed {seed}: ended twice or never");
        (kills, refused) = (kills + world.kills, refused + world.refused);
    }
    println!("{kills} kills, {refused} steps refused by a version");
    assert!(kills > 100 && refused > 100, "{kills} {refused}");
}
