//! A look at all that the service needs: what is found, how bad that is, and what to do.

use call_assistant::Timestamp;
use call_assistant::webhook::sender::RETENTION;
use deadpool_postgres::Object;
use serde::Serialize;

use super::ring;
use crate::clocks;
use crate::db::{self, Address, At, Class, Database, DbError, MigrationError};
use crate::health::{self, Login};
use crate::key_ring::KeyRing;
use crate::sql::{ops as sql, sender};
use crate::store::{Postgres, levers};
use host::store::levers::{Levers, ProcessRow};
use host::store::{Refused, Writes};

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub(crate) struct Check {
    pub(crate) what: &'static str,
    pub(crate) state: State,
    pub(crate) found: String,
    /// What to do. Empty where it is right.
    pub(crate) todo: &'static str,
    /// Whether the database gave no answer, so that nothing was looked at.
    #[serde(skip)]
    pub(crate) is_unanswered: bool,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    Ok,
    Warn,
    Fail,
}

use State::{Fail, Ok as Good, Warn};

/// How many seconds a clock may differ before it is worth a line.
const NOTED: f64 = 1.0;

/// How old the archive may be: an hour.
const ARCHIVE: i64 = 3600;

impl Check {
    fn new(what: &'static str, state: State, found: impl Into<String>, todo: &'static str) -> Self {
        let todo = if state == Good { "" } else { todo };
        Self { what, state, found: found.into(), todo, is_unanswered: false }
    }

    /// Makes a check that the database let fail.
    fn failed(what: &'static str, error: &DbError) -> Self {
        let is_unanswered = error.class().may_pass();
        Self { is_unanswered, ..Self::new(what, Fail, error.to_string(), error.class().todo()) }
    }

    /// Returns a line for people.
    pub(crate) fn line(&self) -> String {
        let Self { what, state, found, todo, .. } = self;
        let state = match state {
            Good => "ok",
            Warn => "warn",
            Fail => "fail",
        };
        let line = format!("{state:4}  {what:12}  {found}");
        if todo.is_empty() { line } else { format!("{line}: {todo}") }
    }
}

/// Looks at everything. Where the database is not as it has to be, at nothing behind it.
pub(crate) async fn look(
    address: &Address,
    ring: Option<&KeyRing>,
    login: Login,
    backup: bool,
) -> Vec<Check> {
    let database = match reach(address).await {
        Ok(database) => database,
        Err(check) => return vec![check],
    };
    let mut checks = vec![Check::new("database", Good, FITS, "")];
    let lacking = health::lacking(&database, login).await;
    checks.extend(of("rights", lacking, of_rights));
    checks.push(writes(address).await);
    let server = database.read(async |client: &Object| sql::doctor_server(client).await).await;
    checks.extend(of("server", server, |server| of_server(&server, backup)));
    checks.push(clock_of(&database).await);
    match ring {
        None => {
            let todo = "give --keys, or set SECRETS_KEY_RING, to check that every secret opens";
            checks.push(Check::new("ring", Warn, "not checked: no key ring is given", todo));
        }
        Some(ring) => {
            let checked = ring::check(&database, ring, database.now()).await;
            checks.extend(of("ring", checked, |checked| vec![of_ring(&checked)]));
        }
    }
    checks.extend(of("leases", of_work(&database).await, |found| found));
    match database.read(async |client: &Object| levers::all(client).await).await {
        Ok(found) => checks.extend(of_processes(&found, ring, database.now())),
        Err(Refused::Broken(_, why) | Refused::Unavailable(why)) => {
            checks.push(Check::new("processes", Fail, why, "see the server's log"));
        }
        Err(error) => checks.push(Check::new("processes", Fail, format!("{error:?}"), "")),
    }
    checks
}

const FITS: &str = "the database answers, and the schema has this version";

/// Returns the checks of what was read, or that it cannot be read.
fn of<T>(
    what: &'static str,
    read: Result<T, DbError>,
    checks: impl FnOnce(T) -> Vec<Check>,
) -> Vec<Check> {
    read.map_or_else(|error| vec![Check::failed(what, &error)], checks)
}

/// How long something may be due before it is worth a line, in seconds.
const LATE: f64 = 60.0;

/// Checks each process that lives, and each lever that is set.
fn of_processes(found: &Levers, ring: Option<&KeyRing>, now: Timestamp) -> Vec<Check> {
    let text =
        |ring: &KeyRing| ring.numbers().iter().map(u8::to_string).collect::<Vec<_>>().join(",");
    let own = ring.map(text);
    let mut checks = Vec::new();
    for process in &found.processes {
        let ahead = process.clock_ahead_seconds.unwrap_or_default();
        let host = process.host.as_deref().unwrap_or("?");
        let ProcessRow { id, role, version, pid, keys, late_seconds: late, .. } = process;
        let told = format!(
            "{role} {id} on {host}, pid {pid}, version {version}, keys {keys}, clock {ahead:.3} s ahead"
        );
        let (state, found, todo) = match &process.reason {
            Some(why) => (Warn, format!("{told}, not ready: {why}"), "see the log of the process"),
            None if ahead.abs() > NOTED => {
                (Warn, told, "run NTP on the host of this process and on the host of the database")
            }
            None if *late > LATE || process.unreadable > 0 => {
                let rows = process.unreadable;
                let late = format!("{told}, late by {late:.0} s, unreadable rows: {rows}");
                (Warn, late, "see the log of the process, and WebhooksLate in the runbook")
            }
            None if version != env!("CARGO_PKG_VERSION") => {
                (Warn, told, "complete the roll-out: this process runs another version")
            }
            None if own.as_ref().is_some_and(|own| own != keys) => (
                Warn,
                told,
                "give every process the same key ring, with the lines in the same order",
            ),
            None => (Good, told, ""),
        };
        checks.push(Check::new("process", state, found, todo));
    }
    if found.processes.is_empty() {
        checks.push(Check::new(
            "process",
            Warn,
            "no process is alive",
            "start an `api` and a `sender`",
        ));
    }
    for lever in &found.levers {
        let age = now.since(lever.set_at).as_secs();
        let found = format!("{}, {age} s ago", lever.words());
        checks.push(Check::new(
            "levers",
            Warn,
            found,
            "unless the lever is intended, run `levers undo`",
        ));
    }
    if found.levers.is_empty() {
        checks.push(Check::new("levers", Good, "no lever is set", ""));
    }
    checks
}

/// Reaches the database, and hears its clock.
async fn reach(address: &Address) -> Result<Database, Check> {
    let bad = |why, todo| Check::new("database", Fail, why, todo);
    let database = Database::at(address, 1).map_err(|error| bad(error, "check --database"))?;
    db::check(&database).await.map_err(|error| match error {
        MigrationError::Db(error) | MigrationError::NoDatabase(error) => {
            Check::failed("database", &error)
        }
        MigrationError::Missing(_) => {
            bad(error.to_string(), "migrate the database to this version")
        }
        MigrationError::Changed(_) => bad(
            error.to_string(),
            "use the version that has migrated the database: migrations must not be edited",
        ),
        MigrationError::Ignored(_) => bad(
            error.to_string(),
            "set it for the role, or name the server without the pooler in --database",
        ),
    })?;
    clocks::ask(&database).await.map_err(|error| Check::failed("database", &error))?;
    Ok(database)
}

fn of_rights(lacking: Vec<String>) -> Vec<Check> {
    if lacking.is_empty() {
        return vec![Check::new("rights", Good, "the login has every right that it needs", "")];
    }
    let each = |right| {
        Check::new("rights", Fail, format!("the login lacks a right: {right}"), Class::Right.todo())
    };
    lacking.into_iter().map(each).collect()
}

async fn writes(address: &Address) -> Check {
    let ready = match Postgres::at(address, KeyRing::none()) {
        Ok(store) => store.health.ready().await.map_err(|refused| match refused {
            Refused::Unavailable(why) | Refused::Broken(_, why) => why,
            other => format!("{other:?}"),
        }),
        Err(error) => Err(error),
    };
    let todo = "repair the standby, or remove the standby from synchronous_standby_names";
    match ready {
        Ok(Writes::Stored) => Check::new("writes", Good, "writes are acknowledged", ""),
        Ok(Writes::Waiting) => Check::new("writes", Fail, "writes wait for a standby server", todo),
        Err(error) => {
            Check::new("writes", Fail, error, "check the disk and the log of the database")
        }
    }
}

fn of_server(server: &sql::Server, backup: bool) -> Vec<Check> {
    let (version, connections, most) = (server.version, server.connections, server.max_connections);
    let (wal, checkpoint) = (server.max_wal_mb, server.checkpoint_seconds);
    let (naptime, ahead, standbys) = (server.naptime_seconds, server.days_ahead, server.standbys);
    let bad = |is_bad: bool, state: State| if is_bad { state } else { Good };
    let major = version / 10_000;
    let mut checks = vec![
        Check::new(
            "version",
            bad(major < 14, Fail),
            format!("PostgreSQL {major}"),
            "version 14 or later is required",
        ),
        Check::new(
            "connections",
            bad(connections > most.saturating_sub(10), Warn),
            format!("{connections} of max_connections = {most}, of all logins and databases"),
            "raise max_connections, or run fewer processes",
        ),
        Check::new(
            "fsync",
            bad(!server.survives_a_crash, Fail),
            "fsync and full_page_writes",
            "set both to on: a crash loses the database",
        ),
        Check::new(
            "commit",
            bad(server.loses_commits, Fail),
            "synchronous_commit",
            "set it to on: a crash loses accepted events",
        ),
        Check::new(
            "checkpoints",
            bad(wal < 8192 || checkpoint < 900, Warn),
            format!("max_wal_size = {wal}MB, checkpoint_timeout = {checkpoint}s"),
            "set 8GB and 15min: fewer checkpoints",
        ),
        Check::new(
            "autovacuum",
            bad(naptime > 10, Warn),
            format!("autovacuum_naptime = {naptime}s"),
            "set 10s: `deliveries` changes all the time",
        ),
        Check::new(
            "partitions",
            bad(ahead < 2, if ahead < 1 { Fail } else { Warn }),
            format!("partitions of future days: {ahead}"),
            "start an `api` or a `sender`, and see the log of the process",
        ),
    ];
    let is_synchronous = !server.standby_names.is_empty();
    let (state, todo) = match (is_synchronous, standbys) {
        (true, 0) => (
            Fail,
            "start the standby that synchronous_standby_names names, or set synchronous_standby_names to ''",
        ),
        (true, _) => (Good, ""),
        (false, _) => (
            Warn,
            "name a standby in synchronous_standby_names: otherwise a lost disk loses events",
        ),
    };
    let kind = if is_synchronous { "" } else { ", none of them synchronous" };
    checks.push(Check::new("standby", state, format!("{standbys} connected{kind}"), todo));
    if backup {
        let (mode, age) = (server.archive_mode.as_str(), server.archived_seconds_ago);
        let found = match age {
            _ if mode == "off" => "archive_mode = off".to_owned(),
            Some(age) => format!("the last file was archived {age} s ago"),
            None => "nothing was archived".to_owned(),
        };
        let (state, todo) = match (mode, server.archiving_fails, age) {
            ("off", ..) => (Warn, "PostgreSQL does not archive: check the backup tool"),
            (_, true, _) => (Fail, "archive_command fails: see the server's log"),
            (_, false, Some(..=ARCHIVE)) => (Good, ""),
            _ => (Warn, "set archive_timeout, unless nothing was written"),
        };
        checks.push(Check::new("backup", state, found, todo));
    }
    checks
}

async fn clock_of(database: &Database) -> Check {
    let todo = "run NTP on both hosts; with 30 s or more, a sender on this host would not send";
    match clocks::ask(database).await {
        Ok(heard) => {
            let ahead = heard.ahead().abs();
            let state = match ahead {
                _ if !heard.agrees() => Fail,
                NOTED.. => Warn,
                _ => Good,
            };
            Check::new("clock", state, format!("{ahead:.3} s from the database's"), todo)
        }
        Err(error) => Check::failed("clock", &error),
    }
}

fn of_ring(checked: &ring::Checked) -> Check {
    let (state, todo) = match (checked.unreadable, checked.outdated) {
        _ if !checked.other_keys.is_empty() => (Fail, ring::OTHER_RING),
        (1.., _) => (
            Fail,
            "add the key to the ring again before any rotation; if the row is damaged, run `endpoints rotate ID` or \
             `endpoints delete ID`; if the key is lost, `endpoints delete ID`, then `rotate-keys`",
        ),
        (0, 1..) => (Warn, "run `rotate-keys` before you remove an old line"),
        (0, 0) => (Good, ""),
    };
    Check::new("ring", state, checked.text(), todo)
}

/// Checks that somebody sends, and drops what is old.
async fn of_work(database: &Database) -> Result<Vec<Check>, DbError> {
    let now = At(database.now());
    let (state, (oldest,)) = database
        .read(async |client: &Object| {
            let state = sql::monitoring_state(client, db::latest_migration()).await?;
            Ok::<_, DbError>((state, sender::days_oldest(client, now).await?))
        })
        .await?;
    let unowned = state.unowned;
    let is_owned = if unowned == 0 { Good } else { Fail };
    let found = format!("shards without an owner: {unowned}");
    let todo = "start a `sender`: events of these shards wait";
    let mut checks = vec![Check::new("leases", is_owned, found, todo)];
    if let Some(days) = oldest.map(|seconds| seconds / 86_400) {
        let kept = RETENTION.as_secs() / 86_400;
        let is_late = u64::try_from(days).is_ok_and(|days| days > kept.saturating_add(2));
        checks.push(Check::new(
            "retention",
            if is_late { Warn } else { Good },
            format!("the oldest day is {days} days old"),
            "no sender runs, or the senders cannot drop the day: see their logs",
        ));
    }
    Ok(checks)
}
