//! One delivery's life, from acceptance to its end.

use core::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

use super::attempt::Attempt;
use super::endpoint::{Endpoint, Heard, Report};
use super::outcome::{Outcome, Verdict};
use super::retention;
use super::schedule::{ATTEMPT_TIMEOUT, ATTEMPTS, LEASE, wait_after};
use crate::Timestamp;

/// One event on its way to one endpoint.
///
/// The value is small and `Copy`; the ids of event and endpoint, the event's type and its stored
/// bytes live beside it, in the host's own row. Every transition changes
/// [`version`](Self::version): a host stores what it got only where the stored row still has the
/// version it read, and otherwise reads again. That alone keeps any number of senders apart.
///
/// # Stored form
/// Plain fields, in JSON as below, in a table a column each. Unknown fields are ignored, so a later
/// version's rows can be read. One index on `(status, at)` finds all that is to be done: rows that
/// are `waiting` or `sending` whose `at` has come.
///
/// ```
/// # use call_assistant::webhook::sender::{Delivery, Endpoint};
/// # use call_assistant::Timestamp;
/// let now = Timestamp::from_unix(60).unwrap();
/// let delivery = Delivery::accept(Timestamp::UNIX_EPOCH, &Endpoint::new(now), now);
/// assert_eq!(
///     serde_json::to_string(&delivery)?,
///     concat!(
///         r#"{"event_created_at":"1970-01-01T00:00:00Z","#, // thirty days count from here
///         r#""status":"waiting","#,       // see `Status`
///         r#""at":"1970-01-01T00:01:00Z","#, // due, or leased until, or ended
///         r#""attempts":0,"#,             // made by schedule and finished, 0 to 6
///         r#""by_hand":false,"#,          // what is pending is a redelivery by hand
///         r#""generation":0,"#,           // the endpoint's, when this was accepted
///         r#""version":0}"#,              // changes with every transition
///     ),
/// );
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// Where each field has a column, it is taken apart and put together by the same names:
///
/// ```
/// # use call_assistant::webhook::sender::{Delivery, Endpoint};
/// # use call_assistant::Timestamp;
/// # use serde_json::json;
/// # let now = Timestamp::UNIX_EPOCH;
/// # let delivery = Delivery::accept(now, &Endpoint::new(now), now);
/// let columns = serde_json::to_value(delivery)?;
/// let (status, at) = (&columns["status"], &columns["at"]); // and so on, to be bound to a statement
///
/// let row = json!({
///     "event_created_at": columns["event_created_at"],
///     "status": status,
///     "at": at,
///     "attempts": columns["attempts"],
///     "by_hand": columns["by_hand"],
///     "generation": columns["generation"],
///     "version": columns["version"],
/// });
/// assert_eq!(serde_json::from_value::<Delivery>(row)?, delivery); // or what is wrong with the row
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Delivery {
    event_created_at: Timestamp,
    status: Status,
    at: Timestamp,
    #[serde(deserialize_with = "attempts")]
    attempts: u8,
    by_hand: bool,
    generation: u32,
    version: u32,
}

/// Where a delivery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Status {
    /// To be attempted when its time has come.
    Waiting,
    /// A sender has begun an attempt, and has a lease on it.
    Sending,
    /// The receiver acknowledged it.
    Delivered,
    /// The sixth attempt failed, or the one of a redelivery by hand.
    Failed,
    /// The receiver answered 410.
    Gone,
    /// It was pending when its endpoint was disabled.
    Parked,
    /// Its endpoint was disabled when the event happened.
    Skipped,
}

/// Why no attempt begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BeginError {
    /// Its time has not come.
    #[error("not due before {at}")]
    Early {
        /// When it is due.
        at: Timestamp,
    },
    /// Another sender is at it.
    #[error("leased to a sender until {until}")]
    Leased {
        /// From when on the sender is taken for dead.
        until: Timestamp,
    },
    /// Its endpoint is disabled, or was since: it is parked, which is to be stored.
    #[error("parked, for its endpoint was disabled")]
    Parked,
    /// It has ended.
    #[error("ended already")]
    Ended,
}

/// Why a delivery is not redelivered by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RedeliverError {
    /// It is on its way already.
    #[error("pending already")]
    Pending,
    /// It was pending when its endpoint was disabled, and a sender may still be at it. Ask again
    /// then.
    #[error("leased to a sender until {until}")]
    Leased {
        /// From when on the sender is taken for dead.
        until: Timestamp,
    },
    /// The receiver acknowledged it.
    #[error("delivered already")]
    Delivered,
    /// The event is thirty days old.
    #[error("the event is 30 days old or older")]
    Expired,
    /// Nothing is sent to a disabled endpoint. Enable it first.
    #[error("the endpoint is disabled")]
    Disabled,
}

/// What became of a delivery when an attempt was finished, and what its endpoint is to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Finished {
    /// What became of the delivery.
    pub step: Step,
    /// For [`Endpoint::record`], in the same write.
    pub report: Report,
}

/// What became of a delivery when an attempt was finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// The receiver has it.
    Delivered,
    /// It failed, and is to be attempted again at this instant.
    Again {
        /// The end of the failed attempt, and the wait that follows it.
        at: Timestamp,
    },
    /// It failed for good.
    Failed,
    /// The receiver wants nothing more.
    Gone,
    /// No attempt was made: the same one is to be made again, at once or when the host can.
    Unsent,
    /// The outcome came when it could change nothing of the delivery any more. Its endpoint may
    /// still hear of it: the report is to be recorded all the same.
    Late,
}

impl Delivery {
    /// Accepts an event for an endpoint: due at once, or skipped while the endpoint is disabled.
    ///
    /// `event_created_at` is the event's own `created_at`, from which its thirty days count. Store
    /// the result together with the event's bytes, before anybody is told that it is accepted.
    #[must_use]
    pub fn accept(event_created_at: Timestamp, endpoint: &Endpoint, now: Timestamp) -> Self {
        Self {
            event_created_at,
            status: if endpoint.is_active() { Status::Waiting } else { Status::Skipped },
            at: now,
            attempts: 0,
            by_hand: false,
            generation: endpoint.generation(),
            version: 0,
        }
    }

    /// Begins an attempt. Store the delivery, then send.
    ///
    /// A lease that has run out is taken over: the sender that had it is dead or will come late,
    /// and the same attempt is made again. The receiver may see it twice, never not at all.
    ///
    /// # Errors
    /// [`BeginError`] says why there is nothing to send. Only [`BeginError::Parked`] changes the
    /// delivery, which is then to be stored.
    pub fn begin(&mut self, endpoint: &Endpoint, now: Timestamp) -> Result<Attempt, BeginError> {
        match self.status {
            Status::Sending if now < self.at => return Err(BeginError::Leased { until: self.at }),
            Status::Waiting | Status::Sending => {}
            _ => return Err(BeginError::Ended),
        }
        // Before its time has come, so that a host may park all that is pending at once.
        if self.outlived(endpoint) {
            self.end(Status::Parked, now);
            return Err(BeginError::Parked);
        }
        if now < self.at {
            return Err(BeginError::Early { at: self.at });
        }
        self.status = Status::Sending;
        self.at = now.saturating_add(LEASE);
        self.changed();
        let number = if self.by_hand { 1 } else { self.attempts.saturating_add(1).min(ATTEMPTS) };
        Ok(Attempt {
            number,
            by_hand: self.by_hand,
            began_at: now,
            deadline: now.saturating_add(ATTEMPT_TIMEOUT),
            lease: self.version,
            generation: self.generation,
        })
    }

    /// Finishes an attempt: `now` is when it ended.
    ///
    /// An outcome may come late, twice, or after another sender took over. What it can still say
    /// truthfully it says: a 2xx means that the receiver has the event, whenever it is heard, and a
    /// 410 that the endpoint is gone. A failure of a lease that has been taken over is of an
    /// attempt that is being made again, and does not count.
    #[must_use = "the report is for `Endpoint::record`"]
    pub fn finish(&mut self, attempt: &Attempt, outcome: Outcome, now: Timestamp) -> Finished {
        let leased = self.status == Status::Sending && self.version == attempt.lease;
        let verdict = outcome.verdict();
        let (step, heard) = match verdict {
            Verdict::Acknowledged => self.acknowledged(attempt, now),
            Verdict::Gone => self.gone(attempt, leased, now),
            _ if !leased => (Step::Late, Heard::Nothing),
            Verdict::Failed => self.failed(attempt, now),
            Verdict::Unsent => {
                self.status = Status::Waiting;
                self.at = now;
                self.changed();
                (Step::Unsent, Heard::Nothing)
            }
        };
        Finished { step, report: Report { generation: attempt.generation, heard } }
    }

    /// Makes a waiting delivery wait longer: for [jitter](super::jitter), or where the host cannot
    /// send. What is not waiting stays as it is.
    pub fn postpone(&mut self, by: Duration) {
        if self.status == Status::Waiting && !by.is_zero() {
            self.at = self.at.saturating_add(by);
            self.changed();
        }
    }

    /// Has a delivery that its endpoint did not get made once more, at once: one attempt, with the
    /// same event id and bytes, and the secret of that time. If it fails, that does not count
    /// against the endpoint; if it succeeds, that resets the count.
    ///
    /// One that was pending when its endpoint was disabled counts as parked, whether or not anybody
    /// has looked at it since; only a sender that may still be at it is waited for.
    ///
    /// # Errors
    /// It is pending, may still be with a sender, or is delivered, the event is thirty days old, or
    /// the endpoint is disabled.
    pub fn redeliver(&mut self, endpoint: &Endpoint, now: Timestamp) -> Result<(), RedeliverError> {
        if self.is_pending() && !self.outlived(endpoint) {
            return Err(RedeliverError::Pending);
        }
        if self.status == Status::Sending && now < self.at {
            return Err(RedeliverError::Leased { until: self.at });
        }
        if self.status == Status::Delivered {
            return Err(RedeliverError::Delivered);
        }
        if !retention::is_kept(self.event_created_at, now) {
            return Err(RedeliverError::Expired);
        }
        if !endpoint.is_active() {
            return Err(RedeliverError::Disabled);
        }
        self.status = Status::Waiting;
        self.at = now;
        self.by_hand = true;
        self.generation = endpoint.generation();
        self.changed();
        Ok(())
    }

    /// Whether the event's bytes and this row must be kept: for thirty days from the event, and
    /// while it is pending.
    #[must_use]
    pub fn is_kept(&self, now: Timestamp) -> bool {
        self.is_pending() || retention::is_kept(self.event_created_at, now)
    }

    /// Whether there is still something to do.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        matches!(self.status, Status::Waiting | Status::Sending)
    }

    /// When to look at it next: when it is due, or its sender's lease is over. `None` if it has
    /// ended.
    #[must_use]
    pub fn due(&self) -> Option<Timestamp> {
        self.is_pending().then_some(self.at)
    }

    /// When it ended. `None` while it is pending.
    #[must_use]
    pub fn ended_at(&self) -> Option<Timestamp> {
        (!self.is_pending()).then_some(self.at)
    }

    /// Where it stands.
    #[must_use]
    pub fn status(&self) -> Status {
        self.status
    }

    /// The event's `created_at`.
    #[must_use]
    pub fn event_created_at(&self) -> Timestamp {
        self.event_created_at
    }

    /// How many attempts were made by schedule and finished: 0 to 6. Those by hand are not among
    /// them.
    #[must_use]
    pub fn attempts(&self) -> u8 {
        self.attempts
    }

    /// Whether what is pending is a redelivery by hand.
    #[must_use]
    pub fn is_by_hand(&self) -> bool {
        self.by_hand
    }

    /// Changes with every transition: store the row only where the stored one has the version that
    /// was read.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Whether the endpoint's life that this belongs to is over: nothing more is sent of it.
    fn outlived(&self, endpoint: &Endpoint) -> bool {
        !endpoint.is_active() || endpoint.generation() != self.generation
    }

    /// The endpoint's, when it was accepted or redelivered.
    pub(super) fn generation(&self) -> u32 {
        self.generation
    }

    fn acknowledged(&mut self, attempt: &Attempt, now: Timestamp) -> (Step, Heard) {
        if self.status == Status::Delivered {
            return (Step::Late, Heard::Nothing);
        }
        if !attempt.by_hand {
            self.attempts = self.attempts.max(attempt.number.min(ATTEMPTS));
        }
        self.end(Status::Delivered, now);
        (Step::Delivered, Heard::Success)
    }

    fn gone(&mut self, attempt: &Attempt, leased: bool, now: Timestamp) -> (Step, Heard) {
        // What has ended stays as it ended, and what was redelivered since the endpoint was enabled
        // goes on; the endpoint hears of it all the same.
        if !self.is_pending() || attempt.generation != self.generation {
            return (Step::Late, Heard::Gone);
        }
        if leased && !attempt.by_hand {
            self.attempts = attempt.number.min(ATTEMPTS);
        }
        self.end(Status::Gone, now);
        (Step::Gone, Heard::Gone)
    }

    fn failed(&mut self, attempt: &Attempt, now: Timestamp) -> (Step, Heard) {
        if attempt.by_hand {
            self.end(Status::Failed, now);
            return (Step::Failed, Heard::Nothing);
        }
        self.attempts = attempt.number.min(ATTEMPTS);
        let Some(wait) = wait_after(self.attempts) else {
            self.end(Status::Failed, now);
            return (Step::Failed, Heard::Failure);
        };
        self.status = Status::Waiting;
        self.at = now.saturating_add(wait);
        self.changed();
        (Step::Again { at: self.at }, Heard::Nothing)
    }

    fn end(&mut self, status: Status, now: Timestamp) {
        self.status = status;
        self.at = now;
        self.by_hand = false;
        self.changed();
    }

    fn changed(&mut self) {
        self.version = self.version.wrapping_add(1);
    }
}

impl Status {
    /// Whether it ended without the endpoint having got it.
    #[must_use]
    pub fn is_missed(self) -> bool {
        matches!(self, Self::Failed | Self::Gone | Self::Parked | Self::Skipped)
    }
}

/// No row of ours has more: one that does was not written by this crate.
fn attempts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    match u8::deserialize(deserializer)? {
        attempts @ 0..=ATTEMPTS => Ok(attempts),
        _ => Err(serde::de::Error::custom("attempts is more than 6")),
    }
}
