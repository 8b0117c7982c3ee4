//! One delivery, from acceptance to its end.

mod attempt;
mod columns;
mod outcome;
mod outlook;
mod status;

use core::time::Duration;

use http::StatusCode;

use serde::Serialize;

pub use self::attempt::Attempt;
pub use self::columns::DeliveryColumns;
pub use self::outcome::{FailureReason, Outcome};
pub use self::outlook::Outlook;
pub use self::status::{BeginError, DeliveryStatus, RedeliverError};

use super::endpoint::{AttemptReport, Effect, EndpointHealth, Life};
use super::schedule::{
    ATTEMPT_LEASE, ATTEMPT_TIMEOUT, FARTHEST_DUE, LONGEST_WAIT, MAX_ATTEMPTS, RetrySchedule,
    SPECIFIED, is_kept, is_reached,
};
use super::stored::{MismatchError, Version};
use crate::Timestamp;
use crate::webhook::event::EventBody;

/// The delivery of one event to one endpoint.
///
/// ```
/// use call_assistant::webhook::sender::{Delivery, DeliveryColumns, EndpointHealth};
/// # use call_assistant::id::{AccountId, EventId};
/// # use call_assistant::webhook::event::{ApiVersion, NewEvent, Origin};
/// # use call_assistant::Timestamp;
/// # let now = Timestamp::from_unix(60).unwrap();
/// # let (id, account) = (EventId::parse("evt_1")?, AccountId::parse("acct_1")?);
/// # let version = ApiVersion::parse("2026-01-15")?;
/// # let event = NewEvent::new(id, account, version, Origin::voice(), Timestamp::UNIX_EPOCH);
/// # let event = event.ping("It works.")?;
///
/// // `event` is an `EventBody`: `NewEvent` creates it.
/// let delivery = Delivery::accept(&event, &EndpointHealth::new(1, now), now);
/// assert_eq!(
///     serde_json::to_string(&delivery)?,
///     concat!(
///         r#"{"event_created_at":"1970-01-01T00:00:00Z","#, // thirty days count from here
///         r#""status":"waiting","#,          // see `DeliveryStatus`
///         r#""at":"1970-01-01T00:01:00Z","#, // due, or leased until, or ended
///         r#""attempts":0,"#,                // scheduled attempts that are finished, 0 to 6
///         r#""manual":false,"#,              // whether a manual redelivery is pending
///         r#""generation":0,"#,              // the endpoint's, when this was accepted
///         r#""version":0}"#,                 // changes with every change
///     ),
/// );
/// // A table has a column for each field.
/// let columns = DeliveryColumns::from(delivery);
/// assert_eq!((columns.status.as_str(), columns.version), ("waiting", 0));
/// assert_eq!(Delivery::from_columns(delivery.id(), delivery.endpoint(), columns)?, delivery);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Other columns of the delivery's row contain the event's id and bytes, the number of this row,
/// and the number of the endpoint's row. [`from_columns`](Self::from_columns) takes both numbers,
/// and an attempt contains both numbers. If the numbers of an attempt and a delivery differ, the
/// step fails ([`MismatchError`]).
///
/// Every change of a delivery changes its [`version`](Self::version). Store a delivery only if the
/// stored row still has the version that you read ([`if_version`](Self::if_version)). If the versions
/// differ, read the row again. Senders need no lock.
///
/// Unknown fields of the stored form are ignored, because later versions may add fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(into = "DeliveryColumns")]
pub struct Delivery {
    /// The number of the delivery's row, or 0 without a row.
    pub(super) id: u64,
    /// The number of the delivery's endpoint.
    pub(super) endpoint: u64,
    pub(super) event_created_at: Timestamp,
    pub(super) status: DeliveryStatus,
    pub(super) at: Timestamp,
    pub(super) attempts: u8,
    pub(super) manual: bool,
    pub(super) generation: u32,
    pub(super) version: Version,
}

impl Delivery {
    /// Accepts an event for an endpoint. If the endpoint is disabled, the delivery is skipped.
    /// Otherwise, the delivery is due at once.
    ///
    /// Before you report the event as accepted, store the delivery together with the event's bytes.
    #[must_use]
    pub fn accept(event: &EventBody, endpoint: &EndpointHealth, now: Timestamp) -> Self {
        Self {
            id: 0,
            endpoint: endpoint.id(),
            event_created_at: event.created_at(),
            status: if endpoint.is_active() {
                DeliveryStatus::Waiting
            } else {
                DeliveryStatus::Skipped
            },
            at: now,
            attempts: 0,
            manual: false,
            generation: endpoint.generation(),
            version: Version::read(0),
        }
    }

    /// Returns the delivery with the number of its row. Only a host that keeps the value from
    /// [`accept`](Self::accept) needs this method.
    #[must_use]
    pub fn with_id(self, id: u64) -> Self {
        Self { id, ..self }
    }

    /// Begins an attempt. Store the delivery, then send the request.
    ///
    /// If the lease of another sender has expired, the other sender is dead or too late, and the
    /// same attempt begins again. The receiver may get the event twice, but no attempt is lost.
    ///
    /// # Errors
    /// [`BeginError`] contains the reason why no attempt begins. If a pending delivery's endpoint is
    /// disabled, this reason takes precedence. Only [`BeginError::Parked`] changes the delivery, which
    /// you must then store.
    pub fn begin(
        &mut self,
        endpoint: &EndpointHealth,
        now: Timestamp,
    ) -> Result<Attempt, BeginError> {
        if !self.is_pending() {
            return Err(BeginError::Ended);
        }
        self.check(endpoint).map_err(BeginError::Mismatch)?;
        if self.is_leased(now) {
            let until = self.at;
            return Err(match self.belongs_to(endpoint) {
                true => BeginError::Leased { until },
                false => BeginError::Disabled { until },
            });
        }
        // Also before it is due, so that a host may park all that is pending at once.
        if self.park(endpoint, now) {
            return Err(BeginError::Parked);
        }
        if !self.is_reached(now) {
            return Err(BeginError::Early { at: self.at });
        }
        self.set(DeliveryStatus::Sending, now.saturating_add(ATTEMPT_LEASE));
        Ok(self.attempt(endpoint, now))
    }

    /// Returns the attempt in flight if the delivery is [`DeliveryStatus::Sending`]. In any other
    /// state, or for another endpoint, returns `None`. If you pass the endpoint that you read together
    /// with its URL, the attempt equals the value that [`begin`](Self::begin) returned.
    ///
    /// This function is for a store that begins attempts with a statement of its own. Call this
    /// function only in the process that began the attempt, so that no other process sends the attempt.
    #[must_use]
    pub fn in_flight(&self, endpoint: &EndpointHealth) -> Option<Attempt> {
        (self.status == DeliveryStatus::Sending && self.check(endpoint).is_ok())
            .then(|| self.attempt(endpoint, self.at.saturating_sub(ATTEMPT_LEASE)))
    }

    /// Parks a pending delivery if its endpoint is disabled, or was disabled since the delivery was
    /// accepted. Returns whether the delivery has changed.
    ///
    /// While a sender holds the delivery's lease, the delivery does not change.
    pub fn park(&mut self, endpoint: &EndpointHealth, now: Timestamp) -> bool {
        let parks = self.is_pending()
            && !self.is_leased(now)
            && self.check(endpoint).is_ok()
            && !self.belongs_to(endpoint);
        if parks {
            self.end(DeliveryStatus::Parked, now);
        }
        parks
    }

    /// Finishes an attempt that ended at `now`. Record the returned report with
    /// [`EndpointHealth::record`]. Then store the delivery and its endpoint in one write.
    ///
    /// After a failed attempt, the delivery waits for its next attempt. If the last attempt fails, the
    /// delivery has failed. The waits come from the specification. For other waits, use
    /// [`RetrySchedule::settle`](super::RetrySchedule::settle).
    ///
    /// Until the event is thirty days old, an [unsent](Outcome::Unsent) attempt is made again at once.
    /// From this age on, an unsent attempt counts as a failed attempt.
    ///
    /// An outcome may arrive late, twice, or after another sender has taken over the lease. A late 2xx
    /// still counts, because the receiver has the event. A late 410 still counts, because the endpoint
    /// is gone. A late failure does not count, because the delivery has already continued or ended.
    ///
    /// # Errors
    /// Returns an error if the attempt belongs to another delivery. The delivery has then not
    /// changed.
    pub fn finish(
        &mut self,
        attempt: &Attempt,
        outcome: Outcome,
        now: Timestamp,
    ) -> Result<AttemptReport, MismatchError> {
        attempt.check(self)?;
        Ok(self.finished(&SPECIFIED, attempt, outcome, now))
    }

    /// Finishes an attempt of this delivery.
    pub(super) fn finished(
        &mut self,
        schedule: &RetrySchedule,
        attempt: &Attempt,
        outcome: Outcome,
        now: Timestamp,
    ) -> AttemptReport {
        let before = self.version();
        let leased = self.status == DeliveryStatus::Sending && before == attempt.lease;
        let effect = match outcome {
            Outcome::Answered(status) if status.is_success() => self.acknowledged(attempt, now),
            Outcome::Answered(StatusCode::GONE) => self.gone(attempt, leased, now),
            _ if !leased => Effect::None,
            Outcome::Unsent if is_kept(self.event_created_at, now) => {
                self.set(DeliveryStatus::Waiting, now);
                Effect::None
            }
            Outcome::Unsent => {
                self.failed(schedule, attempt, now);
                Effect::None
            }
            _ => self.failed(schedule, attempt, now),
        };
        let life = Life { generation: attempt.generation, began: attempt.life };
        AttemptReport { effect, late: self.version() == before, endpoint: self.endpoint, life }
    }

    /// Postpones a waiting delivery, to add jitter or while the host cannot send. Returns whether the
    /// delivery has changed.
    ///
    /// If the delivery is not waiting, or its new due time would be later than `now` by more than twice
    /// the longest wait, nothing changes.
    pub fn postpone(&mut self, by: Duration, now: Timestamp) -> bool {
        let at = self.at.saturating_add(by);
        let allowed =
            self.status == DeliveryStatus::Waiting && self.at < at && at.since(now) <= FARTHEST_DUE;
        if allowed {
            self.set(DeliveryStatus::Waiting, at);
        }
        allowed
    }

    /// Schedules one manual attempt, due at `now`, for a delivery that did not reach its endpoint. The
    /// event id and bytes are unchanged, and the secrets that are current at the time of the attempt
    /// sign the request. A failure of this attempt does not count against the endpoint. A success
    /// resets the endpoint's count of failures.
    ///
    /// A delivery that was pending when its endpoint was disabled counts as parked, even before
    /// [`park`](Self::park) is called. While a sender may still be sending the delivery, the redelivery
    /// is refused.
    ///
    /// # Errors
    /// - The delivery is pending, leased to a sender or delivered, or belongs to another endpoint.
    /// - The event is thirty days old or older.
    /// - The endpoint is disabled.
    pub fn redeliver(
        &mut self,
        endpoint: &EndpointHealth,
        now: Timestamp,
    ) -> Result<(), RedeliverError> {
        self.redeliverable(endpoint, now)?;
        self.manual = true;
        self.generation = endpoint.generation();
        self.set(DeliveryStatus::Waiting, now);
        Ok(())
    }

    /// Returns whether the event's bytes and the delivery's row must be kept. Bytes and row are kept
    /// for thirty days from the event's `created_at`, and while the delivery is pending.
    #[must_use]
    pub fn is_kept(&self, now: Timestamp) -> bool {
        self.is_pending() || is_kept(self.event_created_at, now)
    }

    /// Returns whether the delivery is waiting or being sent.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.status.is_pending()
    }

    /// Returns when the delivery is due, or when its sender's lease expires. If the delivery has ended,
    /// returns `None`.
    ///
    /// An instant that is too far ahead for a correct clock counts as reached, and the function returns
    /// `now`:
    /// - the end of a lease that is more than a minute (twice the lease) after `now`
    /// - a due time that is more than twice the longest wait after `now`
    ///
    /// See [clocks](crate::guide::storing#clocks).
    #[must_use]
    pub fn due(&self, now: Timestamp) -> Option<Timestamp> {
        self.is_pending().then(|| if self.is_reached(now) { self.at.min(now) } else { self.at })
    }

    /// Returns when the delivery ended, or `None` while the delivery is pending.
    #[must_use]
    pub fn ended_at(&self) -> Option<Timestamp> {
        (!self.is_pending()).then_some(self.at)
    }

    /// Returns the number of the delivery's row, or 0 for an accepted delivery without a row. If the
    /// number is 0 when an attempt begins, [`finish`](Self::finish) checks only the attempt's endpoint.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the number of the delivery's endpoint.
    #[must_use]
    pub fn endpoint(&self) -> u64 {
        self.endpoint
    }

    /// Returns the delivery's state.
    #[must_use]
    pub fn status(&self) -> DeliveryStatus {
        self.status
    }

    /// Returns the event's `created_at`.
    #[must_use]
    pub fn event_created_at(&self) -> Timestamp {
        self.event_created_at
    }

    /// Returns the number of finished scheduled attempts, 0 to 6, excluding manual redeliveries.
    #[must_use]
    pub fn attempts(&self) -> u8 {
        self.attempts
    }

    /// Returns whether a manual redelivery is pending.
    #[must_use]
    pub fn is_manual(&self) -> bool {
        self.manual
    }

    /// Returns the version, which differs after every change: see [`if_version`](Self::if_version).
    /// The version after the maximum, `i32::MAX`, is 0.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version.number()
    }

    /// Returns the version that the stored row must have when this value is written. If the value
    /// has not changed since it was read, returns `None`.
    #[must_use]
    pub fn if_version(&self) -> Option<i32> {
        self.version.condition()
    }

    /// Returns the value that a host reads after it has stored this delivery.
    #[must_use]
    pub fn into_stored(self) -> Self {
        Self { version: Version::read(self.version()), ..self }
    }

    /// Checks that `endpoint` is the delivery's endpoint.
    pub(super) fn check(&self, endpoint: &EndpointHealth) -> Result<(), MismatchError> {
        if self.endpoint == endpoint.id() { Ok(()) } else { Err(MismatchError::Endpoint) }
    }

    /// Returns the current attempt.
    fn attempt(&self, endpoint: &EndpointHealth, began_at: Timestamp) -> Attempt {
        let next = self.attempts.saturating_add(1).min(MAX_ATTEMPTS);
        Attempt {
            of: (self.id, self.endpoint),
            event_created_at: self.event_created_at,
            number: if self.manual { 1 } else { next },
            manual: self.manual,
            began_at,
            deadline: began_at.saturating_add(ATTEMPT_TIMEOUT),
            lease: self.version(),
            generation: self.generation,
            life: endpoint.life().began,
        }
    }

    /// Returns whether attempts may begin: the endpoint is active, and was not disabled since the
    /// delivery was accepted or redelivered.
    fn belongs_to(&self, endpoint: &EndpointHealth) -> bool {
        endpoint.is_active() && endpoint.generation() == self.generation
    }

    fn is_leased(&self, now: Timestamp) -> bool {
        self.status == DeliveryStatus::Sending && !self.is_reached(now)
    }

    fn is_reached(&self, now: Timestamp) -> bool {
        let longest = match self.status {
            DeliveryStatus::Sending => ATTEMPT_LEASE,
            _ => LONGEST_WAIT,
        };
        is_reached(self.at, longest, now)
    }

    fn acknowledged(&mut self, attempt: &Attempt, now: Timestamp) -> Effect {
        if self.status == DeliveryStatus::Delivered {
            return Effect::None;
        }
        if !attempt.manual {
            self.attempts = self.attempts.max(attempt.number);
        }
        self.end(DeliveryStatus::Delivered, now);
        Effect::Success
    }

    fn gone(&mut self, attempt: &Attempt, leased: bool, now: Timestamp) -> Effect {
        // An ended delivery stays as it is. A delivery that was redelivered after the endpoint was
        // enabled continues. (D-79)
        if self.is_pending() && attempt.generation == self.generation {
            if leased && !attempt.manual {
                self.attempts = attempt.number;
            }
            self.end(DeliveryStatus::Gone, now);
        }
        Effect::Gone
    }

    fn failed(&mut self, schedule: &RetrySchedule, attempt: &Attempt, now: Timestamp) -> Effect {
        if attempt.manual {
            self.end(DeliveryStatus::Failed, now);
            return Effect::None;
        }
        self.attempts = attempt.number;
        match schedule.wait_after(self.attempts) {
            Some(wait) => {
                self.set(DeliveryStatus::Waiting, now.saturating_add(wait));
                if attempt.number == 1 { Effect::FirstFailure } else { Effect::None }
            }
            None => {
                self.end(DeliveryStatus::Failed, now);
                Effect::Failure
            }
        }
    }

    fn end(&mut self, status: DeliveryStatus, now: Timestamp) {
        self.manual = false;
        self.set(status, now);
    }

    fn set(&mut self, status: DeliveryStatus, at: Timestamp) {
        self.status = status;
        self.at = at;
        self.version.change();
    }
}
