//! One endpoint's health: active or disabled, and the count that decides.

use serde::{Deserialize, Deserializer, Serialize};

use super::retention::MissedDeliveries;
use super::schedule::LONGEST;
use crate::Timestamp;

/// So many deliveries in a row that ended in failure disable an endpoint.
pub const FAILURES_TO_DISABLE: u8 = 20;

/// The counts at which an endpoint's owner is worth a warning.
pub const WARNINGS: [u8; 3] = [5, 10, 15];

/// One endpoint's health. Its URL and secrets live beside it, in the host's own row.
///
/// A delivery moves the count once, when it ends: a sixth failure adds one, any 2xx sets zero. The
/// order is the order in which the ends are stored. At [`FAILURES_TO_DISABLE`], or on a 410, the
/// endpoint is disabled: nothing is sent to it, what was pending is parked, and what happens from
/// then on is skipped, until its owner enables it again.
///
/// # Stored form
/// Plain fields, in JSON as below, in a table a column each, as a [`Delivery`](super::Delivery)'s.
/// Unknown fields are ignored, so a later version's rows can be read.
///
/// ```
/// # use call_assistant::webhook::sender::Endpoint;
/// # use call_assistant::Timestamp;
/// let endpoint = Endpoint::new(Timestamp::UNIX_EPOCH);
/// assert_eq!(
///     serde_json::to_string(&endpoint)?,
///     concat!(
///         r#"{"disabled":null,"#,                  // or "gone", or "failing"
///         r#""since":"1970-01-01T00:00:00Z","#,    // when it became active or disabled
///         r#""failures":0,"#,                      // in a row, until now
///         r#""generation":0,"#,                    // how often it was enabled again
///         r#""version":0}"#,                       // changes with every change
///     ),
/// );
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Endpoint {
    // Said to be read by its own reader, so that a row without it is refused, and not active.
    #[serde(deserialize_with = "Option::deserialize")]
    disabled: Option<DisabledReason>,
    since: Timestamp,
    #[serde(deserialize_with = "failures")]
    failures: u8,
    generation: u32,
    version: u32,
}

/// Why an endpoint is disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DisabledReason {
    /// It answered 410.
    Gone,
    /// [`FAILURES_TO_DISABLE`] deliveries in a row failed for good.
    Failing,
}

/// What a finished attempt has to say to its endpoint. Made by
/// [`Delivery::finish`](super::Delivery::finish).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "give it to `Endpoint::record`, or an endpoint is never disabled"]
pub struct Report {
    /// Of the endpoint, when the attempt began.
    pub(super) generation: u32,
    pub(super) heard: Heard,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Heard {
    /// The delivery goes on, or the outcome does not count.
    Nothing,
    /// A delivery ended in failure.
    Failure,
    /// A 2xx.
    Success,
    /// A 410.
    Gone,
}

/// What became of an [`Endpoint`] when something was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndpointChange {
    /// Nothing: there is nothing to store.
    Unchanged,
    /// A delivery failed for good; so many in a row did. Worth a word to the owner where `warn` is
    /// set, which is at each of the [`WARNINGS`], once a streak.
    Counted {
        /// Failed deliveries in a row, this one included.
        failures: u8,
        /// Whether this is one of the [`WARNINGS`].
        warn: bool,
    },
    /// A 2xx ended a streak of failures.
    Recovered,
    /// The endpoint is disabled, as of now.
    Disabled(DisabledReason),
}

impl Endpoint {
    /// An endpoint just registered: active, no failures.
    #[must_use]
    pub fn new(now: Timestamp) -> Self {
        Self { disabled: None, since: now, failures: 0, generation: 0, version: 0 }
    }

    /// Records what came of an attempt.
    ///
    /// While the endpoint is disabled, nothing changes: a 2xx of an attempt that was in flight
    /// enables nothing. What was begun before it was last enabled is of another life and changes
    /// nothing either.
    pub fn record(&mut self, report: Report, now: Timestamp) -> EndpointChange {
        if self.disabled.is_some() || report.generation != self.generation {
            return EndpointChange::Unchanged;
        }
        match report.heard {
            Heard::Nothing => EndpointChange::Unchanged,
            Heard::Success if self.failures == 0 => EndpointChange::Unchanged,
            Heard::Success => {
                self.failures = 0;
                self.changed();
                EndpointChange::Recovered
            }
            Heard::Failure => {
                self.failures = self.failures.saturating_add(1);
                if self.failures >= FAILURES_TO_DISABLE {
                    return self.disable(DisabledReason::Failing, now);
                }
                self.changed();
                let warn = WARNINGS.contains(&self.failures);
                EndpointChange::Counted { failures: self.failures, warn }
            }
            // The count stays as it is: a 410 says nothing about failing.
            Heard::Gone => self.disable(DisabledReason::Gone, now),
        }
    }

    /// Makes a disabled endpoint active again, with the count at zero. `None` if it is active.
    ///
    /// Nothing that was parked or skipped is sent by this: the endpoint is not flooded with old
    /// events. What it missed is returned, to be [redelivered](super::Delivery::redeliver) if its
    /// owner wants it: all that was parked or skipped in the life that ends with this, of all that is kept,
    /// and what failed of events not older than [`LONGEST`] when the endpoint was disabled. What
    /// failed before is in [`MissedDeliveries::between`].
    ///
    /// One that is accepted at the same moment, by somebody who read the endpoint before, may be
    /// stored after the host has run over them: see step 1 of [the order](super).
    pub fn enable(&mut self, now: Timestamp) -> Option<MissedDeliveries> {
        self.disabled?;
        let failed_from = self.since.saturating_sub(LONGEST);
        self.disabled = None;
        self.since = now;
        self.failures = 0;
        self.generation = self.generation.wrapping_add(1);
        self.changed();
        Some(MissedDeliveries::of_former_life(self.generation, failed_from, now))
    }

    /// Whether deliveries are sent to it.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.disabled.is_none()
    }

    /// Why it is disabled, if it is.
    #[must_use]
    pub fn disabled(&self) -> Option<DisabledReason> {
        self.disabled
    }

    /// When it became active, or was disabled.
    #[must_use]
    pub fn since(&self) -> Timestamp {
        self.since
    }

    /// How many deliveries in a row have failed for good.
    #[must_use]
    pub fn failures(&self) -> u8 {
        self.failures
    }

    /// How often it was enabled again. A delivery belongs to the generation in which it was
    /// accepted: it is not sent in a later one, unless redelivered by hand.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// Changes with every change: store the row only where the stored one has the version that
    /// was read.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    fn disable(&mut self, reason: DisabledReason, now: Timestamp) -> EndpointChange {
        self.disabled = Some(reason);
        self.since = now;
        self.changed();
        EndpointChange::Disabled(reason)
    }

    fn changed(&mut self) {
        self.version = self.version.wrapping_add(1);
    }
}

/// No row of ours has more: one that does was not written by this crate.
fn failures<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    match u8::deserialize(deserializer)? {
        failures @ 0..=FAILURES_TO_DISABLE => Ok(failures),
        _ => Err(serde::de::Error::custom(format_args!(
            "failures is more than {FAILURES_TO_DISABLE}"
        ))),
    }
}
