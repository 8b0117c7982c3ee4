//! Deliveries: found, looked into, sent again.

use call_assistant::Timestamp;
use call_assistant::id::EndpointId;
use call_assistant::webhook::sender::DeliveryStatus;
use serde::Serialize;

use super::show::ListedDelivery;
use super::{Asked, Dashboard, show};
use crate::http::answer::{Answer, Error, large, ok};
use crate::input::Bad;
use crate::store::scope::Allowed;
use crate::store::{Account, DeliveryFilter, DeliveryPage};
use crate::store::{Refused, Store};

/// The most rows in one answer: 1,000.
pub const MAX_LIST: usize = 1000;

/// Deliveries, newest first.
#[derive(Debug, Serialize)]
struct Deliveries<'a> {
    data: Vec<ListedDelivery<'a>>,
    has_more: bool,
    next: Option<&'a str>,
    /// The `created_at` of the last event that was looked at, where the filter has left out more than a page looks at.
    looked_to: Option<Timestamp>,
}

impl<S: Store, X> Dashboard<S, X> {
    pub(super) async fn deliveries(
        &self,
        id: Allowed<'_, Account>,
        asked: &Asked<'_>,
    ) -> Result<Answer, Error> {
        let page = self.store.deliveries(id, &filter(&asked.query)?).await?;
        Ok(large(|| ok(&shown(&page))))
    }
}

fn shown(page: &DeliveryPage) -> Deliveries<'_> {
    Deliveries {
        data: show::deliveries(&page.rows),
        has_more: page.next.is_some(),
        next: page.next.as_deref(),
        looked_to: page.looked_to,
    }
}

/// Reads a filter. An empty value filters nothing, as in a form that was left empty.
fn filter(query: &[(String, String)]) -> Result<DeliveryFilter, Error> {
    let mut filter = DeliveryFilter { limit: MAX_LIST, ..DeliveryFilter::default() };
    for (name, value) in query {
        match name.as_str() {
            "status" | "endpoint" | "type" | "id" | "from" | "until" | "after"
                if value.is_empty() => {}
            "status" if value == "failing" => filter.failing = true,
            "status" => {
                for status in value.split(',') {
                    if status == "failing" {
                        let message = "failing cannot be combined: it has several statuses";
                        return Err(Bad::new("status", message).into());
                    }
                    let most = DeliveryStatus::ALL.len();
                    if filter.statuses.len() == most {
                        let message = format!("expected at most {most} statuses");
                        return Err(Bad::new("status", message).into());
                    }
                    filter.statuses.push(status.parse::<DeliveryStatus>().map_err(|_| {
                        let known: Vec<&str> =
                            DeliveryStatus::ALL.iter().map(|status| status.as_str()).collect();
                        let known = known.join(", ");
                        Bad::new("status", format!("not failing, {known}"))
                    })?);
                }
            }
            "endpoint" => {
                let id = EndpointId::parse(value);
                filter.endpoint = Some(id.map_err(|_| Refused::NotFound("endpoint"))?);
            }
            "type" => filter.event_type = Some(value.clone()),
            "id" => filter.id = Some(value.clone()),
            "from" => filter.from = Some(instant(name, value)?),
            "until" => filter.until = Some(instant(name, value)?),
            "after" => filter.after = Some(value.clone()),
            "limit" => filter.limit = limit(value)?,
            _ => {
                let known =
                    "the parameters are status, endpoint, type, id, from, until, after and limit";
                return Err(Bad::new("query", known).into());
            }
        }
    }
    Ok(filter)
}

/// Reads how many rows an answer has at most.
pub(super) fn limit(value: &str) -> Result<usize, Bad> {
    let read = value.parse().ok().filter(|limit| (1..=MAX_LIST).contains(limit));
    read.ok_or_else(|| Bad::new("limit", format!("not from 1 to {MAX_LIST}")))
}

/// Reads which page of a list is asked for, and how many rows it has at most.
pub(super) fn page(query: &[(String, String)]) -> Result<(Option<&str>, usize), Bad> {
    let (mut after, mut most) = (None, MAX_LIST);
    for (name, value) in query {
        match name.as_str() {
            "after" => after = Some(value.as_str()).filter(|value| !value.is_empty()),
            "limit" => most = limit(value)?,
            _ => return Err(Bad::new("query", "the parameters are after and limit")),
        }
    }
    Ok((after, most))
}

fn instant(name: &str, value: &str) -> Result<Timestamp, Bad> {
    Timestamp::parse(value).map_err(|error| Bad::new(name, error))
}
