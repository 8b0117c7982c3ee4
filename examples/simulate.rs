//! A day of a service that sends webhooks: a million endpoints, ten million deliveries, one core.
//!
//! ```text
//! cargo run --release --example simulate [-- ENDPOINTS DELIVERIES CHART.svg]
//! ```
//!
//! Healthy, slow, flapping, dead and leaving endpoints share one planner; the machines are the
//! library's own. At the end there are a table, and a chart of the day to look at.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used
)]

#[path = "support/simulate/mod.rs"]
mod support;

use std::io::Write;
use std::time::Instant;
use std::{env, fs, io};

use call_assistant::delivery::Limits;
use support::chart;
use support::sender::{Scale, run};

fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let number = |at: usize, default: u64| {
        arguments.get(at).map_or(default, |text| text.parse().expect("a number"))
    };
    let scale = Scale {
        endpoints: u32::try_from(number(0, 1_000_000)).expect("fewer endpoints"),
        deliveries: number(1, 10_000_000),
        limits: Limits { overall: 5_000, per_endpoint: 4 },
        seed: 2026,
    };
    let path = arguments.get(2).map_or("target/simulate.svg", String::as_str);

    let began = Instant::now();
    let report = run(scale, |share, decisions| {
        let rate = decisions as f64 / began.elapsed().as_secs_f64() / 1e6;
        bar(share, rate);
    });
    let took = began.elapsed();
    eprintln!();

    println!("{}", chart::table(&report));
    let rate = report.decisions as f64 / took.as_secs_f64();
    println!(
        "{} decisions in {:.1} s: {:.1} million a second",
        chart::grouped(report.decisions),
        took.as_secs_f64(),
        rate / 1e6
    );
    if let Some(peak) = peak_memory() {
        println!("peak memory {} MiB", peak >> 20);
    }
    let title = format!(
        "{} deliveries to {} endpoints in a day",
        chart::grouped(scale.deliveries),
        chart::grouped(u64::from(scale.endpoints)),
    );
    fs::write(path, chart::svg(&report, &title))?;
    println!("chart in {path}");
    Ok(())
}

fn bar(share: f64, millions: f64) {
    const WIDTH: usize = 40;
    let full = (share * WIDTH as f64) as usize;
    let minutes = (share * 1_440.0).round() as u64;
    eprint!(
        "\r{:━<full$}{:─<rest$} {:02}:{:02}  {millions:.1} M decisions/s ",
        "",
        "",
        minutes / 60,
        minutes % 60,
        rest = WIDTH - full,
    );
    let _ = io::stderr().flush();
}

/// What the kernel says this process held at most, where it says so.
fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}
