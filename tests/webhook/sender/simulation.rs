//! Whole services in virtual time, from seeds: hosts that die and restart, clocks that step,
//! endpoints that fail in every way, owners that enable and redeliver. DEL-8: nothing is lost.
//! D-80: nothing is held up by a clock that is a year off.
//!
//! `SIMULATION_WORLDS=5000` runs more worlds, `SIMULATION_SEED=17` the one that failed.

use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{
    Added, Attempt, BeginError, Delivery, DeliveryStatus, DisabledReason, DueDelivery, DueKind,
    EndpointChange, EndpointHealth, LONGEST_DELIVERY, MAX_ATTEMPTS, Outcome, Planner, RETENTION,
    RETRY_WAITS, SenderLimits,
};

use super::{answered, event, longest_wait, start};
use crate::dice::Dice;
use support::millis;
use support::simulation::{Agenda, Tally, seeds};

const HOSTS: usize = 3;
const SECOND: u64 = 1_000;
const HOUR: u64 = 3_600 * SECOND;
const DAY: Duration = Duration::from_secs(24 * 3_600);
const YEAR: i64 = 365 * 24 * 3_600_000;
/// Until then there are new events and mishaps; after it everything is given time to end.
const MISHAPS_END: u64 = 30 * HOUR;

#[test]
fn every_world_keeps_its_promises() {
    let (mut seen, seeds) = (Tally::default(), seeds(60));
    let one = seeds.end - seeds.start == 1;
    for seed in seeds.clone() {
        match std::panic::catch_unwind(|| World::new(seed).run().seen) {
            Ok(met) => seen.add(&met),
            Err(_) => {
                panic!("seed {seed}: SIMULATION_SEED={seed} cargo test --test webhook simulation")
            }
        }
    }
    println!("{seeds:?}: {seen:?}");
    assert!(one || seen.has_all(&KINDS), "{seen:?}");
}

/// What happens in the worlds, beside deliveries and attempts.
const KINDS: [&str; 13] = [
    "delivered",
    "failed",
    "parked",
    "skipped",
    "late",
    "crash",
    "taken over",
    "disabled by a 410",
    "disabled by failing",
    "enabled",
    "manual",
    "unsent",
    "misdated",
];

/// Milliseconds of true time since the start.
type Millis = u64;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happens {
    Emit,
    Wake(usize),
    /// To this life of a host: what it began, and what came of it.
    Answer {
        host: usize,
        life: u32,
        job: usize,
    },
    Crash(usize),
    Restart(usize),
    Sweep(usize),
    StepClock(usize),
    Enable(usize),
    RedeliverOne,
}

struct Row {
    value: Delivery,
    endpoint: usize,
    acknowledged: bool,
    charged: u8,
    counted: u8,
    redelivered: bool,
    /// By the clock of whoever finished the last attempt.
    due: Option<Timestamp>,
}

struct Host {
    alive: bool,
    life: u32,
    planner: Planner,
    /// Its clock beside the true time, in milliseconds.
    ahead: i64,
}

/// How an endpoint answers.
#[derive(Clone, Copy)]
enum Manner {
    Healthy,
    Slow,
    Dead,
    Flapping,
    Leaving,
}

struct Receiver {
    manner: Manner,
    value: EndpointHealth,
    // The ledger, by the specification alone.
    streak: u8,
    disabled: Option<DisabledReason>,
    life: u32,
}

struct Job {
    row: usize,
    attempt: Attempt,
    outcome: Outcome,
    life: u32,
}

struct World {
    dice: Dice,
    now: Millis,
    agenda: Agenda<Happens>,
    hosts: Vec<Host>,
    receivers: Vec<Receiver>,
    rows: Vec<Row>,
    jobs: Vec<Job>,
    to_emit: u64,
    gap: Millis,
    seen: Tally,
}

const LIMITS: SenderLimits = SenderLimits { overall: 20, per_endpoint: 4 };

impl World {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let manners =
            [Manner::Healthy, Manner::Slow, Manner::Dead, Manner::Flapping, Manner::Leaving];
        let receivers = (0..8)
            .map(|_| Receiver {
                manner: manners[dice.below(5) as usize],
                value: EndpointHealth::new(1, start()),
                streak: 0,
                disabled: None,
                life: 0,
            })
            .collect();
        let host = || Host { alive: true, life: 0, planner: Planner::new(LIMITS), ahead: 0 };
        let mut world = Self {
            // One world in twenty is large: some thousands of deliveries.
            to_emit: match seed % 20 {
                19 => 500 + dice.below(1_000),
                _ => 20 + dice.below(130),
            },
            gap: 0,
            dice,
            now: 0,
            agenda: Agenda::new([]),
            hosts: (0..HOSTS).map(|_| host()).collect(),
            receivers,
            rows: Vec::new(),
            jobs: Vec::new(),
            seen: Tally::default(),
        };
        // All within about a day.
        world.gap = 48 * HOUR / world.to_emit;
        world.after(0, Happens::Emit);
        world.after(HOUR, Happens::RedeliverOne);
        for host in 0..HOSTS {
            let (crash, step) = (world.dice.below(8 * HOUR), world.dice.below(8 * HOUR));
            world.after(crash, Happens::Crash(host));
            world.after(step, Happens::StepClock(host));
            world.after(HOUR, Happens::Sweep(host));
        }
        world
    }

    fn after(&mut self, wait: Millis, what: Happens) {
        self.agenda.plan(self.now + wait, what);
    }

    fn run(mut self) -> Self {
        while let Some((at, what)) = self.agenda.pop() {
            self.now = at;
            let over = at >= MISHAPS_END;
            if over && self.to_emit == 0 && !self.rows.iter().any(|row| row.value.is_pending()) {
                break;
            }
            assert!(at < 60 * 24 * HOUR, "something is pending for ever");
            self.happen(what, over);
        }
        self.verify();
        self
    }

    fn happen(&mut self, what: Happens, over: bool) {
        match what {
            Happens::Emit => self.emit(),
            Happens::Wake(host) => self.send(host),
            Happens::Answer { host, life, job } => {
                if self.hosts[host].alive && self.hosts[host].life == life {
                    self.finish(host, job);
                }
            }
            Happens::Crash(_) if over => {}
            Happens::Crash(host) => {
                self.seen.count("crash", 1);
                self.hosts[host].alive = false;
                self.hosts[host].life += 1;
                let down = self.dice.below(HOUR);
                self.after(down, Happens::Restart(host));
            }
            Happens::Restart(host) => {
                self.hosts[host].alive = true;
                self.hosts[host].planner = Planner::new(LIMITS);
                (0..self.rows.len()).for_each(|row| self.plan(host, row));
                let up = self.dice.below(12 * HOUR);
                self.after(up, Happens::Crash(host));
                self.after(0, Happens::Wake(host));
            }
            Happens::Sweep(host) => {
                if self.hosts[host].alive {
                    for row in 0..self.rows.len() {
                        self.plan(host, row);
                    }
                    self.after(0, Happens::Wake(host));
                }
                self.after(HOUR, Happens::Sweep(host));
            }
            Happens::StepClock(host) => {
                // Up to a minute either way, now and then a year, and right again in the end.
                let by = i64::try_from(self.dice.below(120 * SECOND)).unwrap() - 60_000;
                let by = if self.dice.below(10) == 0 { by.signum() * YEAR } else { by };
                self.hosts[host].ahead = if over { 0 } else { by };
                self.after(0, Happens::Wake(host));
                let next = self.dice.below(8 * HOUR);
                self.after(next, Happens::StepClock(host));
            }
            Happens::Enable(endpoint) => self.enable(endpoint),
            Happens::RedeliverOne => self.redeliver_one(over),
        }
    }

    fn emit(&mut self) {
        if self.to_emit == 0 {
            return;
        }
        self.to_emit -= 1;
        let host = self.dice.below(HOSTS as u64) as usize;
        let now = self.clock(host);
        for endpoint in 0..self.receivers.len() {
            if self.dice.below(3) > 0 {
                continue;
            }
            let value = Delivery::accept(&event(now), &self.receivers[endpoint].value, now);
            assert_eq!(value.is_pending(), self.receivers[endpoint].disabled.is_none());
            self.rows.push(Row {
                value,
                endpoint,
                acknowledged: false,
                charged: 0,
                counted: 0,
                redelivered: false,
                due: value.due(now),
            });
            if self.hosts[host].alive {
                self.plan(host, self.rows.len() - 1);
            }
        }
        self.after(0, Happens::Wake(host));
        let next = self.dice.below(self.gap);
        self.after(next, Happens::Emit);
    }

    fn plan(&mut self, host: usize, row: usize) {
        let Some(due) = self.rows[row].value.due(self.clock(host)) else { return };
        let Row { value, endpoint, .. } = &self.rows[row];
        let kind = match value.attempts() {
            _ if value.is_manual() => DueKind::Redelivery,
            0 => DueKind::First,
            _ => DueKind::Retry,
        };
        let endpoint = u32::try_from(*endpoint).unwrap();
        // An account has two endpoints.
        let (delivery, account, shard, event_created_at) = (row as u64, endpoint / 2, 0, start());
        let due = DueDelivery { delivery, endpoint, account, shard, event_created_at, due, kind };
        assert_ne!(self.hosts[host].planner.add(due), Added::Other);
    }

    /// Everything a host can send now; then it sleeps until something is due.
    fn send(&mut self, host: usize) {
        if !self.hosts[host].alive {
            return;
        }
        let now = self.clock(host);
        while let Some(planned) = self.hosts[host].planner.next(now) {
            let DueDelivery { delivery, endpoint, .. } = planned;
            let at = delivery as usize;
            let receiver = &self.receivers[endpoint as usize];
            let row = &mut self.rows[at];
            let before = row.value;
            match row.value.begin(&receiver.value, now) {
                Ok(attempt) => {
                    // D-55: never while it is known to be disabled.
                    assert_eq!(receiver.disabled, None);
                    let early = row.due.map_or(Duration::ZERO, |due| due.since(now));
                    let wrong = early > (2 * longest_wait());
                    let taken_over = before.status() == DeliveryStatus::Sending;
                    assert!(early.is_zero() || wrong || taken_over, "before it was due");
                    self.seen.count("misdated", usize::from(wrong));
                    assert_eq!(attempt.deadline().since(now), Duration::from_secs(10));
                    if !attempt.is_manual() {
                        assert_eq!(attempt.number(), row.charged + 1);
                    }
                    self.seen.count("attempts", 1);
                    self.seen.count("taken over", usize::from(taken_over));
                    self.go(host, at, attempt);
                }
                Err(error) => {
                    self.hosts[host].planner.finished(endpoint, Outcome::Unsent, Duration::ZERO);
                    self.hosts[host].planner.release(delivery, None);
                    match error {
                        BeginError::Early { .. }
                        | BeginError::Leased { .. }
                        | BeginError::Disabled { .. } => self.plan(host, at),
                        BeginError::Parked => {
                            assert!(receiver.disabled.is_some() || receiver.life > 0)
                        }
                        _ => assert!(!before.is_pending()),
                    }
                }
            }
        }
        if let Some(due) = self.hosts[host].planner.next_due() {
            let wait = due.since(now).as_millis() as u64;
            self.after(wait + 1, Happens::Wake(host));
        }
    }

    /// The attempt itself: how long it takes, and what comes of it.
    fn go(&mut self, host: usize, row: usize, attempt: Attempt) {
        let endpoint = self.rows[row].endpoint;
        let (manner, life) = (self.receivers[endpoint].manner, self.receivers[endpoint].life);
        let faults = [
            answered(500),
            answered(302),
            answered(404),
            answered(100),
            Outcome::Refused,
            Outcome::Reset,
            Outcome::Dns,
            Outcome::Tls,
            Outcome::Forbidden,
        ];
        let fault = faults[self.dice.below(9) as usize];
        let roll = self.dice.below(100);
        let outcome = match manner {
            _ if roll == 0 => Outcome::Unsent,
            Manner::Healthy if roll < 95 => answered(204),
            Manner::Slow if roll < 50 => Outcome::TimedOut,
            Manner::Slow => answered(200),
            Manner::Flapping if (self.now / (6 * HOUR)).is_multiple_of(2) => answered(200),
            Manner::Leaving if roll < 4 => answered(410),
            Manner::Leaving if roll < 60 => answered(299),
            _ => fault,
        };
        let took = match outcome {
            Outcome::TimedOut => 10 * SECOND,
            _ => self.dice.below(9 * SECOND),
        };
        // Now and then a host stands still for longer than its lease.
        let stood = if self.dice.below(40) == 0 { self.dice.below(200 * SECOND) } else { 0 };
        self.rows[row].acknowledged |= outcome.is_success();
        self.jobs.push(Job { row, attempt, outcome, life });
        let job = self.jobs.len() - 1;
        let answer = Happens::Answer { host, life: self.hosts[host].life, job };
        self.after(took + stood, answer.clone());
        // And now and then it says a thing twice.
        if self.dice.below(30) == 0 {
            let again = self.dice.below(HOUR);
            self.after(took + stood + again, answer);
        }
    }

    fn finish(&mut self, host: usize, job: usize) {
        let now = self.clock(host);
        let Job { row: at, attempt, outcome, life } = self.jobs[job];
        let row = &mut self.rows[at];
        let receiver = &mut self.receivers[row.endpoint];
        let before = row.value;
        let report = row.value.finish(&attempt, outcome, now).unwrap();
        let change = receiver.value.record(report, now).unwrap();
        let in_time = receiver.disabled.is_none() && receiver.life == life;
        match row.value.status() {
            _ if report.is_late() => {
                self.seen.count("late", 1);
                assert_eq!(row.value, before);
            }
            DeliveryStatus::Delivered => {
                assert!(row.acknowledged);
                if in_time {
                    receiver.streak = 0;
                }
            }
            DeliveryStatus::Waiting if outcome == Outcome::Unsent && is_kept(&row.value, now) => {
                self.seen.count("unsent", 1);
                row.due = Some(now);
            }
            DeliveryStatus::Waiting => {
                row.charged += 1;
                let wait = RETRY_WAITS[usize::from(row.charged) - 1];
                // DEL-4, D-51: from the end of the attempt that failed, exactly.
                row.due = Some(now.saturating_add(wait));
                assert_eq!(row.value.due(now), row.due);
            }
            DeliveryStatus::Failed if attempt.is_manual() => self.seen.count("manual", 1),
            DeliveryStatus::Failed => {
                row.charged += 1;
                assert_eq!(row.charged, MAX_ATTEMPTS);
                if in_time && outcome != Outcome::Unsent {
                    receiver.streak += 1;
                    row.counted += 1;
                }
            }
            status => assert_eq!(status, DeliveryStatus::Gone),
        }
        if in_time && receiver.streak == 20 {
            receiver.disabled = Some(DisabledReason::Failing);
        }
        if in_time && outcome == answered(410) {
            receiver.disabled = Some(DisabledReason::Gone);
        }
        assert_eq!(receiver.value.disabled(), receiver.disabled);
        if receiver.disabled.is_none() {
            assert_eq!(receiver.value.failures(), receiver.streak);
        }
        let endpoint = row.endpoint;
        if let EndpointChange::Disabled(reason) = change {
            match reason {
                DisabledReason::Gone => self.seen.count("disabled by a 410", 1),
                _ => self.seen.count("disabled by failing", 1),
            }
            if self.dice.below(4) > 0 {
                let wait = self.dice.below(6 * HOUR);
                self.after(wait, Happens::Enable(endpoint));
            }
        }
        let host_state = &mut self.hosts[host];
        let took = now.since(attempt.began_at());
        host_state.planner.finished(u32::try_from(endpoint).unwrap(), outcome, took);
        host_state.planner.release(at as u64, None);
        self.plan(host, at);
        self.after(0, Happens::Wake(host));
    }

    fn enable(&mut self, endpoint: usize) {
        let now = millis(self.now);
        let receiver = &mut self.receivers[endpoint];
        if receiver.value.enable(now).is_some() {
            self.seen.count("enabled", 1);
            receiver.disabled = None;
            receiver.streak = 0;
            receiver.life += 1;
        }
    }

    fn redeliver_one(&mut self, over: bool) {
        if over {
            return;
        }
        let now = millis(self.now);
        if !self.rows.is_empty() {
            let at = self.dice.below(self.rows.len() as u64) as usize;
            let row = &mut self.rows[at];
            if row.value.redeliver(&self.receivers[row.endpoint].value, now).is_ok() {
                row.redelivered = true;
                row.due = Some(now);
            }
        }
        let next = self.dice.below(2 * HOUR);
        self.after(next, Happens::RedeliverOne);
    }

    fn clock(&self, host: usize) -> Timestamp {
        let ahead = self.hosts[host].ahead;
        let now = millis(self.now);
        let by = Duration::from_millis(ahead.unsigned_abs());
        if ahead < 0 { now.saturating_sub(by) } else { now.saturating_add(by) }
    }

    /// When all has ended: nothing accepted is lost. DEL-8.
    fn verify(&mut self) {
        self.seen.count("deliveries", self.rows.len());
        for (at, row) in self.rows.iter().enumerate() {
            self.seen.count(row.value.status().as_str(), 1);
            assert!(row.charged <= MAX_ATTEMPTS && row.counted <= 1, "delivery {at}");
            assert!(row.value.attempts() <= MAX_ATTEMPTS);
            match row.value.status() {
                DeliveryStatus::Delivered => assert!(row.acknowledged, "delivery {at}"),
                DeliveryStatus::Failed => {
                    assert!(row.charged == MAX_ATTEMPTS || row.redelivered, "delivery {at}")
                }
                DeliveryStatus::Waiting | DeliveryStatus::Sending => {
                    panic!("delivery {at} is pending")
                }
                _ => {
                    let receiver = &self.receivers[row.endpoint];
                    assert!(receiver.disabled.is_some() || receiver.life > 0, "delivery {at}");
                }
            }
        }
    }
}

/// D-57: a sender that never sends charges nothing for thirty days. Then each delivery ends, and charges
/// its endpoint nothing.
#[test]
fn deliveries_end_though_no_attempt_is_ever_sent() {
    for seed in 0..60 {
        let mut dice = Dice::new(seed);
        let endpoint = EndpointHealth::new(1, start());
        let mut delivery = Delivery::accept(&event(start()), &endpoint, start());
        let is_manual = seed % 3 == 0;
        if is_manual {
            let attempt = delivery.begin(&endpoint, start()).unwrap();
            let _ = delivery.finish(&attempt, answered(410), start()).unwrap();
            delivery.redeliver(&endpoint, start()).unwrap();
        }
        let (mut now, before) = (start(), delivery.attempts());
        while delivery.is_pending() {
            assert!(now.since(start()) < RETENTION + LONGEST_DELIVERY + DAY, "seed {seed}");
            now = delivery.due(now).unwrap().max(now);
            let attempt = delivery.begin(&endpoint, now).unwrap();
            let took = Duration::from_millis(dice.below(10 * SECOND));
            let report = delivery.finish(&attempt, Outcome::Unsent, now.saturating_add(took));
            assert!(report.unwrap().is_empty(), "seed {seed} charges the endpoint");
            now = now.saturating_add(took);
            let charged = delivery.attempts();
            assert!(
                charged == before || !is_kept(&delivery, now),
                "seed {seed}: attempt {charged}"
            );
            // The host waits for what it lacks.
            delivery.postpone(Duration::from_millis(dice.below(HOUR)), now);
        }
        let seen = (delivery.status(), delivery.attempts());
        let charged = if is_manual { before } else { MAX_ATTEMPTS };
        assert_eq!(seen, (DeliveryStatus::Failed, charged), "seed {seed}");
    }
}

/// An attempt that is not sent does not count yet.
fn is_kept(delivery: &Delivery, now: Timestamp) -> bool {
    now.since(delivery.event_created_at()) < RETENTION
}
