//! Both sides of the protocol in one program: no server, no network, no waiting.
//!
//! `cargo run --example tour`
//!
//! A service and a customer sit in one memory, and the time is a number that the tour moves on:
//! hours of retries take an instant. That needs no special build, for the library has no clock
//! and does no I/O anywhere; the tour is its host, as a server would be.
//!
//! Everything shown is checked. The tour ends with a table of the rules, and with status 1 if a rule did
//! not hold.

mod hooks;
mod rest;
mod table;
mod world;

use std::error::Error;
use std::process::ExitCode;

use clap::Parser;
use host::flags::parse_or_exit;

use crate::table::Table;
use crate::world::World;

/// Shows the whole protocol, both sides in memory, in virtual time: a key is checked, pages are walked, every error appears, a
/// webhook is signed, refused and retried, endpoints are disabled, and missed calls are recovered. Exit status: 0 every rule
/// held, 1 a rule did not hold.
#[derive(Parser)]
#[command(name = "tour")]
struct Options {}

fn main() -> ExitCode {
    let Options {} = parse_or_exit();
    let mut table = Table::default();
    if let Err(error) = tour(&mut table) {
        eprintln!("the tour failed: {error}");
        return ExitCode::FAILURE;
    }
    table.print();
    if table.all_shown() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn tour(table: &mut Table) -> Result<(), Box<dyn Error>> {
    let mut world = World::new()?;
    rest::check_keys(&mut world, table)?;
    rest::walk_pages(&mut world, table)?;
    rest::meet_every_error(&mut world, table)?;
    hooks::sign_and_refuse(&mut world, table)?;
    hooks::retry_over_the_whole_schedule(&mut world, table)?;
    hooks::disable_by_410(&mut world, table)?;
    hooks::disable_by_twenty_failures(&mut world, table)?;
    rest::recover_missed_calls(&mut world, table)
}
