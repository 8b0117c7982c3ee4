//! How each statement is run over 100,000 rows, and over 1,000,000 once a night: whichever plan is forced,
//! none reads a table from end to end, or much more than it needs; and one that the input of customers reaches, no more
//! rows than its bound, however many there are.
//!
//! ```text
//! PLANS_ROWS=1000000 cargo test --test plans -- --nocapture
//! ```
#![allow(clippy::restriction, clippy::disallowed_methods)]
#![deny(clippy::dbg_macro, clippy::todo, clippy::unimplemented, clippy::unreachable)]

mod plan;
mod table;

use std::collections::{BTreeMap, BTreeSet};

use call_assistant_postgres::db::{self, Database};
use checker::sql::{statement, statements};
use private_server::{PrivateServer, Settings};
use tokio_postgres::NoTls;

use plan::{Explained, Ran, findings, pages, rows_read};
use table::{
    ANSWERING, FUNCTIONS, OF_FEW_ROWS, OPERATORS, PAGES, PROCESSES, REACHED, REASONS, STATEMENTS,
};

const EARLY: &str = "planned when empty";
/// How many rows once a night.
const NIGHTLY: u64 = 1_000_000;
const PLANS: [&str; 2] = ["force_generic_plan", "force_custom_plan"];

/// How many events have been delivered. There is a call for each, an attempt and a delivery.
fn rows() -> u64 {
    std::env::var("PLANS_ROWS").map_or(100_000, |rows| rows.parse().unwrap())
}

/// Over how many days they are spread: a day of a few rows has other plans than one of a busy service.
fn days(rows: u64) -> u64 {
    (rows / 12_500).clamp(1, 29)
}

/// The parameters of an account that has a quarter of everything, and of one that has little.
fn accounts(rows: u64) -> [(&'static str, BTreeMap<&'static str, String>); 2] {
    // A delivery in the middle, and the first that is pending: `endpoint_of` says whose.
    let quiet = rows / 2 / 10_000 * 10_000 + 4_517;
    let of = |endpoint: u64, ended: u64, pending: u64, count: u64| {
        let mut names = BTreeMap::from([
            ("account", format!("acct_{endpoint}")),
            ("endpoint", endpoint.to_string()),
            ("shard", (endpoint % 64).to_string()),
            ("ended", ended.to_string()),
            ("pending", pending.to_string()),
            ("count", count.to_string()),
            ("few", count.min(8).to_string()),
            ("now", "2026-03-30 23:00+00".to_owned()),
            ("missed", "'{failed,parked,skipped}'".to_owned()),
        ]);
        let of_one = PAGES.iter().filter(|(name, _)| !name.is_empty());
        let of_one = of_one.map(|page| (page.0, std::slice::from_ref(page)));
        for (name, pages) in of_one.chain([("pages", PAGES)]) {
            names.insert(name, arrays(pages, &names["account"]));
        }
        names
    };
    [("busy", of(0, rows / 8 * 4, rows + 4, 128)), ("quiet", of(123, quiet, rows + 4_517, 1))]
}

/// The parameters of pages that are asked for at once: an array of each.
fn arrays(pages: &[(&str, &str)], account: &str) -> String {
    let mut arrays: Vec<Vec<&str>> = Vec::new();
    for (_, page) in pages {
        for (nth, value) in page.split(' ').enumerate() {
            arrays.resize(arrays.len().max(nth + 1), Vec::new());
            arrays[nth].push(value);
        }
    }
    let arrays: Vec<_> = arrays.iter().map(|of| format!("'{{{}}}'", of.join(","))).collect();
    arrays.join(", ").replace(":account", account)
}

/// A statement's parameters, with what `:name` stands for.
fn filled(text: &str, names: &BTreeMap<&str, String>) -> String {
    let mut pieces = text.split(':');
    let mut filled = pieces.next().unwrap().to_owned();
    for piece in pieces {
        let end = piece.find(|next: char| !next.is_ascii_lowercase()).unwrap_or(piece.len());
        match names.get(&piece[..end]) {
            Some(value) => filled.push_str(value),
            None => filled.push_str(&format!(":{}", &piece[..end])),
        }
        filled.push_str(&piece[end..]);
    }
    filled
}

/// A statement that was run: its name, in which case, and how.
type Case = (&'static str, String, Vec<Ran>);

/// A filled database, and how statements run on it that were planned when it was empty, as those of a
/// host that was there first.
async fn database(rows: u64) -> (PrivateServer, Vec<Case>) {
    let server = PrivateServer::start(Settings::default()).unwrap();
    db::migrate(&Database::new(&server.url(), 1).unwrap()).await.unwrap();
    let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    // Whoever analyses a table has its statements planned again.
    for sql in ["ALTER SYSTEM SET autovacuum = off", "SELECT pg_reload_conf()"] {
        client.batch_execute(sql).await.unwrap();
    }
    let filled_in = |sql: &str| {
        sql.replace("{rows}", &rows.to_string()).replace("{days}", &days(rows).to_string())
    };
    client.batch_execute(&filled_in(include_str!("functions.sql"))).await.unwrap();
    let mut early = Explained::new(&server, "-c plan_cache_mode=force_generic_plan").await;
    let prepared = || STATEMENTS.iter().enumerate().filter(|(_, (_, given))| !given.is_empty());
    let [(_, busy), _] = &accounts(rows);
    for (nth, (name, parameters)) in prepared() {
        let (text, parameters) = (statement(name), filled(parameters, busy));
        let plan = format!("PREPARE s_{nth} AS {text} EXPLAIN EXECUTE s_{nth} ({parameters})");
        early.client.batch_execute(&plan).await.unwrap();
    }
    client.batch_execute(&filled_in(include_str!("fill.sql"))).await.unwrap();
    let mut cases = Vec::new();
    for (account, names) in accounts(rows) {
        for (nth, (name, parameters)) in prepared() {
            let run = format!("EXECUTE s_{nth} ({})", filled(parameters, &names));
            let case = format!("{account}, {EARLY}");
            cases.push((*name, case, early.run(name, &run).await));
        }
    }
    client.batch_execute("VACUUM ANALYZE").await.unwrap();
    (server, cases)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_statement_reads_a_table_from_end_to_end() {
    every_statement_is_in_the_table();
    let rows = rows();
    let (server, early) = database(rows).await;
    let sizes = Explained::new(&server, "").await.sizes().await;
    let mut report = Report { sizes, ..Report::default() };
    for (name, case, ran) in early {
        report.add(name, &case, &ran);
    }
    for (account, names) in accounts(rows) {
        for plans in PLANS {
            let case = format!("{account}, {plans}");
            // By choice, and not because the host allows nothing else.
            let settings = format!("-c enable_seqscan=on -c plan_cache_mode={plans}");
            let mut session = Explained::new(&server, &settings).await;
            for (name, parameters) in STATEMENTS {
                let text = statement(name);
                let run = match parameters {
                    &"" => text,
                    _ => {
                        let prepare = format!("DEALLOCATE ALL; PREPARE s AS {text}");
                        let prepared = session.client.batch_execute(&prepare).await;
                        assert!(prepared.is_ok(), "{name}: {prepared:?}");
                        format!("EXECUTE s ({})", filled(parameters, &names))
                    }
                };
                let ran = session.run(name, &run).await;
                report.add(name, &case, &ran);
            }
            for (name, calls, statements) in FUNCTIONS {
                let mut texts = BTreeSet::new();
                for call in *calls {
                    let ran = session.run(name, call).await;
                    let own = ran.iter().filter(|ran| !ran.text.starts_with("SELECT 1 FROM ONLY"));
                    texts.extend(own.map(|ran| ran.text.clone()));
                    report.add(name, &case, &ran);
                }
                assert_eq!(texts.len() - calls.len(), *statements, "{name}: {texts:#?}");
            }
        }
    }
    report.every_function_was_called(&server).await;
    report.end();
}

fn every_statement_is_in_the_table() {
    // Migrations run before there is anything to read.
    let names = statements().into_keys().filter(|name| !name.starts_with("migrate/"));
    let files: BTreeSet<String> = names.collect();
    let listed: BTreeSet<String> = STATEMENTS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(
        files, listed,
        "each statement has its parameters in the table, and the other way round"
    );
    let reached = REACHED.iter().map(|(name, ..)| *name);
    let others = [OPERATORS, PROCESSES].into_iter().flat_map(str::split_whitespace);
    let named: Vec<&str> = reached.chain(others).collect();
    let known: BTreeSet<&str> = named.iter().copied().collect();
    assert_eq!(named.len(), known.len(), "a statement is in one of the three lists");
    let answering = |name: &&str| ANSWERING.iter().any(|room| name.starts_with(room));
    let there = files.iter().map(String::as_str).filter(answering);
    assert_eq!(there.collect::<BTreeSet<_>>(), known, "who reaches a statement");
}

/// What was found, and which of the reasons were needed.
#[derive(Default)]
struct Report {
    sizes: BTreeMap<String, f64>,
    faults: Vec<String>,
    needed: BTreeSet<(&'static str, &'static str)>,
}

impl Report {
    fn add(&mut self, name: &str, case: &str, ran: &[Ran]) {
        for ran in ran {
            let pages = pages(&ran.plan);
            let (reached, read) =
                (REACHED.iter().find(|(of, ..)| *of == name), rows_read(&ran.plan));
            let took = ran.milliseconds;
            println!("{name:34} {case:26} {took:9.3} ms {pages:7} pages {read:7} rows");
            // As the host has its statements planned.
            if let Some((_, most, what)) = reached.filter(|(_, most, _)| read > *most)
                && case.ends_with(PLANS[0])
            {
                self.faults.push(format!("{name} ({case}) reads {read} rows, not {most}: {what}"));
            }
            for finding in findings(&ran.plan, &self.sizes) {
                // Until its tables are analysed, which is soon, one may sort or filter.
                if case.ends_with(EARLY) && !finding.starts_with("reads all") {
                    continue;
                }
                match REASONS.iter().find(|(of, what, _)| *of == name && *what == finding) {
                    Some((of, what, _)) => drop(self.needed.insert((of, what))),
                    None if rows() < NIGHTLY && OF_FEW_ROWS.contains(&(name, &finding)) => {}
                    None => {
                        println!("{name} {finding}: {}", ran.plan);
                        self.faults.push(format!("{name} ({case}) {finding}"));
                    }
                }
            }
        }
    }

    async fn every_function_was_called(&self, server: &PrivateServer) {
        let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        let sql =
            "SELECT p.proname::text FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang
            WHERE p.pronamespace = 'public'::regnamespace AND l.lanname = 'plpgsql' ORDER BY 1";
        let rows = client.query(sql, &[]).await.unwrap();
        let there: Vec<&str> = rows.iter().map(|row| row.get(0)).collect();
        let called: Vec<&str> = FUNCTIONS.iter().map(|(name, ..)| *name).collect();
        assert_eq!(there, called, "each function is called");
    }

    fn end(self) {
        assert!(self.faults.is_empty(), "{:#?}", self.faults);
        // Another number of rows may need a reason that this one does not.
        for (name, what, _) in REASONS {
            if !self.needed.contains(&(name, what)) {
                println!("{name} no longer {what}");
            }
        }
    }
}
