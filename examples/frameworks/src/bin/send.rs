//! A whole sender over SQLite, in one file.
//!
//! Your program inserts a row into `outbox` with each call that has ended. Run any number of processes on one
//! machine. Run `send register acct_1 https://hooks.example.com/calls whsec_...`, then `send`. After
//! `send rotate 1 whsec_...`, both secrets sign for a day. The program does not encrypt secrets, send alerts,
//! enable endpoints, or delete old rows.
#![allow(clippy::disallowed_methods, reason = "a host has a clock")]

use std::error::Error;
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant, SystemTime};
use std::{env, thread};

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, EventId};
use call_assistant::model::Call;
use call_assistant::webhook::event::{ApiVersion, EventBody, NewEvent, Origin};
use call_assistant::webhook::sender::{
    Alert, Attempt, BeginError, Delivery, EndpointHealth, EndpointUrl, EndpointUrlError, Outcome,
    RETRY_WAITS, SignedDestination,
};
use call_assistant::webhook::{Signer, SigningSecret};
use http::{Request, Uri};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use ureq::Agent;
use ureq::config::Config;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const TABLES: &str = "
BEGIN IMMEDIATE;
-- Your program inserts a row with each call that is over and summarised, in one transaction with it.
CREATE TABLE IF NOT EXISTS outbox (
    seq INTEGER PRIMARY KEY, account TEXT NOT NULL, call TEXT NOT NULL, error TEXT);
CREATE TABLE IF NOT EXISTS endpoints (
    id INTEGER PRIMARY KEY, account TEXT NOT NULL, url TEXT NOT NULL,
    secret TEXT NOT NULL, old_secret TEXT, old_until INTEGER, -- encrypt both
    health TEXT NOT NULL, version INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS events (
    account TEXT NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (account, id));
CREATE TABLE IF NOT EXISTS deliveries (
    id INTEGER PRIMARY KEY, account TEXT NOT NULL, event TEXT NOT NULL, endpoint INTEGER NOT NULL,
    due INTEGER, state TEXT NOT NULL, version INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS deliveries_due ON deliveries (due) WHERE due IS NOT NULL;
COMMIT;";

fn main() -> Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["register", account, url, secret] => register(&open()?, account, url, &secret.parse()?),
        ["rotate", endpoint, secret] => rotate(&open()?, endpoint.parse()?, &secret.parse()?),
        [] => run(),
        _ => {
            Err("arguments: none, `register ACCOUNT URL SECRET` or `rotate ENDPOINT SECRET`".into())
        }
    }
}

/// Relays the outbox and sends due deliveries, until the process is killed. Run any number of processes.
fn run() -> Result<()> {
    open()?;
    let http = &http_client();
    thread::scope(|scope| {
        scope.spawn(|| repeat(relay));
        for _ in 0..8 {
            scope.spawn(|| repeat(|db| send(db, http)));
        }
    });
    Ok(())
}

/// Repeats a step. A step returns whether it had something to do.
fn repeat(step: impl Fn(&mut Connection) -> Result<bool>) {
    loop {
        let ended: Result<()> = open().and_then(|mut db| {
            loop {
                if !step(&mut db)? {
                    thread::sleep(Duration::from_millis(200));
                }
            }
        });
        if let Err(error) = ended {
            eprintln!("a step is made again: {error}");
            thread::sleep(Duration::from_secs(1));
        }
    }
}

fn open() -> Result<Connection> {
    let db = Connection::open(env::var("OUTBOX").unwrap_or("outbox.db".into()))?;
    db.busy_timeout(Duration::from_secs(30))?;
    db.execute_batch(TABLES)?;
    Ok(db)
}

/// Takes the lock for writing before the first read, so that the rows do not change after they are read.
fn begin(db: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    db.transaction_with_behavior(TransactionBehavior::Immediate)
}

fn register(db: &Connection, account: &str, url: &str, secret: &SigningSecret) -> Result<()> {
    let (account, url) = (AccountId::parse(account)?, target(url)?);
    let health = serde_json::to_string(&EndpointHealth::new(0, now()))?;
    db.execute(
        "INSERT INTO endpoints (account, url, secret, health, version) VALUES (?, ?, ?, ?, 0)",
        params![account.as_str(), url.as_str(), secret.reveal(), health],
    )?;
    println!("endpoint {}", db.last_insert_rowid());
    Ok(())
}

/// Replaces the secret. The previous secret also signs for a day. During this day, another rotation is
/// refused.
fn rotate(db: &Connection, endpoint: u32, secret: &SigningSecret) -> Result<()> {
    let (now, until) = (now(), now().saturating_add(Signer::OVERLAP));
    let rotated = db.execute(
        "UPDATE endpoints SET old_secret = secret, old_until = ?1, secret = ?2
            WHERE id = ?3 AND secret <> ?2 AND (old_until IS NULL OR old_until <= ?4)",
        params![until.unix_micros(), secret.reveal(), endpoint, now.unix_micros()],
    )?;
    match rotated {
        1 => Ok(()),
        _ => Err("no such endpoint, the secret that it has, or a second rotation in a day".into()),
    }
}

/// Creates an event from the first row of the outbox. The event's id is derived from the call. So if two rows
/// have the same call, the second row changes nothing.
fn relay(db: &mut Connection) -> Result<bool> {
    let tx = begin(db)?;
    let first = "SELECT seq, account, call FROM outbox WHERE error IS NULL ORDER BY seq LIMIT 1";
    let row = tx.query_row(first, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    let Some((seq, account, call)): Option<(i64, String, String)> = row.optional()? else {
        return Ok(false);
    };
    match call_ended(&account, &call) {
        Ok(event) => {
            accept(&tx, &event, now())?;
            tx.execute("DELETE FROM outbox WHERE seq = ?", [seq])?;
        }
        Err(error) => {
            eprintln!("row {seq} of the outbox stays there: {error}");
            let error = error.to_string();
            tx.execute("UPDATE outbox SET error = ? WHERE seq = ?", params![error, seq])?;
        }
    }
    tx.commit()?;
    Ok(true)
}

fn call_ended(account: &str, call: &str) -> Result<EventBody> {
    let call = Call::from_json(call.as_bytes())?;
    let id = EventId::derived(&[account, "call.ended", call.id.as_str()]);
    let (account, version) = (AccountId::parse(account)?, ApiVersion::parse("2026-01-15")?);
    let event = NewEvent::new(id, account, version, Origin::voice(), call.created_at);
    Ok(event.call_ended(&call)?)
}

/// Stores an event, and its delivery to each endpoint of the account.
fn accept(tx: &Transaction<'_>, event: &EventBody, now: Timestamp) -> Result<()> {
    let (account, id) = (event.account_id().as_str(), event.id().as_str());
    let row = params![account, id, event.as_str()];
    if tx.execute("INSERT OR IGNORE INTO events VALUES (?, ?, ?)", row)? == 0 {
        return Ok(());
    }
    let mut endpoints = tx.prepare("SELECT id, health FROM endpoints WHERE account = ?")?;
    for row in endpoints.query_map([account], |row| Ok((row.get(0)?, row.get(1)?)))? {
        let (endpoint, health): (u64, String) = row?;
        let endpoint = EndpointHealth::from_columns(endpoint, serde_json::from_str(&health)?)?;
        let delivery = Delivery::accept(event, &endpoint, now);
        let (due, state) =
            (delivery.due(now).map(Timestamp::unix_micros), serde_json::to_string(&delivery)?);
        tx.execute(
            "INSERT INTO deliveries (account, event, endpoint, due, state, version)
                VALUES (?, ?, ?, ?, ?, 0)",
            params![account, id, endpoint.id(), due, state],
        )?;
    }
    Ok(())
}

/// Makes the attempt that has been due for the longest time.
fn send(db: &mut Connection, http: &Agent) -> Result<bool> {
    // Begin. The lease is committed before the request: for 30 s no other process sends this
    // delivery. If this process is killed from here on, the row is due again when the lease has
    // expired, and the same attempt is made again.
    let tx = begin(db)?;
    // Not before: the lock may have taken long, and the lease counts from here.
    let (began, clock) = (now(), Instant::now());
    // A due time after twice the longest wait was stored by a wrong clock, and is due.
    let farthest = began.saturating_add(2 * RETRY_WAITS.iter().copied().max().unwrap_or_default());
    let due_first = "SELECT id FROM deliveries WHERE due <= ?1 OR due > ?2 ORDER BY due LIMIT 1";
    let due = [began.unix_micros(), farthest.unix_micros()];
    let due = tx.query_row(due_first, due, |row| row.get(0));
    let Some(id): Option<i64> = due.optional()? else { return Ok(false) };
    let attempt = lease(&tx, id, began).or_else(|error| {
        eprintln!("delivery {id} cannot be read: {error}"); // look again in an hour
        let later = began.saturating_add(Duration::from_secs(3600)).unix_micros();
        tx.execute("UPDATE deliveries SET due = ? WHERE id = ?", params![later, id])?;
        Ok::<_, Box<dyn Error>>(None)
    })?;
    tx.commit()?;
    let Some((attempt, request)) = attempt else { return Ok(true) };

    // Send in what is left of ten seconds: this process may have been stopped since it began.
    let left = attempt.deadline().since(began).saturating_sub(clock.elapsed());
    let outcome = match request {
        None => Outcome::Forbidden,
        Some(_) if left.is_zero() => Outcome::Unsent,
        Some(request) => post(http, request, left),
    };

    // Finish. If this cannot be stored, the attempt is made again, too.
    let ended = began.saturating_add(clock.elapsed()).floor_to_micros();
    let tx = begin(db)?;
    let alert = finish(&tx, id, &attempt, outcome, ended)?;
    tx.commit()?;
    println!("delivery {id}, attempt {}: {outcome}", attempt.number());
    if let Some(alert) = alert {
        println!("tell the owner of the endpoint of delivery {id}: {alert:?}");
    }
    Ok(true)
}

type Begun = (Attempt, Option<Request<Vec<u8>>>);

/// Begins an attempt. There is no request if the stored URL is not allowed.
fn lease(tx: &Transaction<'_>, id: i64, now: Timestamp) -> Result<Option<Begun>> {
    let (mut delivery, endpoint) = read(tx, id)?;
    let destination = "SELECT url, secret, old_secret, old_until FROM endpoints WHERE id = ?";
    let (url, secret, old, until): (String, String, Option<String>, Option<i64>) =
        tx.query_row(destination, [endpoint.id()], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })?;
    let mut signer = Signer::new(secret.parse()?);
    if let (Some(old), Some(until)) = (old, until.and_then(Timestamp::from_unix_micros)) {
        signer = signer.with_previous(old.parse()?, until, now)?;
    }
    let event =
        "SELECT body FROM deliveries d JOIN events e ON (e.account, e.id) = (d.account, d.event)
        WHERE d.id = ?";
    let event: String = tx.query_row(event, [id], |row| row.get(0))?;
    let event = EventBody::from_stored(event)?;

    let attempt = match delivery.begin(&endpoint, now) {
        Ok(attempt) => Some(attempt),
        Err(BeginError::Parked) => None, // the endpoint was disabled: there is something to store
        Err(error) => return Err(error.into()),
    };
    write(tx, id, &delivery, &endpoint, now)?;
    let Some(attempt) = attempt else { return Ok(None) };
    let request = match target(&url) {
        Ok(url) => {
            let destination = SignedDestination::new(&endpoint, url, signer);
            Some(attempt.request(&destination, &event, now)?)
        }
        Err(_) => None,
    };
    Ok(Some((attempt, request)))
}

/// Stores the result of an attempt in the delivery and in the endpoint.
fn finish(
    tx: &Transaction<'_>,
    id: i64,
    attempt: &Attempt,
    outcome: Outcome,
    now: Timestamp,
) -> Result<Option<Alert>> {
    let (mut delivery, mut endpoint) = read(tx, id)?;
    let report = delivery.finish(attempt, outcome, now)?;
    let is_late = report.is_late(); // another process has made the attempt since
    let change = endpoint.record(report, now)?;
    delivery.park(&endpoint, now);
    if outcome == Outcome::Unsent && !is_late {
        delivery.postpone(Duration::from_secs(1), now); // this machine has no socket left
    }
    write(tx, id, &delivery, &endpoint, now)?;
    Ok(change.alert())
}

fn read(tx: &Transaction<'_>, id: i64) -> Result<(Delivery, EndpointHealth)> {
    let (endpoint, health, state): (u64, String, String) = tx.query_row(
        "SELECT e.id, health, state FROM deliveries d JOIN endpoints e ON e.id = d.endpoint
            WHERE d.id = ?",
        [id],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    let delivery = Delivery::from_columns(id.try_into()?, endpoint, serde_json::from_str(&state)?)?;
    Ok((delivery, EndpointHealth::from_columns(endpoint, serde_json::from_str(&health)?)?))
}

/// Writes the changed rows, if they still have the version that was read.
fn write(
    tx: &Transaction<'_>,
    id: i64,
    delivery: &Delivery,
    endpoint: &EndpointHealth,
    now: Timestamp,
) -> Result<()> {
    let mut written = 1;
    if let Some(version) = delivery.if_version() {
        let due = delivery.due(now).map(Timestamp::unix_micros);
        let state = serde_json::to_string(delivery)?;
        written &= tx.execute(
            "UPDATE deliveries SET due = ?, state = ?, version = ? WHERE id = ? AND version = ?",
            params![due, state, delivery.version(), id, version],
        )?;
    }
    if let Some(version) = endpoint.if_version() {
        let health = serde_json::to_string(endpoint)?;
        written &= tx.execute(
            "UPDATE endpoints SET health = ?, version = ? WHERE id = ? AND version = ?",
            params![health, endpoint.version(), endpoint.id(), version],
        )?;
    }
    if written == 1 { Ok(()) } else { Err("a row was changed by somebody without the lock".into()) }
}

fn http_client() -> Agent {
    let config = Agent::config_builder()
        .max_redirects(0)
        .http_status_as_error(false)
        .max_idle_connections(0) // each attempt makes a connection, to an address that is checked
        .proxy(None) // a proxy would look up the name, unchecked
        .build();
    Agent::with_parts(config, DefaultConnector::default(), Checked)
}

/// A look-up that returns only allowed addresses. The client connects to one of these addresses.
#[derive(Debug)]
struct Checked;

impl Resolver for Checked {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> std::result::Result<ResolvedSocketAddrs, ureq::Error> {
        let target = target(&uri.to_string()).map_err(|error| ureq::Error::Other(error.into()))?;
        let found = match DefaultResolver::default().resolve(uri, config, timeout) {
            Err(ureq::Error::Io(_)) => return Err(ureq::Error::HostNotFound),
            found => found?,
        };
        passing(&target, &found, self.empty())
    }
}

fn passing(
    target: &EndpointUrl,
    found: &ResolvedSocketAddrs,
    mut passed: ResolvedSocketAddrs,
) -> std::result::Result<ResolvedSocketAddrs, ureq::Error> {
    let mut refused = ureq::Error::HostNotFound;
    for address in found {
        match target.check(address.ip()) {
            Ok(()) => passed.push(*address),
            Err(error) => refused = ureq::Error::Other(error.into()),
        }
    }
    if passed.is_empty() { Err(refused) } else { Ok(passed) }
}

/// Sends a request. The status decides the outcome, so the body of the answer is not read.
fn post(http: &Agent, request: Request<Vec<u8>>, limit: Duration) -> Outcome {
    match http.run(http.configure_request(request).timeout_global(Some(limit)).build()) {
        Ok(response) => Outcome::Answered(response.status()),
        Err(ureq::Error::Other(_)) => Outcome::Forbidden, // only `Checked` returns this one
        Err(ureq::Error::HostNotFound) => Outcome::Dns,
        Err(ureq::Error::Timeout(_)) => Outcome::TimedOut,
        Err(ureq::Error::Tls(_)) => Outcome::Tls,
        Err(ureq::Error::Io(error)) => of_io(&error),
        Err(_) => Outcome::Reset,
    }
}

fn of_io(error: &io::Error) -> Outcome {
    match error.kind() {
        _ if matches!(error.raw_os_error(), Some(23 | 24)) => Outcome::Unsent, // no file left
        ErrorKind::ConnectionRefused | ErrorKind::HostUnreachable => Outcome::Refused,
        ErrorKind::NetworkUnreachable => Outcome::Refused,
        ErrorKind::TimedOut => Outcome::TimedOut,
        ErrorKind::InvalidData => Outcome::Tls, // a certificate, for instance
        _ => Outcome::Reset,
    }
}

/// Parses a URL. Set `ALLOW_LOOPBACK=1` only for a test on one machine.
fn target(url: &str) -> std::result::Result<EndpointUrl, EndpointUrlError> {
    match env::var("ALLOW_LOOPBACK").as_deref() {
        Ok("1") => EndpointUrl::parse_allowing_loopback(url),
        _ => EndpointUrl::parse(url),
    }
}

fn now() -> Timestamp {
    Timestamp::from(SystemTime::now()).floor_to_micros()
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpListener};

    use super::*;

    /// D-59: the connection is made to an address that passed, whatever the URL says.
    #[test]
    fn a_connection_is_made_to_a_checked_address() {
        let addresses = |texts: &[&str]| {
            let mut all = Checked.empty();
            texts.iter().for_each(|text| all.push(text.parse().unwrap()));
            all
        };
        let target = EndpointUrl::parse("https://hooks.example.com/").unwrap();
        let (private, public) = ("10.0.0.7:443", "93.184.215.14:443");
        let passed = passing(&target, &addresses(&[private, public]), Checked.empty()).unwrap();
        assert_eq!(passed[..], [public.parse::<SocketAddr>().unwrap()]);
        let refused = passing(&target, &addresses(&[private, "[::1]:443"]), Checked.empty());
        assert!(matches!(refused, Err(ureq::Error::Other(_))), "{refused:?}");

        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "192.168.7.7"] {
            let request = Request::post(format!("https://{host}:{port}/")).body(Vec::new());
            assert_eq!(
                post(&http_client(), request.unwrap(), Duration::from_secs(1)),
                Outcome::Forbidden,
                "{host}"
            );
        }
        assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    }
}
