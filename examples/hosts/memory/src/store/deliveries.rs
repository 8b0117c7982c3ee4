//! Deliveries: rows that the library's machine lives in, and the steps of storing and sending in the
//! order that `call_assistant::webhook::sender` documents.
//!
//! Each function here is one transaction: it reads the rows it needs, lets the library change
//! them, and has stored them when it returns. The rows read are the rows written, for both happens
//! under one lock. An attempt begins in memory, in one, and ends in another: that compares versions.

use std::collections::BTreeMap;
use std::fmt;

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, DeliveryId, EndpointId};
use call_assistant::webhook::Signer;
use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::sender::{
    Attempt, BeginError, Delivery, DeliveryColumns, DeliveryStatus, EndedAttempt, LogEntry,
    Outcome, RedeliverError, RetrySchedule, SignedDestination,
};

use super::{AccountRow, Tables};
use host::post::{Sent, host};
use host::random;
use host::rows::AttemptRow;
use host::sending::postpone;
use host::store::Refused;

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

/// A delivery for the planner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToSend {
    pub delivery: u64,
    pub endpoint: u32,
    pub due: Timestamp,
    /// An attempt of it has failed before.
    pub is_retry: bool,
}

/// An attempt that is begun in memory, and what it takes to make it.
#[derive(Debug)]
pub struct Begun {
    pub delivery: DeliveryId,
    /// The delivery as it was begun. The store still has it as it was read.
    row: Delivery,
    pub endpoint: EndpointId,
    pub attempt: Attempt,
    pub body: EventBody,
    pub destination: SignedDestination,
    pub signer: Signer,
}

/// What a line of the log calls it: which event, by which delivery, and to where. Of the URL only
/// the host, for a path may hold what only its owner should know.
impl fmt::Display for Begun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { delivery, endpoint, body, destination, .. } = self;
        let host = host(destination.target());
        write!(f, "{} {} {delivery} to {endpoint} at {host}", body.event_type(), body.id())
    }
}

/// The most attempts in a log: six by schedule, and the latest manual ones.
const KEPT_ATTEMPTS: usize = 50;

impl DeliveryRow {
    /// Returns when the next attempt is due, or was if it is in flight. `None` if there is none to come.
    pub fn next_at(&self) -> Option<Timestamp> {
        let columns = DeliveryColumns::from(self.state);
        (columns.status == DeliveryStatus::Waiting).then_some(columns.at)
    }

    /// Ends its wait at another time, if it waits.
    pub(super) fn make_due(&mut self, at: Timestamp) {
        if self.state.status() == DeliveryStatus::Waiting {
            let columns = DeliveryColumns { at, ..DeliveryColumns::from(self.state) };
            self.state = Delivery::from_columns(self.state.id(), self.state.endpoint(), columns)
                .unwrap_or(self.state);
        }
    }

    /// Returns it as the planner has it, if it waits.
    pub(super) fn to_send(&self, number: u64, now: Timestamp) -> Option<ToSend> {
        let due = self.state.due(now).filter(|_| self.next_at().is_some())?;
        Some(self.planned(number, due))
    }

    /// Returns it as the planner has it, for this time. A retry repeats an attempt that has failed: who redelivers
    /// by hand asks for a new one.
    fn planned(&self, number: u64, due: Timestamp) -> ToSend {
        let is_retry = self.state.attempts() > 0 && !self.state.is_manual();
        ToSend { delivery: number, endpoint: self.endpoint, due, is_retry }
    }

    fn add_to_log(&mut self, entry: LogEntry, sent: &Sent) {
        if self.log.len() >= KEPT_ATTEMPTS {
            let beside = |AttemptRow { entry, .. }: &AttemptRow| {
                entry.manual || entry.outcome == Outcome::Unsent
            };
            self.log.remove(self.log.iter().position(beside).unwrap_or(0));
        }
        self.log.push(AttemptRow { entry, signed: sent.signed.clone(), request: None });
    }
}

impl Tables {
    /// Accepts an event (step 1) for every endpoint of its account, or for one of them. When this
    /// returns, it is stored.
    ///
    /// An account whose plan has no webhooks gets none.
    ///
    /// # Errors
    /// The account does not exist.
    pub fn accept(
        &mut self,
        body: &EventBody,
        only: Option<u32>,
        now: Timestamp,
    ) -> Result<Vec<ToSend>, Refused> {
        let account = self.account_mut(body.account_id().as_str())?;
        if account.check_webhooks().is_err() {
            return Ok(Vec::new());
        }
        let endpoints = match only {
            Some(endpoint) => vec![endpoint],
            None => account.endpoints.clone(),
        };
        let mut accepted = Vec::new();
        for number in endpoints {
            let Some(endpoint) = self.endpoint_of(number).filter(|row| !row.is_deleted()) else {
                continue;
            };
            let delivery = self.next_delivery;
            let state = Delivery::accept(body, &endpoint.health, now).with_id(delivery);
            self.tally.accepted(&state);
            self.next_delivery = delivery.saturating_add(1);
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
            self.deliveries.insert(delivery, row);
            self.index(delivery);
            accepted.push(ToSend { delivery, endpoint: number, due: now, is_retry: false });
        }
        Ok(accepted)
    }

    /// Begins an attempt (step 2) in memory, as "Owners" of `call_assistant::guide::storing` has it: this process is
    /// the one owner of all endpoints. Nothing is stored before the attempt has ended.
    ///
    /// # Errors
    /// There is nothing to send now, but perhaps later.
    pub fn begin(&mut self, number: u64, now: Timestamp) -> Result<Begun, Option<ToSend>> {
        let row = self.deliveries.get(&number).ok_or(None)?;
        let endpoint = self.endpoint_of(row.endpoint).ok_or(None)?;
        let mut begun = row.state.into_stored();
        match begun.begin(&endpoint.health, now) {
            Ok(attempt) => Ok(Begun {
                delivery: row.id.clone(),
                row: begun,
                endpoint: endpoint.id.clone(),
                attempt,
                body: row.body.clone(),
                destination: endpoint.destination(),
                signer: endpoint.signer.clone(),
            }),
            Err(BeginError::Parked) => {
                self.park(number, now);
                self.changed();
                Err(None)
            }
            Err(
                BeginError::Early { at, .. }
                | BeginError::Leased { until: at, .. }
                | BeginError::Disabled { until: at, .. },
            ) => Err(Some(row.planned(number, at))),
            Err(_) => Err(None),
        }
    }

    /// Stores what came of an attempt (step 4): delivery, endpoint, log and alerts. The delivery is to
    /// be sent again where this says so.
    pub fn finish(
        &mut self,
        number: u64,
        begun: &Begun,
        sent: &Sent,
        schedule: &RetrySchedule,
    ) -> Option<ToSend> {
        let (at, row) = (sent.at, self.deliveries.get(&number)?);
        let endpoint = row.endpoint;
        let stored = row.state.into_stored();
        // Where nobody has written it since, the attempt stands as it was begun.
        let version = DeliveryColumns::from(stored).version;
        let is_as_read = begun.row.if_version() == Some(version);
        let rows = BTreeMap::from([(number, if is_as_read { begun.row } else { stored })]);
        let owners = BTreeMap::from([(endpoint, self.endpoint_of(endpoint)?.health.into_stored())]);
        let ended = [EndedAttempt {
            delivery: number,
            endpoint,
            attempt: begun.attempt,
            outcome: sent.outcome,
            at,
            response: sent.body.as_deref(),
        }];
        let mut settled = schedule.settle(&ended, &rows, &owners);
        postpone(&mut settled);
        self.tally.settled(&settled);

        let owner = self.endpoint_mut(endpoint)?;
        owner.hour.add(sent);
        for (_, health) in &settled.endpoints {
            owner.health = *health;
        }
        let row = self.deliveries.get_mut(&number)?;
        for (_, state) in &settled.deliveries {
            row.state = *state;
        }
        for (_, mut entry) in settled.log {
            sent.describe(&mut entry);
            row.add_to_log(entry, sent);
        }
        let again = settled.again.first().and_then(|_| row.to_send(number, at));
        for (_, reason) in settled.disabled {
            self.disabled(endpoint, reason, at);
        }
        for (_, alert) in settled.alerts {
            self.alert(endpoint, &alert, at);
        }
        self.index(number);
        self.changed();
        again
    }

    /// Redelivers by order of the dashboard.
    ///
    /// # Errors
    /// There is no such delivery, it is not one to be made again, or the plan lacks webhooks.
    pub fn redeliver(&mut self, id: &str, now: Timestamp) -> Result<ToSend, Refused> {
        self.account(self.delivery(id)?.account_id.as_str())?.check_webhooks()?;
        let number = self.delivery_number(id)?;
        let row = self.deliveries.get_mut(&number).ok_or(Refused::NotFound("delivery"))?;
        let endpoint = usize::try_from(row.endpoint).ok().and_then(|at| self.endpoints.get(at));
        let endpoint = endpoint.ok_or(Refused::NotFound("endpoint"))?;
        row.state
            .redeliver(&endpoint.health, now)
            .map_err(|error: RedeliverError| Refused::Conflict(error.to_string()))?;
        let again = row.to_send(number, now).ok_or(Refused::NotFound("delivery"))?;
        self.index(number);
        self.changed();
        Ok(again)
    }

    /// Makes the next attempt of a waiting delivery due now. `None` if it is due: then it is planned.
    ///
    /// # Errors
    /// There is no such delivery, it does not wait, or the plan lacks webhooks.
    pub fn send_now(&mut self, id: &str, now: Timestamp) -> Result<Option<ToSend>, Refused> {
        let number = self.delivery_number(id)?;
        self.account(self.delivery(id)?.account_id.as_str())?.check_webhooks()?;
        let row = self.deliveries.get_mut(&number).ok_or(Refused::NotFound("delivery"))?;
        if row.state.status() != DeliveryStatus::Waiting {
            return Err(Refused::Conflict("the delivery is not waiting for an attempt".into()));
        }
        if row.next_at().is_some_and(|due| due <= now) {
            return Ok(None);
        }
        row.make_due(now);
        let sent = row.to_send(number, now).ok_or(Refused::NotFound("delivery"))?;
        self.changed();
        Ok(Some(sent))
    }

    /// Returns one delivery.
    ///
    /// # Errors
    /// It does not exist.
    pub fn delivery(&self, id: &str) -> Result<&DeliveryRow, Refused> {
        let number = self.delivery_number(id)?;
        self.deliveries.get(&number).ok_or(Refused::NotFound("delivery"))
    }

    /// Returns the id of a delivery.
    pub fn delivery_id(&self, number: u64) -> Option<&DeliveryId> {
        self.deliveries.get(&number).map(|row| &row.id)
    }

    /// Returns the deliveries of an account, newest first.
    pub fn deliveries(&self, account: &AccountRow) -> impl Iterator<Item = &DeliveryRow> {
        account.deliveries.iter().rev().filter_map(|number| self.deliveries.get(number))
    }

    /// Returns everything that is pending, for a planner that starts.
    pub fn pending(&self, now: Timestamp) -> impl Iterator<Item = ToSend> {
        let pending = self.endpoints.iter().flat_map(|endpoint| &endpoint.pending);
        pending.filter_map(move |number| self.deliveries.get(number)?.to_send(*number, now))
    }

    /// Does the periodic work, about once a minute.
    pub fn keep_house(&mut self, now: Timestamp) {
        self.forget_old(now);
        self.remind(now);
        self.count_alerts();
    }

    /// Forgets deliveries and event bodies that are no longer kept.
    fn forget_old(&mut self, now: Timestamp) {
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

    pub(super) fn delivery_number(&self, id: &str) -> Result<u64, Refused> {
        self.delivery_numbers.get(id).copied().ok_or(Refused::NotFound("delivery"))
    }
}
