//! One endpoint's health: active or disabled, and the count that decides.

use serde::{Deserialize, Serialize};

use super::numbers::{self, next_version};
use super::schedule::{FAILURES_TO_DISABLE, FAILURES_TO_WARN};
use crate::Timestamp;

/// Health of one endpoint. Its URL and secrets are other columns of the same row.
///
/// ```
/// # use call_assistant::webhook::sender::Endpoint;
/// # use call_assistant::Timestamp;
/// let endpoint = Endpoint::new(Timestamp::UNIX_EPOCH);
/// // The stored form: in JSON as here, in a table one column for each field.
/// assert_eq!(
///     serde_json::to_string(&endpoint)?,
///     concat!(
///         r#"{"disabled":null,"#,               // or "gone", "failing", "paused", "deleted"
///         r#""since":"1970-01-01T00:00:00Z","#, // when it became active or disabled
///         r#""failures":0,"#,                   // in a row, until now
///         r#""generation":0,"#,                 // how often it was enabled again
///         r#""version":0}"#,                    // changes with every change
///     ),
/// );
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// A delivery changes the count at most once, when it ends: a sixth failure adds one, any 2xx resets
/// it to zero. Deliveries count in the order in which their ends are stored. At
/// [`FAILURES_TO_DISABLE`], and on a 410, the endpoint is disabled.
///
/// While an endpoint is disabled, nothing is sent to it. Pending deliveries are parked, and new
/// events are skipped, until the owner [enables](Self::enable) it.
///
/// # What an owner does
/// | action | in the core | next to it |
/// |---|---|---|
/// | pause | [`pause`](Self::pause) | |
/// | enable | [`enable`](Self::enable) | redeliver what was missed, if the owner wants it |
/// | new URL | nothing: count, history and pending deliveries stay | store a new [`Target`](super::Target) |
/// | new secret | nothing | [`EndpointSecrets::rotate`](super::EndpointSecrets::rotate) |
/// | delete | [`delete`](Self::delete) | keep the row as long as its deliveries |
///
/// A table has a column for each field: see [`EndpointColumns`](super::EndpointColumns). Unknown
/// fields of the stored form are ignored, so that rows of later versions can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Endpoint {
    // With a reader of its own, a row that lacks the field is refused instead of active.
    #[serde(deserialize_with = "Option::deserialize")]
    pub(super) disabled: Option<DisabledReason>,
    pub(super) since: Timestamp,
    #[serde(deserialize_with = "numbers::failures")]
    pub(super) failures: u8,
    #[serde(deserialize_with = "numbers::version")]
    pub(super) generation: u32,
    #[serde(deserialize_with = "numbers::version")]
    pub(super) version: u32,
}

/// Why an endpoint is disabled.
///
/// ```
/// use call_assistant::webhook::sender::DisabledReason;
///
/// assert_eq!(DisabledReason::Failing.as_str(), "failing"); // in JSON and in a column
/// assert_eq!("gone".parse(), Ok(DisabledReason::Gone));
/// ```
///
/// A text of a later version is an error that names it, as with [`Status`](super::Status).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DisabledReason {
    /// It answered 410.
    Gone,
    /// [`FAILURES_TO_DISABLE`] deliveries in a row failed for good.
    Failing,
    /// Its owner paused it.
    Paused,
    /// Its owner deleted it. It cannot be enabled again.
    Deleted,
}

impl DisabledReason {
    /// All reasons.
    pub const ALL: [Self; 4] = [Self::Gone, Self::Failing, Self::Paused, Self::Deleted];

    /// Returns its text, in JSON and in a column.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Failing => "failing",
            Self::Paused => "paused",
            Self::Deleted => "deleted",
        }
    }
}

/// What a finished attempt means for its endpoint. Made by
/// [`Delivery::finish`](super::Delivery::finish).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "give it to `Endpoint::record`, or an endpoint is never disabled"]
pub struct Report {
    pub(super) effect: Effect,
    pub(super) late: bool,
    /// The endpoint's, when the attempt began.
    pub(super) generation: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Effect {
    /// The delivery goes on, or the outcome does not count.
    None,
    /// A delivery ended in failure.
    Failure,
    /// A 2xx.
    Success,
    /// A 410.
    Gone,
}

/// What became of an [`Endpoint`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EndpointChange {
    /// Nothing changed, and there is nothing to store.
    Unchanged,
    /// A delivery failed for good.
    Counted {
        /// Failed deliveries in a row, this one included.
        failures: u8,
        /// Whether to warn the owner: at each of [`FAILURES_TO_WARN`], once in a row of failures.
        warn: bool,
    },
    /// A 2xx ended a row of failures.
    Recovered,
    /// The endpoint is disabled.
    Disabled(DisabledReason),
}

impl Report {
    /// Tells whether the outcome came too late to change the delivery: somebody else finished the
    /// attempt or has taken it over. Record the report all the same, for a late 410 still disables
    /// the endpoint.
    #[must_use]
    pub fn is_late(&self) -> bool {
        self.late
    }

    /// Tells whether the report changes no endpoint: [`Endpoint::record`] returns
    /// [`EndpointChange::Unchanged`] for it, whatever the endpoint's state.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.effect == Effect::None
    }
}

impl Endpoint {
    /// Creates an endpoint that has just been registered: active, no failures.
    #[must_use]
    pub fn new(now: Timestamp) -> Self {
        Self { disabled: None, since: now, failures: 0, generation: 0, version: 0 }
    }

    /// Records the report of a finished attempt.
    ///
    /// While the endpoint is disabled, reports change nothing: a 2xx of an attempt that was in
    /// flight does not enable it. Reports of attempts that began before the endpoint was last
    /// enabled are ignored.
    pub fn record(&mut self, report: Report, now: Timestamp) -> EndpointChange {
        if self.disabled.is_some() || report.generation != self.generation {
            return EndpointChange::Unchanged;
        }
        match report.effect {
            Effect::None => EndpointChange::Unchanged,
            Effect::Success if self.failures == 0 => EndpointChange::Unchanged,
            Effect::Success => {
                self.failures = 0;
                self.changed();
                EndpointChange::Recovered
            }
            Effect::Failure => {
                self.failures = self.failures.saturating_add(1);
                if self.failures >= FAILURES_TO_DISABLE {
                    return self.disable(DisabledReason::Failing, now);
                }
                self.changed();
                let warn = FAILURES_TO_WARN.contains(&self.failures);
                EndpointChange::Counted { failures: self.failures, warn }
            }
            // The count stays: a 410 is not one of the failures.
            Effect::Gone => self.disable(DisabledReason::Gone, now),
        }
    }

    /// Disables an active endpoint because its owner wants a pause. A disabled one stays as it is.
    pub fn pause(&mut self, now: Timestamp) -> EndpointChange {
        match self.disabled {
            None => self.disable(DisabledReason::Paused, now),
            Some(_) => EndpointChange::Unchanged,
        }
    }

    /// Disables an endpoint for good because its owner deletes it.
    ///
    /// Pending deliveries are parked and none is redelivered, as with any disabled endpoint. Keep
    /// the row while one of its deliveries [is kept](super::Delivery::is_kept), so that the log can
    /// be read for thirty days, and accept no more events for it.
    pub fn delete(&mut self, now: Timestamp) -> EndpointChange {
        match self.disabled {
            Some(DisabledReason::Deleted) => EndpointChange::Unchanged,
            _ => self.disable(DisabledReason::Deleted, now),
        }
    }

    /// Makes a disabled endpoint active, with the count at zero, and returns since when it was
    /// disabled. `None` if it is active or deleted.
    pub(super) fn activate(&mut self, now: Timestamp) -> Option<Timestamp> {
        match self.disabled {
            None | Some(DisabledReason::Deleted) => return None,
            Some(_) => self.disabled = None,
        }
        self.failures = 0;
        self.generation = next_version(self.generation);
        self.changed();
        Some(core::mem::replace(&mut self.since, now))
    }

    /// Tells whether deliveries are sent to it.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.disabled.is_none()
    }

    /// Returns why it is disabled; `None` if it is active.
    #[must_use]
    pub fn disabled(&self) -> Option<DisabledReason> {
        self.disabled
    }

    /// Returns when it became active or was disabled.
    #[must_use]
    pub fn since(&self) -> Timestamp {
        self.since
    }

    /// Returns how many deliveries in a row have failed for good.
    #[must_use]
    pub fn failures(&self) -> u8 {
        self.failures
    }

    /// Returns how often it was enabled again. A delivery belongs to the generation in which it was
    /// accepted or redelivered, and is not sent in a later one.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// Returns the version, which changes with every change: store the row only if the stored row
    /// has the version that was read. It is at most `i32::MAX`, and continues at 0.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    fn disable(&mut self, reason: DisabledReason, now: Timestamp) -> EndpointChange {
        self.disabled = Some(reason);
        self.since = now;
        self.changed();
        EndpointChange::Disabled(reason)
    }

    fn changed(&mut self) {
        self.version = next_version(self.version);
    }
}
