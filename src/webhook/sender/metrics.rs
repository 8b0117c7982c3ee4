//! The service's counters of its deliveries.

use core::convert::identity;
use core::fmt;
use core::time::Duration;

use http::StatusCode;

use super::delivery::{Delivery, DeliveryStatus, Outcome};
use super::endpoint::{Alert, DisabledReason, EndpointChange};
use super::log::LogEntry;
use super::settle::Settled;
use crate::metrics::{Counters, Histogram, OpenMetrics, Seconds, label, side_metrics};

side_metrics! {
    /// Counters of deliveries, of attempts, and of changes of endpoints.
    ///
    /// ```
    /// # use std::collections::BTreeMap;
    /// use call_assistant::metrics::OpenMetrics;
    /// use call_assistant::webhook::sender::{SenderGauges, SenderMetrics, settle};
    /// # use call_assistant::webhook::sender::{EndedAttempt, Settled};
    ///
    /// let mut metrics = SenderMetrics::default();
    /// # let (deliveries, endpoints) = (BTreeMap::new(), BTreeMap::new());
    /// # let ended: [EndedAttempt<'_, u64, u64>; 0] = [];
    /// let settled = settle(&ended, &deliveries, &endpoints);
    /// // ... and when it is stored:
    /// metrics.settled(&settled);
    ///
    /// let mut text = OpenMetrics::new(String::new());
    /// metrics.write(&mut text)?;
    /// let mut gauges = SenderGauges::default();
    /// gauges.pending = 12;
    /// gauges.write(&mut text)?;
    /// let text = text.end()?;
    /// assert!(text.contains("call_assistant_sender_attempts_total{outcome=\"timeout\"} 0\n"));
    /// assert!(text.contains("call_assistant_sender_pending 12\n"));
    /// # Ok::<(), std::fmt::Error>(())
    /// ```
    ///
    /// Count a result only in the process that stored it, so that each result is counted once. [No
    /// label](crate::metrics#labels) contains an account, an endpoint or an event.
    pub struct SenderMetrics {
        accepted: Counters<Accepted> = "call_assistant_sender_accepted",
            "Deliveries that were accepted: waiting, or skipped by a disabled endpoint.";
        attempts: Counters<Ending> = "call_assistant_sender_attempts", "Attempts that ended.";
        firsts: Counters<FirstResult> = "call_assistant_sender_first_attempts",
            "First attempts of deliveries.";
        ended: Counters<Ended> = "call_assistant_sender_ended", "Deliveries that ended with an attempt.";
        durations: Histogram<11> = "call_assistant_sender_attempt_duration_seconds",
            "Time from the beginning of an attempt to the head of its response.";
        until_delivered: Histogram<16> = "call_assistant_sender_accept_to_delivered_seconds",
            "Time from an event to its first 2xx, without manual redeliveries.";
        disabled: Counters<Reason> = "call_assistant_sender_endpoints_disabled",
            "Endpoints that were disabled.";
        enabled: Counters<Reason> = "call_assistant_sender_endpoints_enabled",
            "Endpoints that were enabled, by why they had been disabled.";
        alerts: Counters<Kind> = "call_assistant_sender_alerts", "Alerts to the owners of endpoints.";
        leases: Counters<()> = "call_assistant_sender_leases_expired",
            "Attempts that were begun again, because the lease of their sender had expired.";
        lost_writes: Counters<()> = "call_assistant_sender_writes_lost",
            "Conditional writes that affected no row, because another process was first.";
    }
}

impl SenderMetrics {
    /// Counts an accepted delivery.
    pub fn accepted(&mut self, delivery: &Delivery) {
        self.accepted.count(Accepted(delivery.status()));
    }

    /// Counts the attempts, the disabled endpoints and the alerts of settled attempts.
    pub fn settled<D: Ord, E>(&mut self, settled: &Settled<D, E>) {
        for (id, entry) in &settled.log {
            // An attempt that is not late has changed its delivery, which is written.
            let found = settled.deliveries.binary_search_by(|(of, _)| of.cmp(id)).ok();
            let write = found.and_then(|at| settled.deliveries.get(at));
            self.attempted(entry, write.map(|(_, delivery)| delivery));
        }
        for (_, reason) in &settled.disabled {
            self.disabled.count(Reason(*reason));
        }
        for (_, alert) in &settled.alerts {
            self.alerted(alert);
        }
    }

    fn attempted(&mut self, entry: &LogEntry, delivery: Option<&Delivery>) {
        self.attempts.count(entry.outcome);
        let took = Duration::from_millis(entry.took_ms);
        let is_sent = entry.outcome != Outcome::Unsent;
        if is_sent {
            self.durations.observe(took);
        }
        if entry.late {
            return;
        }
        self.ended.count(Ended(entry.status));
        if entry.manual || !is_sent {
            return;
        }
        let is_success = entry.outcome.is_success();
        if entry.attempt == 1 {
            self.firsts.count(is_success);
        }
        if let Some(delivery) = delivery.filter(|_| is_success) {
            let ended = entry.began_at.saturating_add(took);
            self.until_delivered.observe(ended.since(delivery.event_created_at()));
        }
    }

    /// Counts a change of an endpoint that [`settle`](super::settle) did not make, such as a change by
    /// its owner.
    pub fn changed(&mut self, change: &EndpointChange) {
        if let EndpointChange::Disabled(reason) = change {
            self.disabled.count(Reason(*reason));
        }
        if let Some(alert) = change.alert() {
            self.alerted(&alert);
        }
    }

    /// Counts a [reminder](super::EndpointHealth::remind).
    pub fn alerted(&mut self, alert: &Alert) {
        self.alerts.count(Kind(alert.kind()));
    }

    /// Counts an endpoint that was enabled, by the reason why it had been disabled.
    pub fn enabled(&mut self, disabled: DisabledReason) {
        self.enabled.count(Reason(disabled));
    }

    /// Counts an attempt that was begun again, because the lease of its sender had expired. Before
    /// the host began it again, the delivery's status was [`DeliveryStatus::Sending`].
    pub fn lease_expired(&mut self) {
        self.leases.count(());
    }

    /// Counts a conditional write that affected no row, because another process had changed the row.
    pub fn lost_write(&mut self) {
        self.lost_writes.count(());
    }
}

label!(
    Accepted = "status",
    DeliveryStatus,
    [DeliveryStatus::Waiting, DeliveryStatus::Skipped],
    DeliveryStatus::as_str
);

label!(Ended = "status", DeliveryStatus, ENDED, DeliveryStatus::as_str);

const ENDED: [DeliveryStatus; 4] = [
    DeliveryStatus::Delivered,
    DeliveryStatus::Failed,
    DeliveryStatus::Gone,
    DeliveryStatus::Parked,
];

label!(Reason = "reason", DisabledReason, DisabledReason::ALL, DisabledReason::as_str);

label!(Kind = "kind", &'static str, Alert::KINDS, identity);

label! {
    Ending = "outcome", Outcome {
        Outcome::Answered(status) if status.is_informational() => "1xx",
        Outcome::Answered(status) if status.is_success() => "2xx",
        Outcome::Answered(status) if status.is_redirection() => "3xx",
        Outcome::Answered(status) if status.is_client_error() && status != StatusCode::GONE => "4xx",
        Outcome::Answered(StatusCode::GONE) => "410",
        Outcome::Answered(_) => "5xx",
        Outcome::TimedOut => "timeout",
        Outcome::Refused => "refused",
        Outcome::Reset => "reset",
        Outcome::Dns => "dns",
        Outcome::Tls => "tls",
        Outcome::Forbidden => "forbidden",
        Outcome::Unsent => "unsent",
    }
}

label! {
    FirstResult = "result", bool {
        true => "success",
        false => "failure",
    }
}

/// The current numbers of deliveries and endpoints in the store. Set these numbers when the
/// monitoring system requests the metrics.
///
/// ```
/// use call_assistant::metrics::OpenMetrics;
/// use call_assistant::webhook::sender::SenderGauges;
///
/// let mut text = OpenMetrics::new(String::new());
/// let mut gauges = SenderGauges::default();
/// gauges.suspect = 1;
/// gauges.write(&mut text)?;
/// let text = text.end()?;
/// assert!(text.contains("call_assistant_sender_endpoints{state=\"suspect\"} 1\n"));
/// assert!(text.contains("call_assistant_sender_oldest_due_seconds 0.0\n"));
/// # Ok::<(), std::fmt::Error>(())
/// ```
///
/// If several processes share a store, each process writes the same numbers. In a query, take their
/// maximum, not their sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SenderGauges {
    /// Deliveries that are [`DeliveryStatus::Waiting`] or [`DeliveryStatus::Sending`].
    pub pending: u64,
    /// Pending deliveries that are due, and whose endpoint is suspect or disabled.
    pub held: u64,
    /// The time since the earliest due time of a delivery whose attempt may begin now. Deliveries
    /// that are held, or wait for a limit of their endpoint or account, do not count.
    pub oldest_due: Duration,
    /// Endpoints that are active and not suspect.
    pub active: u64,
    /// Endpoints that are active and suspect.
    pub suspect: u64,
    /// Endpoints that are disabled with the reason [`DisabledReason::Gone`].
    pub gone: u64,
    /// Endpoints that are disabled with the reason [`DisabledReason::Failing`].
    pub failing: u64,
    /// Endpoints that are disabled with the reason [`DisabledReason::Paused`].
    pub paused: u64,
}

impl SenderGauges {
    /// Writes the gauges.
    ///
    /// # Errors
    /// Returns the error of the writer.
    pub fn write<W: fmt::Write>(&self, text: &mut OpenMetrics<W>) -> fmt::Result {
        text.gauge(
            "call_assistant_sender_pending",
            "Deliveries that are pending.",
            [([], self.pending)],
        )?;
        text.gauge(
            "call_assistant_sender_held",
            "Deliveries that are due, but whose endpoint is suspect, disabled or paused by the host.",
            [([], self.held)],
        )?;
        text.gauge(
            "call_assistant_sender_oldest_due_seconds",
            "How long the oldest delivery that may start now has been due.",
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
