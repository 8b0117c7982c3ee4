//! The report of a finished attempt to its endpoint, and the endpoint's change.

use serde::{Deserialize, Serialize};

use super::alert::{Alert, DisabledReason};
use crate::json::stored_object;

stored_object! {
    /// The effect of a finished attempt on its endpoint. Created by `Delivery::finish`.
    ///
    /// Reports serialize, for hosts that write one row at a time. The delivery's row then contains the
    /// report until the endpoint's row is written. See
    /// [storing](crate::guide::storing#without-transactions).
    ///
    /// If the delivery's row cannot contain the report, the order of the two writes depends on the
    /// answer. After a 2xx or a 410, write the endpoint before the delivery. After any other answer,
    /// write the delivery before the endpoint. Store the alert with the endpoint. If another process has
    /// meanwhile changed only the second row, read this row again. Then record the same report again, or
    /// finish the same attempt again. If a process dies between the two writes, one failure can be
    /// missing from the count.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[must_use = "give it to `EndpointHealth::record`, or an endpoint is never disabled"]
    pub struct AttemptReport {
        pub(in super::super) effect: Effect,
        pub(in super::super) late: bool,
        /// The number of the endpoint.
        pub(in super::super) endpoint: u64,
        pub(in super::super) life: Life,
    }
}

stored_object! {
    /// The life of an endpoint in which an attempt began. A life ends when the endpoint is enabled again
    /// or moved. Lives are only compared for equality.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub(in super::super) struct Life {
        /// The generation, to which deliveries belong. Moving the endpoint does not change it.
        pub(in super::super) generation: u32,
        /// The microsecond in which the life began, in four bytes. The number repeats after 71 minutes,
        /// when no attempt of the first life is left.
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
    /// A delivery ended in failure.
    Failure,
    /// A 2xx.
    Success,
    /// A 410.
    Gone,
}

/// The change of an [`EndpointHealth`](super::EndpointHealth) by one step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EndpointChange {
    /// Nothing changed, and there is nothing to store.
    Unchanged,
    /// A count of failures changed, or the endpoint was [moved](super::EndpointHealth::moved). Store the
    /// endpoint. The owner gets no alert.
    Updated,
    /// The endpoint is suspect.
    Suspect,
    /// A delivery ended as failed, and the owner is warned, at each of
    /// [`FAILURES_TO_WARN`](super::super::FAILURES_TO_WARN).
    #[non_exhaustive]
    Failing {
        /// Failed deliveries in a row, this one included.
        failures: u8,
    },
    /// A 2xx ended failures about which the owner was warned.
    Recovered,
    /// The endpoint is disabled.
    Disabled(DisabledReason),
}

impl EndpointChange {
    /// Returns the alert for the owner. `None` if there is no alert, or if the owner made the change.
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
    /// already finished, another sender has taken it over, or the delivery is parked. A 2xx is late only
    /// if the delivery is already delivered. Record the report anyway, because a late 410 still disables
    /// the endpoint.
    #[must_use]
    pub fn is_late(&self) -> bool {
        self.late
    }

    /// Returns whether the report changes no endpoint. For such a report,
    /// [`EndpointHealth::record`](super::EndpointHealth::record) returns [`EndpointChange::Unchanged`],
    /// in any state of the endpoint.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.effect == Effect::None
    }
}
