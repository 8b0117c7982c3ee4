//! What was measured, as tables: medians of the rounds, and what is aimed at.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{CUSTOMER, Figure, Flood, Host, PATHS};

/// The figures of each round by path, clients and host.
pub(super) type Figures = BTreeMap<(&'static str, usize, Host), Vec<Figure>>;

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn milliseconds(wait: Duration) -> f64 {
    wait.as_secs_f64() * 1e3
}

/// Of the other host's rate in the same round.
fn against(
    figures: &Figures,
    (path, clients, host): (&'static str, usize, Host),
    other: Host,
) -> f64 {
    let rates = figures[&(path, clients, host)].iter().zip(&figures[&(path, clients, other)]);
    median(rates.map(|(own, other)| own.load.per_second / other.load.per_second))
}

pub(super) fn print(figures: &Figures) {
    println!(
        "| request | clients | host | requests a second | of memory's, same round | of the plain host's \
         | p50 | p99 | CPU of PostgreSQL | of the API |\n|---|---|---|---|---|---|---|---|---|---|"
    );
    for (key @ (path, clients, host), own) in figures {
        let all = |of: fn(&Figure) -> f64| median(own.iter().map(of));
        println!(
            "| {path} | {clients} | {} | {:.0} | {:.2} | {:.2} | {:.2} ms | {:.2} ms | {:.0} us | {:.0} us |",
            host.name(),
            all(|figure| figure.load.per_second),
            against(figures, *key, Host::Memory),
            against(figures, *key, Host::Plain),
            all(|figure| milliseconds(figure.load.p50)),
            all(|figure| milliseconds(figure.load.p99)),
            all(|figure| figure.database_us),
            all(|figure| figure.api_us),
        );
    }
}

/// Prints what is aimed at for one process with 16 clients, and with one.
pub(super) fn print_aims(figures: &Figures) {
    println!(
        "\n| ours, 1 process | account | aim | limit=1 | aim | limit=100 | aim |\n|---|---|---|---|---|---|---|"
    );
    let row = |name: &str, aims: [&str; 3], of: &dyn Fn(&'static str) -> f64, digits: usize| {
        let cells = PATHS.iter().zip(aims);
        let cells = cells.map(|(path, aim)| format!("{:.digits$} | {aim}", of(path)));
        println!("| {name} | {} |", cells.collect::<Vec<_>>().join(" | "));
    };
    let one = |path, clients, of: fn(&Figure) -> f64| {
        median(figures[&(path, clients, Host::Ours(1))].iter().map(of))
    };
    let of = |path, other| against(figures, (path, 16, Host::Ours(1)), other);
    row(
        "CPU of PostgreSQL, us",
        ["120", "180", "350"],
        &|path| one(path, 16, |it| it.database_us),
        0,
    );
    row("CPU of the API, us", ["60"; 3], &|path| one(path, 16, |it| it.api_us), 0);
    row(
        "requests a second, of memory's",
        ["0.35", "0.28", "0.38"],
        &|path| of(path, Host::Memory),
        2,
    );
    row("of the plain host's", ["1.3"; 3], &|path| of(path, Host::Plain), 2);
    row("p99, ms", ["15"; 3], &|path| one(path, 16, |it| milliseconds(it.load.p99)), 1);
    row(
        "one client alone, p50, ms",
        ["1.0"; 3],
        &|path| one(path, 1, |it| milliseconds(it.load.p50)),
        2,
    );
}

pub(super) fn print_floods(floods: &[Flood]) {
    let all = |of: fn(&Flood) -> f64| median(floods.iter().map(of));
    println!(
        "\n| a customer, {CUSTOMER} requests a second | p50 | p99 |\n|---|---|---|\n\
         | alone | {:.2} ms | {:.2} ms |\n| beside {:.0} unknown keys a second | {:.2} ms | {:.2} ms |",
        all(|it| milliseconds(it.alone.p50)),
        all(|it| milliseconds(it.alone.p99)),
        all(|it| it.unknown.per_second),
        all(|it| milliseconds(it.beside.p50)),
        all(|it| milliseconds(it.beside.p99)),
    );
}
