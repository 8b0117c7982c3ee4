//! Everything that the page shows of an account, in one answer.

use std::collections::HashMap;

use http::HeaderValue;
use http::header::IF_NONE_MATCH;
use serde::Serialize;
use serde_json::{Value, json};

use super::show::ListedDelivery;
use super::{Asked, Dashboard, Extension, show};
use crate::http::answer::{self, Answer, Error};
use crate::store::Store;
use crate::store::plan::PLANS;
use crate::store::scope::{Allowed, Operator};
use crate::store::{Account, DeliveryFilter, EndpointRow, Part};

/// How many keys, calls and deliveries are in it at most.
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
    ) -> Result<Answer, Error> {
        let account = self.store.account(id).await?;
        // Read before the rest: what changes meanwhile is read again under the next tag. Keys expire
        // by themselves, so the tag changes at least every ten seconds.
        let tag = self.store.version().map(|version| {
            let tag = format!("\"{version}-{}\"", asked.now.unix_seconds() / 10);
            HeaderValue::try_from(tag).unwrap_or_else(|_| HeaderValue::from_static("\"\""))
        });
        if let Some(tag) = &tag
            && asked.headers.get(IF_NONE_MATCH) == Some(tag)
        {
            return Ok(answer::unchanged(tag.clone()));
        }
        let keys = self.store.keys(id, Part::Newest(KEYS)).await?;
        let endpoints = self.store.endpoints(id).await?;
        let hours = self.store.last_hour(id).await?;
        let hours: HashMap<_, _> = hours.iter().map(|(id, hour)| (id, hour)).collect();
        let calls = self.store.latest_calls(id, CALLS).await?;
        let filter = DeliveryFilter { limit: DELIVERIES, ..DeliveryFilter::default() };
        let deliveries = self.store.deliveries(id, &filter).await?;
        let recoveries = self.store.recoveries(id).await?;
        let alerts = self.store.alerts(id).await?;
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
                "endpoints": show::rows(&endpoints, endpoint),
                "calls": show::rows(&calls, show::value),
                "recoveries": show::rows(&recoveries, show::recovery),
                "alerts": alerts.iter().map(show::alert).collect::<Vec<_>>(),
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
