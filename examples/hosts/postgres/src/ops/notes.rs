//! Notes beside an answer at a terminal: why an endpoint fails, and which levers hold sending back.

use std::collections::BTreeSet;
use std::error::Error;

use call_assistant::id::{AccountId, EndpointId};
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use super::ask::{failure, instant};
use crate::store::Postgres;
use host::dashboard::Dashboard;
use host::flags::last_words;
use host::store::levers::LeverRow;
use host::store::scope::Login;

/// Asks for something that is shown; null if the dashboard refuses.
pub(super) async fn shown(
    dashboard: &Dashboard<Postgres>,
    login: &Login,
    path: Vec<&str>,
    query: &[(&str, &str)],
) -> Result<Value, Box<dyn Error>> {
    let query = query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let answer = dashboard.ask(login, &Method::GET, path, query.collect(), json!({})).await;
    let is_shown = answer.status().is_success();
    let read = serde_json::from_slice(&answer.into_body().collect().await?.to_bytes())?;
    Ok(if is_shown { read } else { Value::Null })
}

/// Returns the latest failed attempt to an endpoint that fails, or was disabled because it failed.
pub(super) async fn latest_failure(
    dashboard: &Dashboard<Postgres>,
    login: &Login,
    endpoint: &Value,
) -> Result<Option<String>, Box<dyn Error>> {
    let fails = endpoint["failing_since"].is_string()
        || matches!(endpoint["reason"].as_str(), Some("gone" | "failing"));
    let (Some(account), Some(id), true) =
        (endpoint["account_id"].as_str(), endpoint["id"].as_str(), fails)
    else {
        return Ok(None);
    };
    let path = vec!["accounts", account, "deliveries"];
    let query = [("endpoint", id), ("status", "failing"), ("limit", "1")];
    Ok(shown(dashboard, login, path, &query).await?.pointer("/data/0").and_then(failure))
}

/// Returns why a parked or skipped delivery was not sent, as far as the endpoint shows it.
pub(super) async fn not_sent(
    dashboard: &Dashboard<Postgres>,
    login: &Login,
    delivery: &Value,
) -> Result<Option<&'static str>, Box<dyn Error>> {
    match (delivery["status"].as_str(), delivery["endpoint_id"].as_str()) {
        (Some("skipped"), _) => Ok(Some("the endpoint was disabled")),
        (Some("parked"), Some(id)) => {
            let endpoint = shown(dashboard, login, vec!["endpoints", id], &[]).await?;
            let since = instant(&endpoint, "since");
            let is_since = |field| since.is_some() && since <= instant(delivery, field);
            Ok(Some(match endpoint.get("reason").and_then(Value::as_str) {
                Some("deleted") if is_since("ended_at") => "the endpoint was deleted",
                Some(_) if is_since("ended_at") => "the endpoint was disabled",
                // It was active from the event on.
                None if is_since("event_created_at") => "cancelled",
                _ => "cancelled, or the endpoint was disabled",
            }))
        }
        _ => Ok(None),
    }
}

/// Tells which of these levers hold back something that was asked for or shown.
pub(super) fn tell_held_back(levers: &[LeverRow], path: &[String], rows: &[Value]) {
    let ids =
        rows.iter().flat_map(|row| ["id", "account_id", "endpoint_id"].map(|name| &row[name]));
    let asked_for = path.get(1).map(String::as_str);
    let ids: BTreeSet<&str> = ids.filter_map(Value::as_str).chain(asked_for).collect();
    for lever in levers {
        let account = lever.of.account_id.as_ref().map(AccountId::as_str);
        let endpoint = lever.of.endpoint_id.as_ref().map(EndpointId::as_str);
        if account.into_iter().chain(endpoint).all(|id| ids.contains(id)) {
            let (set, id) = (lever.words(), &lever.id);
            last_words(&format!("Sending is limited: {set}; to undo: `levers undo {id}`"));
        }
    }
}
