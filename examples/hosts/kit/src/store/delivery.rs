//! Deliveries of events, and their attempts.

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, DeliveryId, EndpointId, EventId};
use call_assistant::webhook::Signer;
use call_assistant::webhook::event::{EventBody, EventType};
use call_assistant::webhook::sender::{Delivery, DeliveryStatus, LogEntry, Outlook};

use super::Listed;
use crate::post::signed::{ShownRequest, Signed};

/// One event on its way to one endpoint.
#[derive(Clone, Debug)]
pub struct DeliveryRow {
    pub id: DeliveryId,
    pub account_id: AccountId,
    pub endpoint_id: EndpointId,
    pub url: String,
    pub event_id: EventId,
    pub event_type: EventType,
    pub state: Delivery,
    /// The outlook: its next attempt, or why there is none.
    pub outlook: Outlook,
    /// Its attempts, oldest first.
    pub log: Vec<AttemptRow>,
    /// The bytes that are signed. A list may leave them out where they are more than
    /// [`LISTED_BODY`].
    pub body: Option<EventBody>,
}

/// One attempt of a delivery.
#[derive(Clone, Debug)]
pub struct AttemptRow {
    pub entry: LogEntry,
    /// What signed its request, if that was noted.
    pub signed: Option<Signed>,
    /// Its request, where one delivery is shown.
    pub request: Option<ShownRequest>,
}

impl DeliveryFilter {
    /// Returns whether some of the deliveries of an account are left out.
    pub fn leaves_out(&self) -> bool {
        let Self { statuses, failing, endpoint: _, event_type, id, from, until, .. } = self;
        !statuses.is_empty()
            || *failing
            || event_type.is_some()
            || id.is_some()
            || from.is_some()
            || until.is_some()
    }
}

impl DeliveryRow {
    /// Adds the request of each attempt, with the secrets that its endpoint still has.
    pub fn with_requests(mut self, signer: Option<&Signer>, now: Timestamp) -> Self {
        if let Some(body) = &self.body {
            for attempt in &mut self.log {
                attempt.request = attempt.signed.as_ref().map(|it| it.show(body, signer, now));
            }
        }
        self
    }
}

/// The longest body that a list shows, in bytes: a thousand of the longest are a gigabyte.
pub const LISTED_BODY: usize = 16 * 1024;

/// Which deliveries of an account to list. Each field that is given leaves some out.
#[derive(Clone, Debug, Default)]
pub struct DeliveryFilter {
    /// One of these; any, if there is none.
    pub statuses: Vec<DeliveryStatus>,
    /// Those alone of which an attempt has failed, and which are not delivered.
    pub failing: bool,
    pub endpoint: Option<EndpointId>,
    pub event_type: Option<String>,
    /// The event's id, or the delivery's, whole.
    pub id: Option<String>,
    /// The event's `created_at`: at or after, and before.
    pub from: Option<Timestamp>,
    pub until: Option<Timestamp>,
    /// [`DeliveryPage::next`] of the page before.
    pub after: Option<String>,
    pub limit: usize,
}

/// Deliveries, newest first.
#[derive(Clone, Debug, Default)]
pub struct DeliveryPage {
    pub rows: Vec<Listed<DeliveryRow>>,
    /// Where the next page begins, in words of the store's own. `None` on the last page.
    pub next: Option<String>,
    /// The `created_at` of the last event that was looked at, of a page that is not full and has a next one: the store
    /// looks at a bounded number of deliveries for a page, whatever the filter leaves out.
    pub looked_to: Option<Timestamp>,
}
