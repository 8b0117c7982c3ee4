//! The states of a delivery, and the reasons why a step is refused.

use super::super::stored::{MismatchError, stored_enum};
use crate::Timestamp;

stored_enum! {
    /// The state of a delivery.
    ///
    /// ```
    /// use call_assistant::webhook::sender::DeliveryStatus;
    ///
    /// assert_eq!(DeliveryStatus::Waiting.as_str(), "waiting"); // in JSON and in a column
    /// assert_eq!("parked".parse(), Ok(DeliveryStatus::Parked));
    ///
    /// let error = "queued".parse::<DeliveryStatus>().unwrap_err();
    /// assert_eq!(error.to_string(), r#"status is "queued", which this version does not know"#);
    /// ```
    ///
    /// # A status of a later version
    /// During a deployment, the old version of this crate may read a row that the new version
    /// wrote. Reading an unknown status fails with an error that contains the status. Leave a row
    /// with an unknown status unchanged for a process of the new version.
    ///
    /// This crate adds a status in two releases. The first release reads the new status, and the second
    /// release also writes it. All processes can therefore read the new status before any process
    /// writes it.
    pub enum DeliveryStatus in "status" {
        /// The next attempt begins when the delivery is due.
        Waiting = "waiting",
        /// A sender has begun an attempt and holds the delivery's lease.
        Sending = "sending",
        /// The receiver acknowledged the event.
        Delivered = "delivered",
        /// The sixth attempt or a manual redelivery failed.
        Failed = "failed",
        /// The receiver answered 410.
        Gone = "gone",
        /// The delivery was pending when its endpoint was disabled.
        Parked = "parked",
        /// The endpoint was disabled when the event was accepted.
        Skipped = "skipped",
    }
}

impl DeliveryStatus {
    /// Returns whether a delivery in this state has not ended.
    #[must_use]
    pub fn is_pending(self) -> bool {
        matches!(self, Self::Waiting | Self::Sending)
    }

    /// Returns whether a delivery in this state ended without reaching its endpoint.
    #[must_use]
    pub fn is_missed(self) -> bool {
        matches!(self, Self::Failed | Self::Gone | Self::Parked | Self::Skipped)
    }
}

/// The reason why no attempt begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BeginError {
    /// The delivery is not due yet.
    #[error("not due before {at}")]
    #[non_exhaustive]
    Early {
        /// When the delivery is due.
        at: Timestamp,
    },
    /// Another sender holds the delivery's lease.
    #[error("leased to a sender until {until}")]
    #[non_exhaustive]
    Leased {
        /// When the lease expires.
        until: Timestamp,
    },
    /// The endpoint is disabled, or was disabled since the delivery was accepted. A sender may still be
    /// sending the delivery. When the lease has expired, call `begin` again to park the delivery.
    #[error("the endpoint was disabled, and a sender holds the lease until {until}")]
    #[non_exhaustive]
    Disabled {
        /// When the lease expires.
        until: Timestamp,
    },
    /// The endpoint is disabled, or was disabled since the delivery was accepted. The delivery is now
    /// parked. Store the delivery.
    #[error("parked, because its endpoint was disabled")]
    Parked,
    /// The delivery has ended.
    #[error("ended already")]
    Ended,
    /// The delivery belongs to another endpoint. Nothing has changed.
    #[error("{0}")]
    Mismatch(MismatchError),
}

/// The reason why a delivery is not redelivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RedeliverError {
    /// The delivery is pending.
    #[error("pending already")]
    Pending,
    /// A sender held the delivery's lease when the endpoint was disabled, and may still be sending the
    /// delivery.
    #[error("leased to a sender until {until}")]
    #[non_exhaustive]
    Leased {
        /// When the lease expires.
        until: Timestamp,
    },
    /// The receiver has already acknowledged the event.
    #[error("delivered already")]
    Delivered,
    /// The event is thirty days old or older.
    #[error("the event is 30 days old or older")]
    Expired,
    /// The endpoint is disabled. Unless the [reason](crate::webhook::sender::DisabledReason) is that
    /// the owner deleted the endpoint, the owner can enable it again.
    #[error("the endpoint is disabled")]
    Disabled,
    /// The delivery belongs to another endpoint.
    #[error("{0}")]
    Mismatch(MismatchError),
}
