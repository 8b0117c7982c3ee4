//! Rows as the dashboard's JSON. No secret is in any of it: those are shown once, when made.

use call_assistant::Timestamp;
use call_assistant::rest::server::StoredKey;
use call_assistant::webhook::event::EventType;
use call_assistant::webhook::sender::{
    DeliveryStatus, FAILURES_TO_DISABLE, Outcome, Outlook, RecoveryBy, RedeliverError,
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::http::answer::{Answer, large, ok};
use crate::post::signed::{self, ShownRequest, SignatureState};
use crate::store::levers::LeverRow;
use crate::store::plan::key_state;
use crate::store::scope::Operator;
use crate::store::{
    Account, AlertRow, AttemptRow, DeliveryRow, EndpointRow, LISTED_BODY, Listed, PartRows,
    RecoveryRow, Unreadable,
};

/// The characters of an id that an address of the page does not have as they are.
const NOT_AS_IT_IS: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Returns an account, and for an operator how it stands.
pub(super) fn account(row: &Account, by: Option<Operator>) -> Value {
    if by.is_none() {
        return json!({
            "id": row.id,
            "business_name": row.business_name,
            "timezone": row.timezone,
            "calls": row.calls,
        });
    }
    json!({
        "id": row.id,
        "business_name": row.business_name,
        "timezone": row.timezone,
        "plan": row.plan.name,
        "entitlements": {
            "public_api": row.plan.public_api,
            "webhooks": row.plan.webhooks.check_webhooks().is_ok(),
            "recovery": row.plan.webhooks.check_recovery(RecoveryBy::Program).is_ok(),
        },
        "subscription_active": row.subscription_active,
        "closing": row.closing,
        "calls": row.calls,
    })
}

/// Returns a key without its secret.
pub(super) fn key(key: &StoredKey, now: Timestamp) -> Value {
    json!({
        "id": key.id,
        "account_id": key.account_id,
        "name": key.name,
        "hint": key.hint,
        "mode": key.mode,
        "scopes": key.scopes,
        "state": key_state(key, now),
        "created_at": key.created_at,
        "last_used_at": key.last_used_at,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
    })
}

/// Returns an endpoint and its health.
pub(super) fn endpoint(row: &EndpointRow) -> Value {
    let health = &row.health;
    json!({
        "id": row.id,
        "account_id": row.account_id,
        "url": row.url,
        "description": row.description,
        "status": if health.is_active() { "active" } else { "disabled" },
        "reason": health.disabled(),
        "since": health.since(),
        "consecutive_failures": health.failures(),
        "failures_to_disable": FAILURES_TO_DISABLE,
        "created_at": row.created_at,
        "failing_since": health.first_failed_at(),
        "suspect_since": health.first_failed_at().filter(|_| health.is_suspect()),
        "previous_secrets_until": row.previous_secrets,
    })
}

/// A delivery with each of its attempts.
#[derive(Debug, Serialize)]
pub(super) struct Delivery<'a> {
    id: &'a str,
    account_id: &'a str,
    endpoint_id: &'a str,
    url: &'a str,
    event_id: &'a str,
    #[serde(rename = "type")]
    event_type: &'a EventType,
    status: DeliveryStatus,
    pending: bool,
    event_created_at: Timestamp,
    attempts_made: u8,
    by_hand: bool,
    next_at: Option<Timestamp>,
    outlook: Value,
    ended_at: Option<Timestamp>,
    attempts: Vec<Value>,
    payload: Option<&'a RawValue>,
    /// The bytes that are signed, which are text. In a list they are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_sha256: Option<String>,
}

/// Returns a delivery, with all of its body.
pub(super) fn delivery(row: &DeliveryRow) -> Delivery<'_> {
    let mut shown = listed(row);
    shown.body = row.body.as_ref().map(|body| body.as_str());
    shown.body_sha256 = shown.body.map(|body| signed::hex(&Sha256::digest(body)));
    shown.payload = shown.body.and_then(|body| serde_json::from_str(body).ok());
    shown
}

/// A delivery in a list, or the id of one that cannot be read.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum ListedDelivery<'a> {
    Row(Box<Delivery<'a>>),
    Unreadable { id: &'a str, unreadable: bool },
}

/// Returns deliveries as [`rows`] does.
pub(super) fn deliveries(rows: &[Listed<DeliveryRow>]) -> Vec<ListedDelivery<'_>> {
    let mut shown = Vec::new();
    for row in rows {
        shown.push(match row {
            Ok(row) => ListedDelivery::Row(Box::new(listed(row))),
            Err(Unreadable(id)) => ListedDelivery::Unreadable { id, unreadable: true },
        });
    }
    shown
}

fn listed(row: &DeliveryRow) -> Delivery<'_> {
    let body = row.body.as_ref().map(|body| body.as_str());
    let body = body.filter(|body| body.len() <= LISTED_BODY);
    Delivery {
        id: row.id.as_str(),
        account_id: row.account_id.as_str(),
        endpoint_id: row.endpoint_id.as_str(),
        url: &row.url,
        event_id: row.event_id.as_str(),
        event_type: &row.event_type,
        status: row.state.status(),
        pending: row.state.is_pending(),
        event_created_at: row.state.event_created_at(),
        attempts_made: row.state.attempts(),
        by_hand: row.state.is_manual(),
        next_at: match row.outlook {
            Outlook::Waiting { due, .. } => Some(due),
            _ => None,
        },
        outlook: outlook(&row.outlook),
        ended_at: row.state.ended_at(),
        attempts: row.log.iter().map(attempt).collect(),
        payload: body.and_then(|body| serde_json::from_str(body).ok()),
        body: None,
        body_sha256: None,
    }
}

/// Returns what comes next of a delivery.
fn outlook(next: &Outlook) -> Value {
    let ended = |name, redeliverable: &Result<Timestamp, RedeliverError>| {
        json!({
            "is": name,
            "redeliverable_until": redeliverable.ok(),
            "not_redeliverable": redeliverable.err().map(|error| error.to_string()),
        })
    };
    match next {
        Outlook::Waiting { number, manual, due, .. } => {
            json!({ "is": "waiting", "number": number, "by_hand": manual, "due": due })
        }
        Outlook::InFlight { number, manual, deadline, lease_until, parks, .. } => json!({
            "is": "in_flight",
            "number": number,
            "by_hand": manual,
            "deadline": deadline,
            "lease_until": lease_until,
            "parks": parks,
        }),
        Outlook::Parks { reason, redeliverable, .. } => {
            let mut shown = ended("parks", redeliverable);
            shown["reason"] = value(reason);
            shown
        }
        Outlook::Ended { redeliverable, .. } => ended("ended", redeliverable),
        _ => Value::Null,
    }
}

fn attempt(row: &AttemptRow) -> Value {
    let AttemptRow { entry, request: sent, .. } = row;
    let mut shown = value(entry);
    if let Some(sent) = sent {
        shown["request"] = request(sent);
    }
    shown["number"] = entry.attempt.into();
    // The dashboard has its own name for it.
    if let Some(manual) = shown.as_object_mut().and_then(|entry| entry.remove("manual")) {
        shown["by_hand"] = manual;
    }
    shown["http_status"] = match entry.outcome {
        Outcome::Answered(status) => status.as_u16().into(),
        _ => Value::Null,
    };
    shown
}

/// Returns the request of an attempt: its signature only where nobody can replay it.
fn request(sent: &ShownRequest) -> Value {
    let from = match sent.signature {
        SignatureState::TooRecent(from) => Some(from),
        _ => None,
    };
    json!({
        "t": sent.signed.t,
        "secrets": sent.signed.secrets.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "headers": sent.headers,
        "signature": sent.signature.as_str(),
        "signature_from": from,
        "fault": sent.signed.fault,
    })
}

/// Returns a recovery, as far as it has come.
pub(super) fn recovery(row: &RecoveryRow) -> Value {
    json!({
        "id": row.id,
        "endpoint_id": row.endpoint_id,
        "from": row.missed.from(),
        "until": row.missed.until(),
        "types": row.missed.types(),
        "statuses": row.missed.statuses(),
        "status": row.status,
        "paused": row.paused,
        "counted": row.counted,
        "more": row.more,
        "redelivered": row.redelivered,
        "left_out": row.left_out,
        "started_at": row.started_at,
        "ended_at": row.ended_at,
    })
}

/// Returns an alert, with where the page shows what it is about.
pub(super) fn alert(row: &AlertRow) -> Value {
    let mut shown = value(row);
    shown["severity"] = row.severity().into();
    let [account, endpoint] = [row.account_id.as_str(), row.endpoint_id.as_str()]
        .map(|id| utf8_percent_encode(id, NOT_AS_IT_IS));
    shown["link"] = format!("/#{account}?endpoint={endpoint}").into();
    shown
}

/// Returns what is set of an account, for its owner: not by whom.
pub(super) fn levers_of(rows: &[LeverRow]) -> Value {
    let row = |row: &LeverRow| {
        json!({
            "id": row.id,
            "account_id": row.of.account_id,
            "endpoint_id": row.of.endpoint_id,
            "per_second": row.per_second,
            "set_at": row.set_at,
        })
    };
    json!({ "levers": rows.iter().map(row).collect::<Vec<_>>(), "senders": [] })
}

/// Returns the rows of a list, and of those that cannot be read their ids.
pub(super) fn rows<T>(rows: &[Listed<T>], show: impl Fn(&T) -> Value) -> Vec<Value> {
    let row = |row: &Listed<T>| match row {
        Ok(row) => show(row),
        Err(Unreadable(id)) => json!({ "id": id, "unreadable": true }),
    };
    rows.iter().map(row).collect()
}

/// Returns a list.
pub(super) fn list(items: Vec<Value>) -> Value {
    json!({ "data": items })
}

/// Answers with a page of a list, and where the next one begins.
pub(super) fn page<T>(part: PartRows<T>, show: impl Fn(&[T]) -> Vec<Value>) -> Answer {
    let PartRows { rows, next, .. } = part;
    let shown = || json!({ "data": show(&rows), "has_more": next.is_some(), "next": next });
    large(|| ok(&shown()))
}

/// Returns what is shown as it is.
pub(super) fn value(shown: &impl Serialize) -> Value {
    // Rows have names for keys and nothing that JSON has no form for.
    serde_json::to_value(shown).unwrap_or_default()
}
