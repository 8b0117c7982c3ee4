//! Everything that the page shows of an account, in one answer.

use std::collections::HashMap;

use http::HeaderValue;
use http::header::IF_NONE_MATCH;
use serde::Serialize;
use serde_json::{Value, json};

use super::show::{self, ListedDelivery};
use super::{Asked, Dashboard, Extension};
use crate::http::answer::{self, Answered};
use crate::store::plan::PLANS;
use crate::store::scope::{Allowed, Operator};
use crate::store::{Account, DeliveryFilter, EndpointRow, PageOf, Part, Store};

/// How many endpoints, recoveries, alerts, keys, calls and deliveries are in it at most.
const ENDPOINTS: usize = 200;
const RECOVERIES: usize = 200;
const ALERTS: usize = 100;
const KEYS: usize = 200;
const CALLS: usize = 10;
const DELIVERIES: usize = 50;

#[derive(Debug, Serialize)]
struct Overview<'a> {
    #[serde(flatten)]
    rest: Value,
    deliveries: Vec<ListedDelivery<'a>>,
}

impl<S: Store, X: Extension> Dashboard<S, X> {
    /// Returns everything that a page shows of an account. The tag tells whether it has changed.
    pub(super) async fn overview(
        &self,
        id: Allowed<'_, Account>,
        by: Option<Operator>,
        asked: &Asked<'_>,
    ) -> Answered {
        let account = self.store.account(id).await?;
        // Read before the rest: what changes meanwhile is read again under the next tag. Keys expire
        // by themselves, so the tag changes at least every ten seconds. It is the same for a compressed answer, and therefore
        // weak.
        let tag = self.store.version().map(|version| {
            let tag = format!("W/\"{version}-{}\"", asked.now.unix_seconds() / 10);
            HeaderValue::try_from(tag).unwrap_or_else(|_| HeaderValue::from_static("W/\"\""))
        });
        if let Some(tag) = &tag
            && asked.headers.get(IF_NONE_MATCH) == Some(tag)
        {
            return Ok(answer::unchanged(tag.clone()));
        }
        let first = |limit| PageOf { account: id, after: None, limit };
        let keys = self.store.keys(id, Part::Newest(KEYS)).await?;
        let endpoints = self.store.endpoints(first(ENDPOINTS)).await?;
        let hours = self.store.last_hour(id).await?;
        let hours: HashMap<_, _> = hours.iter().map(|(id, hour)| (id, hour)).collect();
        let calls = self.store.calls(first(CALLS)).await?;
        let filter = DeliveryFilter { limit: DELIVERIES, ..DeliveryFilter::default() };
        let deliveries = self.store.deliveries(id, &filter).await?;
        let recoveries = self.store.recoveries(first(RECOVERIES)).await?;
        let alerts = self.store.alerts(first(ALERTS)).await?;
        let levers = match by {
            Some(by) => show::value(&self.store.levers(by).await?),
            None => show::levers_of(&self.store.levers_of(id).await?),
        };
        let endpoint = |row: &EndpointRow| {
            let mut shown = show::endpoint(row);
            shown["last_hour"] = hours.get(&row.id).map_or(Value::Null, show::value);
            shown
        };
        Ok(answer::large(|| {
            let rest = json!({
                "account": show::account(&account, by),
                "plans": by.map(|_| PLANS.map(|plan| plan.name)),
                "keys": show::rows(&keys.rows, |key| show::key(key, asked.now)),
                "keys_more": keys.more,
                "endpoints": show::rows(&endpoints.rows, endpoint),
                "endpoints_more": endpoints.more,
                "endpoints_next": endpoints.next,
                "calls": show::rows(&calls.rows, show::value),
                "calls_more": calls.more,
                "calls_next": calls.next,
                "recoveries": show::rows(&recoveries.rows, show::recovery),
                "recoveries_more": recoveries.more,
                "recoveries_next": recoveries.next,
                "alerts": alerts.rows.iter().map(show::alert).collect::<Vec<_>>(),
                "alerts_more": alerts.more,
                "alerts_next": alerts.next,
                "levers": levers,
                "sandbox": by.map(|_| self.extension.shown()),
                "now": asked.now,
            });
            let shown = Overview { rest, deliveries: show::deliveries(&deliveries.rows) };
            match tag {
                Some(tag) => answer::tagged(&shown, tag),
                None => answer::ok(&shown),
            }
        }))
    }
}
