//! Finding deliveries, by filter and page, and rows as the dashboard has them.

use std::collections::BTreeMap;

use call_assistant::Timestamp;
use call_assistant::id::EndpointId;
use call_assistant::webhook::sender::DeliveryStatus;

use super::{DeliveryRow, EndpointRow, Tables};
use host::store::{self, Day, DeliveryFilter, DeliveryPage, Done, Hour, Refused, place};

/// How many deliveries of an account are looked at for a day, or for a page: 20,000.
const LOOKED: usize = 20_000;

/// Tells whether an attempt of it has failed, and it is not delivered.
fn is_failing(row: &DeliveryRow) -> bool {
    row.state.attempts() > 0 && row.state.status() != DeliveryStatus::Delivered
}

/// Returns one event, as it stands.
fn standing(row: &DeliveryRow) -> Hour {
    let pending = row.state.is_pending();
    Hour {
        delivered: u64::from(row.state.status() == DeliveryStatus::Delivered),
        failing: u64::from(pending && is_failing(row)),
        missed: u64::from(row.state.status().is_missed()),
        waiting: u64::from(pending && !is_failing(row)),
    }
}

impl Tables {
    /// Returns a page of an account's deliveries. Filters apply to all of them, not to the latest alone.
    ///
    /// # Errors
    /// There is no such account or endpoint, or the page does not follow one of this store.
    pub fn page(
        &self,
        account: &str,
        filter: &DeliveryFilter,
        now: Timestamp,
    ) -> Done<DeliveryPage> {
        let account = self.account(account)?;
        let endpoint = match &filter.endpoint {
            None => None,
            Some(id) => match self.endpoint(id.as_str())? {
                (number, row) if row.account_id == account.account.id => Some(number),
                _ => return Err(Refused::NotFound("endpoint")),
            },
        };
        let below = place(filter.after.as_deref(), u64::MAX)?;
        let fits = |row: &&DeliveryRow| {
            let (created_at, id) = (row.body.created_at(), filter.id.as_deref());
            (filter.statuses.is_empty() || filter.statuses.contains(&row.state.status()))
                && (!filter.failing || is_failing(row))
                && endpoint.is_none_or(|number| row.endpoint == number)
                && filter.event_type.as_ref().is_none_or(|t| row.body.event_type().as_str() == t)
                && id.is_none_or(|id| row.body.id().as_str() == id || row.id.as_str() == id)
                && filter.from.is_none_or(|from| from <= created_at)
                && filter.until.is_none_or(|until| created_at < until)
        };
        let numbers = account.deliveries.range(..below).rev();
        let rows = numbers.filter_map(|number| Some((*number, self.deliveries.get(number)?)));
        let mut page = DeliveryPage::default();
        let (mut last, mut passed) = (None, None::<(u64, &DeliveryRow)>);
        for (looked, (number, row)) in rows.enumerate() {
            if looked == LOOKED {
                page.next = passed.map(|(number, _)| number.to_string());
                page.looked_to = passed.map(|(_, row)| row.body.created_at());
                break;
            }
            passed = Some((number, row));
            if !fits(&row) {
                continue;
            }
            // One more tells whether there are more.
            if page.rows.len() == filter.limit {
                page.next = last.map(|number: u64| number.to_string());
                break;
            }
            page.rows.push(Ok(self.shown_delivery(row, now)?));
            last = Some(number);
        }
        Ok(page)
    }

    /// Returns how the events of the day that begins at `from` stand at each endpoint of an account. The latest of the
    /// account are looked at.
    ///
    /// # Errors
    /// There is no such account.
    pub fn day(&self, account: &str, from: Timestamp) -> Done<Vec<(EndpointId, Day)>> {
        let account = self.account(account)?;
        let mut days: BTreeMap<u32, Day> = BTreeMap::new();
        let (mut since, mut last) = (None, None);
        for (looked, number) in account.deliveries.iter().rev().enumerate() {
            let Some(row) = self.deliveries.get(number) else { continue };
            let at = row.state.event_created_at();
            if at < from {
                break;
            }
            if looked >= LOOKED {
                since = last;
                break;
            }
            days.entry(row.endpoint).or_default().add(from, at, &standing(row));
            last = Some(at);
        }
        let numbered = account.endpoints.iter().filter_map(|number| {
            let row = self.endpoint_of(*number).filter(|row| !row.is_deleted())?;
            Some((row.id.clone(), Day { since, ..days.remove(number).unwrap_or_default() }))
        });
        Ok(numbered.collect())
    }

    /// Returns an endpoint as the dashboard has it.
    pub fn shown_endpoint(&self, row: &EndpointRow, now: Timestamp) -> store::EndpointRow {
        store::EndpointRow {
            id: row.id.clone(),
            account_id: row.account_id.clone(),
            url: row.target.as_str().to_owned(),
            description: row.description.clone(),
            health: row.health,
            created_at: row.created_at,
            previous_secrets: Some(row.signer.previous(now).map(|(_, end)| end).collect()),
        }
    }

    /// Returns a delivery as the dashboard has it.
    pub fn shown_delivery(&self, row: &DeliveryRow, now: Timestamp) -> Done<store::DeliveryRow> {
        let endpoint = self.endpoint_of(row.endpoint).ok_or(Refused::NotFound("endpoint"))?;
        Ok(store::DeliveryRow {
            id: row.id.clone(),
            account_id: row.account_id.clone(),
            endpoint_id: endpoint.id.clone(),
            url: endpoint.target.as_str().to_owned(),
            event_id: row.body.id().clone(),
            event_type: row.body.event_type().clone(),
            state: row.state,
            outlook: row
                .state
                .outlook(&endpoint.health, now)
                .map_err(|_| Refused::NotFound("endpoint"))?,
            log: row.log.clone(),
            body: Some(row.body.clone()),
        })
    }
}
