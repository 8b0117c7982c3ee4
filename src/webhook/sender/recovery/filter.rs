//! The enabling of an endpoint, and the deliveries that the endpoint missed while disabled.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::super::delivery::{Delivery, DeliveryStatus};
use super::super::endpoint::EndpointHealth;
use super::super::schedule::{LONGEST_DELIVERY, oldest_kept};
use super::super::stored::{self, previous_version, signed};
use crate::Timestamp;
use crate::json::stored_object;
use crate::webhook::event::EventType;

stored_object! {
    /// A filter for the deliveries that an endpoint missed in a range of time, or until the endpoint
    /// was enabled.
    ///
    /// ```
    /// # use call_assistant::Timestamp;
    /// # use call_assistant::webhook::event::EventType;
    /// # use call_assistant::webhook::sender::{
    /// #     Delivery, DeliveryStatus, EndpointHealth, RecoveryFilter,
    /// # };
    /// # let now = Timestamp::UNIX_EPOCH;
    /// # let mut endpoint = EndpointHealth::new(1, now);
    /// # endpoint.pause(now);
    /// if let Some(missed) = endpoint.enable(now) {
    ///     let missed = missed.with_statuses([DeliveryStatus::Parked, DeliveryStatus::Skipped]).with_types([EventType::CallEnded]);
    ///     // SELECT type, count(*) FROM deliveries ... WHERE, as below, GROUP BY type
    ///     assert_eq!(missed.statuses(), [DeliveryStatus::Parked, DeliveryStatus::Skipped]);
    ///     assert_eq!(missed.ended_generation(), Some(0)); // the generation before
    /// }
    /// ```
    ///
    /// The range applies to the events' `created_at`, and excludes its end. It covers at most the
    /// last thirty days ([`RETENTION`](super::super::RETENTION)), because older events may have
    /// been removed from the store. A [`Recovery`](super::super::Recovery) redelivers all
    /// deliveries that the filter selects.
    ///
    /// The filter is stored as JSON. Old and new versions of this crate read each other's JSON.
    ///
    /// # The search
    /// A query of the host finds the endpoint's rows that meet these three conditions.
    /// [`includes`](Self::includes) checks the first two conditions:
    /// - The event's `created_at` is at or after [`from`](Self::from), and before
    ///   [`until`](Self::until).
    /// - The row meets the condition for its state:
    ///   - The row of an ended delivery has one of the [`statuses`](Self::statuses). Unless
    ///     [`ended_generation`](Self::ended_generation) is `None`, the row has this generation. If the
    ///     status is failed or gone, the event is not older than [`failed_from`](Self::failed_from).
    ///   - The row of a pending delivery does not have the
    ///     [`active_generation`](Self::active_generation). If `active_generation` is `None`, no pending
    ///     row fits.
    /// - [`includes_type`](Self::includes_type) is true for the event's type.
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    pub struct RecoveryFilter {
        from: Timestamp,
        until: Timestamp,
        /// The statuses, in the order of [`DeliveryStatus::ALL`].
        statuses: Vec<DeliveryStatus>,
        /// The types of events. An empty list includes all types.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        types: Vec<EventType>,
        /// The endpoint's generation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(deserialize_with = "stored::optional_version")]
        generation: Option<u32>,
        /// The oldest `created_at` for events of failed and gone deliveries. Only enabling sets this
        /// field. If it is set, the filter includes only ended deliveries of the previous generation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failed_from: Option<Timestamp>,
    }
    check: RecoveryFilter::check
}

impl EndpointHealth {
    /// Makes a disabled endpoint active again, and sets its count of failures to zero. If the endpoint
    /// is active or deleted, the result is `None`.
    ///
    /// Enabling sends no parked or skipped delivery, because old events would flood the endpoint. The
    /// result selects the missed deliveries that are still kept:
    /// - all deliveries that were parked or skipped since the endpoint was last enabled
    /// - all failed and gone deliveries whose events were not older than [`LONGEST_DELIVERY`] when the
    ///   endpoint was disabled
    ///
    /// A delivery fails hours after its event. Therefore, the result excludes most of the failed
    /// deliveries that disabled the endpoint. To recover a whole outage, use
    /// [`RecoveryFilter::between`] with a range that begins [`LONGEST_DELIVERY`] before the first
    /// failure. To include deliveries that are still pending, add
    /// [`with_endpoint`](RecoveryFilter::with_endpoint).
    ///
    /// If an event is accepted at the moment of enabling, its delivery may be stored after your
    /// search. See [enabling](crate::guide::storing#enabling). If your clock is far ahead, all
    /// events seem expired, and the range is empty. Then correct the clock, and use
    /// [`RecoveryFilter::between`].
    pub fn enable(&mut self, now: Timestamp) -> Option<RecoveryFilter> {
        let disabled_at = self.activate(now)?;
        // By generation and not by time: clocks differ, and an event may be accepted by a host that
        // has not read yet that the endpoint is enabled.
        let all = RecoveryFilter::between(Timestamp::MIN, Timestamp::MAX, now).with_endpoint(self);
        let failed_from = Some(disabled_at.saturating_sub(LONGEST_DELIVERY));
        Some(RecoveryFilter { failed_from, ..all })
    }

    /// Returns the filter for the deliveries that a disabled endpoint has missed until now.
    /// [`enable`](Self::enable) would return the same filter. If the endpoint is active or deleted, the
    /// result is `None`.
    #[must_use]
    pub fn missed(&self, now: Timestamp) -> Option<RecoveryFilter> {
        let mut enabled = *self;
        enabled.enable(now)
    }
}

impl RecoveryFilter {
    /// Creates the filter for a range between two instants, limited to events that are still kept. If no
    /// event of the range is still kept, the range is empty.
    #[must_use]
    pub fn between(from: Timestamp, until: Timestamp, now: Timestamp) -> Self {
        let from = from.max(oldest_kept(now));
        let statuses =
            DeliveryStatus::ALL.iter().copied().filter(|status| status.is_missed()).collect();
        let until = until.max(from);
        Self { from, until, statuses, types: Vec::new(), generation: None, failed_from: None }
    }

    /// Includes only deliveries that ended in one of these statuses. A status for which
    /// [`is_missed`](DeliveryStatus::is_missed) is false is ignored. [`DeliveryStatus::Parked`] also
    /// includes pending deliveries that count as parked.
    #[must_use]
    pub fn with_statuses(mut self, statuses: impl AsRef<[DeliveryStatus]>) -> Self {
        self.statuses.retain(|status| statuses.as_ref().contains(status));
        self
    }

    /// Includes only events of these types. If `types` is empty, the filter includes all events.
    #[must_use]
    pub fn with_types(mut self, types: impl IntoIterator<Item = EventType>) -> Self {
        self.types = types.into_iter().collect();
        self
    }

    /// Adds deliveries that were pending when this endpoint was disabled, and are not parked yet. These
    /// deliveries are not sent. The filter from [`EndpointHealth::enable`] includes them.
    #[must_use]
    pub fn with_endpoint(self, endpoint: &EndpointHealth) -> Self {
        Self { generation: self.generation.or(Some(endpoint.generation())), ..self }
    }

    /// Returns the beginning of the range.
    #[must_use]
    pub fn from(&self) -> Timestamp {
        self.from
    }

    /// Returns the end of the range, which is excluded.
    #[must_use]
    pub fn until(&self) -> Timestamp {
        self.until
    }

    /// Returns the statuses that ended deliveries may have, in the order of [`DeliveryStatus::ALL`].
    #[must_use]
    pub fn statuses(&self) -> &[DeliveryStatus] {
        &self.statuses
    }

    /// Returns the types of the events. If the filter includes all types, the list is empty.
    #[must_use]
    pub fn types(&self) -> &[EventType] {
        &self.types
    }

    /// Returns the generation that ended deliveries must have. If they may have any generation, the
    /// result is `None`.
    #[must_use]
    pub fn ended_generation(&self) -> Option<i32> {
        self.failed_from.and(self.generation).map(previous_version).map(signed)
    }

    /// Returns the oldest `created_at` that an event of a failed or gone delivery may have.
    #[must_use]
    pub fn failed_from(&self) -> Timestamp {
        self.failed_from.unwrap_or(self.from)
    }

    /// Returns the generation whose pending deliveries are sent. Pending deliveries of all other
    /// generations count as parked. If the filter includes no pending delivery, the result is `None`.
    #[must_use]
    pub fn active_generation(&self) -> Option<i32> {
        let parked = self.statuses.contains(&DeliveryStatus::Parked);
        self.generation.filter(|_| parked).map(signed)
    }

    /// Returns whether this delivery's event is in the range, and the endpoint did not receive the
    /// event. This method checks [the search](Self#the-search)'s conditions, except the event's type.
    #[must_use]
    pub fn includes(&self, delivery: &Delivery) -> bool {
        let created_at = delivery.event_created_at();
        let generation = signed(delivery.generation);
        let missed = match delivery.status() {
            DeliveryStatus::Waiting | DeliveryStatus::Sending => {
                self.active_generation().is_some_and(|active| generation != active)
            }
            ended => {
                self.statuses.contains(&ended)
                    && self
                        .ended_generation()
                        .is_none_or(|ended_generation| generation == ended_generation)
                    && (matches!(ended, DeliveryStatus::Parked | DeliveryStatus::Skipped)
                        || self.failed_from() <= created_at)
            }
        };
        self.from <= created_at && created_at < self.until && missed
    }

    /// Returns whether events of this type are included.
    #[must_use]
    pub fn includes_type(&self, event_type: &EventType) -> bool {
        self.types.is_empty() || self.types.contains(event_type)
    }

    /// Refuses a stored filter that no call can create, because its recovery could redeliver a
    /// delivered event.
    fn check(&self) -> Result<(), String> {
        if let Some(status) = self.statuses.iter().find(|status| !status.is_missed()) {
            return Err(format!("statuses has {}, which is not missed", status.as_str()));
        }
        if self.until < self.from {
            return Err("until is before from".into());
        }
        if self.failed_from.is_some() && self.generation.is_none() {
            return Err("failed_from has no generation".into());
        }
        Ok(())
    }
}
