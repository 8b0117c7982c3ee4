//! Rows as the dashboard's JSON. No secret is in any of it: those are shown once, when made.

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, DeliveryId, EndpointId, EventId};
use call_assistant::model::Call;
use call_assistant::rest::server::StoredKey;
use call_assistant::webhook::event::EventType;
use call_assistant::webhook::sender::{LogEntry, Outcome, Status, Target};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::store::{AccountRow, DeliveryRow, EndpointRow, Tables, key_state};

/// An account and how it stands.
pub(super) fn account(row: &AccountRow) -> Value {
    json!({
        "id": row.id,
        "business_name": row.business_name,
        "timezone": row.timezone,
        "plan": row.plan.name,
        "entitlements": {
            "public_api": row.plan.public_api,
            "webhooks": row.plan.webhooks.check_webhooks().is_ok(),
            "recovery": row.plan.webhooks.check_recovery_by_program().is_ok(),
        },
        "subscription_active": row.subscription_active,
        "closing": row.closing,
        "calls": row.calls(call_assistant::rest::Mode::Live).len(),
    })
}

/// A key without its secret.
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

/// An endpoint and its health.
pub(super) fn endpoint(row: &EndpointRow) -> Value {
    let health = &row.health;
    json!({
        "id": row.id,
        "account_id": row.account_id,
        "url": row.target.as_str(),
        "status": if health.is_active() { "active" } else { "disabled" },
        "reason": health.disabled(),
        "since": health.since(),
        "consecutive_failures": health.failures(),
        "failures_to_disable": call_assistant::webhook::sender::FAILURES_TO_DISABLE,
        "created_at": row.created_at,
    })
}

/// A delivery as it stands, to be shown once the store is unlocked.
#[derive(Debug)]
pub(super) struct Taken {
    row: DeliveryRow,
    endpoint: Option<(EndpointId, Target)>,
}

/// A delivery with each of its attempts.
#[derive(Debug, Serialize)]
pub(super) struct Delivery<'a> {
    id: &'a DeliveryId,
    account_id: &'a AccountId,
    endpoint_id: Option<&'a EndpointId>,
    url: Option<&'a str>,
    event_id: &'a EventId,
    #[serde(rename = "type")]
    event_type: &'a EventType,
    status: Status,
    pending: bool,
    event_created_at: Timestamp,
    attempts_made: u8,
    by_hand: bool,
    next_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
    attempts: Vec<Value>,
    payload: Option<&'a RawValue>,
}

/// In a list, a longer body is left out: a thousand of the longest are a gigabyte.
const LISTED_BODY: usize = 16 * 1024;

impl Taken {
    /// Takes a copy.
    pub(super) fn of(row: &DeliveryRow, tables: &Tables) -> Self {
        let endpoint = tables.endpoint_of(row.endpoint);
        let endpoint = endpoint.map(|endpoint| (endpoint.id.clone(), endpoint.target.clone()));
        Self { row: row.clone(), endpoint }
    }

    /// All of it.
    pub(super) fn whole(&self) -> Delivery<'_> {
        let Self { row, endpoint } = self;
        Delivery {
            id: &row.id,
            account_id: &row.account_id,
            endpoint_id: endpoint.as_ref().map(|(id, _)| id),
            url: endpoint.as_ref().map(|(_, target)| target.as_str()),
            event_id: row.body.id(),
            event_type: row.body.event_type(),
            status: row.state.status(),
            pending: row.state.is_pending(),
            event_created_at: row.body.created_at(),
            attempts_made: row.state.attempts(),
            by_hand: row.state.is_manual(),
            next_at: row.due,
            ended_at: row.state.ended_at(),
            attempts: row.log.iter().map(attempt).collect(),
            payload: serde_json::from_str(row.body.as_str()).ok(),
        }
    }

    /// As one of many.
    pub(super) fn listed(&self) -> Delivery<'_> {
        let mut shown = self.whole();
        shown.payload = shown.payload.filter(|payload| payload.get().len() <= LISTED_BODY);
        shown
    }
}

fn attempt(entry: &LogEntry) -> Value {
    let mut shown = value(entry);
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

/// A call as the public API has it.
pub(super) fn call(call: &Call) -> Value {
    value(call)
}

/// A list.
pub(super) fn list(items: Vec<Value>) -> Value {
    json!({ "data": items })
}

fn value(shown: &impl Serialize) -> Value {
    // Rows have names for keys and nothing that JSON has no form for.
    serde_json::to_value(shown).unwrap_or_default()
}
