//! How each statement is run over a million rows: whichever plan is forced, none reads a table from end
//! to end, or much more than it needs.
//!
//! ```text
//! PLANS_ROWS=1000000 cargo test --test plans -- --nocapture
//! ```
#![allow(clippy::disallowed_methods, clippy::indexing_slicing, clippy::unwrap_used)]

mod plan;
mod table;

use std::collections::{BTreeMap, BTreeSet};

use call_assistant_postgres::db::{self, Database};
use call_assistant_postgres::private_server::{PrivateServer, Settings};
use tokio_postgres::NoTls;

use plan::{Explained, Ran, findings, pages};
use table::{FUNCTIONS, REASONS, STATEMENTS};

const PLANS: [&str; 2] = ["force_generic_plan", "force_custom_plan"];

/// How many events have been delivered. There is a call for each, an attempt and a delivery.
fn rows() -> u64 {
    std::env::var("PLANS_ROWS").map_or(400_000, |rows| rows.parse().unwrap())
}

/// The parameters of an account that has a quarter of everything, and of one that has little.
fn accounts(rows: u64) -> [(&'static str, BTreeMap<&'static str, String>); 2] {
    // A delivery in the middle, and the first that is pending: `endpoint_of` says whose.
    let quiet = rows / 2 / 10_000 * 10_000 + 4_517;
    let of = |endpoint: u64, ended: u64, pending: u64, count: u64| {
        BTreeMap::from([
            ("account", format!("acct_{endpoint}")),
            ("endpoint", endpoint.to_string()),
            ("shard", (endpoint % 64).to_string()),
            ("ended", ended.to_string()),
            ("pending", pending.to_string()),
            ("count", count.to_string()),
            ("few", count.min(8).to_string()),
            ("now", "2026-03-30 23:00+00".to_owned()),
            ("missed", "'{failed,parked,skipped}'".to_owned()),
        ])
    };
    [("busy", of(0, rows / 8 * 4, rows + 4, 128)), ("quiet", of(123, quiet, rows + 4_517, 1))]
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

async fn database(rows: u64) -> PrivateServer {
    let server = PrivateServer::start(Settings::default()).unwrap();
    db::migrate(&Database::new(&server.url(), 1).unwrap()).await.unwrap();
    let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    let fill = include_str!("fill.sql").replace("{rows}", &rows.to_string());
    client.batch_execute(&fill).await.unwrap();
    client.batch_execute("VACUUM ANALYZE").await.unwrap();
    server
}

/// The text of a file of `sql`.
fn sql(name: &str) -> String {
    let path = format!("{}/sql/{name}.sql", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_statement_reads_a_table_from_end_to_end() {
    every_statement_is_in_the_table();
    let rows = rows();
    let server = database(rows).await;
    let mut report = Report::default();
    for (account, names) in accounts(rows) {
        for plans in PLANS {
            let case = format!("{account}, {plans}");
            let mut session = Explained::new(&server, plans).await;
            report.sizes = session.sizes().await;
            for (name, parameters) in STATEMENTS {
                let text = sql(name);
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
    let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/sql")).unwrap();
    let files: BTreeSet<String> = folder
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .map(|name| name.strip_suffix(".sql").unwrap().to_owned())
        .collect();
    let listed: BTreeSet<String> = STATEMENTS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(files, listed, "each file has its parameters in the table, and the other way round");
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
            println!("{name:26} {case:26} {:9.3} ms {pages:7} pages", ran.milliseconds);
            for finding in findings(&ran.plan, &self.sizes) {
                match REASONS.iter().find(|(of, what, _)| *of == name && *what == finding) {
                    Some((of, what, _)) => drop(self.needed.insert((of, what))),
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
        for (name, what, reason) in REASONS {
            assert!(self.needed.contains(&(name, what)), "{name} no longer {what}, for {reason}");
        }
    }
}
