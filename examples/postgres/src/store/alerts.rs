//! Alerts that were stored for owners.

use call_assistant::id::EndpointId;
use call_assistant::webhook::sender::Alert;
use deadpool_postgres::GenericClient;

use super::unreadable;
use crate::db::statements as sql;
use crate::db::{Fields as _, query};
use host::rows::{AlertRow, MOST_COUNTED};
use host::store::Done;

/// The latest alerts of an account, newest first.
pub(super) async fn latest(client: &impl GenericClient, account: &str) -> Done<Vec<AlertRow>> {
    let mut latest = Vec::new();
    for row in query(client, sql::ALERTS_LATEST, &[&account]).await? {
        // What a later version tells is for that version to show.
        let Ok(alert) = serde_json::from_str::<Alert>(row.field("alert")?) else { continue };
        let missed: Option<i64> = row.field("missed")?;
        let missed = missed
            .filter(|_| matches!(alert, Alert::Disabled { .. } | Alert::StillDisabled { .. }));
        let missed = missed.map(i64::unsigned_abs).map(|missed| match missed > MOST_COUNTED {
            true => format!("; it has missed more than {MOST_COUNTED} so far"),
            false => format!("; it has missed {missed} so far"),
        });
        latest.push(AlertRow {
            id: format!("alrt_{}", row.field::<i64>("id")?),
            endpoint_id: EndpointId::parse(row.field("endpoint_id")?).map_err(unreadable)?,
            url: row.field("url")?,
            at: row.instant("at")?,
            kind: alert.kind().to_owned(),
            message: format!("{alert}{}", missed.unwrap_or_default()),
        });
    }
    Ok(latest)
}
