//! Redelivering all that an endpoint missed, a few at a time.

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
    /// The recovery of an endpoint's missed deliveries: each is redelivered once, a few at a time, until
    /// none is left.
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
    /// Each delivery gets one manual attempt, as by [`Delivery::redeliver`]: a failure does not count
    /// against the endpoint. A delivery that fails again has the status failed, and another recovery
    /// may redeliver it.
    ///
    /// # Steps
    /// Each is one transaction. Lock the recovery's row, and read its endpoint. Count the endpoint's pending
    /// manual deliveries, for [`room`](Self::room). Lock that many deliveries that [`RecoveryFilter`] finds,
    /// with an id above [`after`](Self::after), in ascending order; `SKIP LOCKED` would miss rows. Then
    /// [`step`](Self::step), and write the deliveries and the recovery, each under its version.
    ///
    /// Then add the deliveries to a [`Planner`](super::Planner). A process may die at any point: a step
    /// that is stored has advanced, and one that is not has done nothing, so that no delivery is
    /// redelivered twice and none is missed. If two processes make the same step, the version refuses
    /// one of them.
    ///
    /// [`room`](Self::room) sets the pace: so many deliveries are pending at once. With half of
    /// [`SenderLimits::per_endpoint`](super::SenderLimits::per_endpoint), the endpoint's new events always find room.
    ///
    /// # Its end
    /// A recovery ends by itself when nothing is left, when its endpoint is disabled, when the plan does not
    /// include it any more, and when all its events are thirty days old. Let an endpoint have one
    /// running recovery at a time, by a unique index.
    ///
    /// A recovery is stored as JSON, with [`status`](Self::status) and [`version`](Self::version) as columns of
    /// their own, next to the endpoint's id.
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    pub struct Recovery<D> {
        missed: RecoveryFilter,
        by: RecoveryBy,
        started_at: Timestamp,
        /// The endpoint's, when it was started.
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
        /// There may be more to redeliver.
        Running = "running",
        /// Everything was redelivered.
        Completed = "completed",
        /// Its owner cancelled it.
        Cancelled = "cancelled",
        /// Its endpoint was disabled.
        Disabled = "disabled",
        /// The plan does not include it any more.
        Downgraded = "downgraded",
        /// All its events are thirty days old.
        Expired = "expired",
    }
}

/// The reason why no recovery starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecoverError {
    /// The plan does not include it.
    #[error("{0}")]
    Plan(PlanError),
    /// The endpoint is disabled: enable it first.
    #[error("the endpoint is disabled")]
    Disabled,
}

/// The rows of one step of a [`Recovery`], read and locked in one transaction.
///
/// Closed: a host has to fill in each field.
#[derive(Clone, Copy, Debug)]
pub struct RecoveryStep<'a, D> {
    /// The number of rows that were searched for: [`Recovery::room`], or fewer.
    pub room: u32,
    /// The first rows after [`Recovery::after`], in ascending order of their ids. The database sorts
    /// as `D` does: for texts, as their bytes.
    pub found: &'a [(D, Delivery)],
    /// The endpoint.
    pub endpoint: &'a EndpointHealth,
    /// The plan of its account.
    pub plan: WebhookPlan,
}

impl RecoveryFilter {
    /// Starts a recovery of everything that is missed. Store it.
    ///
    /// # Errors
    /// The plan does not include it, or the endpoint is disabled.
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
    /// Sets how many deliveries were counted before it is started, to be shown with its progress.
    #[must_use]
    pub fn with_counted(self, counted: u64) -> Self {
        Self { counted, ..self }
    }

    /// Returns how many rows to read for the next step, given how many manual redeliveries of the
    /// endpoint are pending and how many may be at once. 0: make no step now.
    #[must_use]
    pub fn room(&self, pending: u32, at_once: u32) -> u32 {
        match self.status {
            RecoveryStatus::Running => at_once.saturating_sub(pending),
            _ => 0,
        }
    }

    /// Redelivers the found rows. Store the writes and the recovery in one transaction.
    ///
    /// If fewer rows than there is room for were found, nothing is left. Rows that are no longer missed, because
    /// somebody redelivered them meanwhile, are left out. A row whose sender may still be sending it
    /// waits for the next step, with all after it.
    ///
    /// # Errors
    /// A row is of another endpoint, or the rows are not in ascending order, each after
    /// [`after`](Self::after). The recovery has not changed.
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

    /// Cancels a running recovery. Deliveries that were redelivered already are still sent. Returns
    /// whether the recovery has changed.
    pub fn cancel(&mut self) -> bool {
        let running = self.status == RecoveryStatus::Running;
        if running {
            self.end(RecoveryStatus::Cancelled);
        }
        running
    }

    /// Returns the filter for the deliveries that it recovers.
    #[must_use]
    pub fn missed(&self) -> &RecoveryFilter {
        &self.missed
    }

    /// Returns the id after which to go on. `None`: begin with the first.
    #[must_use]
    pub fn after(&self) -> Option<&D> {
        self.after.as_ref()
    }

    /// Returns its state.
    #[must_use]
    pub fn status(&self) -> RecoveryStatus {
        self.status
    }

    /// Returns when it was started.
    #[must_use]
    pub fn started_at(&self) -> Timestamp {
        self.started_at
    }

    /// Returns how many deliveries were counted before it was started.
    #[must_use]
    pub fn counted(&self) -> u64 {
        self.counted
    }

    /// Returns how many deliveries it has redelivered.
    #[must_use]
    pub fn redelivered(&self) -> u64 {
        self.redelivered
    }

    /// Returns how many deliveries were found and left out: redelivered by somebody else meanwhile,
    /// or thirty days old.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Returns the version, which changes with every change, as that of a [`Delivery`] does.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version.number()
    }

    /// Returns the version that the stored row must have when this is written. `None` if nothing has
    /// changed since it was read, and there is nothing to write.
    #[must_use]
    pub fn if_version(&self) -> Option<i32> {
        self.version.condition()
    }

    /// Returns the recovery as it is read back once it is stored.
    #[must_use]
    pub fn into_stored(self) -> Self {
        Self { version: Version::read(self.version()), ..self }
    }

    /// Tells whether the rows are the endpoint's, in order, and after the last one.
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
