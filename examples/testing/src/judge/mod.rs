//! The judge of a run: each change of a row, replayed through the library.
//!
//! A store notes each row before and after, each log entry and each lease, in the transaction that makes them.
//! The row before a change is the one that was stored: a host that wrote over a row that it had not read has
//! written a row that the machine does not give.
//!
//! The durable host's tests read their [`Record`] from the database, and the simulation's store keeps one.

mod deliveries;
mod endpoints;
mod ends;
mod owners;
mod record;

use std::time::Duration;

use call_assistant::Timestamp;

pub use self::ends::{Answers, Ended, Ends, Logged};
pub use self::record::{Change, Entry, Lease, Noted, Record, Snapshot};

/// The name of processes that erase callers: what is pending of them is parked, whatever its endpoint is.
pub const ERASURE: &str = "erasure";

/// From when until when what was written is lost, or another server's clock decides.
pub type Lost = [Timestamp; 2];

/// By how much the other server's clock differs at most.
const SET: Duration = Duration::from_secs(10);

/// Returns whether an instant is in one of these spans.
fn is_lost(lost: &[Lost], at: Timestamp) -> bool {
    lost.iter().any(|[from, until]| *from <= at && at <= *until)
}

/// Returns how much later than another an instant may have been that seems to be earlier.
fn error(lost: &[Lost], at: Timestamp) -> Duration {
    if is_lost(lost, at) { SET } else { Duration::ZERO }
}

/// Returns each change that is wrong. Leases and lives of endpoints that were lost are not asked for.
#[must_use]
pub fn check(record: &Record, lost: &[Lost]) -> Vec<String> {
    let states = endpoints::states(record);
    let (outcomes, mut wrong) = deliveries::check(record, &states, lost);
    wrong.extend(endpoints::check(record, &states, outcomes, lost));
    wrong.extend(owners::check(record, lost));
    wrong
}
