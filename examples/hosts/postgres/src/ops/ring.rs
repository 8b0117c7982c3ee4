//! Every sealed secret: opened, to see whether a ring has all keys, and sealed again with the newest.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};

use call_assistant::Timestamp;
use deadpool_postgres::{Object, Transaction};
use serde::Serialize;

use crate::db::{Database, DbError};
use crate::key_ring::KeyRing;
use crate::key_ring::in_use::{self, Unfit};
use crate::sql::{ops as sql, store};
use host::log;
use host::store::Refused;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// How many endpoints' secrets each key seals, by its number.
    pub in_use: BTreeMap<u8, u64>,
    /// Endpoints whose secrets do not open with any key of the ring.
    pub unreadable: u64,
    /// The first [`MOST_NAMED`] of them.
    #[serde(rename = "endpoints")]
    pub named: Vec<Unreadable>,
    /// Endpoints whose secrets open, and are not sealed with the newest key.
    pub outdated: u64,
    /// The numbers under which the ring has another key than the running processes.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub other_keys: BTreeSet<u8>,
}

/// An endpoint whose secrets do not open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unreadable {
    /// Its id.
    #[serde(rename = "endpoint_id")]
    pub endpoint: String,
    /// The number of the key that the secrets name.
    pub key: Option<u8>,
    /// Whether the ring does not have that key, or has another one under its number, or the row is damaged.
    pub cause: &'static str,
}

/// The advice for a ring that is another one.
pub const OTHER_RING: &str = "give the key ring of the running processes, which their --keys or SECRETS_KEY_RING names; nothing is damaged";

/// The most endpoints that are named: 20. The log names all.
pub const MOST_NAMED: usize = 20;

impl Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "endpoint {} (", self.endpoint)?;
        if let Some(key) = self.key {
            write!(f, "key {key}, ")?;
        }
        write!(f, "{})", self.cause)
    }
}

impl Checked {
    /// Returns a sentence.
    #[must_use]
    pub fn text(&self) -> String {
        let keys =
            self.in_use.iter().map(|(number, sealed)| format!("key {number} seals {sealed}"));
        let keys = keys.collect::<Vec<_>>().join(", ");
        if !self.other_keys.is_empty() {
            let other = self.other_keys.clone();
            return Unfit { other, ..Unfit::default() }.to_string();
        }
        match (keys.is_empty(), self.unreadable) {
            (true, _) => "no secrets are stored".to_owned(),
            (false, 0) => format!("every secret opens: {keys}"),
            (false, unreadable) => {
                let named: Vec<String> = self.named.iter().map(ToString::to_string).collect();
                let is_all = u64::try_from(named.len()).is_ok_and(|named| named == unreadable);
                let more = if is_all { "" } else { ", and more" };
                let named = named.join(", ");
                let secrets = if unreadable == 1 { "secret does" } else { "secrets do" };
                format!("{unreadable} {secrets} not open: {named}{more}; {keys}")
            }
        }
    }
}

/// Opens the secrets of every endpoint that is not deleted, a hundred at a time. The log names those that do not open, but
/// for those of a key under whose number the ring has another one.
///
/// # Errors
/// The database did not respond.
pub async fn check(
    database: &Database,
    ring: &KeyRing,
    now: Timestamp,
) -> Result<Checked, DbError> {
    let unfit = database.read(async |client: &Object| in_use::compare(client, ring).await).await?;
    let other_keys = unfit.other.clone();
    let (mut checked, mut last) = (Checked { other_keys, ..Checked::default() }, -1_i32);
    loop {
        let look = async |client: &Object| sql::rotate_look(client, last).await;
        let rows = database.read(look).await?;
        for sql::Sealed { number, id, secrets } in &rows {
            last = *number;
            let (id, sealed) = (id.as_str(), secrets.as_slice());
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
                    let key = sealed.get(1).copied();
                    let is_other = key.is_some_and(|key| unfit.other.contains(&key));
                    if !is_other {
                        log::warn!(endpoint = id, %error, "secrets cannot be opened");
                    }
                    checked.unreadable = checked.unreadable.saturating_add(1);
                    if checked.named.len() < MOST_NAMED {
                        let cause = match unfit.is_of(sealed) {
                            true if is_other => "another key in the ring",
                            true => "not in the ring",
                            false => "damaged",
                        };
                        let endpoint = id.to_owned();
                        checked.named.push(Unreadable { endpoint, key, cause });
                    }
                }
            }
        }
        if rows.is_empty() {
            return Ok(checked);
        }
    }
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rotated {
    /// Endpoints whose secrets are sealed with the newest key now.
    pub sealed: u64,
    /// Endpoints, but deleted ones, whose secrets do not open with any key of the ring. They stay as they are.
    pub unreadable: u64,
}

/// Seals again what is not sealed with the newest key, a few endpoints at a time. It may be called
/// again, and runs beside everything else.
///
/// # Errors
/// The database did not respond: call again. Or the ring does not have each key that is in use.
pub async fn rotate(
    database: &Database,
    ring: &KeyRing,
    now: Timestamp,
) -> Result<Rotated, Refused> {
    let (mut rotated, mut last) = (Rotated::default(), -1);
    let free = async || database.change(async |change| in_use::free(change, ring).await).await;
    // Before, too: no key has to be in the ring that seals nothing.
    free().await?;
    database.change(async |change| in_use::seal(change, ring).await).await?;
    loop {
        let (next, page) =
            database.change(async |change| page(change, ring, last, now).await).await?;
        rotated.sealed = rotated.sealed.saturating_add(page.sealed);
        rotated.unreadable = rotated.unreadable.saturating_add(page.unreadable);
        match next {
            Some(next) => last = next,
            None => break,
        }
    }
    free().await?;
    Ok(rotated)
}

/// Seals a page of endpoints again. Returns the last number of the page, or `None` if it was empty.
async fn page(
    change: &Transaction<'_>,
    ring: &KeyRing,
    last: i32,
    now: Timestamp,
) -> Result<(Option<i32>, Rotated), Refused> {
    in_use::seal(change, ring).await?;
    // Locked, for a secret may be replaced at the same time.
    let rows = sql::rotate_read(change, last).await?;
    let mut page = Rotated::default();
    for sql::Locked { is_deleted, sealed: row } in &rows {
        let (id, sealed) = (row.id.as_str(), row.secrets.as_slice());
        if !ring.is_outdated(sealed) {
            continue;
        }
        match ring.open(id, sealed, now) {
            Ok(secrets) => {
                let sealed = ring.seal(id, &secrets, now);
                store::endpoints_secrets(change, row.number, &sealed).await?;
                page.sealed = page.sealed.saturating_add(1);
            }
            // It signs nothing any more.
            Err(_) if *is_deleted => {}
            Err(error) => {
                log::warn!(endpoint = id, %error, "its secrets are not sealed again");
                page.unreadable = page.unreadable.saturating_add(1);
            }
        }
    }
    Ok((rows.last().map(|row| row.sealed.number), page))
}
