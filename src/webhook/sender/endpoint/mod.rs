//! One endpoint's health: active or disabled, and the count of failures that disables it.

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

/// The health of one endpoint. Its URL and secrets are other columns of the same row.
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
/// The health contains a count of failed deliveries in a row. Each delivery changes this count at most
/// once, when the delivery ends. A sixth failure adds one, and any 2xx resets the count to zero.
/// Deliveries count in the order in which their ends are stored. The endpoint is disabled when the count
/// reaches [`FAILURES_TO_DISABLE`], and on a 410.
///
/// An endpoint is *suspect* when the first attempts of [`FIRST_FAILURES_TO_SUSPECT`] deliveries in a
/// row have failed, over at least [`SUSPECT_SPAN`]. This state is an early warning for the endpoint's
/// owner, and the first 2xx ends it. The count of failed deliveries does not change, and deliveries are
/// sent as before.
///
/// While an endpoint is disabled, nothing is sent to it. Pending deliveries are parked, and new
/// events are skipped, until the owner [enables](Self::enable) it.
///
/// # What an owner does
/// | action | step in this crate | step of the host |
/// |---|---|---|
/// | pause | [`pause`](Self::pause) | |
/// | enable | [`enable`](Self::enable) | redeliver the missed deliveries, if the owner wants this |
/// | new URL | [`moved`](Self::moved) | store a new [`EndpointUrl`](super::EndpointUrl) in the same write |
/// | new secret | nothing | [`Signer::rotate`](crate::webhook::Signer::rotate) |
/// | delete | [`delete`](Self::delete) | keep the row as long as its deliveries |
///
/// A table has a column for each field: see [`EndpointColumns`](super::EndpointColumns). Unknown
/// fields of the stored form are ignored, so that rows of later versions can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(into = "EndpointColumns")]
pub struct EndpointHealth {
    /// The number of its row.
    pub(super) id: u64,
    pub(super) disabled: Option<DisabledReason>,
    pub(super) since: Timestamp,
    pub(super) failures: u8,
    /// The failed first attempts in a row. The endpoint is suspect at [`FIRST_FAILURES_TO_SUSPECT`].
    pub(super) first_failures: u8,
    /// When the first of these attempts failed.
    pub(super) first_failed_at: Option<Timestamp>,
    /// The number of reminders that were returned since the endpoint was disabled.
    pub(super) reminders: u8,
    pub(super) generation: u32,
    pub(super) version: Version,
}

impl EndpointHealth {
    /// Creates an endpoint that has just been registered: active, without failures. `id` is the number
    /// of its row.
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
    /// While the endpoint is disabled, reports change nothing. For example, a 2xx of an attempt in
    /// flight does not enable the endpoint. Reports of attempts that began before the endpoint was last
    /// enabled or [moved](Self::moved) are ignored.
    ///
    /// # Errors
    /// The report is of an attempt to another endpoint. Nothing has changed.
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

    /// Records the report of an attempt to this endpoint.
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

    /// Counts a failed first attempt. Until the span is over, the count stays below the number that
    /// makes the endpoint suspect. A suspect endpoint does not change until a 2xx.
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

    /// Returns the due reminder of an endpoint that was disabled automatically, once for each of
    /// [`REMINDER_DAYS`]. Store the endpoint, and send the reminder to its owner. `None` changes
    /// nothing.
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

    /// Disables an active endpoint because its owner wants a pause. A disabled endpoint does not change.
    pub fn pause(&mut self, now: Timestamp) -> EndpointChange {
        match self.disabled {
            None => self.disable(DisabledReason::Paused, now),
            Some(_) => EndpointChange::Unchanged,
        }
    }

    /// Disables an endpoint permanently because its owner deletes it.
    ///
    /// As with any disabled endpoint, pending deliveries are parked, and no delivery is redelivered.
    /// Keep the row while one of its deliveries [is kept](super::Delivery::is_kept), so that the log can
    /// be read for thirty days. Accept no more events for the endpoint.
    pub fn delete(&mut self, now: Timestamp) -> EndpointChange {
        match self.disabled {
            Some(DisabledReason::Deleted) => EndpointChange::Unchanged,
            _ => self.disable(DisabledReason::Deleted, now),
        }
    }

    /// Begins a new life of the endpoint, with the count of failures at zero, because its owner has set
    /// another URL. Answers of the old URL do not change the endpoint then, not even a 410. A 2xx of the
    /// old URL still delivers. Store the endpoint and the new [`EndpointUrl`](super::EndpointUrl) in one
    /// write.
    ///
    /// Pending deliveries do not change, and are sent to the new URL. A delivery that the old URL
    /// answered with 410 has ended, and can be redelivered. The owner gets no alert that the endpoint is
    /// no longer suspect or failing.
    ///
    /// A disabled endpoint does not change, because [enabling](Self::enable) it begins a new life.
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

    /// Makes a disabled endpoint active, with the count of failures at zero, and returns when it was
    /// disabled. `None` if the endpoint is active or deleted.
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

    /// Returns why the endpoint is disabled; `None` if it is active.
    #[must_use]
    pub fn disabled(&self) -> Option<DisabledReason> {
        self.disabled
    }

    /// Returns when the endpoint became active, was moved or was disabled.
    #[must_use]
    pub fn since(&self) -> Timestamp {
        self.since
    }

    /// Returns whether the endpoint is suspect: active, but the first attempts of several deliveries in
    /// a row have failed.
    #[must_use]
    pub fn is_suspect(&self) -> bool {
        self.first_failures == FIRST_FAILURES_TO_SUSPECT
    }

    /// Returns the end of the earliest first attempt that failed since the last 2xx, or since the
    /// endpoint was last [moved](Self::moved). `None` if no first attempt has failed since then, or if
    /// the endpoint is disabled.
    #[must_use]
    pub fn first_failed_at(&self) -> Option<Timestamp> {
        self.first_failed_at
    }

    /// Returns how many deliveries in a row have ended as failed.
    #[must_use]
    pub fn failures(&self) -> u8 {
        self.failures
    }

    /// Returns how often the endpoint was enabled again. A delivery belongs to the generation in which
    /// it was accepted or redelivered, and is not sent in a later generation.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// Returns the version, which differs after every change. Store the row only if the stored row has
    /// the version that was read. The maximum is `i32::MAX`, and the next version is 0.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version.number()
    }

    /// Returns the version that the stored row must have when this value is written. `None` if the value
    /// has not changed since it was read, so that nothing has to be written.
    #[must_use]
    pub fn if_version(&self) -> Option<i32> {
        self.version.condition()
    }

    /// Returns the endpoint as it is read after it was stored.
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
