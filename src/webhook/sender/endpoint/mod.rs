//! The health of one endpoint: its state, active or disabled, and its count of failures.

mod address;
mod alert;
mod columns;
mod destination;
mod report;
mod shard;
mod url;

use core::time::Duration;

use serde::Serialize;

pub use self::address::AddressError;
pub use self::alert::{AbandonedReason, Alert, DisabledReason};
pub use self::columns::EndpointColumns;
pub use self::destination::SignedDestination;
pub use self::report::{AttemptReport, EndpointChange};
pub(super) use self::report::{Effect, Life};
pub use self::shard::shard_of;
pub use self::url::{EndpointUrl, EndpointUrlError};

use super::schedule::{
    FAILURES_TO_DISABLE, FAILURES_TO_WARN, FIRST_FAILURES_TO_SUSPECT, REMINDER_DAYS, SUSPECT_SPAN,
    is_reached,
};
use super::stored::{MismatchError, Version, next_version};
use crate::Timestamp;

/// The health of one endpoint. Other columns of the endpoint's row contain its URL and secrets.
///
/// ```
/// # use call_assistant::webhook::sender::EndpointHealth;
/// # use call_assistant::Timestamp;
/// let endpoint = EndpointHealth::new(1, Timestamp::UNIX_EPOCH);
/// // The stored form: in JSON as here, in a table one column for each field.
/// assert_eq!(
///     serde_json::to_string(&endpoint)?,
///     concat!(
///         r#"{"disabled":null,"#,               // or "gone", "failing", "paused", "deleted"
///         r#""since":"1970-01-01T00:00:00Z","#, // when it became active, moved or disabled
///         r#""failures":0,"#,                   // in a row, until now
///         r#""generation":0,"#,                 // how often it was enabled again
///         r#""version":0}"#,                    // changes with every change
///         // and, where there is something to tell: first_failures, first_failed_at, reminders
///     ),
/// );
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// The health contains the number of deliveries in a row that failed. Each delivery changes this count
/// at most once, when the delivery ends. The failure of a sixth attempt adds one to the count, and any
/// 2xx resets the count to zero. Deliveries count in the order in which their ends are stored. If the
/// count reaches [`FAILURES_TO_DISABLE`], or the endpoint answers 410, the endpoint is disabled.
///
/// If the first attempts of five deliveries in a row failed, and at least one minute lies between
/// the first and the last failure, the endpoint is *suspect* (see [`FIRST_FAILURES_TO_SUSPECT`] and
/// [`SUSPECT_SPAN`]). This state only warns the endpoint's owner early, and the first 2xx ends it.
/// The state does not affect the count of failed deliveries, or how deliveries are sent.
///
/// While an endpoint is disabled, nothing is sent to the endpoint. Until the owner
/// [enables](Self::enable) the endpoint, pending deliveries are parked and new events are skipped.
///
/// # What an owner does
/// | action | step in this crate | step of the host |
/// |---|---|---|
/// | pause | [`pause`](Self::pause) | |
/// | enable | [`enable`](Self::enable) | if the owner wants the missed deliveries, redeliver them |
/// | new URL | [`moved`](Self::moved) | store the new [`EndpointUrl`](super::EndpointUrl) in the same write |
/// | new secret | none | [`Signer::rotate`](crate::webhook::Signer::rotate) |
/// | delete | [`delete`](Self::delete) | keep the endpoint's row while its deliveries are kept |
///
/// A table of endpoints has the columns of [`EndpointColumns`](super::EndpointColumns). A reader
/// ignores unknown fields of the stored form, because a later version may have written the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(into = "EndpointColumns")]
pub struct EndpointHealth {
    pub(super) id: u64,
    pub(super) disabled: Option<DisabledReason>,
    pub(super) since: Timestamp,
    pub(super) failures: u8,
    /// If this count of failed first attempts reaches [`FIRST_FAILURES_TO_SUSPECT`], the endpoint
    /// is suspect.
    pub(super) first_failures: u8,
    pub(super) first_failed_at: Option<Timestamp>,
    pub(super) reminders: u8,
    pub(super) generation: u32,
    pub(super) version: Version,
}

impl EndpointHealth {
    /// Creates a newly registered endpoint, which is active and has no failures. `id` is the number of
    /// the endpoint's row.
    #[must_use]
    pub fn new(id: u64, now: Timestamp) -> Self {
        Self {
            id,
            disabled: None,
            since: now,
            failures: 0,
            first_failures: 0,
            first_failed_at: None,
            reminders: 0,
            generation: 0,
            version: Version::read(0),
        }
    }

    /// Records the report of a finished attempt.
    ///
    /// While the endpoint is disabled, reports change nothing. For example, a 2xx answer to an attempt
    /// in flight does not enable the endpoint. If an attempt began before the endpoint was last enabled
    /// or [moved](Self::moved), its report is ignored.
    ///
    /// # Errors
    /// Returns an error if the report belongs to another endpoint. The endpoint has then not
    /// changed.
    pub fn record(
        &mut self,
        report: AttemptReport,
        now: Timestamp,
    ) -> Result<EndpointChange, MismatchError> {
        match report.endpoint == self.id {
            true => Ok(self.recorded(report, now)),
            false => Err(MismatchError::Endpoint),
        }
    }

    pub(super) fn recorded(&mut self, report: AttemptReport, now: Timestamp) -> EndpointChange {
        if self.disabled.is_some() || report.life != self.life() {
            return EndpointChange::Unchanged;
        }
        match report.effect {
            Effect::None => EndpointChange::Unchanged,
            Effect::FirstFailure => self.fail_first(now),
            Effect::Success if self.failures == 0 && self.first_failures == 0 => {
                EndpointChange::Unchanged
            }
            Effect::Success => {
                let warned = self.is_suspect()
                    || FAILURES_TO_WARN.iter().any(|count| *count <= self.failures);
                self.failures = 0;
                self.forget_first_failures();
                self.version.change();
                if warned { EndpointChange::Recovered } else { EndpointChange::Updated }
            }
            Effect::Failure => {
                self.failures = self.failures.saturating_add(1).min(FAILURES_TO_DISABLE);
                if self.failures >= FAILURES_TO_DISABLE {
                    return self.disable(DisabledReason::Failing, now);
                }
                self.version.change();
                if FAILURES_TO_WARN.contains(&self.failures) {
                    return EndpointChange::Failing { failures: self.failures };
                }
                EndpointChange::Updated
            }
            // The count stays: a 410 is not one of the failures.
            Effect::Gone => self.disable(DisabledReason::Gone, now),
        }
    }

    /// Counts a failed first attempt. Until [`SUSPECT_SPAN`] has passed since the first counted
    /// failure, the count stays below [`FIRST_FAILURES_TO_SUSPECT`]. If the endpoint is suspect,
    /// nothing changes.
    fn fail_first(&mut self, now: Timestamp) -> EndpointChange {
        let first = self.first_failed_at.unwrap_or(now);
        let more = self.first_failures.saturating_add(1);
        if more < FIRST_FAILURES_TO_SUSPECT {
            (self.first_failures, self.first_failed_at) = (more, Some(first));
            self.version.change();
            return EndpointChange::Updated;
        }
        if self.is_suspect() || !is_reached(first.saturating_add(SUSPECT_SPAN), SUSPECT_SPAN, now) {
            return EndpointChange::Unchanged;
        }
        self.first_failures = FIRST_FAILURES_TO_SUSPECT;
        self.version.change();
        EndpointChange::Suspect
    }

    /// Returns the due reminder of an endpoint that was disabled automatically. Each of
    /// [`REMINDER_DAYS`] has at most one reminder. Store the endpoint, and send the reminder to the
    /// endpoint's owner. If no reminder is due, the result is `None`, and the endpoint has not changed.
    pub fn remind(&mut self, now: Timestamp) -> Option<Alert> {
        let reason = self.disabled.filter(|reason| reason.is_automatic())?;
        let is_due = |days: u8| {
            let span = Duration::from_secs(86_400).saturating_mul(days.into());
            is_reached(self.since.saturating_add(span), span, now)
        };
        let (days, count) =
            REMINDER_DAYS.iter().copied().zip(1..).filter(|(days, _)| is_due(*days)).last()?;
        if count <= self.reminders {
            return None;
        }
        self.reminders = count;
        self.version.change();
        Some(Alert::StillDisabled { reason, days })
    }

    /// Disables an active endpoint because its owner pauses it. A disabled endpoint does not change.
    pub fn pause(&mut self, now: Timestamp) -> EndpointChange {
        match self.disabled {
            None => self.disable(DisabledReason::Paused, now),
            Some(_) => EndpointChange::Unchanged,
        }
    }

    /// Disables an endpoint permanently because its owner deletes it.
    ///
    /// As for any disabled endpoint, pending deliveries are parked, and no delivery can be redelivered.
    /// While any delivery of the endpoint [is kept](super::Delivery::is_kept), keep the endpoint's row.
    /// The log of its deliveries can then be read for thirty days. Accept no more events for the
    /// endpoint.
    pub fn delete(&mut self, now: Timestamp) -> EndpointChange {
        match self.disabled {
            Some(DisabledReason::Deleted) => EndpointChange::Unchanged,
            _ => self.disable(DisabledReason::Deleted, now),
        }
    }

    /// Resets the endpoint, because its owner has set another URL. The count of failures becomes
    /// zero. Answers that still come from the old URL, including a 410, do not change the endpoint.
    /// If the old URL still answers 2xx, the answered delivery counts as delivered. Store the
    /// endpoint and the new [`EndpointUrl`](super::EndpointUrl) in one write.
    ///
    /// Pending deliveries do not change, and are sent to the new URL. If the old URL answered a delivery
    /// with 410, the delivery has ended, and can be redelivered. If the endpoint was suspect or failing,
    /// the owner gets no recovered alert.
    ///
    /// A disabled endpoint does not change, because [enabling](Self::enable) the endpoint also resets
    /// it.
    pub fn moved(&mut self, now: Timestamp) -> EndpointChange {
        if self.disabled.is_some() {
            return EndpointChange::Unchanged;
        }
        // No two lives have one beginning, whatever the clocks say.
        let next = self.since.floor_to_micros().saturating_add(Duration::from_micros(1));
        self.since = now.max(next);
        self.failures = 0;
        self.forget_first_failures();
        self.version.change();
        EndpointChange::Updated
    }

    /// Makes a disabled endpoint active, and returns when it was disabled. If the endpoint is
    /// active or deleted, returns `None`.
    pub(super) fn activate(&mut self, now: Timestamp) -> Option<Timestamp> {
        match self.disabled {
            None | Some(DisabledReason::Deleted) => return None,
            Some(_) => self.disabled = None,
        }
        self.failures = 0;
        self.reminders = 0;
        self.generation = next_version(self.generation);
        self.version.change();
        Some(core::mem::replace(&mut self.since, now))
    }

    /// Returns the number of the endpoint's row.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns whether deliveries are sent to the endpoint.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.disabled.is_none()
    }

    /// Returns why the endpoint is disabled, or `None` if it is active.
    #[must_use]
    pub fn disabled(&self) -> Option<DisabledReason> {
        self.disabled
    }

    /// Returns the latest instant at which the endpoint became active, was moved or was disabled.
    #[must_use]
    pub fn since(&self) -> Timestamp {
        self.since
    }

    /// Returns whether the endpoint is suspect. A suspect endpoint is active, but the first attempts of
    /// several deliveries in a row have failed.
    #[must_use]
    pub fn is_suspect(&self) -> bool {
        self.first_failures == FIRST_FAILURES_TO_SUSPECT
    }

    /// Returns when the earliest counted first attempt failed. Failures before the last 2xx, or before
    /// the endpoint was last [moved](Self::moved), do not count. If no failure counts, or the endpoint
    /// is disabled, the result is `None`.
    #[must_use]
    pub fn first_failed_at(&self) -> Option<Timestamp> {
        self.first_failed_at
    }

    /// Returns how many deliveries in a row have ended as failed.
    #[must_use]
    pub fn failures(&self) -> u8 {
        self.failures
    }

    /// Returns the endpoint's generation: how many times it was enabled again. A delivery belongs
    /// to the generation in which it was accepted or last redelivered. In a later generation, the
    /// delivery is not sent.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// Returns the version, which differs after every change: see [`if_version`](Self::if_version).
    /// The version after the maximum, `i32::MAX`, is 0.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version.number()
    }

    /// Returns the version that the stored row must have when this value is written. If the value
    /// has not changed since it was read, the result is `None`.
    #[must_use]
    pub fn if_version(&self) -> Option<i32> {
        self.version.condition()
    }

    /// Returns the value that a host reads after it has stored this endpoint.
    #[must_use]
    pub fn into_stored(self) -> Self {
        Self { version: Version::read(self.version()), ..self }
    }

    pub(super) fn life(&self) -> Life {
        let [.., a, b, c, d] = self.since.unix_micros().to_be_bytes();
        Life { generation: self.generation, began: u32::from_be_bytes([a, b, c, d]) }
    }

    fn disable(&mut self, reason: DisabledReason, now: Timestamp) -> EndpointChange {
        self.disabled = Some(reason);
        self.since = now;
        self.forget_first_failures();
        self.version.change();
        EndpointChange::Disabled(reason)
    }

    fn forget_first_failures(&mut self) {
        (self.first_failures, self.first_failed_at) = (0, None);
    }
}
