//! The host over a cluster that fails over: what is lost, and for how long requests are refused.
//!
//! ```text
//! cargo test --test cluster                            a leader killed, and a switchover
//! cargo test --test cluster -- --faults 20 --seed 2    so many faults, of every kind in turn
//! cargo test --test cluster -- --faults 5 --asynchronous    a leader lost with what was written last
//! cargo test --test cluster -- --fault MinorVersion     each server restarted, as for a new minor version
//! cargo test --test cluster -- --fault LeaderStopped --expect 'reads refused'
//! cargo test --test cluster -- --faults 5 --quorum      a COMMIT waits for any standby
//! cargo test --test cluster -- --fault LeaderStopped --faults 20 --setting 'failsafe_mode: true'
//! ```
//!
//! With `--expect`, something like this has to be wrong: the host is broken on purpose, and
//! `CLUSTER_PROGRAM` and `BROKEN` say how.
//!
//! It needs Debian's packages patroni, etcd-server and postgresql, or other versions where `PATRONI_BIN`
//! and `POSTGRESQL_BIN` say. `CLUSTER_LOG=1` shows what the processes of the host write.
#![allow(clippy::restriction, clippy::disallowed_methods)]
#![deny(clippy::dbg_macro, clippy::todo, clippy::unimplemented, clippy::unreachable)]

mod beside;
mod faults;
mod fleet;
mod proxy;
mod servers;
mod sync;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use call_assistant_postgres::db::{self, Database, DbError};
use call_assistant_postgres::{clock, key_ring};
use checker::load::{Addresses, Customers, Receiver};
use checker::{checks, record};
use testing::running::{File, Running};

use crate::beside::{Beside, Lost};
use crate::faults::Fault;
use crate::fleet::{EACH, Fleet, program};
use crate::servers::{Cluster, Mode};

/// How much longer the host may refuse than the bare client: 1 s.
const LONGER: Duration = Duration::from_secs(1);

/// The same in the gate, whose machine may do something else meanwhile: 3 s.
const LONGER_IN_GATE: Duration = Duration::from_secs(3);

/// How long `/readyz` may say what no read beside it says, in addition to two seconds.
const UNLIKE: Duration = Duration::from_secs(2);

/// How long the cluster may take to be whole again, and what is pending to end.
const PATIENCE: Duration = Duration::from_secs(120);

/// The connections of the pools: 23 of each API process, 15 of each sender, 4 of the customers, and one
/// of each process that erases a caller, 3 at a time. Those of an API process and a sender that were
/// killed may be there for a moment.
const CONNECTIONS: i64 = 23 * 4 + 15 * 3 + 4 + 3;

/// How many transactions a second there may be with nothing to do: two senders look fifty times each,
/// and what is asked beside the host is thirty.
const IDLE: i64 = 400;

/// How late the deliveries to good endpoints may be, once nothing fails any more.
const LATE: Duration = Duration::from_secs(10);

struct Plan {
    is_gate: bool,
    faults: Vec<Fault>,
    seed: u64,
    mode: Mode,
    settings: Vec<String>,
    expected: Option<String>,
}

fn main() {
    let plan = plan();
    if !Cluster::is_installed() {
        eprintln!(
            "cluster: on Debian and Ubuntu, `apt-get install patroni etcd-server postgresql`"
        );
        std::process::exit(1);
    }
    let cluster =
        Cluster::start(plan.mode, &plan.settings).unwrap_or_else(|error| panic!("{error}"));
    cluster.follow(|leads| println!("{leads}"));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (seed, expected) = (plan.seed, plan.expected.clone());
    let wrong = runtime.block_on(run(plan, cluster));
    for each in wrong.iter().take(40) {
        println!("WRONG: {each}");
    }
    println!("wrong: {}, seed {seed}", wrong.len());
    let is_as_expected = match expected {
        Some(expected) => wrong.iter().any(|wrong| wrong.contains(&expected)),
        None => wrong.is_empty(),
    };
    if !is_as_expected {
        std::process::exit(1);
    }
}

fn plan() -> Plan {
    let gate = vec![Fault::LeaderKilled, Fault::Switchover];
    let (mode, settings, expected) = (Mode::On, Vec::new(), None);
    let mut plan = Plan { is_gate: true, faults: gate, seed: 1, mode, settings, expected };
    let mut count = 0;
    let mut arguments = std::env::args().skip(1);
    while let Some(flag) = arguments.next() {
        let mut value = || arguments.next().expect("a value");
        match flag.as_str() {
            "--faults" => count = value().parse().expect("a number"),
            "--seed" => plan.seed = value().parse().expect("a number"),
            "--asynchronous" => plan.mode = Mode::Off,
            "--quorum" => plan.mode = Mode::Quorum,
            "--setting" => plan.settings.push(value()),
            "--fault" => {
                let name = value();
                let fault = faults::named(&name).expect("the name of a fault");
                (plan.is_gate, plan.faults) = (false, vec![fault]);
            }
            "--expect" => plan.expected = Some(value()),
            // What a test runner says to every test binary.
            _ => {}
        }
    }
    if count > 0 {
        let kinds: &[Fault] = match plan.mode {
            _ if !plan.is_gate => &plan.faults,
            Mode::Off => &faults::LOSING,
            Mode::On | Mode::Quorum => &faults::ALL,
        };
        (plan.is_gate, plan.faults) = (false, faults::in_turn(kinds, count, plan.seed));
    }
    plan
}

async fn run(plan: Plan, mut cluster: Cluster) -> Vec<String> {
    let url = cluster.url();
    let database = Database::new(&url, 4).unwrap();
    db::migrate(&database).await.unwrap();
    record::begin(&database).await;
    let (receiver, apis) = (Receiver::start().await, Addresses::of(EACH));
    let customers =
        Customers::add(&database, &url, &program(), &receiver.url(), apis.clone(), plan.seed).await;
    let mut fleet = Fleet::start(&url, customers.ring(), apis);
    let file = File::new("cluster.json", &beside::accounts().to_string());
    let asked = Running::start(
        Command::new(program())
            .args(["api", "--database", &url, "--data", file.path()])
            .args(["--listen", "127.0.0.1:0", "--dashboard", "127.0.0.1:0"])
            .env(key_ring::VARIABLE, customers.ring()),
    );
    let first: serde_json::Value = serde_json::from_str(&asked.said("")).unwrap();
    let address =
        |name: &str| first[name].as_str().unwrap().trim_start_matches("http://").to_owned();
    let beside = Beside::start(&database, &url, &address("api"), &address("dashboard")).await;
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let accepting = customers.clone();
    let accepting = tokio::spawn(async move { accepting.live(stopped).await });
    fleet.live(Duration::from_secs(3)).await;

    let counting = tokio::spawn(most_connections(url.clone()));
    let longer = if plan.is_gate { LONGER_IN_GATE } else { LONGER };
    let mut wrong = Vec::new();
    let mut refused: BTreeMap<Fault, Vec<[Duration; 3]>> = BTreeMap::new();
    let (mut lost, mut spans) = (Lost::default(), Vec::new());
    let first_fault = Instant::now();
    for fault in &plan.faults {
        println!("{} s: {fault}", first_fault.elapsed().as_secs());
        let (began, at) = (Instant::now(), clock::now());
        let Some(steady) = cluster.steady_within(PATIENCE) else {
            wrong.push(format!("{fault}: the cluster is not whole before it"));
            break;
        };
        let said_before = fleet.went_back();
        fault.happen(&mut cluster, steady, &mut fleet, plan.mode == Mode::Off).await;
        if cluster.steady_within(PATIENCE).is_none() {
            wrong.push(format!("{fault}: the cluster is not whole again"));
            break;
        }
        fleet.live(Duration::from_secs(2)).await;
        let tries = [&beside.psql, &beside.writes, &beside.reads];
        let times = tries.map(|tries| tries.refused(began, Instant::now()));
        let [psql, writes, reads] = times;
        println!("    psql {psql:.1?}, writes {writes:.1?}, reads {reads:.1?}");
        let full = fault.refuses_writes();
        for (what, time, least) in [("writes", writes, psql.max(full)), ("reads", reads, psql)] {
            if time > least + longer {
                wrong.push(format!("{fault}: {what} refused for {time:.1?}, psql {psql:.1?}"));
            }
        }
        refused.entry(*fault).or_default().push(times);
        let before = std::mem::replace(&mut lost, beside.lost(&database).await);
        if lost.rows > before.rows {
            let [rows, calls] = [lost.rows - before.rows, lost.calls - before.calls];
            println!(
                "    the database went back: {rows} rows of the bare client and {calls} calls are lost"
            );
            spans.push([at, clock::now()]);
            wrong.extend(unsaid(&said_before, &fleet.went_back()));
            if plan.mode != Mode::Off && !cluster.takes_back() && *fault != Fault::StandbyThenLeader
            {
                wrong.push(format!("{fault}: the cluster has lost {rows} acknowledged rows"));
            }
        }
    }
    let unlike = beside.ready.unlike(&beside.reads, first_fault);
    println!("/readyz was unlike what reads said for {unlike:.1?}, apart from two seconds");
    if unlike > UNLIKE {
        wrong.push(format!("/readyz is unlike what reads say for {unlike:.1?}"));
    }

    fleet.live(LATE).await;
    let (late, of) = late(&database).await;
    if late > LATE.as_secs_f64() {
        wrong.push(format!("a delivery to a good endpoint is {late:.1} s late: {of}"));
    }
    stop.send_replace(true);
    accepting.await.unwrap();
    if tokio::time::timeout(PATIENCE, customers.settled()).await.is_err() {
        wrong.push("recoveries or erasures do not end".to_owned());
    }
    let went_back = lost.rows > 0;
    if went_back {
        customers.erase_again().await;
    }
    let limit = Instant::now() + PATIENCE;
    while checks::pending(&database).await != Some(0) && Instant::now() < limit {
        fleet.live(Duration::from_millis(200)).await;
    }
    // What dead senders had sent may still be answered.
    fleet.live(Duration::from_secs(1)).await;
    let before = transactions(&database).await;
    fleet.live(Duration::from_secs(5)).await;
    let a_second = (transactions(&database).await - before) / 5;
    if a_second > IDLE {
        wrong.push(format!("{a_second} transactions a second with nothing to do"));
    }
    drop(fleet);
    counting.abort();
    let most = MOST.load(Ordering::Relaxed);
    if most > CONNECTIONS {
        wrong.push(format!("{most} connections to the server, {CONNECTIONS} in the pools"));
    }
    let database = record::patient(&url);
    let (lost, unlike) = beside.end(&database).await;
    wrong.extend(unlike);
    if fleet::is_logged() {
        eprint!("{}", asked.log());
    }
    drop(asked);
    wrong.extend(receiver.strays());
    let (mut accepted, mut calls) = (customers.accepted(), customers.calls());
    let acknowledged = accepted.len() + calls.len();
    if went_back {
        let stored = ids(&database, "SELECT id FROM events").await;
        accepted.retain(|id, _| stored.contains(id));
        let stored = ids(&database, "SELECT id FROM calls").await;
        calls.retain(|id, _| stored.contains(id));
    }
    let lost_of_customers = acknowledged - accepted.len() - calls.len();
    let answers = |endpoint: &str, event: &str| receiver.answers(endpoint, event);
    let (figures, unlike) = checks::check(&database, accepted, calls, answers).await;
    wrong.extend(unlike);
    let mut session = database.session().await.unwrap();
    let change = session.transaction().await.unwrap();
    let (replayed, unlike) = record::check(&change, &spans).await;
    change.commit().await.unwrap();
    wrong.extend(unlike);
    session.keep();
    let (done, left) = customers.done(&database).await;
    wrong.extend(left);

    println!("\n{:<40} {:>4}  psql, writes, reads refused: most (median), s", "fault", "");
    for (fault, times) in refused {
        let column = |nth: usize| {
            let mut times: Vec<Duration> = times.iter().map(|times| times[nth]).collect();
            times.sort();
            let [most, median] = [times[times.len() - 1], times[times.len() / 2]];
            format!("{:5.1} ({:.1})", most.as_secs_f64(), median.as_secs_f64())
        };
        println!("{fault:<40} {:>4}  {}  {}  {}", times.len(), column(0), column(1), column(2));
    }
    println!("\n{figures}\n{done}\n{replayed} changes of rows replayed through the library");
    println!("at most {most} connections; after the last fault deliveries were {late:.1} s late");
    let Lost { rows, calls, .. } = lost;
    println!(
        "{a_second} transactions a second with nothing to do\n\
         acknowledged and lost: {rows} rows of the bare client, {calls} calls beside, \
         {lost_of_customers} of {acknowledged} events and calls of customers"
    );
    if plan.mode == Mode::Off && !went_back {
        wrong.push("the database never went back".to_owned());
    }
    wrong
}

/// Each sender that lived through a loss, and did not say so in its log and in its metrics.
fn unsaid(before: &BTreeMap<u32, [u32; 2]>, after: &BTreeMap<u32, [u32; 2]>) -> Vec<String> {
    let lived =
        before.iter().filter_map(|(sender, before)| Some((sender, before, after.get(sender)?)));
    let quiet = lived.filter(|(_, before, after)| (0..2).any(|nth| after[nth] <= before[nth]));
    quiet
        .map(|(sender, before, after)| {
            format!(
                "sender {sender} says nothing of a database that went back: {before:?}, {after:?}"
            )
        })
        .collect()
}

async fn ids(database: &Database, sql: &str) -> BTreeSet<String> {
    let session = database.session().await.unwrap();
    let rows = session.query(sql, &[]).await.unwrap();
    session.keep();
    rows.iter().map(|row| row.get(0)).collect()
}

/// How many transactions the server has committed or rolled back.
async fn transactions(database: &Database) -> i64 {
    let count = "SELECT xact_commit + xact_rollback FROM pg_stat_database
        WHERE datname = current_database()";
    let count = database
        .read(async |client| Ok::<i64, DbError>(client.query_one(count, &[]).await?.try_get(0)?));
    count.await.unwrap()
}

/// The most connections of the host that a server had.
static MOST: AtomicI64 = AtomicI64::new(0);

async fn most_connections(url: String) {
    let database = Database::new(&url, 1).unwrap();
    let count = "SELECT count(*) FROM pg_stat_activity
        WHERE application_name = 'call-assistant' AND pid <> pg_backend_pid()";
    loop {
        let counted = database.read(async |client| {
            Ok::<i64, DbError>(client.query_one(count, &[]).await?.try_get(0)?)
        });
        if let Ok(counted) = counted.await {
            MOST.fetch_max(counted, Ordering::Relaxed);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// How many seconds the latest delivery to an endpoint that always answers has been due, and what is known
/// of it.
async fn late(database: &Database) -> (f64, String) {
    let late = "SELECT extract(epoch FROM clock_timestamp() - d.at)::float8, format(
            'delivery %s of %s, %s, attempt %s after %s, manual %s; %s pending at the endpoint, %s of its \
             account, %s of its shard; owner %s until %s, now %s; endpoint since %s, %s failures; %s',
            d.id, e.id, d.status, d.attempts, d.event_created_at, d.manual,
            (SELECT count(*) FROM deliveries AS o WHERE o.endpoint = d.endpoint),
            (SELECT count(*) FROM deliveries AS o WHERE o.account_id = d.account_id),
            (SELECT count(*) FROM deliveries AS o WHERE o.shard = d.shard),
            s.owner, s.expires_at, clock_timestamp(), e.since, e.failures,
            (SELECT string_agg(format('%s of %s', r.ended_at, r.recovery), ', ') FROM recoveries AS r
                WHERE r.endpoint = e.number AND r.ended_at IS NULL))
        FROM deliveries AS d JOIN endpoints AS e ON e.number = d.endpoint
            JOIN shards AS s ON s.shard = d.shard
        WHERE e.url ~ '/ok' AND e.disabled IS NULL
        ORDER BY d.at LIMIT 1";
    let late = database.read(async |client| {
        let Some(row) = client.query_opt(late, &[]).await? else { return Ok((0.0, String::new())) };
        Ok::<_, DbError>((row.try_get(0)?, row.try_get(1)?))
    });
    late.await.unwrap()
}
