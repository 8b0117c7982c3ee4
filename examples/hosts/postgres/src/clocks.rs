//! Compares this process's clock with the database's.
//!
//! A sender whose clock differs by more than 30 seconds begins nothing, whichever of the two is wrong:
//! receivers refuse a wrong time, and what is not sent can be sent later.

use std::error::Error;
use std::time::Duration;

use deadpool_postgres::Object;
use tokio::time::Instant;

use crate::clock::Heard;
use crate::db::{self, Address, Database, DbError};
use crate::health::Counted;
use crate::sql::accept as sql;
use host::log;

/// How often a process looks: once a second.
const EVERY: Duration = Duration::from_secs(1);

/// A database that takes longer to say its time is asked again, twice at most.
const PROMPT: Duration = Duration::from_millis(1);

/// The clock of this process beside the database's.
#[derive(Debug)]
pub(crate) struct Clocks {
    database: Database,
    counted: Counted,
    differ: bool,
}

impl Clocks {
    /// Creates the comparison.
    pub(crate) fn new(database: Database, counted: Counted) -> Self {
        Self { database, counted, differ: false }
    }

    /// Looks for as long as the process runs, and says whether the clocks differ.
    pub(crate) async fn keep(mut self) {
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            log::tried("clocks", &self.look().await);
        }
    }

    /// Asks the database its time, and tells whether this process's clock agrees.
    pub(crate) async fn look(&mut self) -> Result<bool, DbError> {
        let heard = ask(&self.database).await?;
        self.counted.round("clocks");
        let (ahead, differ) = (heard.ahead(), !heard.agrees());
        self.counted.clock_is_ahead(ahead);
        if differ != std::mem::replace(&mut self.differ, differ) {
            let begins = format!("this process's clock is {ahead:.3} s ahead of the database's");
            match differ {
                true => log::error!("{begins}, and one of the two is wrong"),
                false => log::info!("{begins}, and agrees"),
            }
        }
        Ok(!differ)
    }
}

/// Returns a database of one connection, for a command: it has what this build needs, and its clock was heard.
///
/// # Errors
/// The database did not respond, or is not of this version.
pub(crate) async fn reach(address: &Address) -> Result<Database, Box<dyn Error>> {
    let database = Database::at(address, 1)?;
    db::check(&database).await?;
    ask(&database).await?;
    Ok(database)
}

/// Asks the database its time, for [`Database::now`] too.
pub(crate) async fn ask(database: &Database) -> Result<Heard, DbError> {
    let heard = database
        .read(async |client: &Object| {
            let mut best = once(client).await?;
            for _ in 0..2 {
                if best.error <= PROMPT.mul_f64(0.5) {
                    break;
                }
                let next = once(client).await?;
                best = if next.error < best.error { next } else { best };
            }
            Ok::<_, DbError>(best)
        })
        .await?;
    database.clock().hear(heard);
    Ok(heard)
}

/// Asks once. The database's clock is taken to have been read in the middle of the round trip.
async fn once(client: &Object) -> Result<Heard, DbError> {
    let began = Instant::now();
    let at = sql::now(client).await?.at;
    let half = began.elapsed().mul_f64(0.5);
    let when = began.checked_add(half).unwrap_or(began);
    Ok(Heard { when, at, error: half })
}
