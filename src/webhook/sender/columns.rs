//! Rows of a table: deliveries and endpoints with a column for each field.

use core::str::FromStr;

use super::delivery::Delivery;
use super::disabled::DisabledReason;
use super::endpoint::Endpoint;
use super::numbers::MAX_REMINDERS;
use super::schedule::{FAILURES_TO_DISABLE, FIRST_FAILURES_TO_SUSPECT, MAX_ATTEMPTS};
use super::status::Status;
use super::unknown_text::UnknownTextError;
use crate::Timestamp;

/// Holds a [`Delivery`] as the columns of a row.
///
/// ```
/// use call_assistant::Timestamp;
/// use call_assistant::webhook::sender::{Delivery, DeliveryColumns};
/// # struct Row { created: i64, status: &'static str, at: i64, attempts: i16, version: i32 }
/// # let row = Row { created: 0, status: "waiting", at: 60_000_000, attempts: 2, version: 4 };
///
/// let micros = |micros| Timestamp::from_unix_micros(micros).ok_or("out of range");
/// let columns = DeliveryColumns {
///     event_created_at: micros(row.created)?,
///     status: row.status.parse()?,
///     at: micros(row.at)?,
///     attempts: row.attempts,
///     manual: false,
///     generation: 0,
///     version: row.version,
/// };
/// let delivery = Delivery::try_from(columns)?;
/// assert_eq!(DeliveryColumns::from(delivery), columns);
///
/// let error = Delivery::try_from(DeliveryColumns { attempts: 7, ..columns }).unwrap_err();
/// assert_eq!(error.to_string(), "attempts is 7, not from 0 to 6");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The numbers have the types of `smallint` and `integer`, so they are bound as they are. Instants
/// that are stored in microseconds come back as they were if `now` was
/// [rounded](Timestamp::floor_to_micros) when it was taken.
///
/// All fields are listed, so that a row can be written as a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeliveryColumns {
    /// The event's `created_at`, from which thirty days count.
    pub event_created_at: Timestamp,
    /// Its state: [`Status::as_str`] as a column.
    pub status: Status,
    /// When it is due, leased until, or has ended.
    pub at: Timestamp,
    /// Scheduled attempts that are finished, 0 to 6.
    pub attempts: i16,
    /// Whether a manual redelivery is pending.
    pub manual: bool,
    /// The endpoint's generation, when the delivery was accepted or redelivered.
    pub generation: i32,
    /// Changes with every change.
    pub version: i32,
}

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

/// Says that a column has a number that this crate cannot have stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {value}, not from 0 to {max}")]
#[non_exhaustive]
pub struct ColumnError {
    /// The column.
    pub field: &'static str,
    /// The number in it.
    pub value: i32,
    /// The largest number that is allowed.
    pub max: i32,
}

impl From<Delivery> for DeliveryColumns {
    fn from(delivery: Delivery) -> Self {
        Self {
            event_created_at: delivery.event_created_at,
            status: delivery.status,
            at: delivery.at,
            attempts: delivery.attempts.into(),
            manual: delivery.manual,
            generation: signed(delivery.generation),
            version: signed(delivery.version),
        }
    }
}

/// # Errors
/// [`ColumnError`] names a number that is out of range.
impl TryFrom<DeliveryColumns> for Delivery {
    type Error = ColumnError;

    fn try_from(columns: DeliveryColumns) -> Result<Self, ColumnError> {
        Ok(Self {
            event_created_at: columns.event_created_at,
            status: columns.status,
            at: columns.at,
            attempts: small("attempts", columns.attempts, MAX_ATTEMPTS)?,
            manual: columns.manual,
            generation: unsigned("generation", columns.generation)?,
            version: unsigned("version", columns.version)?,
        })
    }
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

impl FromStr for Status {
    type Err = UnknownTextError;

    fn from_str(text: &str) -> Result<Self, UnknownTextError> {
        let known = Self::ALL.into_iter().find(|status| status.as_str() == text);
        known.ok_or_else(|| UnknownTextError { field: "status", text: text.into() })
    }
}

#[expect(clippy::expect_used, reason = "every way to make a number keeps it within i32::MAX")]
pub(super) fn signed(number: u32) -> i32 {
    i32::try_from(number).expect("at most i32::MAX")
}

fn unsigned(field: &'static str, value: i32) -> Result<u32, ColumnError> {
    u32::try_from(value).map_err(|_| ColumnError { field, value, max: i32::MAX })
}

fn small(field: &'static str, value: i16, max: u8) -> Result<u8, ColumnError> {
    let fits = u8::try_from(value).ok().filter(|value| *value <= max);
    fits.ok_or_else(|| ColumnError { field, value: value.into(), max: max.into() })
}
