//! The leases of this sender: tables behind the port.

use std::time::Duration;

use deadpool_postgres::Object;
use host::program::process;
use host::rows::{Done, Shards};
use host::sender::leases::{Claim, LEASE, LeaseRows, Renewal};

use crate::clocks::Clocks;
use crate::db::{Database, DbError};
use crate::health::Counted;
use crate::sql::owners as sql;

/// How long a standby may take to know of a renewal: 1.5 s. The next one comes while the leases last.
const PROMPT: Duration = Duration::from_millis(1500);

const WRONG_CLOCK: &str =
    "this process's clock and the database's differ: its sender begins nothing";

/// The leases of a sender, in the database.
#[derive(Debug)]
pub(super) struct Leased {
    database: Database,
    clocks: Clocks,
    counted: Counted,
    sender: String,
    /// The host's name.
    host: Option<String>,
}

impl Leased {
    /// Creates the leases of the sender with this name.
    pub(super) fn new(database: Database, sender: String, counted: Counted) -> Self {
        let clocks = Clocks::new(database.clone(), counted.clone());
        Self { database, clocks, counted, sender, host: process::host_name() }
    }
}

impl LeaseRows for Leased {
    async fn agrees(&mut self) -> Done<bool> {
        let agrees = self.clocks.look().await?;
        self.counted.idles((!agrees).then_some(WRONG_CLOCK));
        Ok(agrees)
    }

    async fn renew(&mut self, held: &Shards) -> Done<Renewal> {
        let (seconds, (shards, epochs)) = (LEASE.as_secs_f64(), columns(held));
        // No standby is waited for, so nobody else gets them meanwhile.
        let renew = async |client: &Object| {
            sql::renew(client, &self.sender, &shards, &epochs, seconds).await
        };
        let kept = self.database.read(renew).await?;

        // Until a standby knows of this one, too: by its count, one history is told from another. While that waits,
        // no result is stored either, so nothing begins.
        let pid = i64::from(std::process::id());
        let live = async |client: &Object| {
            sql::live(client, &self.sender, seconds, self.host.as_deref(), pid).await
        };
        let live = tokio::time::timeout(PROMPT, self.database.read(live)).await;
        let sql::Renewed { live, renewals: count, timeline, at, others } =
            live.unwrap_or(Err(DbError::TimedOut))?;
        let kept = kept.into_iter().map(i16::cast_unsigned).collect();
        let live = usize::try_from(live).unwrap_or(1);
        Ok(Renewal { kept, live, count, timeline, at, others })
    }

    async fn claim(&mut self, wanted: usize) -> Done<Vec<Claim>> {
        let (wanted, seconds) = (i64::try_from(wanted).unwrap_or(0), LEASE.as_secs_f64());
        let claim = async |client: &Object| sql::claim(client, &self.sender, wanted, seconds).await;
        let claimed = self.database.read(claim).await?.into_iter();
        let claim = |(shard, epoch, before): (i16, i64, Option<String>)| {
            let shard = shard.cast_unsigned();
            Claim { shard, epoch, before }
        };
        Ok(claimed.map(claim).collect())
    }

    async fn release(&mut self, shards: &Shards, leaves: bool) -> Done<()> {
        let (shards, epochs) = columns(shards);
        let released = self.database.change(async |change| {
            sql::release(change, &self.sender, &shards, &epochs).await?;
            if leaves {
                sql::leave(change, &self.sender).await?;
            }
            Ok::<_, DbError>(())
        });
        Ok(released.await?)
    }
}

fn columns(shards: &Shards) -> (Vec<i16>, Vec<i64>) {
    shards.iter().map(|(shard, epoch)| (shard.cast_signed(), *epoch)).unzip()
}
