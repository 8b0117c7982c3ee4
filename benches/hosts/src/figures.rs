//! Figures of the rounds, and the tables of their medians.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::Options;
use crate::hosts::Host;
use crate::server::Counters;

/// What one host took for one delivery.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figure {
    pub(crate) per_second: f64,
    pub(crate) commits: f64,
    pub(crate) wal_bytes: f64,
    pub(crate) dead_tuples: f64,
    pub(crate) cpu_us: f64,
}

#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: BTreeMap<(Host, &'static str), Vec<Figure>>,
    steady: BTreeMap<(Host, bool), Vec<[Duration; 2]>>,
}

impl Figure {
    pub(crate) fn new(
        deliveries: u32,
        took: Duration,
        before: &Counters,
        after: &Counters,
    ) -> Self {
        let each = |from: i64, to: i64| (to - from) as f64 / f64::from(deliveries);
        Self {
            per_second: f64::from(deliveries) / took.as_secs_f64(),
            commits: each(before.commits, after.commits),
            wal_bytes: each(before.wal_bytes, after.wal_bytes),
            dead_tuples: each(before.dead_tuples, after.dead_tuples),
            cpu_us: (after.cpu - before.cpu).as_secs_f64() * 1e6 / f64::from(deliveries),
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { per_second, commits, wal_bytes, dead_tuples, cpu_us } = self;
        write!(
            f,
            "{per_second:.0}/s, {commits:.2} commits, {wal_bytes:.0} B of WAL, \
             {dead_tuples:.2} dead tuples, {cpu_us:.0} us of PostgreSQL"
        )
    }
}

/// The median, the smallest and the largest.
fn spread(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [values[values.len() / 2], values[0], values[values.len() - 1]]
}

impl Table {
    pub(crate) fn add(&mut self, host: Host, way: &'static str, figure: Figure) {
        self.rows.entry((host, way)).or_default().push(figure);
    }

    pub(crate) fn add_steady(&mut self, host: Host, dead: bool, waits: [Duration; 2]) {
        self.steady.entry((host, dead)).or_default().push(waits);
    }

    pub(crate) fn print(&self, options: Options) {
        println!(
            "\n{} rounds of {} deliveries; medians, with the smallest and the largest\n",
            options.rounds, options.deliveries
        );
        println!(
            "| host | deliveries a second | of the plain loop | commits | WAL | dead tuples | CPU of PostgreSQL | of the plain loop's |"
        );
        println!("|---|---|---|---|---|---|---|---|");
        let plain = &self.rows[&(Host::Loop, "")];
        for ((host, way), figures) in &self.rows {
            let all = |of: fn(&Figure) -> f64| spread(figures.iter().map(of).collect());
            // Each round against the loop of the same round.
            let against = |of: fn(&Figure) -> f64| {
                spread(figures.iter().zip(plain).map(|(own, plain)| of(own) / of(plain)).collect())
            };
            let [rate, least, most] = all(|figure| figure.per_second);
            let [part, worst, best] = against(|figure| figure.per_second);
            let [cpu_part, ..] = against(|figure| figure.cpu_us);
            let way = if way.is_empty() { "" } else { ", a transaction held open" };
            println!(
                "| {host}{way} | {rate:.0} ({least:.0} to {most:.0}) | {part:.2} ({worst:.2} to {best:.2}) | {:.2} | {:.0} B | {:.2} | {:.0} us | {cpu_part:.2} |",
                all(|figure| figure.commits)[0],
                all(|figure| figure.wal_bytes)[0],
                all(|figure| figure.dead_tuples)[0],
                all(|figure| figure.cpu_us)[0],
            );
        }
        println!("\nFrom acceptance to arrival at {} a second:\n", options.rate);
        println!("| host | p50 | p99 | with 16 dead endpoints: p50 | p99 |\n|---|---|---|---|---|");
        for host in [Host::Ours(1), Host::Naive, Host::Smith] {
            let cell = |dead, at: usize| {
                let waits = &self.steady[&(host, dead)];
                let [median, least, most] =
                    spread(waits.iter().map(|waits| waits[at].as_secs_f64() * 1e3).collect());
                format!("{median:.0} ms ({least:.0} to {most:.0})")
            };
            let cells = [(false, 0), (false, 1), (true, 0), (true, 1)];
            let cells = cells.map(|(dead, at)| cell(dead, at)).join(" | ");
            println!("| {host} | {cells} |");
        }
    }
}
