//! What is planned.

use super::due_queue::Entry;
use crate::Timestamp;

/// A delivery to plan.
///
/// Closed: a host has to take each field from the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DueDelivery {
    /// The host's number of the delivery.
    pub delivery: u64,
    /// The host's number of its endpoint.
    pub endpoint: u32,
    /// The host's number of the account. An endpoint stays in the account that is given first.
    pub account: u32,
    /// When its next attempt is [due](crate::webhook::sender::Delivery::due).
    pub due: Timestamp,
    /// Whether it has [failed](crate::webhook::sender::Delivery::attempts) before. A manual attempt is
    /// not a retry.
    pub is_retry: bool,
}

impl DueDelivery {
    pub(super) fn entry(self) -> Entry {
        let Self { delivery, endpoint, due, is_retry, .. } = self;
        Entry { due: round_up(due), delivery, endpoint, is_retry }
    }
}

/// Returns microseconds since 1970.
pub(super) fn round_up(at: Timestamp) -> i64 {
    at.unix_micros().saturating_add(i64::from(!at.subsec_nanos().is_multiple_of(1_000)))
}
