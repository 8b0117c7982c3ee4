//! Finishes and records any number of ended attempts at once.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::delivery::{Delivery, DeliveryStatus};
use super::endpoint::{Alert, DisabledReason, EndpointChange, EndpointHealth};
use super::log::{EndedAttempt, LogEntry};
use super::schedule::{RetrySchedule, SPECIFIED};
use super::stored::MismatchError;
use crate::Timestamp;

/// The rows to write for ended attempts, and the data for the steps after the commit. [`settle`]
/// creates this value.
///
/// Store `deliveries`, `endpoints`, `log` and `alerts` in one transaction, in this order. Use the other
/// fields after the commit. If a write affects no row, this value is outdated. Then roll back, read the
/// rows again, and call [`settle`] again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "store it, or the attempts are made again"]
#[non_exhaustive]
pub struct Settled<D, E> {
    /// Deliveries to write, by ascending id. Lock their rows in this order.
    pub deliveries: Vec<(D, Delivery)>,
    /// Endpoints to write, by ascending id. Lock their rows after the rows of the deliveries.
    pub endpoints: Vec<(E, EndpointHealth)>,
    /// A log entry for each settled attempt, in the order of `ended`.
    pub log: Vec<(D, LogEntry)>,
    /// Deliveries that wait for another attempt, by ascending id, with the due time of the attempt.
    pub again: Vec<(D, E, Timestamp)>,
    /// Endpoints that the settled attempts disable, with the reason. After the commit, park the pending
    /// deliveries of these endpoints.
    pub disabled: Vec<(E, DisabledReason)>,
    /// Alerts for the owners of endpoints. Store each alert in the transaction of the deliveries, so
    /// that it is sent exactly once.
    pub alerts: Vec<(E, Alert)>,
    /// Indexes into `ended` of attempts whose delivery or endpoint is missing from the maps given to
    /// [`settle`], which ignores these attempts.
    pub unknown: Vec<usize>,
    /// Indexes into `ended` of attempts that belong to another delivery or endpoint than `ended` says.
    /// [`settle`] ignores these attempts.
    pub mismatched: Vec<(usize, MismatchError)>,
}

/// Settles attempts that have ended. The function [finishes](Delivery::finish) each attempt and
/// [records](EndpointHealth::record) the attempt's report. The function then parks each delivery
/// whose endpoint is disabled, and creates the log entries.
///
/// ```
/// use std::collections::BTreeMap;
/// use call_assistant::webhook::sender::{EndedAttempt, Outcome, settle};
/// # use call_assistant::Timestamp;
/// # use call_assistant::id::{AccountId, EventId};
/// # use call_assistant::webhook::event::{ApiVersion, NewEvent, Origin};
/// # use call_assistant::webhook::sender::{Delivery, EndpointHealth};
/// # let now = Timestamp::from_unix(60).unwrap();
/// # let (id, account) = (EventId::parse("evt_1")?, AccountId::parse("acct_1")?);
/// # let event = NewEvent::new(id, account, ApiVersion::parse("2026-01-15")?, Origin::voice(), now);
/// # let event = event.ping("It works.")?;
/// # let endpoint = EndpointHealth::new(1, now);
/// # let mut delivery = Delivery::accept(&event, &endpoint, now);
///
/// // Begun in memory. The store still has the row as it was read.
/// let attempt = delivery.begin(&endpoint, now)?;
///
/// let (id, endpoint_id) = (7, 1);
/// let ended = [EndedAttempt {
///     delivery: id,
///     endpoint: endpoint_id,
///     attempt,
///     outcome: Outcome::TimedOut,
///     at: attempt.deadline(),
///     response: None,
/// }];
/// // Endpoints are read after the attempts have ended.
/// let settled = settle(
///     &ended,
///     &BTreeMap::from([(id, delivery)]),
///     &BTreeMap::from([(endpoint_id, endpoint)]),
/// );
/// let (id, delivery) = settled.deliveries[0];
/// assert_eq!((id, delivery.if_version(), delivery.attempts()), (7, Some(0), 1));
/// assert_eq!(settled.endpoints.len(), 1); // a first attempt failed; a retry would change nothing
/// assert_eq!(settled.again[0].0, 7);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A value of `deliveries` is either the delivery in memory whose attempt began, or a delivery read
/// again from its row. Read `endpoints` after all attempts have ended, because the count of
/// failures in an endpoint that was read earlier may lack a reset by a 2xx. If an endpoint does not
/// change, the host does not write it or check its version. The endpoint's attempts then count as
/// if they had ended when the endpoint was read.
///
/// Attempts count in the order of `ended`. If you cannot read a row, omit the row from its map. The
/// row's attempts are then [unknown](Settled::unknown), and all other attempts are settled. The
/// function is pure, so you may call it again with newly read rows.
pub fn settle<D: Ord + Clone, E: Ord + Clone>(
    ended: &[EndedAttempt<'_, D, E>],
    deliveries: &BTreeMap<D, Delivery>,
    endpoints: &BTreeMap<E, EndpointHealth>,
) -> Settled<D, E> {
    SPECIFIED.settle(ended, deliveries, endpoints)
}

impl RetrySchedule {
    /// Settles attempts that have ended, like [`settle`], with the waits of this schedule.
    pub fn settle<D: Ord + Clone, E: Ord + Clone>(
        &self,
        ended: &[EndedAttempt<'_, D, E>],
        deliveries: &BTreeMap<D, Delivery>,
        endpoints: &BTreeMap<E, EndpointHealth>,
    ) -> Settled<D, E> {
        let mut settled = Settled {
            deliveries: Vec::new(),
            endpoints: Vec::new(),
            log: Vec::new(),
            again: Vec::new(),
            disabled: Vec::new(),
            alerts: Vec::new(),
            unknown: Vec::new(),
            mismatched: Vec::new(),
        };
        let (mut rows, mut owners) = (BTreeMap::new(), BTreeMap::new());
        let mut finished = Vec::with_capacity(ended.len());
        for (position, each) in ended.iter().enumerate() {
            let found = (deliveries.get(&each.delivery), endpoints.get(&each.endpoint));
            let (Some(row), Some(endpoint)) = found else {
                settled.unknown.push(position);
                continue;
            };
            if let Err(error) = each.attempt.check(row).and_then(|()| row.check(endpoint)) {
                settled.mismatched.push((position, error));
                continue;
            }
            // A delivery may have several attempts here, and so may an endpoint.
            let (row, ..) = rows.entry(&each.delivery).or_insert((*row, &each.endpoint, each.at));
            let endpoint = owners.entry(&each.endpoint).or_insert(*endpoint);
            let report = row.finished(self, &each.attempt, each.outcome, each.at);
            finished.push((each, report, *row));
            settled.note(&each.endpoint, endpoint.recorded(report, each.at));
        }
        // From here on it is known which endpoints are disabled.
        for (each, report, mut delivery) in finished {
            delivery.park(owner(&owners, &each.endpoint), each.at);
            let entry = LogEntry::new(each, &report, &delivery);
            settled.log.push((each.delivery.clone(), entry));
        }
        for (id, (mut row, endpoint, at)) in rows {
            row.park(owner(&owners, endpoint), at);
            if let (DeliveryStatus::Waiting, Some(due)) = (row.status(), row.due(at)) {
                settled.again.push((id.clone(), endpoint.clone(), due));
            }
            settled.deliveries.extend(row.if_version().map(|_| (id.clone(), row)));
        }
        for (id, endpoint) in owners {
            settled.endpoints.extend(endpoint.if_version().map(|_| (id.clone(), endpoint)));
        }
        settled
    }
}

#[expect(clippy::expect_used, reason = "an attempt whose endpoint is missing is unknown")]
fn owner<'a, E: Ord>(owners: &'a BTreeMap<&E, EndpointHealth>, id: &E) -> &'a EndpointHealth {
    owners.get(id).expect("each finished attempt has its endpoint here")
}

impl<D, E: Clone> Settled<D, E> {
    fn note(&mut self, endpoint: &E, change: EndpointChange) {
        if let EndpointChange::Disabled(reason) = change {
            self.disabled.push((endpoint.clone(), reason));
        }
        self.alerts.extend(change.alert().map(|alert| (endpoint.clone(), alert)));
    }
}
