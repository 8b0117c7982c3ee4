//! What happens on the day.

use std::collections::BTreeMap;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::webhook::sender::{Excerpt, Outcome};
use host::post::Sent;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::Lever;

/// The accounts, and their endpoints by the manners of the receivers.
const ACCOUNTS: [(&str, &str); 4] = [
    ("acct_0", "we_good we_slow we_500 we_flaps we_gone"),
    ("acct_1", "we_created we_late we_moved we_429 we_refused"),
    ("acct_2", "we_forbidden we_reset we_dns we_tls we_paused"),
    ("acct_3", "we_unsent we_down we_gone_later we_limited we_good_too"),
];

/// A deed of a customer, an owner or an operator.
#[derive(Clone, Debug)]
pub(super) enum Deed {
    Accept(u32, &'static str),
    Pause(&'static str),
    Enable(&'static str),
    /// Parks what is pending, as the owner's process does.
    Park(&'static str),
    Limit(Vec<Lever>),
}

/// An answer of a receiver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) took: Duration,
    outcome: Outcome,
}

impl Answer {
    pub(super) fn sent(self, began: Timestamp) -> Sent {
        let sent = Sent::without_answer(self.outcome, began.saturating_add(self.took));
        let Outcome::Answered(status) = self.outcome else {
            return Sent { took: self.took, ..sent };
        };
        let mut headers = HeaderMap::new();
        if status == StatusCode::TOO_MANY_REQUESTS {
            headers.insert("retry-after", 3600.into());
        }
        let headers = Some(Excerpt::from_fields(&headers));
        Sent { took: self.took, headers, body: Some(status.as_str().into()), ..sent }
    }
}

pub(super) fn data() -> Value {
    let endpoint = |id: &str| {
        let url = format!("https://{}.example.com/", id.replace('_', "-"));
        json!({ "id": id, "url": url })
    };
    let account = |(id, endpoints): &(&str, &str)| {
        let endpoints: Vec<Value> = endpoints.split(' ').map(endpoint).collect();
        json!({ "id": id, "timezone": "UTC", "plan": "business", "endpoints": endpoints })
    };
    json!({ "accounts": ACCOUNTS.iter().map(account).collect::<Vec<_>>() })
}

/// Returns what a receiver answers to its nth request.
pub(super) fn answer(endpoint: &str, nth: usize, at: Duration) -> Answer {
    let hours = at.as_secs() / 3600;
    let status = |code| Outcome::Answered(StatusCode::from_u16(code).unwrap());
    let (ms, outcome) = match endpoint {
        "we_slow" | "we_paused" => (8_000, status(200)),
        "we_500" => (40, status(500)),
        "we_flaps" if nth.is_multiple_of(2) => (30, status(503)),
        "we_gone" if nth == 20 => (20, status(410)),
        "we_gone_later" if hours == 5 => (20, status(410)),
        "we_created" => (15, status(201)),
        "we_late" => (10_000, Outcome::TimedOut),
        "we_moved" => (12, status(301)),
        "we_429" => (9, status(429)),
        "we_refused" => (1, Outcome::Refused),
        "we_forbidden" => (2, Outcome::Forbidden),
        "we_reset" => (700, Outcome::Reset),
        "we_dns" => (300, Outcome::Dns),
        "we_tls" => (80, Outcome::Tls),
        "we_unsent" if nth.is_multiple_of(3) => (0, Outcome::Unsent),
        "we_down" if (2..6).contains(&hours) => (500, status(502)),
        _ => (25, status(204)),
    };
    Answer { took: Duration::from_millis(ms), outcome }
}

/// Returns the deeds of the day, by their instants.
pub(super) fn deeds() -> BTreeMap<(Duration, usize), Deed> {
    let mut deeds = Vec::new();
    // Forty bursts of five events, twelve minutes apart, each of an account; the last when owners are reminded.
    for number in 0..200_u32 {
        let (burst, nth) = (number / 5, number % 5);
        let minute = if number == 199 { 60 * 30 } else { 12 * burst };
        let at = Duration::from_secs(60 * u64::from(minute))
            + Duration::from_millis(100 * u64::from(nth));
        deeds.push((at, Deed::Accept(number, ACCOUNTS[burst as usize % 4].0)));
    }
    let none = Lever { account: None, endpoint: None, per_second: 0 };
    let limit_to = |account, per_second| Lever { account: Some(account), per_second, ..none };
    let held = Lever { endpoint: Some("we_limited"), ..none };
    for (minute, second, deed) in [
        // While its attempts are in flight.
        (72, 4, Deed::Pause("we_paused")),
        (72, 5, Deed::Park("we_paused")),
        (200, 0, Deed::Enable("we_paused")),
        (7 * 60, 0, Deed::Enable("we_gone")),
        (119, 0, Deed::Limit(vec![none])),
        (125, 0, Deed::Limit(vec![limit_to("acct_1", 1)])),
        (179, 0, Deed::Limit(vec![held, limit_to("acct_0", 2)])),
        (240, 0, Deed::Limit(Vec::new())),
    ] {
        deeds.push((Duration::from_secs(60 * minute + second), deed));
    }
    deeds.into_iter().enumerate().map(|(nth, (at, deed))| ((at, nth), deed)).collect()
}
