//! The states of a delivery, and why a step is refused.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// State of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Status {
    /// The next attempt begins when it is due.
    Waiting,
    /// A sender has begun an attempt and holds a lease on it.
    Sending,
    /// The receiver acknowledged the event.
    Delivered,
    /// The sixth attempt failed, or a manual redelivery.
    Failed,
    /// The receiver answered 410.
    Gone,
    /// The delivery was pending when its endpoint was disabled.
    Parked,
    /// The endpoint was disabled when the event was accepted.
    Skipped,
}

impl Status {
    /// Tells whether a delivery in this state has something left to do.
    #[must_use]
    pub fn is_pending(self) -> bool {
        matches!(self, Self::Waiting | Self::Sending)
    }

    /// Tells whether a delivery in this state ended without reaching its endpoint.
    #[must_use]
    pub fn is_missed(self) -> bool {
        matches!(self, Self::Failed | Self::Gone | Self::Parked | Self::Skipped)
    }
}

/// Why no attempt begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BeginError {
    /// It is not due yet.
    #[error("not due before {at}")]
    Early {
        /// When it is due.
        at: Timestamp,
    },
    /// Another sender holds the lease.
    #[error("leased to a sender until {until}")]
    Leased {
        /// When the lease expires.
        until: Timestamp,
    },
    /// The endpoint is disabled, or was disabled meanwhile. The delivery is parked now: store it.
    #[error("parked, for its endpoint was disabled")]
    Parked,
    /// It has ended.
    #[error("ended already")]
    Ended,
}

/// Why a delivery is not redelivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RedeliverError {
    /// It is pending.
    #[error("pending already")]
    Pending,
    /// It was being sent when its endpoint was disabled, and the sender may still be sending it.
    #[error("leased to a sender until {until}")]
    Leased {
        /// When the lease expires.
        until: Timestamp,
    },
    /// The receiver acknowledged it.
    #[error("delivered already")]
    Delivered,
    /// The event is thirty days old.
    #[error("the event is 30 days old or older")]
    Expired,
    /// The endpoint is disabled.
    #[error("the endpoint is disabled")]
    Disabled,
}
