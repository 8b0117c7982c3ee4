//! The report of a finished attempt, and the change of the attempt's endpoint.

use serde::{Deserialize, Serialize};

use super::alert::{Alert, DisabledReason};
use crate::json::stored_object;

stored_object! {
    /// The effect of a finished attempt on its endpoint. `Delivery::finish` creates the report.
    ///
    /// If a host can write only one row at a time, store the serialized report in the delivery's row
    /// until the endpoint's row is written. See [storing](crate::guide::storing#without-transactions).
    ///
    /// If the delivery's row cannot contain the report, the order of the two writes depends on the
    /// outcome. After a 2xx or a 410, write the endpoint before the delivery. After any other outcome,
    /// write the delivery before the endpoint. Store an alert together with the endpoint. If the second
    /// write fails because another process has changed its row, read this row again. For an endpoint's
    /// row, record the same report again. For a delivery's row, finish the same attempt again. If a
    /// process dies between the two writes, the endpoint's count can lack one failure.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[must_use = "give it to `EndpointHealth::record`, or an endpoint is never disabled"]
    pub struct AttemptReport {
        pub(in super::super) effect: Effect,
        pub(in super::super) late: bool,
        pub(in super::super) endpoint: u64,
        pub(in super::super) life: Life,
    }
}

stored_object! {
    /// The life of an endpoint in which an attempt began. A life ends when the endpoint is enabled
    /// again or moved. Lives are compared only for equality.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub(in super::super) struct Life {
        /// The number of times the endpoint was enabled again.
        pub(in super::super) generation: u32,
        /// The lowest four bytes of the microsecond in which the life began. These bytes repeat
        /// after 71 minutes, when all attempts of the previous life have ended.
        pub(in super::super) began: u32,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum Effect {
    /// The delivery continues, or the outcome does not count.
    None,
    /// The first attempt of a delivery failed, and the delivery continues.
    FirstFailure,
    /// The delivery ended as failed.
    Failure,
    /// A 2xx answer.
    Success,
    /// A 410 answer.
    Gone,
}

/// The change of an [`EndpointHealth`](super::EndpointHealth) by one step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EndpointChange {
    /// Nothing changed. No write is necessary.
    Unchanged,
    /// A count of failures changed, or the endpoint was [moved](super::EndpointHealth::moved). Store the
    /// endpoint. The owner gets no alert.
    Updated,
    /// The endpoint became suspect.
    Suspect,
    /// A delivery ended as failed, and the count of failures is now one of
    /// [`FAILURES_TO_WARN`](super::super::FAILURES_TO_WARN).
    #[non_exhaustive]
    Failing {
        /// The number of failed deliveries in a row, including this delivery.
        failures: u8,
    },
    /// A 2xx ended the failures about which the owner was warned.
    Recovered,
    /// The endpoint was disabled.
    Disabled(DisabledReason),
}

impl EndpointChange {
    /// Returns the alert for the owner. If the change causes no alert, or the owner made the change, the
    /// result is `None`.
    #[must_use]
    pub fn alert(&self) -> Option<Alert> {
        match self {
            Self::Suspect => Some(Alert::Suspect),
            Self::Recovered => Some(Alert::Recovered),
            Self::Failing { failures } => Some(Alert::Failing { failures: *failures }),
            Self::Disabled(reason) if reason.is_automatic() => {
                Some(Alert::Disabled { reason: *reason })
            }
            _ => None,
        }
    }
}

impl AttemptReport {
    /// Returns whether the outcome came too late to change the delivery. For example, the attempt was
    /// already finished or taken over by another sender, or the delivery is parked. A 2xx is late only
    /// if the delivery is already delivered. Record a late report too, because a late 410 still disables
    /// the endpoint.
    #[must_use]
    pub fn is_late(&self) -> bool {
        self.late
    }

    /// Returns whether the report has no effect on an endpoint. For an empty report,
    /// [`EndpointHealth::record`](super::EndpointHealth::record) returns [`EndpointChange::Unchanged`],
    /// in any state of the endpoint.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.effect == Effect::None
    }
}
