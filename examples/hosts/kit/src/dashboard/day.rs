//! How the events of the last day stand, by the hour.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::id::EndpointId;
use serde_json::json;
use tokio::time::Instant;

use super::{Asked, Dashboard, show};
use crate::http::answer::{Answered, ok};
use crate::lock;
use crate::store::scope::Allowed;
use crate::store::{Account, Day, Store};

/// How long what was counted is shown: 10 seconds. It is for people to see, and nothing is decided by it.
const FRESH: Duration = Duration::from_secs(10);

/// The hours before the current one: 23.
const BEFORE: Duration = Duration::from_secs(23 * 3600);

/// The most accounts that are remembered: 1,000.
const ACCOUNTS: usize = 1_000;

/// What was counted of accounts, so that a page that asks often costs one look.
#[derive(Clone, Debug, Default)]
pub(super) struct Days(Arc<Mutex<HashMap<String, Counted>>>);

#[derive(Clone, Debug)]
struct Counted {
    at: Instant,
    from: Timestamp,
    days: Vec<(EndpointId, Day)>,
}

impl<S: Store, X> Dashboard<S, X> {
    /// Counts the hours of the last day, the current one included.
    pub(super) async fn day(&self, account: Allowed<'_, Account>, asked: &Asked<'_>) -> Answered {
        let hour = asked.now.unix_seconds().div_euclid(3600).saturating_mul(3600);
        let hour = Timestamp::from_unix(hour).unwrap_or(asked.now);
        let from = hour.saturating_sub(BEFORE);
        let days = match self.days.find(account.as_str(), from) {
            Some(days) => days,
            None => {
                let days = self.store.day(account, from).await?;
                self.days.keep(account.as_str(), from, days.clone());
                days
            }
        };
        let shown = days.iter().map(|(id, day)| {
            let mut shown = show::value(day);
            shown["endpoint_id"] = json!(id);
            shown
        });
        let mut list = show::list(shown.collect());
        list["from"] = json!(from);
        Ok(ok(&list))
    }
}

impl Days {
    fn find(&self, account: &str, from: Timestamp) -> Option<Vec<(EndpointId, Day)>> {
        let kept = lock(&self.0);
        let counted = kept.get(account)?;
        (counted.at.elapsed() < FRESH && counted.from == from).then(|| counted.days.clone())
    }

    fn keep(&self, account: &str, from: Timestamp, days: Vec<(EndpointId, Day)>) {
        let mut kept = lock(&self.0);
        if kept.len() >= ACCOUNTS {
            kept.retain(|_, counted| counted.at.elapsed() < FRESH);
        }
        if kept.len() < ACCOUNTS {
            kept.insert(account.to_owned(), Counted { at: Instant::now(), from, days });
        }
    }
}
