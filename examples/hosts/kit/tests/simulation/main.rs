//! A cluster in one process, over virtual time: each failure again, by its seed.
//!
//! ```text
//! cargo test -p call-assistant-host --test simulation                    a few days
//! SIMULATION="--all-features --config .ci/simulation.toml --test simulation"
//! cargo test $SIMULATION -- --seeds 1000                                 as the gate does, optimised
//! cargo test $SIMULATION -- --seeds 100000 --from 1000                   others
//! cargo test $SIMULATION -- --seed 17                                    the trace of one
//! cargo test $SIMULATION -- --seed 17 --small                            as little of it as still fails
//! ```
//!
//! A seed makes a [plan](plan): one to four senders, endpoints whose receivers have all [manners](net), events,
//! what owners and operators do, and faults. The plan becomes a [world](world), in which a day passes with its
//! attempts up to the sixth. The senders are the production code: the core, the leases, the loops and the
//! transactions. Only the shell is not, which carries commands out with tokio: [`sender`] does so here.
//!
//! - The [store](testing::store) has versions, row locks and waits, as PostgreSQL has them at read committed. The suite
//!   of the port holds it, and the durable host's test `agreement` compares it with a PostgreSQL server, step by step.
//! - [Faults](faults) are aimed at named steps of it. A long run in which one of them is never hit fails.
//! - [Futures](tasks) are polled by hand, in the order in which they are woken, on one thread. Each step of the store
//!   is a point of the schedule. Nothing ticks while nothing happens.
//! - The [verdict](verdict) is the chaos test's: its judge replays each change of a row through the library.
//! - Two runs of a seed have the same trace, byte for byte. A seed that fails is made [smaller](shrink).
//!
//! With the variable `SIMULATION_LOG` the senders' log is written, too.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

mod customers;
mod faults;
mod net;
mod plan;
mod sender;
mod shrink;
mod store;
mod tasks;
mod trace;
mod verdict;
mod world;

use std::collections::BTreeMap;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::faults::POINTS;
use crate::plan::Plan;
use crate::verdict::Verdict;
use crate::world::World;

/// From so many seeds on, each fault has to be hit.
const LONG: u64 = 500;

/// How many seeds that fail are told.
const TOLD: usize = 5;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
struct Asked {
    from: u64,
    seeds: u64,
    seed: Option<u64>,
    is_small: bool,
    /// Whether to stop at the first seed that fails.
    until_found: bool,
}

fn main() -> ExitCode {
    let asked = asked();
    if std::env::var_os("SIMULATION_LOG").is_none() {
        // The senders' log would be all that is seen.
        let mut own = Command::new(std::env::current_exe().unwrap());
        own.args(std::env::args_os().skip(1)).env("SIMULATION_LOG", "none").stderr(Stdio::null());
        let is_good = own.status().unwrap().success();
        return if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let is_good = match asked.seed {
        Some(seed) => one(seed, asked.is_small),
        None => {
            // With a fault put back, the day that finds it is the result.
            if !asked.until_found {
                store::keeps_what_the_port_promises();
                (0..3).for_each(repeats);
            }
            many(asked)
        }
    };
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn asked() -> Asked {
    let mut asked = Asked { from: 0, seeds: 16, seed: None, is_small: false, until_found: false };
    let mut arguments = std::env::args().skip(1);
    while let Some(flag) = arguments.next() {
        let mut number = || arguments.next().and_then(|text| text.parse().ok()).expect("a number");
        match flag.as_str() {
            "--seeds" => asked.seeds = number(),
            "--from" => asked.from = number(),
            "--seed" => asked.seed = Some(number()),
            "--small" => asked.is_small = true,
            "--until-found" => asked.until_found = true,
            // What a test runner says to every test binary.
            _ => {}
        }
    }
    asked
}

/// Prints the trace of a seed. Returns whether nothing is wrong.
fn one(seed: u64, is_small: bool) -> bool {
    let plan = Plan::new(seed);
    let plan = if is_small { shrink::smallest(plan) } else { plan };
    println!("{plan}");
    let Verdict { wrong, trace, attempts, most, .. } = World::new(plan, true).run();
    print!("{trace}");
    wrong.iter().for_each(|wrong| println!("WRONG: {wrong}"));
    println!("{attempts} attempts, up to number {most}; wrong: {}", wrong.len());
    wrong.is_empty()
}

#[track_caller]
fn repeats(seed: u64) {
    let [one, other] = [(); 2].map(|()| World::new(Plan::new(seed), true).run().trace);
    let same = one.lines().zip(other.lines()).take_while(|(one, other)| one == other).count();
    assert!(one == other, "seed {seed} has another trace from line {} on", same + 1);
}

/// Runs many seeds on all cores. Returns whether nothing is wrong.
fn many(asked: Asked) -> bool {
    let (began, next) = (Instant::now(), AtomicU64::new(asked.from));
    let end = asked.from + asked.seeds;
    let sum = Mutex::new(Sum::default());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if end <= seed {
                        return;
                    }
                    let verdict = shrink::verdict(Plan::new(seed));
                    let mut sum = sum.lock().unwrap();
                    sum.add(seed, verdict);
                    if asked.until_found && !sum.failed.is_empty() {
                        next.store(end, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let mut sum = sum.into_inner().unwrap();
    sum.failed.sort();
    let seconds = began.elapsed().as_secs_f32();
    println!(
        "{} days in {seconds:.1} s: {} attempts, up to number {}; {} changes of rows replayed; {} steps in a day \
         at most",
        sum.seeds, sum.attempts, sum.most, sum.changes, sum.steps
    );
    let hits: Vec<String> =
        sum.hits.iter().map(|((step, blow), times)| format!("{step} {blow} {times}")).collect();
    println!("faults: {}", hits.join(", "));
    for (seed, wrong) in sum.failed.iter().take(if asked.until_found { 1 } else { TOLD }) {
        println!("seed {seed} fails: {wrong}");
        if !asked.until_found {
            println!("  {}", shrink::smallest(Plan::new(*seed)));
        }
    }
    let missed = sum.missed().filter(|_| LONG <= asked.seeds && sum.failed.is_empty());
    if let Some(missed) = &missed {
        println!("never hit: {missed}");
    }
    println!("seeds that fail: {}", sum.failed.len());
    sum.failed.is_empty() && missed.is_none()
}

/// What came of many days.
#[derive(Debug, Default)]
struct Sum {
    seeds: u64,
    attempts: u64,
    most: u8,
    changes: usize,
    steps: u64,
    hits: BTreeMap<(String, &'static str), u32>,
    failed: Vec<(u64, String)>,
}

impl Sum {
    fn add(&mut self, seed: u64, verdict: Verdict) {
        self.seeds += 1;
        self.attempts += verdict.attempts;
        self.most = self.most.max(verdict.most);
        self.changes += verdict.changes;
        self.steps = self.steps.max(verdict.steps);
        for ((step, blow), times) in verdict.hits {
            *self.hits.entry((format!("{step:?}"), blow)).or_default() += times;
        }
        if let Some(wrong) = verdict.wrong.first() {
            self.failed.push((seed, format!("{wrong} ({} wrong)", verdict.wrong.len())));
        }
    }

    /// Returns the faults that were never hit.
    fn missed(&self) -> Option<String> {
        let is_hit = |(step, blow): &&(testing::store::Step, faults::Blow)| {
            !self.hits.contains_key(&(format!("{step:?}"), blow.name()))
        };
        let missed: Vec<String> = POINTS
            .iter()
            .filter(is_hit)
            .map(|(step, blow)| format!("{step:?} {}", blow.name()))
            .collect();
        (!missed.is_empty()).then(|| missed.join(", "))
    }
}
