//! API keys and their accounts, looked up together.

use std::collections::{BTreeSet, HashMap};

use call_assistant::Timestamp;
use call_assistant::model;
use call_assistant::rest::server::{AccountStatus, StoredKey};

use super::accounts;
use crate::db::{At, Database, DbError};
use crate::sql::store::{self as sql, FoundKey};
use host::store::{Done, Refused};

/// A key, its account as the public API has it, and how that stands.
pub(super) type Found = (StoredKey, (model::Account, AccountStatus));

/// Looks up the keys of these digests, and notes their use.
pub(super) async fn look_up(
    database: Database,
    digests: Vec<[u8; 32]>,
) -> Done<Vec<Done<Option<Found>>>> {
    let rows = database.read(async |client| {
        let asked: Vec<&[u8]> = digests.iter().map(<[u8; 32]>::as_slice).collect();
        let rows = sql::api_keys(client, &asked).await?;
        // When its use was noted, all processes agree on.
        let now = database.now();
        let used: BTreeSet<String> = rows.iter().filter_map(|row| to_note(row, now)).collect();
        if !used.is_empty() {
            let used: Vec<String> = used.into_iter().collect();
            sql::api_note_use(client, &used, At(now)).await?;
        }
        Ok::<_, DbError>(rows)
    });
    let rows = rows.await?.into_iter();
    let by_digest: HashMap<Vec<u8>, Done<Found>> = rows.map(found).collect();
    let found = |digest: &[u8; 32]| by_digest.get(digest.as_slice()).cloned().transpose();
    Ok(digests.iter().map(found).collect())
}

fn found(row: FoundKey) -> (Vec<u8>, Done<Found>) {
    let read = row.key.and_then(|key| Ok((key, accounts::standing_of(row.owner?))));
    (row.digest, read.map_err(Refused::from))
}

/// Returns the id of a key whose use is to be noted. One that cannot be read has an error of its own.
fn to_note(row: &FoundKey, now: Timestamp) -> Option<String> {
    let key = row.key.as_ref().ok()?;
    let is_stale =
        key.last_used_at.is_none_or(|last| now.since(last).max(last.since(now)) >= accounts::NOTED);
    (is_stale && key.revoked_at.is_none()).then(|| key.id.as_str().to_owned())
}
