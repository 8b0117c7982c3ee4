//! API keys and their accounts, looked up together.

use std::collections::{BTreeSet, HashMap};

use call_assistant::Timestamp;
use call_assistant::model;
use call_assistant::rest::server::{AccountStatus, StoredKey};
use tokio_postgres::Row;

use super::accounts;
use crate::clock;
use crate::db::statements as sql;
use crate::db::{At, Database, DbError, Fields as _, execute, query};
use host::store::Done;

/// A key, its account as the public API has it, and how that stands.
pub(super) type Found = (StoredKey, (model::Account, AccountStatus));

/// Looks up the keys of these digests, and notes their use.
pub(super) async fn look_up(
    database: Database,
    digests: Vec<[u8; 32]>,
) -> Done<Vec<Done<Option<Found>>>> {
    let rows = database.read(async |client| {
        let asked: Vec<&[u8]> = digests.iter().map(<[u8; 32]>::as_slice).collect();
        let rows = query(client, sql::API_KEYS, &[&asked]).await?;
        // When its use was noted, all processes agree on.
        let now = clock::database::now();
        let used: BTreeSet<String> = rows.iter().filter_map(|row| to_note(row, now)).collect();
        if !used.is_empty() {
            let used: Vec<String> = used.into_iter().collect();
            execute(client, sql::API_NOTE_USE, &[&used, &At(now)]).await?;
        }
        Ok::<_, DbError>(rows)
    });
    let rows = rows.await?;
    let mut by_digest = HashMap::new();
    for row in &rows {
        by_digest.insert(row.field::<&[u8]>("digest")?, row);
    }
    let found = |digest: &[u8; 32]| by_digest.get(digest.as_slice()).map(|row| found(row));
    Ok(digests.iter().map(|digest| found(digest).transpose()).collect())
}

fn found(row: &Row) -> Done<Found> {
    Ok((accounts::key_of(row)?, accounts::standing_of(row)?))
}

/// Returns the id of a key whose use is to be noted. One that cannot be read has an error of its own.
fn to_note(row: &Row, now: Timestamp) -> Option<String> {
    let key = accounts::key_of(row).ok()?;
    let is_stale =
        key.last_used_at.is_none_or(|last| now.since(last).max(last.since(now)) >= accounts::NOTED);
    (is_stale && key.revoked_at.is_none()).then(|| key.id.as_str().to_owned())
}
