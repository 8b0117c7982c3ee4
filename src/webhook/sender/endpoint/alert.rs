//! Messages to the owner of an endpoint.

use core::fmt;

use serde::{Deserialize, Deserializer, Serialize};

use super::super::schedule::FAILURES_TO_DISABLE;
use super::super::stored::stored_enum;
use crate::json::ObjectOnly;

/// A message to the owner of an endpoint.
///
/// ```
/// use call_assistant::webhook::sender::{AbandonedReason, Alert};
///
/// let alert = Alert::abandoned(AbandonedReason::Event, 2);
/// let message = "2 deliveries were given up after 31 days: the event is missing";
/// assert_eq!(alert.to_string(), message); // for a message
/// assert_eq!(
///     serde_json::to_string(&alert)?,
///     r#"{"kind":"abandoned","reason":"event","deliveries":2}"#, // for a store
/// );
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// Alerts come from [`Settled::alerts`](super::super::Settled::alerts),
/// [`EndpointChange::alert`](super::super::EndpointChange::alert) and
/// [`EndpointHealth::remind`](super::super::EndpointHealth::remind). The guide lists all
/// [alerts](crate::guide::storing#alerts).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Alert {
    /// The first attempts of several deliveries in a row failed. This alert is a warning, hours before
    /// the deliveries can end as failed.
    Suspect,
    /// After a suspect or failing alert, the endpoint answered 2xx again.
    Recovered,
    /// The number of failed deliveries in a row is one of
    /// [`FAILURES_TO_WARN`](super::super::FAILURES_TO_WARN).
    #[non_exhaustive]
    Failing {
        /// The number of failed deliveries in a row.
        failures: u8,
    },
    /// The endpoint was disabled automatically.
    /// [`EndpointHealth::missed`](super::super::EndpointHealth::missed) selects the deliveries that the
    /// endpoint missed.
    #[non_exhaustive]
    Disabled {
        /// The reason why the endpoint is disabled.
        reason: DisabledReason,
    },
    /// The endpoint has been disabled for `days` days.
    #[non_exhaustive]
    StillDisabled {
        /// The reason why the endpoint is disabled.
        reason: DisabledReason,
        /// The number of days, one of [`REMINDER_DAYS`](super::super::REMINDER_DAYS).
        days: u8,
    },
    /// A host parked deliveries that no sender could end while their events were kept. Only
    /// [`abandoned`](Self::abandoned) creates this alert.
    #[non_exhaustive]
    Abandoned {
        /// The reason why no sender could end the deliveries.
        reason: AbandonedReason,
        /// The number of parked deliveries.
        deliveries: u32,
    },
}

impl Alert {
    /// The texts that [`kind`](Self::kind) returns.
    pub(in super::super) const KINDS: [&'static str; 6] =
        ["suspect", "recovered", "failing", "disabled", "still_disabled", "abandoned"];

    /// Creates the alert that a host has parked an endpoint's deliveries, because no sender could end
    /// them in time.
    #[must_use]
    pub const fn abandoned(reason: AbandonedReason, deliveries: u32) -> Self {
        Self::Abandoned { reason, deliveries }
    }

    /// Returns the text of the alert's `kind` in JSON.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        let [suspect, recovered, failing, disabled, still_disabled, abandoned] = Self::KINDS;
        match self {
            Self::Suspect => suspect,
            Self::Recovered => recovered,
            Self::Failing { .. } => failing,
            Self::Disabled { .. } => disabled,
            Self::StillDisabled { .. } => still_disabled,
            Self::Abandoned { .. } => abandoned,
        }
    }
}

impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = |reason| match reason {
            DisabledReason::Gone => "the endpoint answered 410",
            DisabledReason::Failing => "too many deliveries in a row failed",
            DisabledReason::Paused => "the owner paused the endpoint",
            DisabledReason::Deleted => "the owner deleted the endpoint",
        };
        match self {
            Self::Suspect => {
                f.write_str("the first attempts of several deliveries in a row failed")
            }
            Self::Recovered => f.write_str("deliveries arrive again"),
            Self::Failing { failures } => write!(
                f,
                "{failures} deliveries in a row failed; {FAILURES_TO_DISABLE} disable the endpoint"
            ),
            Self::Disabled { reason } => write!(f, "disabled: {}", why(*reason)),
            Self::StillDisabled { reason, days } => {
                let plural = if *days == 1 { "" } else { "s" };
                write!(f, "disabled for {days} day{plural}: {}", why(*reason))
            }
            Self::Abandoned { reason, deliveries } => {
                let what = if *deliveries == 1 { "delivery was" } else { "deliveries were" };
                write!(f, "{deliveries} {what} given up after 31 days: {}", reason.describe())
            }
        }
    }
}

impl<'de> Deserialize<'de> for Alert {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(remote = "Alert", tag = "kind", rename_all = "snake_case")]
        enum Stored {
            Suspect,
            Recovered,
            Failing { failures: u8 },
            Disabled { reason: DisabledReason },
            StillDisabled { reason: DisabledReason, days: u8 },
            Abandoned { reason: AbandonedReason, deliveries: u32 },
        }

        Stored::deserialize(ObjectOnly(from))
    }
}

/// The reason why no sender could end a delivery before the delivery's event was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AbandonedReason {
    /// The endpoint's row is missing.
    Endpoint,
    /// The endpoint's signing secrets cannot be decrypted.
    Secret,
    /// The event's bytes are missing, or are not an event.
    Event,
    /// This version of the crate cannot read the row of the delivery or the row of its endpoint.
    Row,
    /// An unknown reason.
    Unknown,
}

impl AbandonedReason {
    const fn describe(self) -> &'static str {
        match self {
            Self::Endpoint => "the endpoint is missing",
            Self::Secret => "the signing secrets cannot be decrypted",
            Self::Event => "the event is missing",
            Self::Row => "a row cannot be read",
            Self::Unknown => "nobody sent them",
        }
    }
}

stored_enum! {
    /// The reason why an endpoint is disabled.
    ///
    /// ```
    /// use call_assistant::webhook::sender::DisabledReason;
    ///
    /// assert_eq!(DisabledReason::Failing.as_str(), "failing"); // in JSON and in a column
    /// assert_eq!("gone".parse(), Ok(DisabledReason::Gone));
    /// ```
    ///
    /// A text that only a later version of this crate knows cannot be read.
    pub enum DisabledReason in "disabled" {
        /// The endpoint answered 410.
        Gone = "gone",
        /// Twenty deliveries in a row ended as failed
        /// ([`FAILURES_TO_DISABLE`](super::super::FAILURES_TO_DISABLE)).
        Failing = "failing",
        /// The owner paused the endpoint.
        Paused = "paused",
        /// The owner deleted the endpoint, and nobody can enable it again.
        Deleted = "deleted",
    }
}

impl DisabledReason {
    pub(super) const fn is_automatic(self) -> bool {
        matches!(self, Self::Gone | Self::Failing)
    }
}
