//! Enabling an endpoint, and what it missed while it was disabled.

use super::delivery::Delivery;
use super::endpoint::Endpoint;
use super::numbers::next_version;
use super::retention::oldest_kept;
use super::schedule::LONGEST_DELIVERY;
use super::status::Status;
use crate::Timestamp;

/// What an endpoint did not receive: in a range of time, or until it was enabled.
///
/// ```
/// # use call_assistant::Timestamp;
/// # use call_assistant::webhook::sender::{Delivery, Endpoint, MissedDeliveries, RedeliverError};
/// # let (now, deliveries) = (Timestamp::UNIX_EPOCH, Vec::<Delivery>::new());
/// # let mut endpoint = Endpoint::new(now);
/// # endpoint.pause(now);
/// if let Some(missed) = endpoint.enable(now) {
///     for mut delivery in deliveries {
///         if missed.includes(&delivery) {
///             delivery.redeliver(&endpoint, now)?; // and store it
///         }
///     }
/// }
/// # Ok::<(), RedeliverError>(())
/// ```
///
/// The range is over the events' `created_at`, its end excluded. It never reaches back further than
/// [`RETENTION`](super::RETENTION), because older events may have been removed from the store. An endpoint that
/// missed much gets it no faster than a [`Planner`](super::Planner)'s limits allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MissedDeliveries {
    from: Timestamp,
    until: Timestamp,
    enabled: Option<Enabled>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Enabled {
    /// The endpoint's, now that it is enabled.
    generation: u32,
    /// Older events failed long before the endpoint was disabled.
    failed_from: Timestamp,
}

impl Endpoint {
    /// Makes a disabled endpoint active again, with the count at zero. `None` if it is active or
    /// deleted.
    ///
    /// Nothing that was parked or skipped is sent by this, so that the endpoint is not flooded with
    /// old events. The result tells what it missed: everything parked or skipped since it was last
    /// enabled, as far as it is kept, and everything that failed of events not older than
    /// [`LONGEST_DELIVERY`] when the endpoint was disabled. For older failures use
    /// [`MissedDeliveries::between`].
    ///
    /// An event that is accepted at the same moment may be stored after you have looked: see step 1
    /// of [the order](super). With a clock that is far ahead the range is empty, for all seems too
    /// old: use [`MissedDeliveries::between`] when the clock is right.
    pub fn enable(&mut self, now: Timestamp) -> Option<MissedDeliveries> {
        let disabled_at = self.activate(now)?;
        let failed_from = disabled_at.saturating_sub(LONGEST_DELIVERY);
        let enabled = Some(Enabled { generation: self.generation(), failed_from });
        // By generation and not by time: clocks differ, and an event may be accepted by a host that
        // has not read yet that the endpoint is enabled.
        let all = MissedDeliveries::between(Timestamp::MIN, Timestamp::MAX, now);
        Some(MissedDeliveries { enabled, ..all })
    }
}

impl MissedDeliveries {
    /// Creates the range between two instants, as far as it is still kept. If nothing of it is
    /// kept, the range is empty.
    #[must_use]
    pub fn between(from: Timestamp, until: Timestamp, now: Timestamp) -> Self {
        let from = from.max(oldest_kept(now));
        Self { from, until: until.max(from), enabled: None }
    }

    /// Returns the beginning of the range.
    #[must_use]
    pub fn from(&self) -> Timestamp {
        self.from
    }

    /// Returns the end of the range: the first instant after it.
    #[must_use]
    pub fn until(&self) -> Timestamp {
        self.until
    }

    /// Tells whether this delivery's event is in the range, and the endpoint did not receive it.
    ///
    /// The result of [`Endpoint::enable`] also includes deliveries that have been pending since
    /// before the endpoint was disabled: nobody has parked them yet, and they are not sent.
    #[must_use]
    pub fn includes(&self, delivery: &Delivery) -> bool {
        let created_at = delivery.event_created_at();
        let missed = match self.enabled {
            None => delivery.status().is_missed(),
            Some(Enabled { generation, failed_from }) => {
                let previous = next_version(delivery.generation) == generation;
                match delivery.status() {
                    Status::Waiting | Status::Sending => delivery.generation < generation,
                    Status::Parked | Status::Skipped => previous,
                    Status::Failed | Status::Gone => previous && failed_from <= created_at,
                    Status::Delivered => false,
                }
            }
        };
        self.from <= created_at && created_at < self.until && missed
    }
}
