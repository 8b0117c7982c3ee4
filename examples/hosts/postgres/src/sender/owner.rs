//! The leases of this sender: tables behind the port.

use std::time::Duration;

use deadpool_postgres::Object;
use host::program::process;
use host::rows::{Done, Shards};
use host::sender::leases::{Claim, LEASE, LeaseRows, Renewal};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::clocks::Clocks;
use crate::counted::Counted;
use crate::db::statements as sql;
use crate::db::{At, Database, DbError, Fields as _, execute, query, query_opt};

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
        let lease: [&(dyn ToSql + Sync); 4] = [&self.sender, &shards, &epochs, &seconds];
        // No standby is waited for, so nobody else gets them meanwhile.
        let renew = async |client: &Object| query(client, sql::OWNERS_RENEW, &lease).await;
        let kept: Vec<Row> = self.database.read(renew).await?;

        // Until a standby knows of this one, too: by its count, one history is told from another. While that waits,
        // no result is stored either, so nothing begins.
        let pid = i64::from(std::process::id());
        let me: [&(dyn ToSql + Sync); 4] = [&self.sender, &seconds, &self.host, &pid];
        let live = async |client: &Object| query_opt(client, sql::OWNERS_LIVE, &me).await;
        let live = tokio::time::timeout(PROMPT, self.database.read(live)).await;
        let live: Option<Row> = live.unwrap_or(Err(DbError::TimedOut))?;
        let live = live.ok_or_else(|| DbError::row("a renewal without a row"))?;
        Ok(Renewal {
            kept: kept.iter().map(shard_of).collect::<Result<_, _>>()?,
            live: usize::try_from(live.field::<i64>("live")?).unwrap_or(1),
            count: live.field("renewals")?,
            timeline: live.field("timeline")?,
            at: live.field::<At>("at")?.0,
            others: live.field("others")?,
        })
    }

    async fn claim(&mut self, wanted: usize) -> Done<Vec<Claim>> {
        let (wanted, seconds) = (i64::try_from(wanted).unwrap_or(0), LEASE.as_secs_f64());
        let claim = async |client: &Object| {
            query(client, sql::OWNERS_CLAIM, &[&self.sender, &wanted, &seconds]).await
        };
        let claimed: Vec<Row> = self.database.read(claim).await?;
        let claim = |row: &Row| {
            let (shard, epoch) = (shard_of(row)?, row.field("epoch")?);
            Ok(Claim { shard, epoch, before: row.field("before")? })
        };
        Ok(claimed.iter().map(claim).collect::<Result<_, DbError>>()?)
    }

    async fn release(&mut self, shards: &Shards, leaves: bool) -> Done<()> {
        let (shards, epochs) = columns(shards);
        let released = self.database.change(async |change| {
            execute(change, sql::OWNERS_RELEASE, &[&self.sender, &shards, &epochs]).await?;
            if leaves {
                execute(change, sql::OWNERS_LEAVE, &[&self.sender]).await?;
            }
            Ok::<_, DbError>(())
        });
        Ok(released.await?)
    }
}

fn shard_of(row: &Row) -> Result<u16, DbError> {
    Ok(row.field::<i16>("shard")?.cast_unsigned())
}

fn columns(shards: &Shards) -> (Vec<i16>, Vec<i64>) {
    shards.iter().map(|(shard, epoch)| (shard.cast_signed(), *epoch)).unzip()
}
