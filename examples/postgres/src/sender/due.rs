//! When an attempt is due here, where `--time-scale` makes the waits of the schedule shorter.

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{Delivery, RETRY_WAITS, Status};

use crate::host::scale::Scale;

/// When to begin the next attempt. `None` if there is none.
///
/// Rows have the times of the schedule. A wait ends early by as much as it is shorter.
pub(super) fn due(delivery: &Delivery, scale: Scale, now: Timestamp) -> Option<Timestamp> {
    let due = delivery.due(now)?;
    if scale.waits == 1.0 || delivery.status() != Status::Waiting || delivery.is_manual() {
        return Some(due);
    }
    let waited = usize::from(delivery.attempts()).checked_sub(1);
    Some(match waited.and_then(|at| RETRY_WAITS.get(at)) {
        Some(wait) => due.saturating_sub(*wait).saturating_add(scale.wait(*wait)),
        None => due,
    })
}
