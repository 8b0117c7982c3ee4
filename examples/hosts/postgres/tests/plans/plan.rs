//! Plans as PostgreSQL ran them, those of functions and of references included.

use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;

use call_assistant_postgres::db::OPTIONS;
use private_server::PrivateServer;
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_postgres::{AsyncMessage, Client, Config, NoTls};

/// A table of so many rows is not read as a whole, and so many are not read for nothing.
const MANY: f64 = 1_000.0;
/// Nor are so many sorted, or so many pages looked at.
const SORTED: f64 = 2_500.0;
const PAGES: f64 = 10_000.0;
/// So many days are what is under way.
const DAYS: f64 = 3.0;

/// A connection as the host's, whose plans are told.
pub(crate) struct Explained {
    pub(crate) client: Client,
    told: UnboundedReceiver<String>,
}

/// What was run, and how.
pub(crate) struct Ran {
    pub(crate) text: String,
    pub(crate) milliseconds: f64,
    pub(crate) plan: Value,
}

impl Explained {
    pub(crate) async fn new(server: &PrivateServer, settings: &str) -> Self {
        let mut config: Config = server.url().parse().unwrap();
        config.options(format!("{OPTIONS} {settings}"));
        let (client, mut connection) = config.connect(NoTls).await.unwrap();
        let (teller, told) = unbounded_channel();
        tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
                if let AsyncMessage::Notice(notice) = message {
                    let _ = teller.send(notice.message().to_owned());
                }
            }
        });
        let tell = "LOAD 'auto_explain';
            SET auto_explain.log_level = notice; SET auto_explain.log_format = json;
            SET auto_explain.log_min_duration = 0; SET auto_explain.log_nested_statements = on;
            SET auto_explain.log_analyze = on; SET auto_explain.log_timing = off;
            SET auto_explain.log_buffers = on;";
        client.batch_execute(tell).await.expect("auto_explain is one of PostgreSQL's own modules");
        Self { client, told }
    }

    /// Runs it, and leaves nothing of it.
    pub(crate) async fn run(&mut self, name: &str, sql: &str) -> Vec<Ran> {
        self.client.batch_execute("BEGIN").await.unwrap();
        while self.told.try_recv().is_ok() {}
        let ran = self.client.batch_execute(sql).await;
        assert!(ran.is_ok(), "{name}: {sql}: {ran:?}");
        let mut plans = Vec::new();
        while let Ok(told) = self.told.try_recv() {
            let Some((duration, json)) = told.split_once(" ms  plan:\n") else { continue };
            let mut explained: Value = serde_json::from_str(json).unwrap();
            plans.push(Ran {
                text: explained["Query Text"].as_str().unwrap().to_owned(),
                milliseconds: duration.trim_start_matches("duration: ").parse().unwrap(),
                plan: explained["Plan"].take(),
            });
        }
        self.client.batch_execute("ROLLBACK").await.unwrap();
        plans
    }

    /// How many rows the statistics have of each table.
    pub(crate) async fn sizes(&self) -> BTreeMap<String, f64> {
        let sql = "SELECT relname::text, reltuples::float8 FROM pg_class
            WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'";
        let rows = self.client.query(sql, &[]).await.unwrap();
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    }
}

fn number(node: &Value, name: &str) -> f64 {
    node[name].as_f64().unwrap_or(0.0)
}

pub(crate) fn pages(plan: &Value) -> f64 {
    number(plan, "Shared Hit Blocks") + number(plan, "Shared Read Blocks")
}

/// How many rows a plan reads of tables and indexes, those included that a filter leaves out.
pub(crate) fn rows_read(node: &Value) -> f64 {
    let is_read = node["Relation Name"].is_string()
        && !node["Node Type"].as_str().unwrap().contains("Modify");
    let counted = ["Actual Rows", "Rows Removed by Filter", "Rows Removed by Index Recheck"];
    let own: f64 = counted.iter().map(|name| number(node, name)).sum();
    let children = node["Plans"].as_array().map_or(&[][..], Vec::as_slice);
    let own = if is_read { own * number(node, "Actual Loops") } else { 0.0 };
    own + children.iter().map(rows_read).sum::<f64>()
}

/// What a plan does that no plan is to do.
pub(crate) fn findings(plan: &Value, sizes: &BTreeMap<String, f64>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    if pages(plan) > PAGES {
        found.insert("reads many pages".to_owned());
    }
    walk(plan, sizes, &mut found);
    found
}

fn walk(node: &Value, sizes: &BTreeMap<String, f64>, found: &mut BTreeSet<String>) {
    let kind = node["Node Type"].as_str().unwrap();
    let relation = node["Relation Name"].as_str().unwrap_or_default();
    // A day's partition is the table.
    let table = relation.split_once("_2").map_or(relation, |(table, _)| table);
    let is_large = sizes.get(relation).is_some_and(|rows| *rows > MANY);
    let whole = kind == "Seq Scan"
        || (kind.starts_with("Index") && node["Index Cond"].is_null())
        || (kind == "Bitmap Index Scan" && node["Index Cond"].is_null());
    if whole && is_large {
        found.insert(format!("reads all of {table}"));
    }
    let loops = number(node, "Actual Loops");
    let removed = ["Rows Removed by Filter", "Rows Removed by Join Filter"];
    if removed.iter().any(|name| number(node, name) * loops > MANY) {
        found.insert(format!("reads more than it needs of {table}"));
    }
    let children = node["Plans"].as_array().map_or(&[][..], Vec::as_slice);
    if kind == "Sort" && children.iter().any(|child| number(child, "Actual Rows") > SORTED) {
        found.insert("sorts".to_owned());
    }
    if kind.ends_with("Append") {
        let days: Vec<&Value> =
            children.iter().filter(|child| child["Relation Name"].is_string()).collect();
        let ran: f64 = days.iter().map(|day| number(day, "Actual Loops")).sum();
        if let [first, ..] = &days[..]
            && ran > DAYS * loops
        {
            let table = first["Relation Name"].as_str().unwrap().split("_2").next().unwrap();
            found.insert(format!("looks into every day of {table}"));
        }
    }
    for child in children {
        walk(child, sizes, found);
    }
}
