//! Recovering what the endpoints of an account, or of all accounts, have missed: after an outage of ours.

use call_assistant::Timestamp;
use call_assistant::webhook::sender::RecoveryFilter;

use crate::db::Database;
use crate::journal::{self, Deed};
use crate::store::start_recoveries;
use host::store::RecoveryRow;
use host::store::Refused;

/// Starts a recovery of each endpoint that is active and has missed something, a page at a time, and notes the
/// deed with the first page. Returns how many were started: senders make their steps. It may be called again:
/// where one is running, nothing changes.
///
/// # Errors
/// There is no such account, or the database did not respond: call again.
pub(crate) async fn all(
    database: &Database,
    account: Option<&str>,
    missed: &RecoveryFilter,
    deed: Deed,
    now: Timestamp,
) -> Result<usize, Refused> {
    let (mut started, mut after) = (0_usize, None);
    let mut deed = Some(deed);
    loop {
        let page = journal::act(database, async |change| {
            let page = start_recoveries(change, account, missed, after.as_deref(), now).await?;
            Ok((page, deed.take()))
        });
        let page = page.await?;
        page.started.iter().for_each(RecoveryRow::log_start);
        started = started.saturating_add(page.started.len());
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(started),
        }
    }
}
