//! The rows of a sender: tables behind the port.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::LimitOf;
use deadpool_postgres::Object;
use host::rows::{Changes, Done, Key, News, Rows as Port, SetLimit, Shards, ToBegin};
use host::{lock, log};

use super::change::numbers;
use super::poll::Seen;
use super::read::Reader;
use crate::db::{At, Database, DbError, OpenChange};
use crate::health::Counted;
use crate::key_ring::KeyRing;
use crate::sql::sender as sql;
use crate::sql::store::{self, SetLever};

/// How long a recovery waits for transactions that had begun before it. Events of one that is held open
/// for longer stay missed, until the next recovery.
const OLDER: Duration = Duration::from_secs(60);

/// The rows of a sender. Clones share them.
#[derive(Clone, Debug)]
pub struct Rows {
    database: Database,
    reader: Arc<Reader>,
    /// The levers that operators have set, as they were told last.
    told: Arc<Mutex<Names>>,
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
        let (limits, names) = levers(&self.database).await?;
        let mut told = lock(&self.told);
        tell(&told, &names);
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

/// The levers that are set, as they are told: by their numbers, what each holds back, and its limit.
type Names = BTreeMap<i64, (String, u32)>;

/// Reads the levers that operators have set.
async fn levers(database: &Database) -> Result<(Vec<SetLimit>, Names), DbError> {
    let all = async |client: &Object| store::levers(client, None).await;
    let (mut limits, mut names) = (Vec::new(), Names::new());
    for SetLever { account, endpoint, lever } in database.read(all).await? {
        let of = match (account, endpoint) {
            (Some(account), _) => LimitOf::Account(account.cast_unsigned()),
            (None, Some(endpoint)) => LimitOf::Endpoint(endpoint.cast_unsigned()),
            (None, None) => LimitOf::All,
        };
        // An id is not parsed: no pause may fail for one that cannot be.
        let name = match (lever.account_id, lever.endpoint_id) {
            (Some(account), _) => format!("account {account}"),
            (None, Some(endpoint)) => format!("endpoint {endpoint}"),
            (None, None) => "everything".to_owned(),
        };
        let per_second = lever.per_second.unsigned_abs();
        limits.push(SetLimit { of, per_second });
        names.insert(lever.id, (name, per_second));
    }
    Ok((limits, names))
}

/// Logs each lever that was set or undone, since it holds back what this sender would send.
fn tell(before: &Names, now: &Names) {
    let line = |message: &str, id: &i64, (on, per_second): &(String, u32)| {
        log::info!(lever = format!("lvr_{id}"), on, per_second, "{message}");
    };
    for (id, lever) in now.iter().filter(|(id, lever)| before.get(id) != Some(lever)) {
        line("a lever limits sending", id, lever);
    }
    for (id, lever) in before.iter().filter(|(id, _)| !now.contains_key(id)) {
        line("a lever is undone", id, lever);
    }
}
