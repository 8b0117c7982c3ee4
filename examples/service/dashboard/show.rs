//! Rows as the dashboard's JSON. No secret is in any of it: those are shown once, when made.

use call_assistant::credential::StoredKey;
use call_assistant::delivery::Outcome;
use call_assistant::model::Call;
use call_assistant::time::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use crate::store::{AccountRow, DeliveryRow, EndpointRow, Tables, key_state};

/// An account and how it stands.
pub(super) fn account(row: &AccountRow) -> Value {
    json!({
        "id": row.id,
        "business_name": row.business_name,
        "timezone": row.timezone,
        "plan": row.plan.name,
        "entitlements": row.plan.entitlements,
        "subscription_active": row.subscription_active,
        "closing": row.closing,
        "calls": row.calls(call_assistant::credential::Mode::Live).len(),
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
        "failures_to_disable": call_assistant::delivery::FAILURES_TO_DISABLE,
        "created_at": row.created_at,
    })
}

/// A delivery with each of its attempts.
pub(super) fn delivery(row: &DeliveryRow, tables: &Tables) -> Value {
    let endpoint = tables.endpoint_of(row.endpoint);
    let attempts: Vec<Value> = row
        .log
        .iter()
        .map(|entry| {
            let mut shown = value(entry);
            shown["number"] = entry.attempt.into();
            shown["http_status"] = match entry.outcome {
                Outcome::Answered(status) => status.as_u16().into(),
                _ => Value::Null,
            };
            shown
        })
        .collect();
    json!({
        "id": row.id,
        "account_id": row.account_id,
        "endpoint_id": endpoint.map(|endpoint| &endpoint.id),
        "url": endpoint.map(|endpoint| endpoint.target.as_str()),
        "event_id": row.body.id(),
        "type": row.body.event_type(),
        "status": row.state.status(),
        "pending": row.state.is_pending(),
        "event_created_at": row.body.created_at(),
        "attempts_made": row.state.attempts(),
        "by_hand": row.state.is_by_hand(),
        "next_at": row.due,
        "ended_at": row.state.ended_at(),
        "attempts": attempts,
        "payload": serde_json::from_str::<Value>(row.body.as_str()).unwrap_or_default(),
    })
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
