//! The next step of a delivery, as a value.

use core::ops::RangeInclusive;

use super::{Delivery, DeliveryStatus, RedeliverError};
use crate::Timestamp;
use crate::webhook::sender::endpoint::{DisabledReason, EndpointHealth};
use crate::webhook::sender::schedule::{
    ATTEMPT_LEASE, ATTEMPT_TIMEOUT, RETENTION, SPECIFIED, is_kept,
};
use crate::webhook::sender::stored::MismatchError;

/// The next step of a delivery, as expected at one instant. [`Delivery::outlook`] creates this value.
///
/// ```
/// use call_assistant::webhook::sender::{MAX_ATTEMPTS, Outlook};
/// # use call_assistant::Timestamp;
/// # use call_assistant::id::{AccountId, EventId};
/// # use call_assistant::webhook::event::{ApiVersion, NewEvent, Origin};
/// # use call_assistant::webhook::sender::{Delivery, EndpointHealth};
/// # let now = Timestamp::from_unix(60).unwrap();
/// # let (id, account) = (EventId::parse("evt_1")?, AccountId::parse("acct_1")?);
/// # let event = NewEvent::new(id, account, ApiVersion::parse("2026-01-15")?, Origin::voice(), now);
/// # let event = event.ping("It works.")?;
/// # let endpoint = EndpointHealth::new(1, now);
/// # let mut delivery = Delivery::accept(&event, &endpoint, now);
/// let attempt = delivery.begin(&endpoint, now)?;
///
/// let Outlook::InFlight { number, lease_until, .. } = delivery.outlook(&endpoint, now)? else {
///     unreachable!("it has just begun");
/// };
/// assert_eq!(number, 1);
/// // If its sender has died, the same attempt is made again.
/// let next = delivery.outlook(&endpoint, lease_until)?;
/// assert!(matches!(next, Outlook::Waiting { number: 1, due, .. } if due == lease_until));
///
/// // If its sender lives and the attempt fails, others are left, each with its window.
/// let mut left = delivery.attempts_left(&endpoint, now)?;
/// let (number, window) = left.next().unwrap();
/// assert_eq!((number, window.start().unix_seconds(), window.end().unix_seconds()), (2, 70, 80));
/// assert_eq!(left.count(), usize::from(MAX_ATTEMPTS) - 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outlook {
    /// The next attempt may begin at `due` or later.
    #[non_exhaustive]
    Waiting {
        /// The number of the attempt, beginning with 1. A manual redelivery has number 1.
        number: u8,
        /// Whether the attempt is a manual redelivery.
        manual: bool,
        /// The due time that [`Delivery::due`] returns.
        due: Timestamp,
    },
    /// According to the row, an attempt is in flight. Between `deadline` and `lease_until`, the attempt
    /// has ended and its result is not stored yet, or its sender has died. If the sender has died, call
    /// [`Delivery::outlook`] with the time `lease_until` to get the next step.
    #[non_exhaustive]
    InFlight {
        /// The number of the attempt, beginning with 1. A manual redelivery has number 1.
        number: u8,
        /// Whether the attempt is a manual redelivery.
        manual: bool,
        /// When the attempt times out. This time may be in the past.
        deadline: Timestamp,
        /// When the sender's lease expires.
        lease_until: Timestamp,
        /// Whether the endpoint is disabled, or was disabled since the delivery was accepted. If so,
        /// the delivery will be parked unless this attempt ends the delivery.
        parks: bool,
    },
    /// No attempt begins, because the delivery will be parked.
    #[non_exhaustive]
    Parks {
        /// Why the endpoint is disabled. If the endpoint has been enabled again, the reason is `None`.
        reason: Option<DisabledReason>,
        /// Until when the delivery can be redelivered, or why not, as in [`Ended`](Self::Ended).
        redeliverable: Result<Timestamp, RedeliverError>,
    },
    /// The delivery has ended.
    #[non_exhaustive]
    Ended {
        /// The instant before which the delivery can be [redelivered](Delivery::redeliver), or the
        /// reason against a redelivery. Either the event was delivered or is too old, or the
        /// endpoint is disabled ([`EndpointHealth::disabled`] returns why). The account's
        /// [`WebhookPlan`](crate::webhook::sender::WebhookPlan) must also allow the redelivery.
        redeliverable: Result<Timestamp, RedeliverError>,
    },
}

impl Delivery {
    /// Returns the next step, assuming that the owner changes neither the endpoint nor the delivery.
    ///
    /// # Errors
    /// Returns an error if the delivery belongs to another endpoint.
    pub fn outlook(
        &self,
        endpoint: &EndpointHealth,
        now: Timestamp,
    ) -> Result<Outlook, MismatchError> {
        self.check(endpoint)?;
        let Some(due) = self.due(now) else {
            return Ok(Outlook::Ended { redeliverable: self.redeliverable(endpoint, now) });
        };
        let parks = !self.belongs_to(endpoint);
        if self.is_leased(now) {
            let attempt = self.attempt(endpoint, self.at.saturating_sub(ATTEMPT_LEASE));
            let (number, manual, deadline) = (attempt.number, attempt.manual, attempt.deadline);
            return Ok(Outlook::InFlight { number, manual, deadline, lease_until: self.at, parks });
        }
        if parks {
            let redeliverable = self.redeliverable(endpoint, now);
            return Ok(Outlook::Parks { reason: endpoint.disabled(), redeliverable });
        }
        let attempt = self.attempt(endpoint, due);
        Ok(Outlook::Waiting { number: attempt.number, manual: attempt.manual, due })
    }

    /// Returns the attempts that the service still makes if no attempt succeeds. The attempt in flight is
    /// not included. Each item has the number of an attempt, and the earliest and the latest time at
    /// which the attempt begins. The earliest time assumes that each attempt before it fails
    /// immediately. The latest time assumes that each of these attempts takes [`ATTEMPT_TIMEOUT`]. While a manual redelivery waits, one attempt is left. While the redelivery
    /// is in flight, no attempt is left.
    ///
    /// The waits come from the specification. The results assume that no attempt begins late, and
    /// that the attempt in flight ends by its deadline. If the sender of the attempt in flight has
    /// died, attempts may begin up to [`ATTEMPT_LEASE`] after their latest times.
    ///
    /// # Errors
    /// Returns an error if the delivery belongs to another endpoint.
    pub fn attempts_left(
        &self,
        endpoint: &EndpointHealth,
        now: Timestamp,
    ) -> Result<impl Iterator<Item = (u8, RangeInclusive<Timestamp>)> + use<>, MismatchError> {
        let mut retries = true;
        let first = match self.outlook(endpoint, now)? {
            Outlook::Waiting { number, manual, due } => {
                retries = !manual;
                Some((number, due.max(now)..=due.max(now)))
            }
            Outlook::InFlight { number, manual: false, deadline, parks: false, .. } => {
                // An outcome that is not stored yet may be older than its wait.
                after(number, now.min(deadline), deadline)
                    .map(|(next, at)| (next, (*at.start()).max(now)..=(*at.end()).max(now)))
            }
            _ => None,
        };
        Ok(core::iter::successors(first, move |(number, window)| {
            let slowest = window.end().saturating_add(ATTEMPT_TIMEOUT);
            after(*number, *window.start(), slowest).filter(|_| retries)
        }))
    }

    pub(super) fn redeliverable(
        &self,
        endpoint: &EndpointHealth,
        now: Timestamp,
    ) -> Result<Timestamp, RedeliverError> {
        self.check(endpoint).map_err(RedeliverError::Mismatch)?;
        if self.is_pending() && self.belongs_to(endpoint) {
            return Err(RedeliverError::Pending);
        }
        if self.is_leased(now) {
            return Err(RedeliverError::Leased { until: self.at });
        }
        if self.status == DeliveryStatus::Delivered {
            return Err(RedeliverError::Delivered);
        }
        if !is_kept(self.event_created_at, now) {
            return Err(RedeliverError::Expired);
        }
        if !endpoint.is_active() {
            return Err(RedeliverError::Disabled);
        }
        Ok(self.event_created_at.saturating_add(RETENTION))
    }
}

/// Returns the attempt after attempt `failed`, which fails between `first` and `last`.
fn after(failed: u8, first: Timestamp, last: Timestamp) -> Option<(u8, RangeInclusive<Timestamp>)> {
    let wait = SPECIFIED.wait_after(failed)?;
    Some((failed.saturating_add(1), first.saturating_add(wait)..=last.saturating_add(wait)))
}
