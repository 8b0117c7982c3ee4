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

use std::fs::File;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::time::Instant;
use std::{fs, io};

use call_assistant::webhook::sender::SenderLimits;
use clap::Parser;
use host::flags::{parse_or_exit, wrong};
use tools::simulate::chart;
use tools::simulate::day::{Scale, run};

/// Simulates a day of a service that sends webhooks, in virtual time, and draws a chart.
#[derive(Parser)]
#[command(name = "simulate", after_help = "1000 10000 target/simulate.svg")]
struct Options {
    #[arg(value_name = "ENDPOINTS", default_value = "1000000", value_parser = number)]
    endpoints: u32,
    #[arg(value_name = "DELIVERIES", default_value = "10000000", value_parser = number)]
    deliveries: u32,
    #[arg(value_name = "CHART.svg", default_value = "target/simulate.svg")]
    chart: String,
}

fn number(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("expected a number from 1 to {}", u32::MAX))
}

fn main() -> io::Result<()> {
    let Options { endpoints, deliveries, chart: path } = parse_or_exit();
    let scale = Scale {
        endpoints,
        deliveries: u64::from(deliveries),
        limits: SenderLimits { overall: 5_000, per_endpoint: 4 },
        seed: 2026,
    };
    // Before the day, so that a wrong path does not waste it.
    let mut file = create(Path::new(&path))
        .unwrap_or_else(|error| wrong(format_args!("CHART.svg: {path}: {error}")));

    let began = Instant::now();
    let terminal = io::stderr().is_terminal();
    let mut next_line = 0.1;
    let report = run(scale, |share, decisions| {
        let rate = decisions as f64 / began.elapsed().as_secs_f64() / 1e6;
        if terminal {
            let _ = write!(io::stderr(), "\r{} {} ", bar(share), so_far(share, rate));
        } else if share >= next_line {
            // Whoever reads a file or a pipe is told every tenth of the day.
            let _ = writeln!(io::stderr(), "{}", so_far(share, rate));
            next_line += 0.1;
        }
    });
    let took = began.elapsed();
    if terminal {
        let _ = writeln!(io::stderr());
    }

    let title = format!(
        "{} deliveries to {} endpoints in a day",
        chart::grouped(scale.deliveries),
        chart::grouped(u64::from(scale.endpoints)),
    );
    file.write_all(chart::svg(&report, &title).as_bytes())?;

    let mut out = io::stdout().lock();
    writeln!(out, "{}", chart::table(&report))?;
    let rate = report.decisions as f64 / took.as_secs_f64();
    writeln!(
        out,
        "{} decisions in {:.1} s: {:.1} million a second",
        chart::grouped(report.decisions),
        took.as_secs_f64(),
        rate / 1e6
    )?;
    if let Some(peak) = peak_memory() {
        writeln!(out, "peak memory {} MiB", peak >> 20)?;
    }
    writeln!(out, "chart in {path}")?;
    Ok(())
}

fn create(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    File::create(path)
}

fn bar(share: f64) -> String {
    const WIDTH: usize = 40;
    let full = (share * WIDTH as f64) as usize;
    "━".repeat(full) + &"─".repeat(WIDTH - full)
}

fn so_far(share: f64, millions: f64) -> String {
    let minutes = (share * 1_440.0).round() as u64;
    format!("{:02}:{:02}  {millions:.1} M decisions/s", minutes / 60, minutes % 60)
}

/// Returns the peak memory of this process, if the kernel reports it.
fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}
