//! The service's database, in memory: accounts, keys, calls, endpoints, deliveries.
//!
//! One lock stands for the database's transactions: what happens under it happens at once, and is
//! stored when the lock is released. It is never held while anything is awaited, or while what may
//! be large is read from JSON or written as JSON.

mod accounts;
mod alerts;
mod calls;
mod deliveries;
mod endpoints;
mod find;
mod fleet;
mod hour;
mod metrics;
mod recovery;
mod rows;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard};

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, CallId, CredentialId, DeliveryId, EndpointId};
use call_assistant::rest::Mode;
use call_assistant::rest::server::StoredKey;
use call_assistant::webhook::sender::SenderMetrics;

use host::clock::MovedClock;
use host::lock;
use host::store::{Done, EndpointLimit, NewAccount, Refused};
use tokio::sync::Notify;

pub use accounts::AccountRow;
use alerts::Alerts;
pub use calls::Calls;
pub use deliveries::DeliveryRow;
pub use endpoints::EndpointRow;
pub use hour::Hour;
use recovery::Recoveries;
pub use rows::Rows;

/// The database.
#[derive(Debug, Default)]
pub struct Store {
    tables: Mutex<Tables>,
    told: Notify,
    /// The time of this service.
    pub clock: MovedClock,
}

/// The tables.
#[derive(Debug, Default)]
pub struct Tables {
    accounts: BTreeMap<AccountId, AccountRow>,
    /// In the order in which they were added, which is the order they are shown in.
    order: Vec<AccountId>,
    /// By the digest of their secret, for the secrets themselves are not here.
    keys: HashMap<[u8; 32], StoredKey>,
    digests: HashMap<CredentialId, [u8; 32]>,
    /// Their place is the number that the planner knows them by. None is ever removed.
    endpoints: Vec<EndpointRow>,
    endpoint_numbers: HashMap<EndpointId, u32>,
    endpoint_limit: EndpointLimit,
    /// By the number that the planner knows them by: later ones have greater numbers.
    deliveries: BTreeMap<u64, DeliveryRow>,
    delivery_numbers: HashMap<DeliveryId, u64>,
    last_delivery: u64,
    /// Deliveries that became pending, and that the sender was not told of.
    told: BTreeSet<u64>,
    /// Whether the sender is being told of some.
    is_telling: bool,
    recoveries: Recoveries,
    alerts: Alerts,
    tally: SenderMetrics,
    /// Changes whenever anything that a page shows does.
    version: u64,
}

impl Store {
    /// Creates an empty store.
    pub fn new(endpoint_limit: EndpointLimit) -> Self {
        let tables = Tables { endpoint_limit, ..Tables::default() };
        Self { tables: Mutex::new(tables), told: Notify::new(), clock: MovedClock::default() }
    }

    /// Locks the tables, for as long as the guard lives.
    pub fn lock(&self) -> MutexGuard<'_, Tables> {
        lock(&self.tables)
    }

    /// Tells the sender that something became pending, once that is unlocked.
    pub fn tell(&self) {
        self.told.notify_one();
    }

    /// Waits until the sender is told.
    async fn told(&self) {
        self.told.notified().await;
    }

    /// Locks the tables to change, and returns the time of the change: what is changed later is not earlier.
    pub fn write(&self) -> (MutexGuard<'_, Tables>, Timestamp) {
        (self.lock(), self.now())
    }

    /// Returns the time of this service, which its sandbox moves.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

impl Tables {
    /// Changes whenever anything that a page shows does.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Says that something that a page shows has changed.
    pub fn changed(&mut self) {
        self.version = self.version.wrapping_add(1);
    }

    /// Adds an account.
    ///
    /// # Errors
    /// One with this id exists already.
    pub fn add_account(&mut self, account: AccountRow) -> Done<()> {
        if self.accounts.contains_key(&account.account.id) {
            return Err(Refused::Conflict("an account with this id already exists".into()));
        }
        self.order.push(account.account.id.clone());
        self.accounts.insert(account.account.id.clone(), account);
        self.changed();
        Ok(())
    }

    /// Adds an account to begin with, and all that is in it.
    ///
    /// # Errors
    /// It is not consistent with what is there.
    pub fn load(&mut self, new: NewAccount, now: Timestamp) -> Done<()> {
        let mut row = AccountRow::new(new.account);
        for (mode, calls) in [(Mode::Live, new.calls), (Mode::Test, new.test_calls)] {
            for call in calls {
                row.calls_mut(mode).add(call)?;
            }
        }
        self.add_account(row)?;
        for (key, _) in new.keys {
            self.add_key(key)?;
        }
        for endpoint in new.endpoints {
            self.add_endpoint(endpoint, now)?;
        }
        Ok(())
    }

    /// Returns every account, in the order in which they were added.
    pub fn accounts(&self) -> impl Iterator<Item = &AccountRow> {
        self.order.iter().filter_map(|id| self.accounts.get(id))
    }

    /// Returns one account.
    ///
    /// # Errors
    /// It does not exist.
    pub fn account(&self, id: &str) -> Done<&AccountRow> {
        self.accounts.get(id).ok_or(Refused::NotFound("account"))
    }

    /// Returns one account, to change.
    ///
    /// # Errors
    /// It does not exist.
    pub fn account_mut(&mut self, id: &str) -> Done<&mut AccountRow> {
        self.changed();
        self.accounts.get_mut(id).ok_or(Refused::NotFound("account"))
    }

    /// Adds a key to its account.
    ///
    /// # Errors
    /// There is no such account, or the same secret is a key's already.
    pub fn add_key(&mut self, key: StoredKey) -> Done<()> {
        if self.digests.contains_key(&key.id) || self.keys.contains_key(key.digest.as_bytes()) {
            return Err(Refused::Conflict("a key with this id or secret already exists".into()));
        }
        self.account_mut(key.account_id.as_str())?.keys.push(key.id.clone());
        self.digests.insert(key.id.clone(), *key.digest.as_bytes());
        self.keys.insert(*key.digest.as_bytes(), key);
        Ok(())
    }

    /// Returns the keys of an account, oldest first.
    pub fn keys(&self, account: &AccountRow) -> impl Iterator<Item = &StoredKey> {
        self.keys_from(account, 0)
    }

    /// Returns the keys of an account from this place on, oldest first.
    pub fn keys_from(
        &self,
        account: &AccountRow,
        place: usize,
    ) -> impl Iterator<Item = &StoredKey> {
        account.keys.iter().skip(place).filter_map(|id| self.keys.get(self.digests.get(id)?))
    }

    /// Returns one key.
    ///
    /// # Errors
    /// It does not exist.
    pub fn key(&self, id: &str) -> Done<&StoredKey> {
        let digest = self.digests.get(id).ok_or(Refused::NotFound("key"))?;
        self.keys.get(digest).ok_or(Refused::NotFound("key"))
    }

    /// Returns one key, to change.
    ///
    /// # Errors
    /// It does not exist.
    pub fn key_mut(&mut self, id: &str) -> Done<&mut StoredKey> {
        self.changed();
        let digest = self.digests.get(id).ok_or(Refused::NotFound("key"))?;
        self.keys.get_mut(digest).ok_or(Refused::NotFound("key"))
    }

    /// Returns the key with this secret, to note that it is used.
    pub fn key_of(&mut self, digest: &[u8; 32]) -> Option<&mut StoredKey> {
        self.keys.get_mut(digest)
    }

    /// Tells whether an account has a call of this id, in whichever mode.
    pub fn has_call(&self, account: &AccountRow, id: &CallId) -> bool {
        [Mode::Live, Mode::Test].iter().any(|mode| account.calls(*mode).find(id).is_some())
    }
}
