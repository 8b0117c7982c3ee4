//! Deliveries: found, looked into, sent again.

use call_assistant::Timestamp;
use call_assistant::id::EndpointId;
use call_assistant::webhook::sender::DeliveryStatus;
use serde::Serialize;

use super::show::{self, ListedDelivery};
use super::{Asked, Dashboard};
use crate::http::answer::{Answered, Error, large, ok};
use crate::input::Bad;
use crate::store::scope::Allowed;
use crate::store::{Account, DeliveryFilter, DeliveryPage, Refused, Store};

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
    pub(super) async fn deliveries(&self, id: Allowed<'_, Account>, asked: &Asked<'_>) -> Answered {
        let page = self.store.deliveries(id, &filter(asked)?).await?;
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
fn filter(asked: &Asked<'_>) -> Result<DeliveryFilter, Error> {
    asked.check_query(&["status", "endpoint", "type", "id", "from", "until", "after", "limit"])?;
    let text = |name| asked.text(name).map(str::to_owned);
    let instant = |name| {
        let read = asked.text(name).map(Timestamp::parse).transpose();
        read.map_err(|error| Bad::new(name, error))
    };
    let endpoint = asked.text("endpoint").map(EndpointId::parse).transpose();
    let mut filter = DeliveryFilter {
        endpoint: endpoint.map_err(|_| Refused::NotFound("endpoint"))?,
        event_type: text("type"),
        id: text("id"),
        from: instant("from")?,
        until: instant("until")?,
        after: text("after"),
        limit: asked.limit()?,
        ..DeliveryFilter::default()
    };
    let given = asked.query.iter().filter(|(name, value)| name == "status" && !value.is_empty());
    for (_, value) in given {
        if value == "failing" {
            filter.failing = true;
            continue;
        }
        for status in value.split(',') {
            if status == "failing" {
                let message = "failing cannot be combined with other statuses";
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
    Ok(filter)
}
