//! A service that sends webhooks to many endpoints for a day of virtual time, on one core.
//!
//! Everything a host would keep in a database is in two vectors; everything it would do is a call
//! of the library. What an endpoint answers, and how long it takes, is drawn from its manner.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::sender::{
    Attempt, Delivery, DeliveryStatus, DisabledReason, DueDelivery, DueKind, EndpointChange,
    EndpointHealth, Outcome, Planner, SenderLimits,
};
use http::StatusCode;

/// The size of the simulated world.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// How many endpoints there are.
    pub endpoints: u32,
    /// How many deliveries the day brings.
    pub deliveries: u64,
    /// How many attempts may be in flight.
    pub limits: SenderLimits,
    /// Where the random numbers begin.
    pub seed: u64,
}

/// How an endpoint answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// At once, and well, but for one time in two hundred.
    Healthy,
    /// After seconds, every fifth time after too many.
    Slow,
    /// For three hours well, for three hours not at all, and so on.
    Flapping,
    /// Never: its machine is gone.
    Dead,
    /// With 410 from the afternoon on.
    Leaving,
}

/// All of them, as the report lists them.
pub const MANNERS: [Manner; 5] =
    [Manner::Healthy, Manner::Slow, Manner::Flapping, Manner::Dead, Manner::Leaving];

/// What became of the deliveries to endpoints of one manner.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub endpoints: u64,
    pub accepted: u64,
    pub attempts: u64,
    pub delivered: u64,
    pub failed: u64,
    pub gone: u64,
    pub parked: u64,
    pub skipped: u64,
    pub pending: u64,
    pub disabled_gone: u64,
    pub disabled_failing: u64,
    /// The longest that a first attempt began after it was due.
    pub longest_delay: Duration,
}

/// The state of things at one moment of the day.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    pub hours: f64,
    pub backlog: usize,
    pub attempts_per_second: f64,
    pub in_flight: u32,
    pub disabled: u64,
}

/// The results of the day.
#[derive(Debug)]
pub struct Report {
    pub tallies: [Tally; 5],
    pub samples: Vec<Sample>,
    /// Calls of a transition or of the planner.
    pub decisions: u64,
}

const EVENT: &str = r#"{"id":"evt_1","type":"ping","created_at":"2026-01-01T00:00:00+00:00",
    "api_version":"2026-01-15","account_id":"acct_1","origin":null,"data":{"message":"hello"}}"#;

/// One day.
const DAY: Duration = Duration::from_secs(86_400);

/// How long between two samples.
const SAMPLE: Duration = Duration::from_secs(300);

/// A stored delivery, the number of its endpoint, and its attempt in flight with what comes of it.
struct Row {
    delivery: Delivery,
    endpoint: u32,
    sent: Option<(Attempt, Outcome)>,
}

struct Target {
    health: EndpointHealth,
    manner: Manner,
}

struct Sender {
    random: Random,
    start: Timestamp,
    now: Timestamp,
    /// All deliveries are of one event: what a day costs is the deliveries.
    event: EventBody,
    planner: Planner,
    targets: Vec<Target>,
    rows: Vec<Row>,
    free: Vec<u32>,
    /// When the outcome of a row's attempt is heard.
    answers: BinaryHeap<Reverse<(Timestamp, u32)>>,
    report: Report,
    disabled: u64,
    attempts: u64,
}

/// Runs the day. `progress` is told now and then how much of it is over, and how many decisions
/// were made.
pub fn run(scale: Scale, mut progress: impl FnMut(f64, u64)) -> Report {
    let mut sender = Sender::new(scale);
    let end = sender.start.saturating_add(DAY);
    let mut arrivals = Arrivals::new(scale, sender.start);
    let mut next_sample = sender.start.saturating_add(SAMPLE);
    let mut attempts_before = 0;
    loop {
        sender.send_all();
        let wake = [
            arrivals.next,
            sender.planner.next_due(),
            sender.answers.peek().map(|Reverse((at, _))| *at),
        ];
        let Some(now) = wake.into_iter().flatten().min() else { break };
        while next_sample <= now.max(sender.now) && next_sample <= end {
            let since = (sender.attempts - attempts_before) as f64;
            attempts_before = sender.attempts;
            sender.report.samples.push(Sample {
                hours: next_sample.since(sender.start).as_secs_f64() / 3_600.0,
                backlog: sender.planner.pending(),
                attempts_per_second: since / SAMPLE.as_secs_f64(),
                in_flight: sender.planner.in_flight(),
                disabled: sender.disabled,
            });
            let over = next_sample.since(sender.start).as_secs_f64() / DAY.as_secs_f64();
            progress(over, sender.report.decisions);
            next_sample = next_sample.saturating_add(SAMPLE);
        }
        if now >= end {
            break;
        }
        sender.now = now.max(sender.now);
        while arrivals.next.is_some_and(|at| at <= sender.now) {
            arrivals.advance();
            sender.accept(scale);
        }
        while sender.answers.peek().is_some_and(|Reverse((at, _))| *at <= sender.now) {
            if let Some(Reverse((_, row))) = sender.answers.pop() {
                sender.finish(row);
            }
        }
    }
    sender.count_pending();
    sender.report
}

impl Sender {
    fn new(scale: Scale) -> Self {
        let start = Timestamp::from_unix(1_767_225_600).expect("2026");
        let mut random = Random(scale.seed);
        let mut tallies = [Tally::default(); 5];
        let targets = (0..scale.endpoints)
            .map(|number| {
                let manner = match random.below(1_000) {
                    0..=899 => Manner::Healthy,
                    900..=939 => Manner::Slow,
                    940..=969 => Manner::Flapping,
                    970..=994 => Manner::Dead,
                    _ => Manner::Leaving,
                };
                tallies[manner as usize].endpoints += 1;
                Target { health: EndpointHealth::new(number.into(), start), manner }
            })
            .collect();
        Self {
            random,
            start,
            now: start,
            event: EventBody::from_stored(EVENT).expect("an event"),
            planner: Planner::new(scale.limits),
            targets,
            rows: Vec::new(),
            free: Vec::new(),
            answers: BinaryHeap::new(),
            report: Report { tallies, samples: Vec::new(), decisions: 0 },
            disabled: 0,
            attempts: 0,
        }
    }

    /// Accepts events: a few endpoints get much, most get little.
    fn accept(&mut self, scale: Scale) {
        let share = self.random.unit();
        let at = (f64::from(scale.endpoints) * share * share * share) as u32;
        let endpoint = at.min(scale.endpoints - 1);
        let target = &self.targets[endpoint as usize];
        let delivery = Delivery::accept(&self.event, &target.health, self.now);
        self.report.decisions += 1;
        let tally = &mut self.report.tallies[target.manner as usize];
        tally.accepted += 1;
        if delivery.status() == DeliveryStatus::Skipped {
            tally.skipped += 1;
            return;
        }
        let row = Row { delivery, endpoint, sent: None };
        let at = match self.free.pop() {
            Some(at) => {
                self.rows[at as usize] = row;
                at
            }
            None => {
                self.rows.push(row);
                u32::try_from(self.rows.len() - 1).expect("as many rows as fit")
            }
        };
        self.plan(at, endpoint);
        self.report.decisions += 1;
    }

    /// Begins whatever the planner lets go.
    fn send_all(&mut self) {
        while let Some(planned) = self.planner.next(self.now) {
            let DueDelivery { delivery, endpoint, .. } = planned;
            self.report.decisions += 2;
            let at = delivery as u32;
            let target = &self.targets[endpoint as usize];
            let row = &mut self.rows[at as usize];
            let tally = &mut self.report.tallies[target.manner as usize];
            let due = row.delivery.due(self.now);
            match row.delivery.begin(&target.health, self.now) {
                Ok(attempt) => {
                    self.attempts += 1;
                    tally.attempts += 1;
                    let delay = due.map_or(Duration::ZERO, |due| self.now.since(due));
                    tally.longest_delay = tally.longest_delay.max(delay);
                    let (took, outcome) = self.random.answer(target.manner, self.start, self.now);
                    let at_end = self.now.saturating_add(took);
                    row.sent = Some((attempt, outcome));
                    self.answers.push(Reverse((at_end, at)));
                }
                Err(_) => {
                    // Parked: its endpoint was disabled while it waited.
                    tally.parked += 1;
                    self.free.push(at);
                    self.planner.finished(endpoint, Outcome::Unsent, Duration::ZERO);
                    self.planner.release(delivery, None);
                }
            }
        }
        self.report.decisions += 1;
    }

    fn finish(&mut self, at: u32) {
        let row = &mut self.rows[at as usize];
        let Some((attempt, outcome)) = row.sent.take() else { return };
        let target = &mut self.targets[row.endpoint as usize];
        let tally = &mut self.report.tallies[target.manner as usize];
        let report = row.delivery.finish(&attempt, outcome, self.now).unwrap();
        match target.health.record(report, self.now).unwrap() {
            EndpointChange::Disabled(DisabledReason::Gone) => tally.disabled_gone += 1,
            EndpointChange::Disabled(_) => tally.disabled_failing += 1,
            _ => {}
        }
        self.disabled += u64::from(!target.health.is_active() && target.health.since() == self.now);
        let (endpoint, due, status) =
            (row.endpoint, row.delivery.due(self.now), row.delivery.status());
        let took = self.now.since(attempt.began_at());
        self.planner.finished(endpoint, outcome, took);
        self.planner.release(at.into(), due.map(|due| (due, DueKind::Retry)));
        self.report.decisions += 3;
        if due.is_some() {
            self.report.decisions += 1;
            return;
        }
        match status {
            DeliveryStatus::Delivered => tally.delivered += 1,
            DeliveryStatus::Gone => tally.gone += 1,
            _ => tally.failed += 1,
        }
        self.free.push(at);
    }

    /// Plans a delivery. Each endpoint is of another account.
    fn plan(&mut self, row: u32, endpoint: u32) {
        self.planner.add(DueDelivery {
            delivery: row.into(),
            endpoint,
            account: endpoint,
            shard: 0,
            event_created_at: self.now,
            due: self.now,
            kind: DueKind::First,
        });
    }

    fn count_pending(&mut self) {
        let mut ended = vec![false; self.rows.len()];
        self.free.iter().for_each(|at| ended[*at as usize] = true);
        for (row, _) in self.rows.iter().zip(&ended).filter(|(_, ended)| !**ended) {
            let manner = self.targets[row.endpoint as usize].manner;
            self.report.tallies[manner as usize].pending += 1;
        }
    }
}

/// When the day's deliveries come: few at night, most in the middle of the day.
struct Arrivals {
    next: Option<Timestamp>,
    left: u64,
    per_minute: Vec<u64>,
    minute: usize,
    in_minute: u64,
    start: Timestamp,
}

impl Arrivals {
    fn new(scale: Scale, start: Timestamp) -> Self {
        let weight = |minute: usize| {
            let turn = minute as f64 / 1_440.0 * std::f64::consts::TAU;
            1.0 - 0.8 * turn.cos()
        };
        let per_minute = (0..1_440)
            .map(|minute| (scale.deliveries as f64 * weight(minute) / 1_440.0).round() as u64)
            .collect();
        let mut arrivals =
            Self { next: None, left: scale.deliveries, per_minute, minute: 0, in_minute: 0, start };
        arrivals.advance();
        arrivals
    }

    fn advance(&mut self) {
        while self.per_minute.get(self.minute).is_some_and(|all| self.in_minute >= *all) {
            self.minute += 1;
            self.in_minute = 0;
        }
        let Some(all) = self.per_minute.get(self.minute).filter(|_| self.left > 0) else {
            self.next = None;
            return;
        };
        let nanos = 60_000_000_000 / all * self.in_minute;
        let minute = Duration::from_secs(60 * self.minute as u64);
        self.next = Some(self.start.saturating_add(minute + Duration::from_nanos(nanos)));
        self.in_minute += 1;
        self.left -= 1;
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn unit(&mut self) -> f64 {
        self.next() as f64 / u64::MAX as f64
    }

    fn answer(&mut self, manner: Manner, start: Timestamp, now: Timestamp) -> (Duration, Outcome) {
        let hours = now.since(start).as_secs() / 3_600;
        let quick = Duration::from_millis(50 + self.below(250));
        let well = Outcome::Answered(StatusCode::OK);
        let badly = Outcome::Answered(StatusCode::INTERNAL_SERVER_ERROR);
        match manner {
            Manner::Healthy if self.below(200) == 0 => (quick, badly),
            Manner::Healthy => (quick, well),
            Manner::Slow if self.below(5) == 0 => (Duration::from_secs(10), Outcome::TimedOut),
            Manner::Slow => (Duration::from_millis(3_000 + self.below(6_900)), well),
            Manner::Flapping if (hours / 3).is_multiple_of(2) => (quick, well),
            Manner::Flapping => (quick, badly),
            Manner::Dead if self.below(2) == 0 => (Duration::from_secs(10), Outcome::TimedOut),
            Manner::Dead => (quick, Outcome::Refused),
            Manner::Leaving if hours < 14 => (quick, well),
            Manner::Leaving => (quick, Outcome::Answered(StatusCode::GONE)),
        }
    }
}
