//! The rows of a sender: tables behind the port.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use call_assistant::Timestamp;
use deadpool_postgres::Object;
use host::rows::{Changes, Done, Key, News, Rows as Port, SetLimit, Shards, ToBegin};

use super::change::numbers;
use super::levers;
use super::poll::Seen;
use super::read::Reader;
use crate::db::{At, Database, OpenChange};
use crate::health::Counted;
use crate::key_ring::KeyRing;
use crate::sql::sender as sql;

/// How long a recovery waits for transactions that had begun before it. Events of one that is held open
/// for longer stay missed, until the next recovery.
const OLDER: Duration = Duration::from_secs(60);

/// The rows of a sender. Clones share them.
#[derive(Clone, Debug)]
pub struct Rows {
    database: Database,
    reader: Arc<Reader>,
    /// The levers that operators have set, as they were told last.
    told: Arc<Mutex<levers::Names>>,
}

impl Rows {
    /// Creates the rows of a sender, which calls loopback addresses only where they are allowed.
    pub fn new(database: Database, ring: KeyRing, allow_loopback: bool, counted: Counted) -> Self {
        let kept = Mutex::default();
        let reader = Reader { database: database.clone(), ring, allow_loopback, counted, kept };
        Self { database, reader: Arc::new(reader), told: Arc::default() }
    }
}

impl Changes for Rows {
    type Change = OpenChange;

    async fn change(&self) -> Done<OpenChange> {
        Ok(self.database.begin().await?)
    }
}

impl Port for Rows {
    type Seen = Seen;

    async fn news(&self, shards: &Shards, seen: &mut Seen) -> Done<News> {
        Ok(seen.look((&self.database, &self.reader.counted), shards).await?)
    }

    async fn limits(&self) -> Done<Vec<SetLimit>> {
        let (limits, names) = levers::read(&self.database).await?;
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        levers::tell(&told, &names);
        *told = names;
        Ok(limits)
    }

    async fn to_begin(&self, keys: &[Key], now: Timestamp) -> Done<Vec<Option<ToBegin>>> {
        Ok(self.reader.read(keys, now).await?)
    }

    async fn recoveries(&self, shards: &Shards, now: Timestamp) -> Done<Vec<u64>> {
        let (shards, waited) = (numbers(shards), At(now.saturating_sub(OLDER)));
        let running =
            async |client: &Object| sql::running_recoveries(client, &shards, waited).await;
        Ok(self.database.read(running).await?.into_iter().map(i64::cast_unsigned).collect())
    }
}
