//! Deliveries: rows that the library's machine lives in, and the steps of storing and sending in the
//! order that `call_assistant::webhook::sender` documents.
//!
//! Each function here is one transaction: it reads the rows it needs, lets the library change
//! them, and has stored them when it returns. The rows read are the rows written, for both happens
//! under one lock; a database that others write to would compare versions instead.

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, DeliveryId};
use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::sender::{
    Delivery, DeliveryColumns, DeliveryStatus, LogEntry, Outcome, RedeliverError,
};

use super::{AccountRow, Tables};
use host::post::signed::Signed;
use host::random;
use host::store::{AttemptRow, Done, Refused};

/// One event on its way to one endpoint.
#[derive(Clone, Debug)]
pub struct DeliveryRow {
    pub id: DeliveryId,
    pub account_id: AccountId,
    pub endpoint: u32,
    pub body: EventBody,
    pub state: Delivery,
    pub log: Vec<AttemptRow>,
}

/// The most attempts in a log: six by schedule, and the latest manual ones.
const KEPT_ATTEMPTS: usize = 50;

impl DeliveryRow {
    /// Returns when the next attempt is due. `None` while one is in flight, and when there is none to come.
    pub fn next_at(&self) -> Option<Timestamp> {
        let columns = DeliveryColumns::from(self.state);
        (columns.status == DeliveryStatus::Waiting).then_some(columns.at)
    }

    pub(super) fn add_to_log(&mut self, entry: LogEntry, signed: Option<Signed>) {
        if self.log.len() >= KEPT_ATTEMPTS {
            let beside = |AttemptRow { entry, .. }: &AttemptRow| {
                entry.manual || entry.outcome == Outcome::Unsent
            };
            self.log.remove(self.log.iter().position(beside).unwrap_or(0));
        }
        self.log.push(AttemptRow { entry, signed, request: None });
    }
}

impl Tables {
    /// Accepts an event (step 1) for every endpoint of its account, or for one of them. When this
    /// returns, it is stored.
    ///
    /// An account whose plan has no webhooks gets none.
    ///
    /// # Errors
    /// The account does not exist, or the one endpoint is none of those: nothing is stored.
    pub fn accept(
        &mut self,
        body: &EventBody,
        only: Option<u32>,
        now: Timestamp,
    ) -> Done<Vec<DeliveryId>> {
        let account = self.account_mut(body.account_id().as_str())?;
        let is_meant = |number: &u32| {
            account.check_webhooks().is_ok() && only.is_none_or(|one| one == *number)
        };
        let endpoints: Vec<u32> = account.endpoints.iter().copied().filter(is_meant).collect();
        let mut accepted = Vec::new();
        for number in endpoints {
            let Some(endpoint) = self.endpoint_of(number).filter(|row| !row.is_deleted()) else {
                continue;
            };
            let delivery = self.last_delivery.saturating_add(1);
            let state = Delivery::accept(body, &endpoint.health, now).with_id(delivery);
            self.tally.accepted(&state);
            self.last_delivery = delivery;
            let row = DeliveryRow {
                id: DeliveryId::from_random(random::bytes()),
                account_id: body.account_id().clone(),
                endpoint: number,
                body: body.clone(),
                state,
                log: Vec::new(),
            };
            self.delivery_numbers.insert(row.id.clone(), delivery);
            if let Some(account) = self.accounts.get_mut(row.account_id.as_str()) {
                account.deliveries.insert(delivery);
            }
            accepted.push(row.id.clone());
            self.deliveries.insert(delivery, row);
            self.index(delivery);
            self.told.insert(delivery);
        }
        match only {
            Some(_) if accepted.is_empty() => Err(Refused::NotFound("endpoint")),
            _ => Ok(accepted),
        }
    }

    /// Redelivers by order of the dashboard.
    ///
    /// # Errors
    /// There is no such delivery, it is not one to be made again, or the plan lacks webhooks.
    pub fn redeliver(&mut self, id: &str, now: Timestamp) -> Done<()> {
        self.account(self.delivery(id)?.account_id.as_str())?.check_webhooks()?;
        let number = self.delivery_number(id)?;
        let row = self.deliveries.get_mut(&number).ok_or(Refused::NotFound("delivery"))?;
        let endpoint = usize::try_from(row.endpoint).ok().and_then(|at| self.endpoints.get(at));
        let endpoint = endpoint.ok_or(Refused::NotFound("endpoint"))?;
        row.state
            .redeliver(&endpoint.health, now)
            .map_err(|error: RedeliverError| Refused::Conflict(error.to_string()))?;
        self.index(number);
        self.told.insert(number);
        self.changed();
        Ok(())
    }

    /// Makes the next attempt of a waiting delivery due now, unless it is due.
    ///
    /// # Errors
    /// There is no such delivery, it does not wait, or the plan lacks webhooks.
    pub fn send_now(&mut self, id: &str, now: Timestamp) -> Done<()> {
        let number = self.delivery_number(id)?;
        self.account(self.delivery(id)?.account_id.as_str())?.check_webhooks()?;
        let row = self.deliveries.get_mut(&number).ok_or(Refused::NotFound("delivery"))?;
        if row.state.status() != DeliveryStatus::Waiting {
            return Err(Refused::Conflict("the delivery is not waiting for an attempt".into()));
        }
        if row.next_at().is_none_or(|due| due > now) {
            let columns = DeliveryColumns { at: now, ..DeliveryColumns::from(row.state) };
            row.state = Delivery::from_columns(row.state.id(), row.state.endpoint(), columns)
                .unwrap_or(row.state);
            self.told.insert(number);
            self.changed();
        }
        Ok(())
    }

    /// Returns one delivery.
    ///
    /// # Errors
    /// It does not exist.
    pub fn delivery(&self, id: &str) -> Done<&DeliveryRow> {
        let number = self.delivery_number(id)?;
        self.deliveries.get(&number).ok_or(Refused::NotFound("delivery"))
    }

    /// Returns the deliveries of an account, newest first.
    pub fn deliveries(&self, account: &AccountRow) -> impl Iterator<Item = &DeliveryRow> {
        account.deliveries.iter().rev().filter_map(|number| self.deliveries.get(number))
    }

    /// Returns everything that is pending.
    pub(super) fn pending(&self) -> impl Iterator<Item = u64> {
        self.endpoints.iter().flat_map(|endpoint| endpoint.pending.iter().copied())
    }

    /// Forgets deliveries and event bodies that are no longer kept.
    pub fn forget_old(&mut self, now: Timestamp) {
        let old: Vec<u64> = self
            .deliveries
            .iter()
            .filter_map(|(number, row)| (!row.state.is_kept(now)).then_some(*number))
            .collect();
        for number in old {
            let Some(row) = self.deliveries.remove(&number) else { continue };
            self.delivery_numbers.remove(&row.id);
            if let Some(account) = self.accounts.get_mut(row.account_id.as_str()) {
                account.deliveries.remove(&number);
            }
            self.changed();
        }
    }

    /// Parks a delivery that was pending when its endpoint was disabled.
    pub(super) fn park(&mut self, number: u64, now: Timestamp) {
        let Some(row) = self.deliveries.get_mut(&number) else { return };
        let endpoint = usize::try_from(row.endpoint).ok().and_then(|at| self.endpoints.get(at));
        if endpoint.is_some_and(|endpoint| row.state.park(&endpoint.health, now)) {
            self.index(number);
        }
    }

    /// Keeps the endpoint's list of pending deliveries as its deliveries are.
    pub(super) fn index(&mut self, number: u64) {
        let Some(row) = self.deliveries.get(&number) else { return };
        let (endpoint, pending) = (row.endpoint, row.state.is_pending());
        let manual = pending && row.state.is_manual();
        if let Some(endpoint) = self.endpoint_mut(endpoint) {
            for (set, is_in) in [(&mut endpoint.pending, pending), (&mut endpoint.manual, manual)] {
                if is_in {
                    set.insert(number)
                } else {
                    set.remove(&number)
                };
            }
        }
    }

    pub(super) fn delivery_number(&self, id: &str) -> Done<u64> {
        self.delivery_numbers.get(id).copied().ok_or(Refused::NotFound("delivery"))
    }
}
