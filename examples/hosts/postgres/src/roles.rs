//! The program's roles, one for each subcommand.

use std::error::Error;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::id::AccountId;
use call_assistant::webhook::sender::RecoveryFilter;
use serde_json::{Map, Value, json};

use crate::cli::{self, Ring, Role};
use crate::clocks::{self, Clocks};
use crate::db::{self, Address, Class, Database, DbError, MigrationError};
use crate::exit::{self, Ended};
use crate::health::{Login, Process};
use crate::journal::Deed;
use crate::key_ring::{KeyRing, VARIABLE};
use crate::ops::doctor::{self, State};
use crate::ops::erase::{self, EraseError, Patience};
use crate::ops::ring::OTHER_RING;
use crate::ops::{ask, ring};
use crate::{clock, sender, serving, store};
use host::data::{self, demo};
use host::flags::{last_words, wrong};
use host::options::{self, Sending, Serving};
use host::program::first_line::Shown;
use host::program::watch::Watch;
use host::rows::Failure;
use host::{log, terminal};

/// A function that starts a database server for `demo`. It returns the URL, and a value that ends the server when it is
/// dropped.
pub type OwnServer = fn() -> Result<(String, Box<dyn Send>), String>;

/// Runs the program: reads the command line, and ends with the role's exit status.
pub fn main(own_server: OwnServer) {
    let role = cli::read();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let ended = match runtime {
        Ok(runtime) => {
            let ended = runtime.block_on(run(role, own_server));
            // A name that is still being looked up holds nobody up, nor does an unread line.
            runtime.shutdown_background();
            ended
        }
        Err(error) => Err(error.into()),
    };
    log::flush();
    match ended {
        Ok(0) => {}
        Ok(status) => std::process::exit(status),
        Err(error) => {
            last_words(&format!("call-assistant-postgres: {error}"));
            std::process::exit(status(&*error));
        }
    }
}

/// What to do where a secret did not open.
const UNREADABLE: &str = "some secrets open with no key of the ring, and have not changed; the log names their endpoints. Add \
                          the missing key to the ring, and run the command again; or delete or rotate these \
                          endpoints. Until then, remove no line from the ring";

/// Runs a role, and returns the exit status.
async fn run(role: Role, own_server: OwnServer) -> Result<i32, Box<dyn Error>> {
    match role {
        Role::Keygen { number } => exit::print(KeyRing::new_line(number))?,
        Role::Erase { database, user, account, which } => {
            let (account, by) = (account.as_str(), user.by());
            let (which, subject) = which.read();
            let database = clocks::reach(&database.address()).await?;
            let deed = Deed::new(by, "erase", Some(account), &which);
            note(&database, &deed).await?;
            let patience = Patience::default();
            let erased = match subject {
                Some(subject) => erase::caller(&database, account, &subject, patience).await?,
                None => erase::account(&database, by, account, patience).await?,
            };
            exit::print(json!(erased))?;
            return Ok(if erased.left.is_some() { exit::AGAIN } else { 0 });
        }
        Role::Recover { database, user, of, from, until } => {
            let (from, until) = (from.unwrap_or(Timestamp::MIN), until.unwrap_or(Timestamp::MAX));
            if until <= from {
                wrong("--until: expected an instant after --from");
            }
            let (by, account) = (user.by(), of.account.as_ref().map(AccountId::as_str));
            let database = clocks::reach(&database.address()).await?;
            let now = database.now();
            let missed = RecoveryFilter::between(from, until, now);
            let which = account.unwrap_or("all accounts");
            let after = json!({ "from": missed.from(), "until": missed.until() });
            let deed = Deed::new(by, "recoveries.started", account, which);
            let deed = deed.changing(Value::Null, after);
            let started = store::recover_all(&database, account, &missed, deed, now).await;
            let started = started.map_err(exit::refused)?;
            exit::print(json!({ "recoveries": started }))?;
            if started == 0 {
                last_words(
                    "No active endpoint has missed deliveries. Enable disabled endpoints first: see `fleet`.",
                );
            }
        }
        Role::RotateKeys { database, keys, user } => {
            let (by, address) = (user.by(), database.address());
            let ring = keys.ring(&address).await;
            let database = clocks::reach(&address).await?;
            note(&database, &Deed::new(by, "rotate-keys", None, "signing secrets")).await?;
            let rotated = ring::rotate(&database, &ring, database.now()).await;
            let rotated = rotated.map_err(exit::refused)?;
            exit::print(json!(rotated))?;
            if rotated.unreadable > 0 {
                return Err(UNREADABLE.into());
            }
        }
        Role::Ring(Ring::Check { database, keys, json }) => {
            let address = database.address();
            let ring = keys.ring(&address).await;
            let database = clocks::reach(&address).await?;
            let checked = ring::check(&database, &ring, database.now()).await?;
            match json {
                true => exit::print(json!(checked))?,
                false => exit::print(checked.text())?,
            }
            if !checked.other_keys.is_empty() {
                return Err(OTHER_RING.into());
            }
            if checked.unreadable > 0 {
                return Err(UNREADABLE.into());
            }
        }
        Role::Doctor { database, keys, role, backup, json } => {
            let (address, ring) = (database.address(), keys.given());
            let checks = doctor::look(&address, ring.as_ref(), role, backup).await;
            match json {
                true => exit::print(json!({ "checks": checks }))?,
                false => checks.iter().try_for_each(|check| exit::print(check.line()))?,
            }
            if checks.iter().any(|check| check.is_unanswered) {
                return Ok(exit::AGAIN);
            }
            let is_bad = checks.iter().any(|check| check.state == State::Fail);
            return Ok(if is_bad { exit::FAILED } else { 0 });
        }
        Role::Ask { asking, keys, seals } => {
            let ring = match keys {
                Some(keys) if seals => keys.ring(&asking.database).await,
                keys => keys.and_then(cli::Keys::given).unwrap_or_else(KeyRing::none),
            };
            ask::run(*asking, ring).await?;
        }
        Role::Migrate { database, status: false, dry_run: false } => {
            let migrated = db::migrate(&Database::at(&database.address(), 1)?).await?;
            exit::print(match migrated {
                0 => "the database already has this version".to_owned(),
                1 => "applied 1 migration".to_owned(),
                many => format!("applied {many} migrations"),
            })?;
        }
        Role::Migrate { database, dry_run, .. } => {
            let status = db::status(&Database::at(&database.address(), 1)?).await?;
            match dry_run {
                false => exit::print(json!({ "migrations": status }))?,
                true => status
                    .iter()
                    .filter(|migration| migration.applied_at.is_none())
                    .try_for_each(|migration| {
                        exit::print(format_args!("-- {}\n{}", migration.number, migration.sql))
                    })?,
            }
        }
        Role::Api { database, keys, serving, drain } => {
            let database = database.address();
            let ring = keys.ring(&database).await;
            let process = Process::new(Login::Api, (database, ring), drain.seconds)?;
            serve(process, serving, None, drain.seconds, None).await?;
        }
        Role::All { database, keys, serving, sending, drain } => {
            let database = database.address();
            let ring = keys.ring(&database).await;
            let process = Process::new(Login::All, (database, ring), drain.seconds)?;
            serve(process, serving, Some(sending), drain.seconds, None).await?;
        }
        Role::Sender { database, keys, sending, process: options } => {
            let database = database.address();
            let ring = keys.ring(&database).await;
            let process = Process::new(Login::Sender, (database, ring), Duration::ZERO)?;
            let _stop = process.watch.stop_on_drop();
            let (monitor, mut line) =
                (serving::monitor(&process, options.metrics).await?, Map::new());
            if let Some((address, _)) = monitor {
                line.insert("metrics".to_owned(), format!("http://{address}").into());
            }
            let running = sender::start(&process, &sending, options.allow_loopback).await?;
            line.insert("ready".to_owned(), process.counted.not_ready().is_none().into());
            let line = line.into();
            say(&line);
            tell(&process, &options, None, Some(&sending), &line);
            let _ = running.await;
            if let Some((_, monitoring)) = monitor {
                monitoring.end().await;
            }
            stopped(&process.watch)?;
        }
        Role::Demo { serving, sending } => {
            // What is wrong with the data is said before a server is started.
            serving.access_or_exit();
            accounts(&serving, true)?;
            let (url, server) = tokio::task::spawn_blocking(own_server).await??;
            let database = Address::from(url);
            db::migrate(&Database::at(&database, 1)?).await?;
            let line = KeyRing::new_line(1);
            let at = (database, KeyRing::parse(&line)?);
            let process = Process::new(Login::All, at, Duration::ZERO)?;
            let ended = serve(process, serving, Some(sending), Duration::ZERO, Some(&line)).await;
            tokio::task::spawn_blocking(move || drop(server)).await?;
            ended?;
        }
    }
    Ok(0)
}

/// Notes what takes several transactions, before the first of them.
async fn note(database: &Database, deed: &Deed) -> Result<(), DbError> {
    database.change(async |change| deed.note(change).await).await
}

/// Serves the public API and the dashboard, and sends webhooks where that is asked for.
async fn serve(
    process: Process,
    serving: Serving,
    sending: Option<Sending>,
    drain: Duration,
    demonstration: Option<&str>,
) -> Result<(), Box<dyn Error>> {
    let Process { database, counted, watch, .. } = &process;
    let _stop = watch.stop_on_drop();
    let access = serving.access_or_exit();
    let accounts = accounts(&serving, demonstration.is_some())?;
    let note = match demonstration {
        Some(ring) => {
            let url = database.url();
            format!(
                "Its database, while it runs: psql {url}\nFor commands in another terminal:\n  \
                 export DATABASE_URL='{url}' {VARIABLE}={ring}\n\n"
            )
        }
        None => String::new(),
    };
    let api = serving::start(&process, &serving, access, accounts).await?;
    let beside = match &sending {
        Some(sending) => sender::start(&process, sending, serving.process.allow_loopback).await?,
        None => {
            let mut clocks = Clocks::new(Database::at(database, 1)?, counted.clone());
            clocks.look().await?;
            let clocks = serving::until(watch.stop().clone(), clocks.keep());
            tokio::spawn(watch.until_shutdown("the clocks", clocks))
        }
    };
    say(&api.line);
    log::banner(&format!("{}{note}", api.banner));
    tell(&process, &serving.process, Some((&serving, drain)), sending.as_ref(), &api.line);
    api.ended(beside).await;
    Ok(stopped(watch)?)
}

/// Says that all has ended as it has to.
///
/// # Errors
/// A task has ended that should not.
fn stopped(watch: &Watch) -> Result<(), String> {
    watch.outcome()?;
    log::info!(pid = std::process::id(), "stopped");
    Ok(())
}

/// Logs a start: what runs, over what, where it listens, the name of its sender, and whether it is ready; and later,
/// that it stops. No password is in it, and no key.
fn tell(
    Process { login, database, ring, counted, watch }: &Process,
    options: &options::Process,
    serving: Option<(&Serving, Duration)>,
    sending: Option<&Sending>,
    line: &Value,
) {
    let reason = counted.not_ready();
    log::info!(
        role = login.as_str(),
        version = env!("CARGO_PKG_VERSION"),
        host = host::program::process::host_name(),
        pid = std::process::id(),
        database = database.places(),
        keys = ring.numbers().as_slice(),
        sealing_key = ring.numbers().first(),
        data = serving.and_then(|(it, _)| it.data.as_ref()).map(|file| display(file.display())),
        allow_loopback_endpoints = options.allow_loopback,
        max_endpoints = serving.map(|(it, _)| it.endpoint_limit.get()),
        drain_seconds = serving.map(|(_, drain)| drain.as_secs()),
        trust_ca = sending.and_then(|it| it.trust_ca.as_ref()).map(|file| display(file.display())),
        time_scale = sending.map(|it| it.scale.waits),
        timeout_scale = sending.map(|it| it.scale.timeouts),
        endpoint_rate = sending.map(|it| it.per_second),
        listens = listens(line),
        sender = counted.sender(),
        ready = reason.is_none(),
        reason,
        "started",
    );
    let stop = watch.stop().clone();
    tokio::spawn(async move {
        stop.near().await;
        log::info!(pid = std::process::id(), "stopping");
    });
}

/// Returns the addresses of a role's first line, without the keys that it may have.
fn listens(line: &Value) -> Option<String> {
    let addresses = ["api", "dashboard", "metrics"].map(|name| line.get(name)?.as_str());
    let addresses: Vec<&str> = addresses.into_iter().flatten().collect();
    (!addresses.is_empty()).then(|| addresses.join(","))
}

/// Reads the accounts to add: those of a file; or the demonstration's, whose keys are made now.
fn accounts(
    serving: &Serving,
    demonstration: bool,
) -> Result<(Vec<host::store::NewAccount>, Shown), Box<dyn Error>> {
    let (allow_loopback, now) = (serving.process.allow_loopback, clock::now());
    Ok(match &serving.data {
        Some(file) => {
            let read = data::load(file, allow_loopback, now);
            let read = read.map_err(|error| format!("--data: {}: {error}", file.display()))?;
            (read, Shown::Names)
        }
        None if demonstration => {
            (data::read(&demo::data(now), allow_loopback, now)?, Shown::Secrets)
        }
        None => (Vec::new(), Shown::Names),
    })
}

/// Says on standard output that a role is ready.
fn say(line: &Value) {
    let line = line.to_string();
    // A closed or unread stream must not stop the host.
    tokio::task::spawn_blocking(move || terminal::print(line));
}

/// Returns the status of an error.
fn status(error: &(dyn Error + 'static)) -> i32 {
    if let Some(ended) = error.downcast_ref() {
        return match ended {
            Ended::Usage(_) => exit::USAGE,
            Ended::Again(_) => exit::AGAIN,
        };
    }
    let error = match error.downcast_ref() {
        Some(Failure::Refused(cause) | Failure::Unknown(cause)) => &**cause,
        _ => error,
    };
    let of_database = if let Some(EraseError::Db(error)) = error.downcast_ref() {
        Some(error)
    } else if let Some(MigrationError::Db(error)) = error.downcast_ref() {
        Some(error)
    } else {
        error.downcast_ref::<DbError>()
    };
    match of_database {
        Some(error) if error.class().may_pass() => exit::AGAIN,
        Some(error) if error.class() == Class::Pooler => exit::USAGE,
        None if matches!(error.downcast_ref(), Some(MigrationError::Ignored(_))) => exit::USAGE,
        _ => exit::FAILED,
    }
}
