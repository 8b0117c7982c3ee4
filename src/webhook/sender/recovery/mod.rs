//! The redelivery of all deliveries that an endpoint missed, in steps of a few deliveries.

mod filter;
mod plan;

use alloc::vec::Vec;

pub use self::filter::RecoveryFilter;
pub use self::plan::{PlanError, RecoveryBy, WebhookPlan};

use super::delivery::{Delivery, RedeliverError};
use super::endpoint::EndpointHealth;
use super::schedule::RETENTION;
use super::stored::{self, MismatchError, Version, stored_enum};
use crate::Timestamp;
use crate::json::stored_object;

stored_object! {
    /// The recovery of an endpoint's missed deliveries. Each step redelivers a few of these deliveries,
    /// until none is left.
    ///
    /// ```
    /// # use call_assistant::Timestamp;
    /// # use call_assistant::id::{AccountId, EventId};
    /// # use call_assistant::webhook::event::{ApiVersion, NewEvent, Origin};
    /// # use call_assistant::webhook::sender::*;
    /// # let now = Timestamp::from_unix(60).unwrap();
    /// # let (id, account) = (EventId::parse("evt_1")?, AccountId::parse("acct_1")?);
    /// # let event = NewEvent::new(id, account, ApiVersion::parse("2026-01-15")?, Origin::voice(), now);
    /// # let event = event.ping("It works.")?;
    /// # let mut endpoint = EndpointHealth::new(1, now);
    /// # endpoint.pause(now);
    /// # let skipped = Delivery::accept(&event, &endpoint, now);
    /// # let plan = WebhookPlan::Pro;
    /// let missed = endpoint.enable(now).ok_or("not disabled")?;
    /// let counted = 1; // SELECT count(*), by what `missed` names: shown before it is started
    /// let recovery = missed.recover(RecoveryBy::Dashboard, plan, &endpoint, now)?;
    /// let mut recovery = recovery.with_counted(counted);
    ///
    /// // From now on, every second or so, until it is no longer running. Nothing is pending:
    /// let room = recovery.room(0, 4);
    /// let found = [(7, skipped)]; // ... AND id > $after ORDER BY id LIMIT $room FOR UPDATE
    /// let step = RecoveryStep { room, found: &found, endpoint: &endpoint, plan };
    /// let writes = recovery.step(step, now)?;
    /// // Store the writes and the recovery in one transaction.
    /// assert_eq!((writes[0].0, writes[0].1.status()), (7, DeliveryStatus::Waiting));
    /// assert_eq!((recovery.redelivered(), recovery.status()), (1, RecoveryStatus::Completed));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Each delivery gets one manual attempt, as with [`Delivery::redeliver`]. If this attempt
    /// fails, the endpoint's count of failures does not change. The delivery then has the status
    /// failed, and another recovery may redeliver it.
    ///
    /// # Steps
    /// Each step is one transaction:
    ///
    /// 1. Lock the recovery's row, and read the endpoint's row.
    /// 2. Count the endpoint's pending manual redeliveries, and call [`room`](Self::room) with this
    ///    count.
    /// 3. Find deliveries that the [`RecoveryFilter`] selects, with ids above [`after`](Self::after),
    ///    in ascending order of ids. Lock at most as many rows as `room` returned. Do not use `SKIP
    ///    LOCKED`, because it would miss rows.
    /// 4. Call [`step`](Self::step). Write each returned delivery and the recovery, each only if
    ///    its row still has the version that you read.
    ///
    /// After the commit, add the deliveries to a [`Planner`](super::Planner). If a process dies, a
    /// stored step has advanced the recovery, and an unstored step has no effect. Therefore, each
    /// delivery is redelivered once. If two processes make the same step, the version prevents the
    /// second write.
    ///
    /// [`room`](Self::room) limits the number of simultaneously pending redeliveries. If this limit is
    /// half of [`SenderLimits::per_endpoint`](super::SenderLimits::per_endpoint), the other half of the
    /// endpoint's slots remains for new events.
    ///
    /// # End of a recovery
    /// [`RecoveryStatus`] lists the reasons why a recovery ends.
    ///
    /// Create a unique index that allows an endpoint only one running recovery.
    ///
    /// Store a recovery as JSON. Store its [`status`](Self::status), its [`version`](Self::version) and
    /// the endpoint's id also in separate columns.
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    pub struct Recovery<D> {
        missed: RecoveryFilter,
        by: RecoveryBy,
        started_at: Timestamp,
        #[serde(deserialize_with = "stored::version")]
        generation: u32,
        counted: u64,
        redelivered: u64,
        left_out: u64,
        after: Option<D>,
        status: RecoveryStatus,
        version: Version,
    }
}

stored_enum! {
    /// The state of a recovery.
    ///
    /// ```
    /// use call_assistant::webhook::sender::RecoveryStatus;
    ///
    /// assert_eq!(RecoveryStatus::Running.as_str(), "running"); // in JSON and in a column
    /// ```
    pub enum RecoveryStatus in "status" {
        /// The recovery may have more deliveries to redeliver.
        Running = "running",
        /// No missed delivery is left. Each found delivery was redelivered or left out.
        Completed = "completed",
        /// The owner cancelled the recovery.
        Cancelled = "cancelled",
        /// The endpoint was disabled.
        Disabled = "disabled",
        /// The plan no longer includes the recovery.
        Downgraded = "downgraded",
        /// All events of the recovery are at least thirty days old.
        Expired = "expired",
    }
}

/// The reason why a recovery does not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecoverError {
    /// The plan does not include the recovery.
    #[error("{0}")]
    Plan(PlanError),
    /// The endpoint is disabled. First enable the endpoint.
    #[error("the endpoint is disabled")]
    Disabled,
}

/// The rows of one step of a [`Recovery`], read and locked in one transaction.
///
/// Closed: a host has to fill in each field.
#[derive(Clone, Copy, Debug)]
pub struct RecoveryStep<'a, D> {
    /// The number of rows that the host requested, at most [`Recovery::room`].
    pub room: u32,
    /// The first rows with ids above [`Recovery::after`], in ascending order. The database must sort
    /// ids as the type `D` does. For example, sort ids that are texts by bytes.
    pub found: &'a [(D, Delivery)],
    /// The endpoint of the recovery.
    pub endpoint: &'a EndpointHealth,
    /// The plan of the endpoint's account.
    pub plan: WebhookPlan,
}

impl RecoveryFilter {
    /// Starts a recovery of all deliveries that the filter selects. Store the recovery.
    ///
    /// # Errors
    /// Returns an error if the plan does not include the recovery, or if the endpoint is disabled.
    pub fn recover<D>(
        self,
        by: RecoveryBy,
        plan: WebhookPlan,
        endpoint: &EndpointHealth,
        now: Timestamp,
    ) -> Result<Recovery<D>, RecoverError> {
        plan.check_recovery(by).map_err(RecoverError::Plan)?;
        if !endpoint.is_active() {
            return Err(RecoverError::Disabled);
        }
        Ok(Recovery {
            missed: self.with_endpoint(endpoint),
            by,
            started_at: now,
            generation: endpoint.generation(),
            counted: 0,
            redelivered: 0,
            left_out: 0,
            after: None,
            status: RecoveryStatus::Running,
            version: Version::read(0),
        })
    }
}

impl<D> Recovery<D> {
    /// Sets how many deliveries were counted before the start. Show this number with the progress.
    #[must_use]
    pub fn with_counted(self, counted: u64) -> Self {
        Self { counted, ..self }
    }

    /// Returns how many rows to read for the next step. `pending` is the number of the endpoint's
    /// pending manual redeliveries, and `at_once` is the most redeliveries that may be pending. If
    /// the result is 0, make no step now.
    #[must_use]
    pub fn room(&self, pending: u32, at_once: u32) -> u32 {
        match self.status {
            RecoveryStatus::Running => at_once.saturating_sub(pending),
            _ => 0,
        }
    }

    /// Redelivers the found deliveries. Store the returned deliveries and the recovery in one
    /// transaction.
    ///
    /// If fewer rows than `room` were found, no other missed delivery is left. If a delivery was
    /// already redelivered, or its event is at least thirty days old, the step leaves the delivery
    /// out. If a sender may still be sending a delivery, this delivery and all deliveries after it
    /// wait for the next step.
    ///
    /// # Errors
    /// Returns an error if a row belongs to another endpoint, an id is not above
    /// [`after`](Self::after), or the ids are not ascending. The recovery has then not changed.
    pub fn step(
        &mut self,
        step: RecoveryStep<'_, D>,
        now: Timestamp,
    ) -> Result<Vec<(D, Delivery)>, MismatchError>
    where
        D: Clone + Ord,
    {
        let RecoveryStep { room, found, endpoint, plan } = step;
        let mut writes = Vec::new();
        if self.status != RecoveryStatus::Running || room == 0 {
            return Ok(writes);
        }
        self.check(found, endpoint)?;
        let last = self.started_at.min(self.missed.until()).saturating_add(RETENTION);
        if !endpoint.is_active() || endpoint.generation() != self.generation {
            self.end(RecoveryStatus::Disabled);
        } else if plan.check_recovery(self.by).is_err() {
            self.end(RecoveryStatus::Downgraded);
        } else if now >= last {
            self.end(RecoveryStatus::Expired);
        }
        if self.status != RecoveryStatus::Running {
            return Ok(writes);
        }
        let mut left = found;
        while let [(id, delivery), rest @ ..] = left {
            let mut delivery = *delivery;
            let missed = self.missed.includes(&delivery);
            match missed.then(|| delivery.redeliver(endpoint, now)) {
                Some(Err(RedeliverError::Leased { .. })) => break,
                Some(Ok(())) => {
                    self.redelivered = self.redelivered.saturating_add(1);
                    writes.push((id.clone(), delivery));
                }
                _ => self.left_out = self.left_out.saturating_add(1),
            }
            self.after = Some(id.clone());
            left = rest;
        }
        if left.is_empty() && u32::try_from(found.len()).is_ok_and(|found| found < room) {
            self.end(RecoveryStatus::Completed);
        } else if left.len() < found.len() {
            self.version.change();
        }
        Ok(writes)
    }

    /// Cancels a running recovery, and returns whether the recovery has changed. Deliveries of earlier
    /// steps are still sent.
    pub fn cancel(&mut self) -> bool {
        let running = self.status == RecoveryStatus::Running;
        if running {
            self.end(RecoveryStatus::Cancelled);
        }
        running
    }

    /// Returns the filter that selects the recovery's deliveries.
    #[must_use]
    pub fn missed(&self) -> &RecoveryFilter {
        &self.missed
    }

    /// Returns the id after which the next step continues. If the next step begins with the first id,
    /// the result is `None`.
    #[must_use]
    pub fn after(&self) -> Option<&D> {
        self.after.as_ref()
    }

    /// Returns the recovery's state.
    #[must_use]
    pub fn status(&self) -> RecoveryStatus {
        self.status
    }

    /// Returns when the recovery was started.
    #[must_use]
    pub fn started_at(&self) -> Timestamp {
        self.started_at
    }

    /// Returns how many deliveries were counted before the start.
    #[must_use]
    pub fn counted(&self) -> u64 {
        self.counted
    }

    /// Returns how many deliveries the recovery has redelivered.
    #[must_use]
    pub fn redelivered(&self) -> u64 {
        self.redelivered
    }

    /// Returns how many found deliveries the recovery left out. Each of these deliveries was already
    /// redelivered, or its event was at least thirty days old.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Returns the version, which differs after every change, as for a [`Delivery`].
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version.number()
    }

    /// Returns the version that the stored row must have when this value is written. If the value
    /// has not changed since it was read, the result is `None`.
    #[must_use]
    pub fn if_version(&self) -> Option<i32> {
        self.version.condition()
    }

    /// Returns the value that a host reads after it has stored this recovery.
    #[must_use]
    pub fn into_stored(self) -> Self {
        Self { version: Version::read(self.version()), ..self }
    }

    /// Checks that the rows belong to the endpoint, are in ascending order, and follow the previous
    /// step's last row.
    fn check(&self, found: &[(D, Delivery)], endpoint: &EndpointHealth) -> Result<(), MismatchError>
    where
        D: Ord,
    {
        found.iter().try_for_each(|(_, delivery)| delivery.check(endpoint))?;
        let goes_on = found.first().is_none_or(|(first, _)| self.after.as_ref() < Some(first));
        match goes_on && found.is_sorted_by_key(|(id, _)| id) {
            true => Ok(()),
            false => Err(MismatchError::Order),
        }
    }

    fn end(&mut self, status: RecoveryStatus) {
        self.status = status;
        self.version.change();
    }
}
