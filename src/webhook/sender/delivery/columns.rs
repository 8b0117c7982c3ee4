//! A delivery as the columns of a row.

use super::super::schedule::MAX_ATTEMPTS;
use super::super::stored::{ColumnError, Version, signed, small, unsigned};

use super::Delivery;
use super::status::DeliveryStatus;
use crate::Timestamp;
use crate::json::stored_object;

stored_object! {
    /// The columns of a row that contains a [`Delivery`].
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
    /// let delivery = Delivery::from_columns(7, 1, columns)?;
    /// assert_eq!(DeliveryColumns::from(delivery), columns);
    ///
    /// let error = Delivery::from_columns(7, 1, DeliveryColumns { version: -1, ..columns }).unwrap_err();
    /// assert_eq!(error.to_string(), "version is -1, not from 0 to 2147483647");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// The numbers have the types of SQL's `smallint` and `integer`, so a host binds them without a
    /// conversion. If a column stores microseconds, [round](Timestamp::floor_to_micros) `now` down when
    /// you read the clock. The instants are then read back unchanged.
    ///
    /// Closed: a host's table needs a column for each field.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct DeliveryColumns {
        /// The event's `created_at`, at which the thirty days of retention begin.
        pub event_created_at: Timestamp,
        /// The state. A column contains its [`DeliveryStatus::as_str`].
        pub status: DeliveryStatus,
        /// The due time, the end of the lease, or the end of the delivery, depending on `status`.
        pub at: Timestamp,
        /// The number of finished scheduled attempts, 0 to 6.
        pub attempts: i16,
        /// Whether a manual redelivery is pending.
        pub manual: bool,
        /// The number of times the endpoint had been enabled again when the delivery was accepted or
        /// last redelivered.
        pub generation: i32,
        /// The version, which differs after every change.
        pub version: i32,
    }
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
            version: signed(delivery.version()),
        }
    }
}

impl Delivery {
    /// Reads a delivery from the columns of its row.
    ///
    /// `id` is the number of the delivery's row, and `endpoint` is the number of the endpoint's row.
    /// Attempts contain both numbers, so no attempt is recorded for another row.
    ///
    /// # Errors
    /// [`ColumnError`] contains the number that is out of range.
    pub fn from_columns(
        id: u64,
        endpoint: u64,
        columns: DeliveryColumns,
    ) -> Result<Self, ColumnError> {
        Ok(Self {
            id,
            endpoint,
            event_created_at: columns.event_created_at,
            status: columns.status,
            at: columns.at,
            attempts: small("attempts", columns.attempts, MAX_ATTEMPTS)?,
            manual: columns.manual,
            generation: unsigned("generation", columns.generation)?,
            version: Version::read(unsigned("version", columns.version)?),
        })
    }
}
