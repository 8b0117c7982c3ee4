//! What operators ask at a terminal, answered by the dashboard's own routes.

use std::error::Error;
use std::io;
use std::sync::Arc;

use http::StatusCode;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use crate::clocks;
use crate::db::Address;
use crate::exit::{self, Ended};
use crate::key_ring::KeyRing;
use crate::store::Postgres;
use host::auth::access::Access;
use host::dashboard::{Dashboard, MAX_LIST, Verb};
use host::flags::last_words;
use host::store::EndpointLimit;
use host::store::scope::By;
use host::store::scope::Login;
use host::terminal;

/// A request to the dashboard, and how its answer is printed.
#[derive(Debug)]
pub(crate) struct Asking {
    pub(crate) database: Address,
    pub(crate) by: By,
    /// The ring; `None` where no secret is read or written.
    pub(crate) ring: Option<KeyRing>,
    pub(crate) allow_loopback: bool,
    pub(crate) endpoint_limit: EndpointLimit,
    pub(crate) method: Verb,
    pub(crate) path: Vec<String>,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) body: Value,
    /// The field of an answer that has the rows of a list.
    pub(crate) rows: &'static str,
    /// The field of a query that says where a page begins.
    pub(crate) from: &'static str,
    /// The most rows of a list.
    pub(crate) limit: Option<usize>,
    pub(crate) print: Print,
}

/// How an answer is printed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Print {
    /// As JSON.
    Json,
    /// Each row as a line of JSON, without the body of its event.
    Lines,
    /// As text, of a list these columns.
    Text(&'static [&'static str]),
}

/// Asks, page by page where there are several, and prints the answers.
///
/// # Errors
/// The database does not answer, or the dashboard refuses: its words.
pub(crate) async fn run(asking: Asking) -> Result<(), Box<dyn Error>> {
    let Asking { database, ring, method, path, mut query, mut body, print, .. } = asking;
    clocks::reach(&database).await?;
    // A ring of nobody opens nothing, and nothing asks it to.
    let ring = ring.unwrap_or_else(KeyRing::random);
    let store = Postgres::at(&database, ring)?.limited(asking.endpoint_limit);
    // Links are made for processes that require a token.
    let dashboard = Dashboard::new(store, Access::Tokens(Arc::default()), asking.allow_loopback);
    let login = Login::at_terminal(asking.by);
    let (mut rows, mut cancelled) = (Vec::new(), 0_u64);
    let (mut left, mut next_place) = (asking.limit, None);
    loop {
        if let Some(left) = left {
            set(&mut query, "limit", left.min(MAX_LIST).to_string());
        }
        let segments = path.iter().map(String::as_str).collect();
        let answer =
            dashboard.ask(&login, &method.method(), segments, query.clone(), body.clone()).await;
        let (head, answered) = answer.into_parts();
        let mut answered: Value = serde_json::from_slice(&answered.collect().await?.to_bytes())?;
        if !head.status.is_success() {
            let message = answered.pointer("/error/message").and_then(Value::as_str);
            let message = message.unwrap_or("the dashboard refuses").to_owned();
            let code = answered.pointer("/error/code").and_then(Value::as_str);
            return Err(match head.status {
                StatusCode::BAD_REQUEST => Ended::Usage(message).into(),
                StatusCode::SERVICE_UNAVAILABLE if code != Some("key_ring") => {
                    Ended::Again(message).into()
                }
                _ => message.into(),
            });
        }
        // Cancelling goes on where this step has ended.
        if let Some(step) = answered.get("cancelled").and_then(Value::as_u64) {
            cancelled = cancelled.saturating_add(step);
            let (Some(next), Some(body)) =
                (answered.get("next").filter(|next| !next.is_null()), body.as_object_mut())
            else {
                exit::is_read(one(print, &json!({ "cancelled": cancelled })))?;
                return Ok(());
            };
            body.insert("after".to_owned(), next.clone());
            continue;
        }
        let Some(Value::Array(page)) = answered.get_mut(asking.rows).map(Value::take) else {
            exit::is_read(one(print, &answered))?;
            return Ok(());
        };
        // A journal's page always says where the next one begins, which may be empty. One of deliveries may be empty, and
        // say how far it has looked.
        let is_last = page.is_empty() && answered.get("looked_to").is_none_or(Value::is_null);
        left = left.map(|left| left.saturating_sub(page.len()));
        match print {
            Print::Lines => {
                if !exit::is_read(lines(page))? {
                    return Ok(());
                }
            }
            Print::Json | Print::Text(_) => rows.extend(page),
        }
        let next = answered.get("next").and_then(Value::as_str);
        let Some(next) = next.filter(|_| !is_last) else { break };
        if left == Some(0) {
            next_place = Some(next.to_owned());
            break;
        }
        set(&mut query, asking.from, next.to_owned());
    }
    match print {
        Print::Lines => {}
        Print::Json => exit::print(json!({ "data": rows }))?,
        Print::Text(columns) => _ = exit::is_read(table(columns, &rows))?,
    }
    if rows.is_empty() && matches!(print, Print::Text(_)) {
        last_words("There are none.");
    }
    if let Some(place) = next_place {
        last_words(&format!("There may be more: --after {place}"));
    }
    Ok(())
}

fn set(query: &mut Vec<(String, String)>, name: &str, value: String) {
    query.retain(|(other, _)| other != name);
    query.push((name.to_owned(), value));
}

fn one(print: Print, answered: &Value) -> io::Result<()> {
    match (print, answered.as_object()) {
        (Print::Text(_), Some(fields)) => {
            let width = fields.keys().map(String::len).max().unwrap_or_default();
            fields.iter().try_for_each(|(name, value)| {
                terminal::print(format_args!("{name:width$}  {}", text(Some(value))))
            })
        }
        _ => terminal::print(answered),
    }
}

fn lines(page: Vec<Value>) -> io::Result<()> {
    for mut row in page {
        row.as_object_mut().map(|row| row.remove("payload"));
        terminal::print(row)?;
    }
    Ok(())
}

fn table(columns: &[&str], rows: &[Value]) -> io::Result<()> {
    let mut table = vec![columns.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()];
    table.extend(rows.iter().map(|row| columns.iter().map(|name| text(row.get(*name))).collect()));
    let width = |at: usize| {
        table.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns.len()).filter_map(width).collect();
    for row in &table {
        let line: String =
            row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}  ")).collect();
        terminal::print(line.trim_end())?;
    }
    Ok(())
}

fn text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "-".to_owned(),
        // A line feed would begin another row.
        Some(Value::String(text)) => terminal::escaped(text).into_owned(),
        Some(other) => other.to_string(),
    }
}
