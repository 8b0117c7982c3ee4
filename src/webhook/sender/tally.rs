//! What the service counts of its deliveries.

use core::fmt;
use core::time::Duration;

use super::delivery::Delivery;
use super::delivery::Outcome;
use super::delivery::Status;
use super::endpoint::Alert;
use super::endpoint::DisabledReason;
use super::endpoint::EndpointChange;
use super::log::LogEntry;
use super::settle::Settled;
use crate::metrics::{Counters, Histogram, OpenMetrics, SHORT, Seconds};

/// Counts deliveries, attempts and endpoints that change.
///
/// ```
/// # use std::collections::BTreeMap;
/// use call_assistant::metrics::OpenMetrics;
/// use call_assistant::webhook::sender::{Gauges, SenderTally, settle};
/// # use call_assistant::webhook::sender::{Ended, Row, Settled};
///
/// let mut tally = SenderTally::default();
/// # let (deliveries, endpoints) = (BTreeMap::new(), BTreeMap::new());
/// # let ended: [Ended<'_, u64, u64>; 0] = [];
/// let settled = settle(&ended, &deliveries, &endpoints);
/// // ... and when it is stored:
/// tally.settled(&settled);
///
/// let mut text = OpenMetrics::new(String::new());
/// tally.write(&mut text)?;
/// Gauges { waiting: 12, ..Gauges::default() }.write(&mut text)?;
/// let text = text.end()?;
/// assert!(text.contains("call_assistant_sender_attempts_total{outcome=\"timeout\"} 0\n"));
/// assert!(text.contains("call_assistant_sender_deliveries{status=\"waiting\"} 12\n"));
/// # Ok::<(), std::fmt::Error>(())
/// ```
///
/// Count a transition when it is stored, in the process that stored it: then each is counted once.
/// [No label](crate::metrics#labels) holds an account, an endpoint or an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderTally {
    accepted: Counters<2>,
    attempts: Counters<13>,
    firsts: Counters<2>,
    ended: Counters<4>,
    durations: Histogram<11>,
    until_delivered: Histogram<16>,
    disabled: Counters<4>,
    enabled: Counters<4>,
    alerts: Counters<5>,
    leases: Counters<1>,
    lost_writes: Counters<1>,
}

const ACCEPTED: [Status; 2] = [Status::Waiting, Status::Skipped];
const ENDED: [Status; 4] = [Status::Delivered, Status::Failed, Status::Gone, Status::Parked];
const OUTCOMES: [&str; 13] = [
    "1xx",
    "2xx",
    "3xx",
    "4xx",
    "410",
    "5xx",
    "timeout",
    "refused",
    "reset",
    "dns",
    "tls",
    "forbidden",
    "unsent",
];

/// What one attempt may take, then the end of each of the five that may follow it.
static UNTIL_DELIVERED: [Duration; 16] = {
    let [a, b, c, d, e, f, g, h, i, j, k] = SHORT;
    let [l, m, n, o, p] = [
        Duration::from_secs(30),
        Duration::from_secs(120),
        Duration::from_secs(900),
        Duration::from_secs(5_400),
        Duration::from_secs(28_800),
    ];
    [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]
};

impl Default for SenderTally {
    fn default() -> Self {
        Self {
            accepted: <_>::default(),
            attempts: <_>::default(),
            firsts: <_>::default(),
            ended: <_>::default(),
            durations: Histogram::new(&SHORT),
            until_delivered: Histogram::new(&UNTIL_DELIVERED),
            disabled: <_>::default(),
            enabled: <_>::default(),
            alerts: <_>::default(),
            leases: <_>::default(),
            lost_writes: <_>::default(),
        }
    }
}

impl SenderTally {
    /// Counts an accepted delivery.
    pub fn accepted(&mut self, delivery: &Delivery) {
        self.accepted.count_of(&ACCEPTED, &delivery.status());
    }

    /// Counts everything that was settled.
    pub fn settled<D: Ord, E>(&mut self, settled: &Settled<D, E>) {
        for (id, entry) in &settled.log {
            // An attempt that is not late has changed its delivery, which is written.
            let found = settled.deliveries.binary_search_by(|(of, _)| of.cmp(id)).ok();
            let write = found.and_then(|at| settled.deliveries.get(at));
            self.attempted(entry, write.map(|(_, write)| &write.value));
        }
        for (_, reason) in &settled.disabled {
            self.disabled.count_of(&DisabledReason::ALL, reason);
        }
        for (_, alert) in &settled.alerts {
            self.alerted(alert);
        }
    }

    /// Counts an attempt that has ended, without [`settle`](super::settle): its log entry, and its
    /// delivery after it.
    pub fn attempt(&mut self, entry: &LogEntry, delivery: &Delivery) {
        self.attempted(entry, Some(delivery));
    }

    fn attempted(&mut self, entry: &LogEntry, delivery: Option<&Delivery>) {
        self.attempts.count(match entry.outcome {
            Outcome::Answered(status) => match status.as_u16() {
                ..200 => 0,
                200..300 => 1,
                300..400 => 2,
                410 => 4,
                400..500 => 3,
                500.. => 5,
            },
            Outcome::TimedOut => 6,
            Outcome::Refused => 7,
            Outcome::Reset => 8,
            Outcome::Dns => 9,
            Outcome::Tls => 10,
            Outcome::Forbidden => 11,
            Outcome::Unsent => 12,
        });
        if entry.outcome == Outcome::Unsent {
            return;
        }
        let took = Duration::from_millis(entry.took_ms);
        self.durations.observe(took);
        if entry.late {
            return;
        }
        self.ended.count_of(&ENDED, &entry.status);
        if entry.manual {
            return;
        }
        let is_success = entry.outcome.is_success();
        if entry.attempt == 1 {
            self.firsts.count(usize::from(!is_success));
        }
        if let Some(delivery) = delivery.filter(|_| is_success) {
            let ended = entry.began_at.saturating_add(took);
            self.until_delivered.observe(ended.since(delivery.event_created_at()));
        }
    }

    /// Counts what became of an endpoint, without [`settle`](super::settle) or by its owner.
    pub fn changed(&mut self, change: EndpointChange) {
        if let EndpointChange::Disabled(reason) = change {
            self.disabled.count_of(&DisabledReason::ALL, &reason);
        }
        if let Some(alert) = change.alert() {
            self.alerted(&alert);
        }
    }

    /// Counts a [reminder](super::Endpoint::remind).
    pub fn alerted(&mut self, alert: &Alert) {
        self.alerts.count_of(&Alert::KINDS, &alert.kind());
    }

    /// Counts an endpoint that was enabled, and why it had been disabled.
    pub fn enabled(&mut self, disabled: DisabledReason) {
        self.enabled.count_of(&DisabledReason::ALL, &disabled);
    }

    /// Counts an attempt that was begun again, because the lease of its sender had expired: a
    /// delivery that was read as [`Status::Sending`] and has begun.
    pub fn lease_expired(&mut self) {
        self.leases.count(0);
    }

    /// Counts a conditional write that affected no row, because another process was first.
    pub fn lost_write(&mut self) {
        self.lost_writes.count(0);
    }

    /// Adds what another tally has counted.
    pub fn merge(&mut self, other: &Self) {
        self.accepted.merge(&other.accepted);
        self.attempts.merge(&other.attempts);
        self.firsts.merge(&other.firsts);
        self.ended.merge(&other.ended);
        self.durations.merge(&other.durations);
        self.until_delivered.merge(&other.until_delivered);
        self.disabled.merge(&other.disabled);
        self.enabled.merge(&other.enabled);
        self.alerts.merge(&other.alerts);
        self.leases.merge(&other.leases);
        self.lost_writes.merge(&other.lost_writes);
    }

    /// Writes the counters.
    ///
    /// # Errors
    /// The writer fails.
    pub fn write<W: fmt::Write>(&self, text: &mut OpenMetrics<W>) -> fmt::Result {
        let reasons = DisabledReason::ALL.map(DisabledReason::as_str);
        text.counter(
            "call_assistant_sender_accepted",
            "Deliveries that were accepted: waiting, or skipped by a disabled endpoint.",
            self.accepted.by("status", ACCEPTED.map(Status::as_str)),
        )?;
        text.counter(
            "call_assistant_sender_attempts",
            "Attempts that ended.",
            self.attempts.by("outcome", OUTCOMES),
        )?;
        text.counter(
            "call_assistant_sender_first_attempts",
            "First attempts of deliveries.",
            self.firsts.by("result", ["success", "failure"]),
        )?;
        text.counter(
            "call_assistant_sender_ended",
            "Deliveries that ended with an attempt.",
            self.ended.by("status", ENDED.map(Status::as_str)),
        )?;
        self.durations.write(
            text,
            "call_assistant_sender_attempt_duration_seconds",
            "Time from the beginning of an attempt to the head of its response.",
        )?;
        self.until_delivered.write(
            text,
            "call_assistant_sender_accept_to_delivered_seconds",
            "Time from an event to its first 2xx, without manual redeliveries.",
        )?;
        text.counter(
            "call_assistant_sender_endpoints_disabled",
            "Endpoints that were disabled.",
            self.disabled.by("reason", reasons),
        )?;
        text.counter(
            "call_assistant_sender_endpoints_enabled",
            "Endpoints that were enabled, by why they had been disabled.",
            self.enabled.by("reason", reasons),
        )?;
        text.counter(
            "call_assistant_sender_alerts",
            "Alerts to the owners of endpoints.",
            self.alerts.by("kind", Alert::KINDS),
        )?;
        text.counter(
            "call_assistant_sender_leases_expired",
            "Attempts that were begun again, because the lease of their sender had expired.",
            self.leases.counts().map(|count| ([], count)),
        )?;
        text.counter(
            "call_assistant_sender_writes_lost",
            "Conditional writes that affected no row, because another process was first.",
            self.lost_writes.counts().map(|count| ([], count)),
        )
    }
}

/// Tells what the store holds now: values that no transition tells. Set them when the text is read.
///
/// ```
/// use call_assistant::metrics::OpenMetrics;
/// use call_assistant::webhook::sender::Gauges;
///
/// let mut text = OpenMetrics::new(String::new());
/// Gauges { active: 7, suspect: 1, ..Gauges::default() }.write(&mut text)?;
/// let text = text.end()?;
/// assert!(text.contains("call_assistant_sender_endpoints{state=\"suspect\"} 1\n"));
/// assert!(text.contains("call_assistant_sender_oldest_due_seconds 0.0\n"));
/// # Ok::<(), std::fmt::Error>(())
/// ```
///
/// All fields are listed, so that it can be written as a literal. If several processes share a
/// store, each of them writes the same values: take their maximum, not their sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Deliveries that are [`Status::Waiting`].
    pub waiting: u64,
    /// Deliveries that are [`Status::Sending`], or that an owner has in flight.
    pub sending: u64,
    /// How long the oldest delivery that is due has been due.
    pub oldest_due: Duration,
    /// Endpoints that are active and not suspect.
    pub active: u64,
    /// Endpoints that are active and suspect.
    pub suspect: u64,
    /// Endpoints that are disabled, as [`DisabledReason::Gone`].
    pub gone: u64,
    /// Endpoints that are disabled, as [`DisabledReason::Failing`].
    pub failing: u64,
    /// Endpoints that are disabled, as [`DisabledReason::Paused`].
    pub paused: u64,
}

impl Gauges {
    /// Writes the gauges.
    ///
    /// # Errors
    /// The writer fails.
    pub fn write<W: fmt::Write>(&self, text: &mut OpenMetrics<W>) -> fmt::Result {
        text.gauge(
            "call_assistant_sender_deliveries",
            "Deliveries that are pending.",
            [("waiting", self.waiting), ("sending", self.sending)]
                .map(|(status, count)| ([("status", status)], count)),
        )?;
        text.gauge(
            "call_assistant_sender_oldest_due_seconds",
            "How long the oldest delivery that is due has been due.",
            [([], Seconds(self.oldest_due))],
        )?;
        text.gauge(
            "call_assistant_sender_endpoints",
            "Endpoints by their state.",
            [
                ("active", self.active),
                ("suspect", self.suspect),
                ("gone", self.gone),
                ("failing", self.failing),
                ("paused", self.paused),
            ]
            .map(|(state, count)| ([("state", state)], count)),
        )
    }
}
