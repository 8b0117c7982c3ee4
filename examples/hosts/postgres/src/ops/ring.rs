//! Opening every sealed secret, to see whether a ring has all keys.

use std::collections::BTreeMap;

use call_assistant::Timestamp;
use deadpool_postgres::Object;
use serde_json::{Value, json};
use tokio_postgres::Row;

use crate::db::statements as sql;
use crate::db::{Database, DbError, Fields as _, query};
use crate::key_ring::KeyRing;
use host::log;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// How many endpoints' secrets each key seals, by its number.
    pub in_use: BTreeMap<u8, u64>,
    /// Endpoints whose secrets do not open with any key of the ring.
    pub unreadable: u64,
    /// Endpoints whose secrets open, and are not sealed with the newest key.
    pub outdated: u64,
}

impl Checked {
    /// Returns a line of JSON.
    #[must_use]
    pub fn line(&self) -> Value {
        let Self { in_use, unreadable, outdated } = self;
        json!({ "in_use": in_use, "unreadable": unreadable, "outdated": outdated })
    }

    /// Returns a sentence.
    #[must_use]
    pub fn text(&self) -> String {
        let keys =
            self.in_use.iter().map(|(number, sealed)| format!("key {number} seals {sealed}"));
        let keys = keys.collect::<Vec<_>>().join(", ");
        match (keys.is_empty(), self.unreadable) {
            (true, _) => "there are no secrets".to_owned(),
            (false, 0) => format!("every secret opens: {keys}"),
            (false, unreadable) => format!("{unreadable} secrets do not open: {keys}"),
        }
    }
}

/// Opens the secrets of every endpoint, a hundred at a time. The log names those that do not open.
///
/// # Errors
/// The database did not respond.
pub async fn check(
    database: &Database,
    ring: &KeyRing,
    now: Timestamp,
) -> Result<Checked, DbError> {
    let (mut checked, mut last) = (Checked::default(), -1_i32);
    loop {
        let look = async |client: &Object| query(client, sql::ROTATE_LOOK, &[&last]).await;
        let rows: Vec<Row> = database.read(look).await?;
        for row in &rows {
            last = row.field("number")?;
            let (id, sealed): (&str, &[u8]) = (row.field("id")?, row.field("secrets")?);
            if let [_, number, ..] = sealed {
                let sealed_by = checked.in_use.entry(*number).or_default();
                *sealed_by = sealed_by.saturating_add(1);
            }
            match ring.open(id, sealed, now) {
                Ok(_) if ring.is_outdated(sealed) => {
                    checked.outdated = checked.outdated.saturating_add(1);
                }
                Ok(_) => {}
                Err(error) => {
                    log::warn("secrets cannot be opened")
                        .with("endpoint", id)
                        .because(&error)
                        .write();
                    checked.unreadable = checked.unreadable.saturating_add(1);
                }
            }
        }
        if rows.is_empty() {
            return Ok(checked);
        }
    }
}
