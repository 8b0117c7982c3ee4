//! Faults made on purpose: what a host like this one gets wrong when one line is forgotten.
//!
//! ```text
//! BROKEN=NoVersion call-assistant-postgres sender ...
//! ```
//!
//! `tests/broken` has a process with each fault, and has the checker of the chaos test find it. All of
//! this needs the feature `broken`: without it [`is`] is always false, and the program has no fault.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use call_assistant::webhook::sender::{Endpoint, Row, Settled};

/// The fault of a process, by its name.
pub const VARIABLE: &str = "BROKEN";

/// What one line that is missing does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Deliveries are written whatever version they have by then. Endpoints are written under a
    /// lock, so their condition never decides.
    NoVersion,
    /// Rows that are `sending` are not looked at. This host stores none, since it begins in memory,
    /// but a sender that stores what it begins works on the same rows. When it dies, its attempt is
    /// in such a row, and only another sender finds it.
    WaitingAlone,
    /// An attempt is made before what makes it right is stored. In a host that begins in memory, that
    /// is the result of the previous attempt: here the planner is told of a result when its
    /// transaction begins, and not when it is committed.
    BeforeCommit,
    /// A result is written to the delivery and not to its endpoint.
    DeliveryAlone,
    /// A result is written to the endpoint and not to its delivery.
    EndpointAlone,
    /// Endpoints are read once and kept, so before the attempts end whose results they are to count.
    EndpointBefore,
    /// Reports of results that come late are dropped, as if a late result could not matter.
    DroppedReport,
    /// A write that affects no row counts as done.
    RowsIgnored,
    /// Leases are renewed although somebody else has taken them. Nothing wrong is stored, for the
    /// versions of the rows are the fence. The cost is requests: what the new owner sends is sent by
    /// the former one as well, for as long as it lives.
    NoEpoch,
}

/// Whether this process has the fault.
#[cfg(feature = "broken")]
pub fn is(fault: Fault) -> bool {
    static NAME: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    let name = NAME.get_or_init(|| std::env::var(VARIABLE).ok());
    name.as_deref().is_some_and(|name| name == format!("{fault:?}"))
}

/// Whether this process has the fault: it has none.
#[cfg(not(feature = "broken"))]
#[must_use]
pub const fn is(_: Fault) -> bool {
    false
}

/// A statement, with one of these conditions weaker where the fault is.
///
/// # Panics
/// The statement has none of them: then the fault would be none.
pub(crate) fn weaken<'a>(
    sql: &'a str,
    fault: Fault,
    conditions: &[&str],
    weaker: &str,
) -> Cow<'a, str> {
    if !is(fault) {
        return sql.into();
    }
    let condition = conditions.iter().find(|condition| sql.contains(**condition));
    assert!(condition.is_some(), "{fault:?}: none of {conditions:?} in {sql}");
    condition.map_or_else(|| sql.into(), |condition| sql.replace(condition, weaker).into())
}

/// [`Fault::EndpointBefore`].
pub(crate) fn keep_endpoints(read: &mut BTreeMap<i32, Row<Endpoint>>) {
    static KEPT: Mutex<BTreeMap<i32, Row<Endpoint>>> = Mutex::new(BTreeMap::new());
    if is(Fault::EndpointBefore) {
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        for (number, row) in read {
            *row = *kept.entry(*number).or_insert(*row);
        }
    }
}

/// [`Fault::DroppedReport`].
pub(crate) fn drop_late_reports(settled: &mut Settled<i64, i32>) {
    if is(Fault::DroppedReport) && settled.log.iter().all(|(_, entry)| entry.late) {
        settled.endpoints.clear();
        settled.disabled.clear();
        settled.alerts.clear();
    }
}
