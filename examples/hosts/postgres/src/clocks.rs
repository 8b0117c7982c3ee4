//! Compares this process's clock with the database's, and with what other processes say of theirs.
//!
//! A sender whose clock is wrong signs what nobody accepts. It cannot tell its own clock from the
//! database's, so every process shares in `clocks` how far it is ahead. If any of them agrees with the
//! database, or they differ from each other, then the clock of who differs is wrong. If all of them
//! differ alike, the database's is. A process without another to ask takes its own for wrong: what it
//! does not send can be sent later.

use std::error::Error;
use std::time::Duration;

use call_assistant::Timestamp;
use deadpool_postgres::Object;
use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::clock::{self, database::Heard};
use crate::counted::{Compared, Counted};
use crate::db::statements as sql;
use crate::db::{self, Address, At, Database, DbError, Fields as _, query, query_opt};
use host::log;

/// The greatest difference of a clock that is right: 30 seconds, a tenth of what receivers accept.
const TOLERANCE: Duration = Duration::from_secs(30);

/// How often a process looks, and how long what it has said holds.
const EVERY: Duration = Duration::from_secs(1);
const LEASE: Duration = Duration::from_secs(5);

/// A database that takes longer to say its time is asked again, twice at most.
const PROMPT: Duration = Duration::from_millis(1);

/// The clock of this process beside the database's.
#[derive(Debug)]
pub(crate) struct Clocks {
    database: Database,
    id: String,
    counted: Counted,
    last: Verdict,
}

/// A clock that this process's was compared with: what it showed, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reference {
    when: Instant,
    at: Timestamp,
}

impl Reference {
    /// Returns whether this process's clock still agrees: it may be set between two looks.
    pub(crate) fn agrees(&self) -> bool {
        let (expected, now) = (self.at.saturating_add(self.when.elapsed()), clock::now());
        now.since(expected).max(expected.since(now)) <= TOLERANCE
    }
}

/// Whose clock is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Nobodys,
    Own,
    Databases,
}

/// What the database's clock showed, and how far this process's was ahead, in microseconds.
#[derive(Clone, Copy, Debug)]
struct Measured {
    when: Instant,
    at: Timestamp,
    ahead_us: i64,
    took: Duration,
}

impl Clocks {
    /// Creates the clock of a process with this name.
    pub(crate) fn new(database: Database, id: String, counted: Counted) -> Self {
        Self { database, id, counted, last: Verdict::Nobodys }
    }

    /// Looks for as long as the process runs, and says what is wrong.
    pub(crate) async fn keep(mut self) {
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            log::tried("clocks", &self.look().await);
        }
    }

    /// Measures, and hears the others. Returns what this process's clock has to agree with, or `None`
    /// if it is wrong.
    pub(crate) async fn look(&mut self) -> Result<Option<Reference>, DbError> {
        let measured = measure(&self.database).await?;
        let lease = LEASE.as_secs_f64();
        let others = self
            .database
            .read(async |client: &Object| {
                let said: [&(dyn ToSql + Sync); 3] = [&self.id, &measured.ahead_us, &lease];
                let rows: Vec<Row> = query(client, sql::CLOCKS_SHARE, &said).await?;
                rows.iter().map(|row| row.field("ahead_us")).collect::<Result<Vec<i64>, DbError>>()
            })
            .await?;
        let verdict = judge(measured.ahead_us, &others);
        self.counted.round("clocks");
        self.tell(verdict, measured.ahead_us, others.len());
        let Measured { when, at, .. } = measured;
        Ok(match verdict {
            Verdict::Nobodys => Some(Reference { when, at }),
            Verdict::Own => None,
            Verdict::Databases => Some(Reference { when: Instant::now(), at: clock::now() }),
        })
    }

    fn tell(&mut self, verdict: Verdict, ahead_us: i64, others: usize) {
        let ahead = Duration::from_micros(ahead_us.unsigned_abs()).as_secs_f64();
        let ahead = if ahead_us < 0 { -ahead } else { ahead };
        let database_is_wrong = verdict == Verdict::Databases;
        self.counted.compared(Compared { ahead, database_is_wrong });
        if verdict != std::mem::replace(&mut self.last, verdict) {
            let what = match verdict {
                Verdict::Nobodys => "and agrees".to_owned(),
                Verdict::Own => "and is wrong".to_owned(),
                Verdict::Databases => format!(
                    "and {others} other processes say the same of theirs: the database's is wrong"
                ),
            };
            let message =
                format!("this process's clock is {ahead:.3} s ahead of the database's, {what}");
            match verdict {
                Verdict::Nobodys => log::info(message).write(),
                Verdict::Own | Verdict::Databases => log::error(message).write(),
            }
        }
    }
}

/// Returns a database of one connection, for a command: it has what this build needs, and its clock was heard.
///
/// # Errors
/// The database did not respond, or is not of this version.
pub(crate) async fn reach(address: &Address) -> Result<Database, Box<dyn Error>> {
    let database = Database::at(address, 1)?;
    db::check(&database).await?;
    hear(&database).await?;
    Ok(database)
}

/// Hears the database's clock, for [`clock::database`], and returns how far this process's is from it.
pub(crate) async fn hear(database: &Database) -> Result<Duration, DbError> {
    Ok(Duration::from_micros(measure(database).await?.ahead_us.unsigned_abs()))
}

async fn measure(database: &Database) -> Result<Measured, DbError> {
    let measured = database
        .read(async |client: &Object| {
            let mut best = once(client).await?;
            for _ in 0..2 {
                if best.took <= PROMPT {
                    break;
                }
                let next = once(client).await?;
                best = if next.took < best.took { next } else { best };
            }
            Ok::<_, DbError>(best)
        })
        .await?;
    let Measured { when, at, took, .. } = measured;
    clock::database::hear(Heard { when: when.into_std(), at, error: took.mul_f64(0.5) });
    Ok(measured)
}

/// Measures once. The database's clock is taken to have been read in the middle of the round trip.
async fn once(client: &Object) -> Result<Measured, DbError> {
    let (began, before) = (Instant::now(), clock::now());
    let row = query_opt(client, sql::CLOCKS_NOW, &[]).await?;
    let took = began.elapsed();
    let at = row.ok_or_else(|| DbError::row("a clock without a row"))?.field::<At>("at")?.0;
    let half = took.mul_f64(0.5);
    let own = before.saturating_add(half);
    let ahead_us = own.unix_micros().saturating_sub(at.unix_micros());
    Ok(Measured { when: began.checked_add(half).unwrap_or(began), at, ahead_us, took })
}

/// Judges whose clock is wrong, by how far each is ahead of the database's.
fn judge(own: i64, others: &[i64]) -> Verdict {
    let differ = |one: i64, other: i64| {
        Duration::from_micros(one.saturating_sub(other).unsigned_abs()) > TOLERANCE
    };
    let are_alike = |other: &i64| differ(*other, 0) && !differ(own, *other);
    match (differ(own, 0), others) {
        (false, _) => Verdict::Nobodys,
        (true, [_, ..]) if others.iter().all(are_alike) => Verdict::Databases,
        (true, _) => Verdict::Own,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects)]

    use super::{Verdict, judge};

    // D-86
    #[test]
    fn who_differs_from_all_is_wrong() {
        for (own, others, expected) in [
            (0, &[][..], Verdict::Nobodys),
            (30, &[-1200, 1200], Verdict::Nobodys),
            (-31, &[], Verdict::Own),
            (31, &[29], Verdict::Own),
            (1200, &[1200, 1190, 0], Verdict::Own),
            (1200, &[1200, -1200], Verdict::Own),
            (1200, &[1200, 1169], Verdict::Own),
            (1200, &[1200, 1170], Verdict::Databases),
            (-40, &[-31], Verdict::Databases),
            (i64::MAX / 1_000_000, &[i64::MIN / 1_000_000], Verdict::Own),
        ] {
            let others: Vec<i64> = others.iter().map(|other| other * 1_000_000).collect();
            assert_eq!(judge(own * 1_000_000, &others), expected, "{own}, {others:?}");
        }
    }
}
