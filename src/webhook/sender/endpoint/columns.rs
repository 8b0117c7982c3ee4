//! The columns of an endpoint's row.

use super::super::schedule::{FAILURES_TO_DISABLE, FIRST_FAILURES_TO_SUSPECT, MAX_REMINDERS};
use super::super::stored::{ColumnError, Version, signed, small, unsigned};

use super::EndpointHealth;
use super::alert::DisabledReason;
use crate::Timestamp;
use crate::json::stored_object;

stored_object! {
    /// The columns of a row that contains an [`EndpointHealth`].
    ///
    /// ```
    /// use call_assistant::Timestamp;
    /// use call_assistant::webhook::sender::{DisabledReason, EndpointColumns, EndpointHealth};
    ///
    /// let mut endpoint = EndpointHealth::new(1, Timestamp::UNIX_EPOCH);
    /// endpoint.pause(Timestamp::UNIX_EPOCH);
    /// let columns = EndpointColumns::from(endpoint);
    /// assert_eq!(columns.disabled.map(DisabledReason::as_str), Some("paused"));
    /// assert_eq!(EndpointHealth::from_columns(1, columns), Ok(endpoint));
    ///
    /// let error = EndpointHealth::from_columns(1, EndpointColumns { version: -1, ..columns }).unwrap_err();
    /// assert_eq!(error.to_string(), "version is -1, not from 0 to 2147483647");
    /// ```
    ///
    /// Closed: a host's table needs a column for each field.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct EndpointColumns {
        /// The reason why the endpoint is disabled. The column contains [`DisabledReason::as_str`], or
        /// `NULL` for an active endpoint.
        // With a reader of its own, a row that lacks the field is refused instead of active.
        #[serde(deserialize_with = "Option::deserialize")]
        pub disabled: Option<DisabledReason>,
        /// The latest instant at which the endpoint became active, was moved or was disabled. This
        /// instant shows which attempts began before the change.
        pub since: Timestamp,
        /// How many deliveries in a row ended as failed, from 0 to 20.
        pub failures: i16,
        /// The number of deliveries in a row whose first attempts failed, from 0 to 5. At 5, the
        /// endpoint is suspect.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub first_failures: i16,
        /// The instant of the earliest failure that `first_failures` counts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub first_failed_at: Option<Timestamp>,
        /// The number of reminders since the endpoint was disabled, from 0 to 2.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub reminders: i16,
        /// The number of times the endpoint was enabled again.
        pub generation: i32,
        /// The version, which differs after every change.
        pub version: i32,
    }
}

impl From<EndpointHealth> for EndpointColumns {
    fn from(endpoint: EndpointHealth) -> Self {
        Self {
            disabled: endpoint.disabled,
            since: endpoint.since,
            failures: endpoint.failures.into(),
            first_failures: endpoint.first_failures.into(),
            first_failed_at: endpoint.first_failed_at,
            reminders: endpoint.reminders.into(),
            generation: signed(endpoint.generation),
            version: signed(endpoint.version()),
        }
    }
}

impl EndpointHealth {
    /// Reads an endpoint from the columns of its row. `id` is the number of the row.
    ///
    /// # Errors
    /// [`ColumnError`] contains the number that is out of range.
    pub fn from_columns(id: u64, columns: EndpointColumns) -> Result<Self, ColumnError> {
        Ok(Self {
            id,
            disabled: columns.disabled,
            since: columns.since,
            failures: small("failures", columns.failures, FAILURES_TO_DISABLE)?,
            first_failures: small(
                "first_failures",
                columns.first_failures,
                FIRST_FAILURES_TO_SUSPECT,
            )?,
            first_failed_at: columns.first_failed_at,
            reminders: small("reminders", columns.reminders, MAX_REMINDERS)?,
            generation: unsigned("generation", columns.generation)?,
            version: Version::read(unsigned("version", columns.version)?),
        })
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
fn is_zero(number: &i16) -> bool {
    *number == 0
}
