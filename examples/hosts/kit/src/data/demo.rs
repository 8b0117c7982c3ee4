//! What there is to see when no data is given: two accounts, 250 calls, a key of each kind, and an
//! account for each way in which an account can stand in the way.
//!
//! It is made as a `--data` file would be, so the format has its example.
// A few small constants.
#![allow(clippy::arithmetic_side_effects)]

use std::time::Duration;

use call_assistant::rest::{ApiKey, Mode};
use call_assistant::{Product, Timestamp};
use serde_json::{Value, json};

use crate::random;

/// Returns a whole data file. Its secrets are random; what the calls are about is always the same.
pub fn data(now: Timestamp) -> Value {
    let day = Duration::from_secs(86_400);
    let past = now.saturating_sub(day).to_string();
    let created = now.saturating_sub(day * 90).to_string();
    let key = |name: &str, mode: Mode, scopes: &[&str]| {
        json!({
            "name": name,
            "secret": secret(mode),
            "mode": if mode.is_live() { "live" } else { "test" },
            "scopes": scopes,
            "created_at": created,
        })
    };
    let all = ["account:read", "calls:read"];
    let full = || json!([key("full", Mode::Live, &all)]);

    let mut expired = key("expired", Mode::Live, &all);
    let mut revoked = key("revoked", Mode::Live, &all);
    expired["expires_at"] = past.clone().into();
    revoked["revoked_at"] = past.into();

    json!({ "accounts": [
        {
            "id": "acct_fjord_dental",
            "business_name": "Fjord Dental Clinic",
            "timezone": "Europe/Oslo",
            "plan": "business",
            "keys": [
                key("full", Mode::Live, &all),
                key("account only", Mode::Live, &["account:read"]),
                key("calls only", Mode::Live, &["calls:read"]),
                key("none", Mode::Live, &[]),
                key("test", Mode::Test, &all),
                expired,
                revoked,
            ],
            "calls": calls("fjord", 250, now),
            "test_calls": calls("sandbox", 5, now),
        },
        {
            "id": "acct_harbour_hair",
            "business_name": "Harbour Hair",
            "timezone": "America/Halifax",
            "plan": "pro",
            "keys": full(),
            "calls": calls("harbour", 12, now),
        },
        {
            "id": "acct_no_plan",
            "business_name": null,
            "timezone": "Etc/UTC",
            "plan": "none",
            "keys": full(),
        },
        {
            "id": "acct_closing",
            "business_name": "Corner Bakery (moving out)",
            "timezone": "Europe/Paris",
            "closing": true,
            "keys": full(),
        },
        {
            "id": "acct_inactive",
            "business_name": "Seasonal Kayaks",
            "timezone": "Pacific/Auckland",
            "subscription_active": false,
            "keys": full(),
        },
    ]})
}

fn secret(mode: Mode) -> String {
    ApiKey::from_random(&Product::default(), mode, random::bytes()).reveal().to_owned()
}

const CALLERS: [(Option<&str>, Option<&str>); 8] = [
    (Some("Ingrid Solberg"), Some("+4722334455")),
    (Some("Jonas Berg"), Some("+4798765432")),
    (None, Some("+4741122334")),
    (Some("Amélie Dubois"), Some("+33612345678")),
    (None, None),
    (Some("Noah Campbell"), Some("+19025550142")),
    (None, Some("+19025550177")),
    (Some("Søren Ærø"), Some("+4520112233")),
];

const SUMMARIES: [Option<&str>; 7] = [
    Some("Booked a check-up for next Tuesday at 09:30."),
    Some("Asked about opening hours on Saturday."),
    Some("Moved an appointment from Thursday to Friday afternoon."),
    Some("Wanted a price for whitening; asked to be called back."),
    None,
    Some("Cancelled an appointment because of illness."),
    Some("Reported a lost filling; booked the first free slot today."),
];

/// Calls backwards from an hour ago. Every fifth starts at the same instant as the one before, and
/// every ninth is so long that it is written after later ones.
fn calls(name: &str, count: u64, now: Timestamp) -> Vec<Value> {
    // On a whole second, as a telephone exchange tells it.
    let latest = Timestamp::from_unix(now.unix_seconds()).unwrap_or(now);
    let mut started = latest.saturating_sub(Duration::from_secs(3600));
    let mut calls = Vec::new();
    for number in (0..count).rev() {
        let place = |len: usize| usize::try_from(number).unwrap_or(0) % len;
        if number % 5 != 0 {
            started = started.saturating_sub(Duration::from_secs(540 + 97 * (number % 13)));
        }
        let rang = Duration::from_secs(3 + number % 6);
        let took =
            Duration::from_secs(if number % 9 == 0 { 2400 } else { 35 + 11 * (number % 17) });
        let answered = started.saturating_add(rang);
        let ended = answered.saturating_add(took);
        let written = ended.saturating_add(Duration::from_millis(1250 + number % 500));
        let (display_name, phone_number) =
            CALLERS.get(place(CALLERS.len())).copied().unwrap_or_default();
        let summary = SUMMARIES.get(place(SUMMARIES.len())).copied().flatten();
        let booked = summary.is_some_and(|summary| summary.contains("ooked"));
        calls.push(json!({
            "id": format!("call_{name}_{number:04}"),
            "caller": {
                "contact_id": display_name.map(|_| format!("cont_{name}_{}", place(CALLERS.len()))),
                "phone_number": phone_number,
                "display_name": display_name,
            },
            "started_at": started.to_string(),
            "answered_at": answered.to_string(),
            "ended_at": ended.to_string(),
            "duration_seconds": took.as_secs(),
            "summary": summary,
            "appointment_ids": if booked { vec![format!("appt_{name}_{number:04}")] } else { vec![] },
            "created_at": written.to_string(),
        }));
    }
    calls
}
