//! All accounts on one screen.

use call_assistant::webhook::sender::SenderGauges;
use deadpool_postgres::GenericClient;

use crate::sql::store as sql;
use host::store::{Done, Fleet, MOST_TROUBLED, MOST_WAITING};

/// Reads how all accounts stand, beside what was counted last.
pub(super) async fn all(client: &impl GenericClient, gauges: Option<SenderGauges>) -> Done<Fleet> {
    let most = i64::try_from(MOST_TROUBLED).unwrap_or(i64::MAX).saturating_add(1);
    let count = i64::try_from(MOST_WAITING).unwrap_or(i64::MAX).saturating_add(1);
    let (mut troubled, hours) =
        tokio::try_join!(sql::fleet_troubled(client, most, count), sql::fleet_hours(client))?;
    let more = troubled.len() > MOST_TROUBLED;
    troubled.truncate(MOST_TROUBLED);
    Ok(Fleet { troubled, more, gauges, hours })
}
