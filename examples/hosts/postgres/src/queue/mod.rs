//! The queue: deliveries that are pending or have ended, the health of their endpoints, and what their
//! owners are told. All that changes a row of these does so here.
//!
//! Rows are locked in the order in which everybody locks: deliveries by ascending number, and then
//! endpoints. They are written under the version that was read.

mod accept;
mod lock;
mod missed;
mod write;

use std::num::{NonZeroU16, NonZeroU32};

pub use self::accept::{Accepted, accept, started_at, wait_for_standby};
pub use self::lock::{Key, Locked, lock, lock_endpoints, read_endpoints};
pub(crate) use self::missed::Search;
pub(crate) use self::write::{
    recovery_json, recovery_text, store_alerts, tell_again, write_locked, write_locked_endpoints,
    write_missed, write_progress, write_recovery,
};
pub use self::write::{write, write_endpoints};

/// The number of shards, which never changes: the rows of `shards`, and the column `endpoints.shard`.
pub const SHARDS: NonZeroU16 = NonZeroU16::new(64).unwrap();

/// Returns the id of a delivery, which says where it is.
pub(crate) fn delivery_text(endpoint: i32, id: i64) -> String {
    format!("dlv_{endpoint:x}_{id:x}")
}

/// Returns the shard of an endpoint, by its id.
#[must_use]
pub fn shard_of(endpoint: &str) -> i16 {
    let shard = call_assistant::webhook::sender::shard_of(endpoint, NonZeroU32::from(SHARDS));
    i16::try_from(shard).unwrap_or(i16::MAX)
}
