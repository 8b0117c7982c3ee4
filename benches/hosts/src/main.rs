//! The durable host beside others that send webhooks from PostgreSQL, on one machine in one run.
//!
//! ```text
//! cargo run --release --manifest-path benches/hosts/Cargo.toml
//! cargo run --release --manifest-path benches/hosts/Cargo.toml -- --rounds 1 --deliveries 4000
//! ```
//!
//! Each round runs every host once, so that what else the machine does falls on all of them. A host
//! gets a database of its own on one server with `fsync` and `synchronous_commit` on. All but the
//! plain loop send signed HTTP to one receiver. What is printed are medians of the rounds, with the
//! smallest and the largest.
//!
//! `-- requests` measures the public API of hosts instead, and `-- floods` what keys that nobody has cost.
#![allow(clippy::disallowed_methods)] // it measures time

mod figures;
mod hosts;
mod late;
mod receiver;
mod requests;
mod server;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use figures::{Figure, Table};
use hosts::{ENDPOINTS, Host, Running};
use receiver::Receiver;
use server::Server;

/// What the command line asks for.
#[derive(Clone, Copy, Debug)]
struct Options {
    rounds: usize,
    deliveries: u32,
    requests: usize,
    /// A second, for the steady load.
    rate: u32,
    steady: Duration,
}

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let first = arguments.first().map_or("", String::as_str).to_owned();
    // The durable host's processes, and the hosts of `requests`: this binary, started again.
    if matches!(first.as_str(), "sender" | "api") {
        call_assistant_postgres::main(|| Err("no demonstration here".to_owned()));
        return ExitCode::SUCCESS;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    if runtime.block_on(requests::host(&arguments)).is_some() {
        return ExitCode::SUCCESS;
    }
    let requests = matches!(first.as_str(), "requests" | "floods");
    if requests {
        arguments.remove(0);
    }
    let options = match options(arguments) {
        Ok(options) => options,
        Err(wrong) => {
            eprintln!(
                "{wrong}: [requests | floods] [--rounds N] [--requests N] [--deliveries N] \
                 [--rate N] [--steady SECONDS]"
            );
            return ExitCode::from(2);
        }
    };
    if requests {
        let floods = first == "floods";
        runtime.block_on(requests::run(options.rounds, options.requests, floods));
    } else {
        runtime.block_on(run(options));
    }
    ExitCode::SUCCESS
}

fn options(arguments: Vec<String>) -> Result<Options, String> {
    let mut options = Options {
        rounds: 5,
        deliveries: 20_000,
        requests: 6_000,
        rate: 1_000,
        steady: Duration::from_secs(10),
    };
    let mut arguments = arguments.into_iter();
    while let Some(name) = arguments.next() {
        let value = arguments.next().and_then(|text| text.parse::<u32>().ok());
        let value = value.filter(|value| *value > 0).ok_or_else(|| format!("{name}: a number?"))?;
        match name.as_str() {
            "--rounds" => options.rounds = value as usize,
            "--deliveries" => options.deliveries = value,
            "--requests" => options.requests = value as usize,
            "--rate" => options.rate = value,
            "--steady" => options.steady = Duration::from_secs(value.into()),
            _ => return Err(name),
        }
    }
    Ok(options)
}

async fn run(options: Options) {
    let mut server = Server::start();
    let receiver = Receiver::start().await;
    let mut table = Table::default();
    for round in 1..=options.rounds {
        for host in Host::ALL {
            let figure = throughput(&mut server, &receiver, host, options.deliveries, false).await;
            eprintln!("round {round}: {host}: {figure}");
            table.add(host, "", figure);
        }
        for host in [Host::Ours(1), Host::Naive, Host::Smith] {
            let figure = throughput(&mut server, &receiver, host, options.deliveries, true).await;
            eprintln!("round {round}: {host}, a transaction held open: {figure}");
            table.add(host, "held", figure);
        }
        for host in [Host::Ours(1), Host::Naive, Host::Smith] {
            let [alone, beside] = [false, true];
            for dead in [alone, beside] {
                let waits = steady(&mut server, &receiver, host, options, dead).await;
                eprintln!("round {round}: {host}, steady, dead endpoints {dead}: {waits:?}");
                table.add_steady(host, dead, waits);
            }
        }
    }
    table.print(options);
    println!("\nwebhooksmith, one late failure of a sender that was taken for dead:\n");
    for stored in late::of_smith(&mut server).await {
        println!("- {stored}");
    }
}

/// Sends what is there, as fast as the host can.
async fn throughput(
    server: &mut Server,
    receiver: &Receiver,
    host: Host,
    deliveries: u32,
    held: bool,
) -> Figure {
    let database = server.database().await;
    let mut running = Running::prepare(host, &database, receiver, ENDPOINTS, 0).await;
    running.load(deliveries).await;
    database.settle().await;
    let open = if held { Some(database.hold_open().await) } else { None };
    receiver.reset();
    let mut before = server.counters(&database).await;
    running.go().await;
    if let Running::Ours(_) = running {
        // Putting its rows back is not sending.
        before = server.counters_now(&database).await;
    }
    let began = Instant::now();
    running.until_done(receiver, deliveries).await;
    let took = began.elapsed();
    running.stop().await;
    let after = server.counters(&database).await;
    drop(open);
    Figure::new(deliveries, took, &before, &after)
}

/// Accepts so many a second, and measures from acceptance to the request's arrival.
async fn steady(
    server: &mut Server,
    receiver: &Receiver,
    host: Host,
    options: Options,
    dead: bool,
) -> [Duration; 2] {
    let database = server.database().await;
    let silent = if dead { 16 } else { 0 };
    let mut running = Running::prepare(host, &database, receiver, ENDPOINTS, silent).await;
    if dead {
        running.insert_dead(2_000).await;
    }
    receiver.reset();
    running.start().await;
    let mut tick = tokio::time::interval(Duration::from_millis(20));
    let batch = (options.rate / 50).max(1);
    let ticks = options.steady.as_millis() / 20;
    for _ in 0..ticks {
        tick.tick().await;
        running.insert(batch).await;
    }
    let all = batch * u32::try_from(ticks).unwrap_or(u32::MAX);
    let limit = Instant::now() + Duration::from_secs(60);
    while receiver.count() < all && Instant::now() < limit {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    running.stop().await;
    receiver.waits(all)
}
