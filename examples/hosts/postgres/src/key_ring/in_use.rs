//! Which keys are in use. The database has a check value of each, so that a key is known by its content, not by its
//! number.
//!
//! A key is in use from the moment on when a process that has it may seal with it, until `rotate-keys` finds nothing that
//! it seals. A process adds its key only if its ring has all others that are in use.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use deadpool_postgres::{GenericClient, Object, Transaction};

use super::KeyRing;
use crate::db::{Address, Class, Database, DbError};
use crate::sql::ops as sql;
use host::store::Refused;

/// The keys in use that a ring does not have. It has them all where both are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unfit {
    /// Their numbers are not in the ring.
    pub(crate) lacking: BTreeSet<u8>,
    /// The ring has other keys under these numbers.
    pub(crate) other: BTreeSet<u8>,
}

impl Unfit {
    /// Returns whether the ring has each key that is in use.
    pub(crate) fn is_empty(&self) -> bool {
        self.lacking.is_empty() && self.other.is_empty()
    }

    /// Returns whether the ring does not have the key that sealed a text.
    pub(crate) fn is_of(&self, sealed: &[u8]) -> bool {
        sealed.get(1).is_some_and(|key| self.lacking.contains(key) || self.other.contains(key))
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let other = |n: &u8| {
            format!("key {n} of this ring is not key {n} of the running processes (wrong file?)")
        };
        let mut found: Vec<String> = self.other.iter().map(other).collect();
        if !self.lacking.is_empty() {
            let which: Vec<String> = self.lacking.iter().map(u8::to_string).collect();
            found.push(format!("the key ring lacks keys that are in use: {}", which.join(", ")));
        }
        f.write_str(&found.join("; "))
    }
}

/// Returns whether no key is in use: nothing is sealed, and any ring may begin.
pub(crate) async fn are_none(address: &Address) -> bool {
    let Ok(database) = Database::at(address, 1) else { return false };
    match database.read(async |client: &Object| known(client).await).await {
        Ok(known) => known.is_empty(),
        // It is not migrated.
        Err(error) => error.class() == Class::Schema,
    }
}

/// Compares a ring with the keys that are in use.
pub(crate) async fn compare(client: &impl GenericClient, ring: &KeyRing) -> Result<Unfit, DbError> {
    Ok(unfit(&known(client).await?, ring))
}

/// Notes that the ring's first key seals, in the transaction that seals with it.
///
/// # Errors
/// The ring does not have each key that is in use: nothing may be sealed.
pub(crate) async fn seal(change: &Transaction<'_>, ring: &KeyRing) -> Result<(), Refused> {
    sql::ring_begin(change).await?;
    loop {
        let known = known(change).await?;
        let unfit = unfit(&known, ring);
        if !unfit.is_empty() {
            let cure = "nothing is sealed: give this process the key ring of the other processes";
            return Err(Refused::Unfit(format!("{unfit}; {cure}")));
        }
        if known.contains_key(&ring.newest) {
            return Ok(());
        }
        let Some(value) = ring.checks.get(&ring.newest) else { return Ok(()) };
        let number = i16::from(ring.newest);
        // Where this adds nothing, another process has added a key: the ring is compared again.
        sql::ring_add(change, number, value).await?;
    }
}

/// Frees the numbers of keys that seal nothing.
pub(crate) async fn free(change: &Transaction<'_>, ring: &KeyRing) -> Result<(), DbError> {
    sql::ring_wait(change).await?;
    sql::ring_free(change, i16::from(ring.newest)).await.map(drop)
}

async fn known(client: &impl GenericClient) -> Result<BTreeMap<u8, Vec<u8>>, DbError> {
    let known = sql::ring_all(client).await?.into_iter();
    known.map(|(key, value)| Ok((u8::try_from(key).map_err(DbError::row)?, value))).collect()
}

fn unfit(known: &BTreeMap<u8, Vec<u8>>, ring: &KeyRing) -> Unfit {
    let mut unfit = Unfit::default();
    for (number, value) in known {
        match ring.checks.get(number) {
            None => _ = unfit.lacking.insert(*number),
            Some(own) if own.as_slice() != value => _ = unfit.other.insert(*number),
            Some(_) => {}
        }
    }
    unfit
}
