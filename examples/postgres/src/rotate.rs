//! Sealing signing secrets again, with the newest key of the ring.
//!
//! Customers notice nothing: their secrets stay. Every process must have the new ring before this,
//! and needs the old keys until it has ended.

use call_assistant::Timestamp;
use serde_json::{Value, json};

use crate::db::{Database, DbError, execute, query, within};
use crate::key_ring::KeyRing;
use crate::support::log;

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rotated {
    /// Endpoints whose secrets are sealed with the newest key now.
    pub sealed: u64,
    /// Endpoints whose secrets do not open with any key of the ring. They stay as they are.
    pub unreadable: u64,
}

impl Rotated {
    /// As a line of JSON.
    #[must_use]
    pub fn line(&self) -> Value {
        json!({ "sealed": self.sealed, "unreadable": self.unreadable })
    }
}

/// Seals again what is not sealed with the newest key, a few endpoints at a time. It may be called
/// again, and runs beside everything else.
///
/// # Errors
/// The database gave no answer: call again.
pub async fn keys(database: &Database, ring: &KeyRing, now: Timestamp) -> Result<Rotated, DbError> {
    let (mut rotated, mut last) = (Rotated::default(), -1);
    loop {
        let some = within(async {
            let mut session = database.session().await?;
            let change = session.transaction().await?;
            // Locked, for a secret may be replaced at the same time.
            let rows = query(&change, include_str!("../sql/rotate_read.sql"), &[&last]).await?;
            let mut some = Rotated::default();
            for row in &rows {
                let (number, id): (i32, &str) = (row.try_get("number")?, row.try_get("id")?);
                let sealed: &[u8] = row.try_get("secrets")?;
                if !ring.is_outdated(sealed) {
                    continue;
                }
                match ring.open(id, sealed, now) {
                    Ok(secrets) => {
                        let sealed = ring.seal(id, &secrets, now);
                        let write = include_str!("../sql/endpoint_secrets.sql");
                        execute(&change, write, &[&number, &sealed]).await?;
                        some.sealed += 1;
                    }
                    Err(error) => {
                        log::line(&format!("endpoint {id}: {error}"));
                        some.unreadable += 1;
                    }
                }
            }
            change.commit().await?;
            session.keep();
            let next = rows.last().map(|row| row.try_get::<_, i32>("number")).transpose()?;
            Ok::<_, DbError>((next, some))
        });
        let (next, some) = some.await?;
        rotated.sealed += some.sealed;
        rotated.unreadable += some.unreadable;
        match next {
            Some(next) => last = next,
            None => return Ok(rotated),
        }
    }
}
