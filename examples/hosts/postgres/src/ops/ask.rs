//! What operators ask at a terminal, answered by the dashboard's own routes.

use std::error::Error;
use std::io;
use std::sync::Arc;

use call_assistant::Timestamp;
use call_assistant::webhook::event::EventType;
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use super::notes;
use crate::clocks;
use crate::db::Address;
use crate::exit::{self, Ended};
use crate::key_ring::KeyRing;
use crate::store::Postgres;
use host::auth::access::Access;
use host::dashboard::{Action, Dashboard, MAX_LIST};
use host::flags::last_words;
use host::store::scope::{By, Login};
use host::store::{EndpointLimit, Store as _};
use host::terminal;

/// A request to the dashboard, and how its answer is printed.
#[derive(Debug)]
pub(crate) struct Asking {
    pub(crate) action: Action,
    pub(crate) database: Address,
    pub(crate) by: By,
    /// A word for the action, where the answer does not show it.
    pub(crate) heading: &'static str,
    /// The address of the dashboard, which a link begins with.
    pub(crate) dashboard: Option<String>,
    /// The rows of a list that are printed; `None`: all.
    pub(crate) kept: Option<Kept>,
    pub(crate) allow_loopback: bool,
    pub(crate) endpoint_limit: EndpointLimit,
    pub(crate) method: Method,
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

/// The rows of a list that are printed.
#[derive(Debug)]
pub(crate) struct Kept {
    /// The field that has the instant of a row.
    pub(crate) by: &'static str,
    pub(crate) from: Timestamp,
    pub(crate) until: Timestamp,
    pub(crate) account: Option<String>,
}

impl Kept {
    fn has(&self, row: &Value) -> bool {
        let is_within = |at| self.from <= at && at < self.until;
        let account = self.account.as_deref();
        instant(row, self.by).is_none_or(is_within)
            && account.is_none_or(|account| row["account_id"] == account)
    }

    /// Returns whether a page ends before the first instant, and so does each that follows: its rows are newest first.
    fn is_passed(&self, page: &[Value]) -> bool {
        let (first, last) = (page.first(), page.last());
        let at = |row: Option<&Value>| row.and_then(|row| instant(row, self.by));
        at(last).is_some_and(|last| last < self.from && at(first) > Some(last))
    }
}

pub(super) fn instant(row: &Value, field: &str) -> Option<Timestamp> {
    Timestamp::parse(row.get(field)?.as_str()?).ok()
}

/// How an answer is printed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Print {
    /// As JSON.
    Json,
    /// Each row as a line of JSON, without the body of its event.
    Lines,
    /// As text, of a list these columns.
    Text(&'static str),
}

/// Asks, page by page where there are several, and prints the answers.
///
/// # Errors
/// The database does not answer, or the dashboard refuses: its words.
pub(crate) async fn run(asking: Asking, ring: KeyRing) -> Result<(), Box<dyn Error>> {
    let Asking { database, method, path, mut query, mut body, print, .. } = asking;
    clocks::reach(&database).await?;
    let store = Postgres::at(&database, ring)?.limited(asking.endpoint_limit);
    // Links are made for processes that require a token.
    let tokens = Access::Tokens(Arc::default());
    let dashboard = Dashboard::new(store.clone(), tokens, asking.allow_loopback);
    let login = Login::at_terminal(asking.by);
    let (is_text, mut heading) = (matches!(print, Print::Text(_)), asking.heading);
    let mut endpoint = Value::Null;
    if matches!(asking.action, Action::DeleteEndpoint | Action::PingEndpoint) {
        let path = path.iter().take(2).map(String::as_str).collect();
        endpoint = notes::shown(&dashboard, &login, path, &[]).await?;
    }
    // The dashboard answers to a second deletion, and to a ping that will be skipped, as to others.
    match (asking.action, endpoint.get("reason").and_then(Value::as_str)) {
        (Action::DeleteEndpoint, Some("deleted")) => heading = "already deleted",
        (Action::PingEndpoint, Some(reason)) if reason != "deleted" => {
            let todo = "run `endpoints enable` first";
            let why = format!("the endpoint is disabled ({reason}): nothing is sent; {todo}");
            return Err(why.into());
        }
        _ => {}
    }
    let tells_held_back = is_text
        && matches!(
            asking.action,
            Action::ShowEndpoint
                | Action::PingEndpoint
                | Action::ListDeliveries
                | Action::ShowDelivery
        );
    // Read first: a ping that was accepted is no reason to run the command again.
    let mut levers = Vec::new();
    if tells_held_back {
        levers = store.levers(login.operator()?).await.map_err(exit::refused)?.levers;
    }
    let (mut rows, mut cancelled) = (Vec::new(), 0_u64);
    let (mut left, mut next_place) = (asking.limit, None);
    loop {
        if let Some(left) = left {
            set(&mut query, "limit", left.min(MAX_LIST).to_string());
        }
        let segments = path.iter().map(String::as_str).collect();
        let answer = dashboard.ask(&login, &method, segments, query.clone(), body.clone()).await;
        let (head, answered) = answer.into_parts();
        let mut answered: Value = serde_json::from_slice(&answered.collect().await?.to_bytes())?;
        if !head.status.is_success() {
            let message = answered.pointer("/error/message").and_then(Value::as_str);
            let message = message.unwrap_or("the request was refused").to_owned();
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
                exit::is_read(one(print, "", &json!({ "cancelled": cancelled })))?;
                let of_type = body.get("type").and_then(Value::as_str);
                of_type.filter(|_| cancelled == 0 && is_text).inspect(|of_type| look_at(of_type));
                return Ok(());
            };
            body.insert("after".to_owned(), next.clone());
            continue;
        }
        let Some(Value::Array(mut page)) = answered.get_mut(asking.rows).map(Value::take) else {
            let link = answered.get("path").and_then(Value::as_str);
            let url = asking.dashboard.zip(link).map(|(at, path)| {
                let scheme = if at.contains("://") { "" } else { "http://" };
                format!("{scheme}{}{path}", at.trim_end_matches('/'))
            });
            if let (Some(url), Some(answered)) = (url, answered.as_object_mut()) {
                answered.insert("url".to_owned(), url.into());
            }
            if is_text
                && asking.action == Action::ShowEndpoint
                && let Some(failure) = notes::latest_failure(&dashboard, &login, &answered).await?
                && let Some(fields) = answered.as_object_mut()
            {
                fields.insert("latest_failure".to_owned(), failure.into());
            }
            if asking.action == Action::ShowDelivery
                && let Some(reason) = notes::not_sent(&dashboard, &login, &answered).await?
                && let Some(fields) = answered.as_object_mut()
            {
                fields.insert("reason".to_owned(), reason.into());
            }
            exit::is_read(one(print, heading, &answered))?;
            notes::tell_held_back(&levers, &path, &[answered, endpoint]);
            return Ok(());
        };
        // A journal's page always says where the next one begins, which may be empty. One of deliveries may be empty, and
        // say how far it has looked.
        let mut is_last = page.is_empty() && answered.get("looked_to").is_none_or(Value::is_null);
        if let Some(kept) = &asking.kept {
            is_last |= kept.is_passed(&page);
            page.retain(|row| kept.has(row));
        }
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
    if rows.is_empty() && is_text {
        last_words("No rows.");
        if let Some((_, of_type)) = query.iter().find(|(name, _)| name == "type") {
            look_at(of_type);
        }
    }
    if let Some(place) = next_place {
        last_words(&format!("There may be more rows: --after {place}"));
    }
    notes::tell_held_back(&levers, &path, &rows);
    Ok(())
}

fn set(query: &mut Vec<(String, String)>, name: &str, value: String) {
    query.retain(|(other, _)| other != name);
    query.push((name.to_owned(), value));
}

/// Names the known types to who found nothing with another one, which may be misspelt.
fn look_at(of_type: &str) {
    let known: Vec<_> = EventType::KNOWN.iter().map(EventType::as_str).collect();
    if !known.contains(&of_type) {
        last_words(&format!("--type: nothing found; the known types are {}", known.join(", ")));
    }
}

/// The columns of the attempts of a delivery.
const ATTEMPTS: &str = "number began_at took_ms answer response";

fn one(print: Print, heading: &str, answered: &Value) -> io::Result<()> {
    let (Print::Text(_), Some(fields)) = (print, answered.as_object()) else {
        return terminal::print(answered);
    };
    if !heading.is_empty() {
        terminal::print(heading)?;
    }
    // A secret is shown this once, and first. The text of an event is shown once, as it is sent.
    let attempts = fields.get("attempts").and_then(Value::as_array);
    let next = attempts.map(|_| ("next", next(answered)));
    let secret = fields.get("secret").map(|secret| ("secret", text(Some(secret))));
    let is_shown =
        |name: &str| !["secret", "attempts", "outlook", "next_at", "payload"].contains(&name);
    let others = fields.iter().filter(|(name, _)| is_shown(name));
    let others = others.map(|(name, value)| (name.as_str(), text(Some(value))));
    let lines: Vec<_> = secret.into_iter().chain(next).chain(others).collect();
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    for (name, value) in lines {
        terminal::print(format_args!("{name:width$}  {value}"))?;
    }
    let newest_first: Vec<Value> = attempts.into_iter().flatten().rev().cloned().collect();
    if newest_first.is_empty() { Ok(()) } else { table(ATTEMPTS, &newest_first) }
}

/// Returns what comes next of a delivery.
fn next(delivery: &Value) -> String {
    let outlook = &delivery["outlook"];
    let told = |name| text(Some(&outlook[name]));
    match outlook["is"].as_str() {
        Some("waiting") => format!("attempt {} at {}", told("number"), told("due")),
        Some("in_flight") => format!("attempt {} is in flight", told("number")),
        Some("parks") => format!("none, the delivery will be parked, not sent: {}", told("reason")),
        _ if outlook["not_redeliverable"].is_string() => {
            format!("none, and cannot be redelivered: {}", told("not_redeliverable"))
        }
        _ => format!("none; `deliveries redeliver` until {}", told("redeliverable_until")),
    }
}

/// Returns how an attempt ended.
fn answer(attempt: &Value) -> String {
    match attempt["http_status"].as_u64() {
        Some(status) => format!("HTTP {status}"),
        None => {
            text(attempt.get("reason").filter(|why| why.is_string()).or(attempt.get("outcome")))
        }
    }
}

/// Returns the latest attempt of a delivery in words.
pub(super) fn failure(delivery: &Value) -> Option<String> {
    let last = delivery["attempts"].as_array()?.last()?;
    let (why, at, id) = (answer(last), text(last.get("began_at")), text(delivery.get("id")));
    let body = cell(last, "response");
    let said = if body.is_empty() { body } else { format!(": {body}") };
    Some(format!("{why} at {at}, delivery {id}{said}"))
}

/// Returns a cell of a table. Some columns say what several fields say.
fn cell(row: &Value, column: &str) -> String {
    match (column, &row[column]) {
        ("last", _) => {
            let last = row["attempts"].as_array().and_then(|attempts| attempts.last());
            last.map_or_else(|| "-".to_owned(), answer)
        }
        ("next", _) => text(row.get("next_at")),
        ("answer", _) => answer(row),
        ("response", body) => {
            let body = body["text"].as_str().unwrap_or_default();
            terminal::escaped(body.lines().next().unwrap_or_default()).into_owned()
        }
        ("shards", Value::Array(shards)) => shards.len().to_string(),
        // An endpoint of the fleet that is active, and fails.
        ("reason", Value::Null) if row["waiting"].is_number() => match row["outcome"].as_str() {
            Some(outcome) if outcome.starts_with(|digit: char| digit.is_ascii_digit()) => {
                format!("fails: HTTP {outcome}")
            }
            Some(outcome) => format!("fails: {}", terminal::escaped(outcome)),
            None => "fails".to_owned(),
        },
        ("account_id", Value::Null)
            if row["per_second"].is_number() && row["endpoint_id"].is_null() =>
        {
            "everything".to_owned()
        }
        (_, value) => text(Some(value)),
    }
}

fn lines(page: Vec<Value>) -> io::Result<()> {
    for mut row in page {
        row.as_object_mut().map(|row| row.remove("payload"));
        terminal::print(row)?;
    }
    Ok(())
}

fn table(columns: &str, rows: &[Value]) -> io::Result<()> {
    let columns: Vec<&str> = columns.split(' ').collect();
    let mut table = vec![columns.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()];
    table.extend(rows.iter().map(|row| columns.iter().map(|name| cell(row, name)).collect()));
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
        // A clock that is right is not ahead by -0.000.
        Some(Value::Number(number)) if number.is_f64() => {
            let shown = format!("{:.3}", number.as_f64().unwrap_or_default());
            if shown == "-0.000" { "0.000".to_owned() } else { shown }
        }
        Some(Value::Array(values)) if values.is_empty() => "none".to_owned(),
        Some(Value::Array(values)) if values.iter().all(Value::is_string) => {
            let texts = values.iter().map(|value| text(Some(value)));
            texts.collect::<Vec<_>>().join(", ")
        }
        Some(other) => other.to_string(),
    }
}
