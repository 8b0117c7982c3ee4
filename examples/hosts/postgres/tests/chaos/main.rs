//! Kills whatever can be killed while events are accepted and sent, and counts what is lost.
//!
//! ```text
//! cargo test --test chaos                                 forty seconds, and what is left then
//! cargo test --test chaos -- --seconds 120 --kills 240
//! cargo test --test chaos -- --kills 1000                 as long as that takes
//! cargo test --test chaos -- --kills 250 --seed 2         a part of a long run: each seed is another
//! cargo test --test chaos -- --missed 100000              a large recovery under way meanwhile
//! ```
#![allow(clippy::restriction, clippy::disallowed_methods)]
#![deny(clippy::dbg_macro, clippy::todo, clippy::unimplemented, clippy::unreachable)]

mod faults;

use std::time::{Duration, Instant};

use call_assistant_postgres::db::{self, Database};
use private_server::{PrivateServer, Settings};

use crate::faults::Fleet;
use checker::load::{Addresses, Customers, Receiver};
use checker::{checks, record};

/// How much of it.
#[derive(Clone, Copy, Debug)]
struct Plan {
    kills: u32,
    seconds: u64,
    missed: u32,
    seed: u64,
    senders: usize,
    apis: usize,
}

/// How long what is pending has to end, once nothing is killed any more.
const TO_END: Duration = Duration::from_secs(600);

fn main() {
    let plan = plan();
    if testing::shifted::faketime().is_none() {
        println!("skipped: senders whose clocks are wrong, for `faketime` is not installed");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let wrong = runtime.block_on(run(plan));
    if wrong > 0 {
        eprintln!("chaos: {wrong} wrong, seed {}", plan.seed);
        std::process::exit(1);
    }
}

fn plan() -> Plan {
    let mut plan = Plan { kills: 0, seconds: 0, missed: 0, seed: 1, senders: 3, apis: 2 };
    let mut arguments = std::env::args().skip(1);
    while let Some(flag) = arguments.next() {
        let mut number = || arguments.next().and_then(|text| text.parse().ok()).expect("a number");
        match flag.as_str() {
            "--kills" => plan.kills = u32::try_from(number()).unwrap(),
            "--seconds" => plan.seconds = number(),
            "--missed" => plan.missed = u32::try_from(number()).unwrap(),
            "--seed" => plan.seed = number(),
            "--senders" => plan.senders = usize::try_from(number()).unwrap(),
            // What a test runner says to every test binary.
            _ => {}
        }
    }
    match (plan.kills, plan.seconds) {
        (0, 0) => (plan.kills, plan.seconds) = (60, 40),
        (kills, 0) => plan.seconds = u64::from(kills) * 6 / 10,
        (0, seconds) => plan.kills = u32::try_from(seconds * 2).unwrap(),
        _ => {}
    }
    plan
}

async fn run(plan: Plan) -> usize {
    let settings = Settings { fsync: true, ..Settings::default() };
    let server = PrivateServer::start(settings).unwrap();
    let database = Database::new(&server.url(), 8).unwrap();
    db::migrate(&database).await.unwrap();
    record::begin(&database).await;
    let receiver = Receiver::start().await;
    let apis = Addresses::of(plan.apis);
    let url = server.url();
    let customers = Customers::add(
        &database,
        &url,
        &faults::program(),
        &receiver.url(),
        apis.clone(),
        plan.seed,
    )
    .await;
    let fleet = Fleet::start(server, &url, customers.ring(), apis, customers.clone(), plan);

    customers.miss(plan.missed).await;
    let began = Instant::now();
    let accepting = customers.clone();
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let accepting = tokio::spawn(async move { accepting.live(stopped).await });
    let (fleet, done) = fleet.run(began).await;
    stop.send_replace(true);
    accepting.await.unwrap();

    customers.settled().await;
    let limit = Instant::now() + TO_END;
    println!("{} s: {done}; waiting for what is pending", began.elapsed().as_secs());
    while checks::pending(&database).await != Some(0) && Instant::now() < limit {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let ended = began.elapsed();
    // What dead senders had sent may still be answered.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (drained, _server) = fleet.end().await;
    let database = record::patient(&url);
    let (figures, mut wrong) =
        checks::check(&database, customers.accepted(), customers.calls(), |endpoint, event| {
            receiver.answers(endpoint, event)
        })
        .await;
    wrong.extend(receiver.strays());
    let mut session = database.session().await.unwrap();
    let change = session.transaction().await.unwrap();
    let (replayed, unlike) = record::check(&change, &[]).await;
    change.commit().await.unwrap();
    wrong.extend(unlike);
    let (seen, unseen) = record::unseen(&mut session).await;
    wrong.extend(unseen);
    session.keep();
    println!("chaos, {} s, seed {}", ended.as_secs(), plan.seed);
    println!(
        "{replayed} changes of rows replayed through the library, which finds {seen} of {} that are \
         wrong on purpose",
        record::TAMPERED.len()
    );
    let (done_for_customers, left) = customers.done(&database).await;
    wrong.extend(left);
    wrong.extend(done_for_customers.missing().into_iter().chain(done.missing()));
    println!("{done_for_customers}");
    println!("{done}\n{figures}\nprocesses that ended by themselves when asked: {drained}");
    for each in wrong.iter().take(40) {
        println!("WRONG: {each}");
    }
    println!("wrong: {}", wrong.len());
    wrong.len()
}
