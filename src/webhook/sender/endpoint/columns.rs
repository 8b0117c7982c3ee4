//! An endpoint as the columns of a row.

use super::super::schedule::{FAILURES_TO_DISABLE, FIRST_FAILURES_TO_SUSPECT};
use super::super::stored::{ColumnError, MAX_REMINDERS, signed, small, unsigned};
use super::Endpoint;
use super::alert::DisabledReason;
use crate::Timestamp;

/// Holds an [`Endpoint`] as the columns of a row.
///
/// ```
/// use call_assistant::Timestamp;
/// use call_assistant::webhook::sender::{DisabledReason, Endpoint, EndpointColumns};
///
/// let mut endpoint = Endpoint::new(Timestamp::UNIX_EPOCH);
/// endpoint.pause(Timestamp::UNIX_EPOCH);
/// let columns = EndpointColumns::from(endpoint);
/// assert_eq!(columns.disabled.map(DisabledReason::as_str), Some("paused"));
/// assert_eq!(Endpoint::try_from(columns), Ok(endpoint));
///
/// let error = Endpoint::try_from(EndpointColumns { version: -1, ..columns }).unwrap_err();
/// assert_eq!(error.to_string(), "version is -1, not from 0 to 2147483647");
/// ```
///
/// All fields are listed, so that a row can be written as a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EndpointColumns {
    /// Why it is disabled, [`DisabledReason::as_str`] as a column; `NULL` if it is active.
    pub disabled: Option<DisabledReason>,
    /// When it became active, was moved or was disabled. All of its microseconds tell lives apart.
    pub since: Timestamp,
    /// Deliveries in a row that failed for good, 0 to 20.
    pub failures: i16,
    /// Deliveries in a row whose first attempts failed, 0 to 5. At 5 it is suspect.
    pub first_failures: i16,
    /// When the first of them failed.
    pub first_failed_at: Option<Timestamp>,
    /// Reminders that it is disabled, 0 to 2.
    pub reminders: i16,
    /// How often it was enabled again.
    pub generation: i32,
    /// Changes with every change.
    pub version: i32,
}

impl From<Endpoint> for EndpointColumns {
    fn from(endpoint: Endpoint) -> Self {
        Self {
            disabled: endpoint.disabled,
            since: endpoint.since,
            failures: endpoint.failures.into(),
            first_failures: endpoint.first_failures.into(),
            first_failed_at: endpoint.first_failed_at,
            reminders: endpoint.reminders.into(),
            generation: signed(endpoint.generation),
            version: signed(endpoint.version),
        }
    }
}

/// # Errors
/// [`ColumnError`] names a number that is out of range.
impl TryFrom<EndpointColumns> for Endpoint {
    type Error = ColumnError;

    fn try_from(columns: EndpointColumns) -> Result<Self, ColumnError> {
        Ok(Self {
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
            version: unsigned("version", columns.version)?,
        })
    }
}
