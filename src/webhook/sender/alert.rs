//! What the owner of an endpoint is told.

use core::fmt;

use serde::{Deserialize, Serialize};

use super::disabled::DisabledReason;
use super::schedule::FAILURES_TO_DISABLE;

/// Names what the owner of an endpoint should be told.
///
/// ```
/// use call_assistant::webhook::sender::{Alert, DisabledReason};
///
/// let alert = Alert::StillDisabled { reason: DisabledReason::Gone, days: 3 };
/// assert_eq!(alert.to_string(), "disabled for 3 days: it answered 410"); // for a message
/// assert_eq!(
///     serde_json::to_string(&alert)?,
///     r#"{"kind":"still_disabled","reason":"gone","days":3}"#, // for a store
/// );
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// [`Settled::alerts`](super::Settled::alerts), [`EndpointChange::alert`](super::EndpointChange::alert)
/// and [`Endpoint::remind`](super::Endpoint::remind) return them. See [alerts](super#alerts).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Alert {
    /// The first attempts of several deliveries in a row failed: an early sign, hours before a
    /// delivery fails for good.
    Suspect,
    /// A 2xx came after an alert about failures.
    Recovered,
    /// This many deliveries in a row have failed for good: one of
    /// [`FAILURES_TO_WARN`](super::FAILURES_TO_WARN).
    Failing {
        /// Failed deliveries in a row.
        failures: u8,
    },
    /// The endpoint was disabled, though nobody asked for it.
    /// [`Endpoint::missed`](super::Endpoint::missed) says what it misses.
    Disabled {
        /// Why.
        reason: DisabledReason,
    },
    /// The endpoint has been disabled for this many days.
    StillDisabled {
        /// Why.
        reason: DisabledReason,
        /// One of [`REMINDER_DAYS`](super::REMINDER_DAYS).
        days: u8,
    },
}

impl Alert {
    /// The values of [`kind`](Self::kind).
    pub const KINDS: [&str; 5] = ["suspect", "recovered", "failing", "disabled", "still_disabled"];

    /// Returns which kind of alert it is, as in JSON.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        let [suspect, recovered, failing, disabled, still_disabled] = Self::KINDS;
        match self {
            Self::Suspect => suspect,
            Self::Recovered => recovered,
            Self::Failing { .. } => failing,
            Self::Disabled { .. } => disabled,
            Self::StillDisabled { .. } => still_disabled,
        }
    }
}

impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = |reason| match reason {
            DisabledReason::Gone => "it answered 410",
            DisabledReason::Failing => "too many deliveries in a row failed",
            DisabledReason::Paused => "its owner paused it",
            DisabledReason::Deleted => "its owner deleted it",
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
        }
    }
}
