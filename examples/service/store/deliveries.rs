//! Endpoints and deliveries: the rows that the library's machines live in, and the steps of
//! storing and sending in the order that `call_assistant::webhook::sender` documents.
//!
//! Each function here is one transaction: it reads the rows it needs, lets the library change
//! them, and has stored them when it returns. The rows read are the rows written, for both happens
//! under one lock; a database that others write to would compare versions instead.

use std::collections::BTreeSet;
use std::time::Duration;

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, DeliveryId, EndpointId};
use call_assistant::webhook::SigningSecret;
use call_assistant::webhook::event::EventBody;
use call_assistant::webhook::sender::{
    BeginError, Delivery, DisabledReason, Endpoint, EndpointChange, EndpointSecrets, LogEntry,
    Outcome, RedeliverError, Status, Target,
};

use super::hour::Hour;
use super::{AccountRow, Tables};
use crate::host::post::Sent;
use crate::host::scale::Scale;
use crate::host::store::Refused;
use crate::sender::{Begun, ClockStep};
use crate::support::{log, random};

/// One endpoint.
#[derive(Debug)]
pub(crate) struct EndpointRow {
    pub(crate) id: EndpointId,
    account_number: u32,
    pub(crate) account_id: AccountId,
    pub(crate) target: Target,
    pub(crate) health: Endpoint,
    /// A real service keeps these encrypted.
    pub(crate) secrets: EndpointSecrets,
    pub(crate) created_at: Timestamp,
    pub(super) hour: Hour,
    /// Deliveries that have not ended.
    pub(super) pending: BTreeSet<u64>,
    /// Those of them that are redelivered.
    pub(super) manual: BTreeSet<u64>,
}

/// One event on its way to one endpoint.
#[derive(Clone, Debug)]
pub(crate) struct DeliveryRow {
    pub(crate) id: DeliveryId,
    pub(crate) account_id: AccountId,
    pub(crate) endpoint: u32,
    pub(crate) body: EventBody,
    pub(crate) state: Delivery,
    /// When the next attempt is due here, where `--time-scale` makes the waits of the schedule
    /// shorter. `None` while one is in flight, and when there is none to come.
    pub(crate) due: Option<Timestamp>,
    /// How far the schedule is ahead of the clock while an attempt is in flight.
    ahead: Duration,
    pub(crate) log: Vec<LogEntry>,
}

/// A delivery for the planner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ToSend {
    pub(crate) delivery: u64,
    pub(crate) endpoint: u32,
    pub(crate) due: Timestamp,
    /// An attempt of it has failed before.
    pub(crate) is_retry: bool,
}

/// How many attempts a log keeps: six by schedule, and the latest manual ones.
const KEPT_ATTEMPTS: usize = 50;

impl EndpointRow {
    pub(super) fn is_deleted(&self) -> bool {
        self.health.disabled() == Some(DisabledReason::Deleted)
    }
}

impl Tables {
    /// Registers an endpoint.
    ///
    /// # Errors
    /// There is no such account, its plan has no webhooks, or the id is taken.
    pub(crate) fn add_endpoint(
        &mut self,
        account: &AccountId,
        id: EndpointId,
        target: Target,
        secret: SigningSecret,
        now: Timestamp,
    ) -> Result<&EndpointRow, Refused> {
        let number = u32::try_from(self.endpoints.len())
            .map_err(|_| Refused::Conflict("there are too many endpoints".into()))?;
        if self.endpoint_numbers.contains_key(&id) {
            return Err(Refused::Conflict("an endpoint of this id is there already".into()));
        }
        let row = self.account_mut(account.as_str())?;
        row.plan.webhooks.check_webhooks()?;
        row.endpoints.push(number);
        let account_number = row.endpoints.first().copied().unwrap_or(number);
        self.endpoint_numbers.insert(id.clone(), number);
        self.endpoints.push(EndpointRow {
            id,
            account_number,
            account_id: account.clone(),
            target,
            health: Endpoint::new(now),
            secrets: EndpointSecrets::new(secret),
            created_at: now,
            hour: Hour::default(),
            pending: BTreeSet::new(),
            manual: BTreeSet::new(),
        });
        self.endpoint_of(number).ok_or(Refused::NotFound("endpoint"))
    }

    /// One endpoint and its number.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn endpoint(&self, id: &str) -> Result<(u32, &EndpointRow), Refused> {
        let number = *self.endpoint_numbers.get(id).ok_or(Refused::NotFound("endpoint"))?;
        Ok((number, self.endpoint_of(number).ok_or(Refused::NotFound("endpoint"))?))
    }

    /// The endpoint of a number.
    pub(crate) fn endpoint_of(&self, number: u32) -> Option<&EndpointRow> {
        self.endpoints.get(usize::try_from(number).ok()?)
    }

    /// The number that the planner knows an endpoint's account by: that of its first endpoint.
    pub(crate) fn account_of(&self, endpoint: u32) -> u32 {
        self.endpoint_of(endpoint).map_or(endpoint, |row| row.account_number)
    }

    /// The endpoints of an account that are not deleted, oldest first.
    pub(crate) fn endpoints(&self, account: &AccountRow) -> impl Iterator<Item = &EndpointRow> {
        let endpoints = account.endpoints.iter().filter_map(|number| self.endpoint_of(*number));
        endpoints.filter(|row| !row.is_deleted())
    }

    /// Step 1: accepts an event for every endpoint of its account, or for one of them. When this
    /// returns, it is stored.
    ///
    /// An account whose plan has no webhooks gets none.
    ///
    /// # Errors
    /// There is no such account.
    pub(crate) fn accept(
        &mut self,
        body: &EventBody,
        only: Option<u32>,
        now: Timestamp,
    ) -> Result<Vec<ToSend>, Refused> {
        let account = self.account_mut(body.account_id().as_str())?;
        if account.plan.webhooks.check_webhooks().is_err() {
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
            let state = Delivery::accept(body, &endpoint.health, now);
            self.tally.accepted(&state);
            let delivery = self.next_delivery;
            self.next_delivery = delivery.saturating_add(1);
            let row = DeliveryRow {
                id: DeliveryId::from_random(random::bytes()),
                account_id: body.account_id().clone(),
                endpoint: number,
                body: body.clone(),
                state,
                due: state.due(now),
                ahead: Duration::ZERO,
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

    /// Step 2: begins an attempt. When this returns, it is stored, and may be sent.
    ///
    /// # Errors
    /// There is nothing to send now; with a time, look again then.
    pub(crate) fn begin(
        &mut self,
        number: u64,
        now: Timestamp,
    ) -> Result<Begun, Option<Timestamp>> {
        let row = self.deliveries.get_mut(&number).ok_or(None)?;
        let endpoint = usize::try_from(row.endpoint).ok().and_then(|at| self.endpoints.get(at));
        let endpoint = endpoint.ok_or(None)?;
        // With `--time-scale` the host's due time comes before the schedule's: to the library the
        // attempt begins when the schedule says, which the clock has not reached.
        let by_schedule = match (row.state.due(now), row.due) {
            (Some(schedule), Some(here)) if here <= now => schedule.max(now),
            _ => now.saturating_add(row.ahead),
        };
        let taken_over = row.state.status() == Status::Sending;
        let begun = row.state.begin(&endpoint.health, by_schedule);
        if taken_over && begun.is_ok() {
            self.tally.lease_expired();
        }
        let made = match begun {
            Ok(attempt) => {
                row.due = None;
                row.ahead = by_schedule.since(now);
                Ok(Begun {
                    delivery: row.id.clone(),
                    endpoint: endpoint.id.clone(),
                    attempt,
                    body: row.body.clone(),
                    target: endpoint.target.clone(),
                    signer: endpoint.secrets.signer(now),
                    began_at: now,
                })
            }
            Err(BeginError::Early { .. }) => Err(row.due),
            Err(BeginError::Leased { until }) => Err(Some(until.saturating_sub(row.ahead))),
            Err(_) => {
                row.due = None;
                Err(None)
            }
        };
        self.index(number);
        self.changed();
        made
    }

    /// Step 4: finishes an attempt, in one write with what its endpoint hears of it and the log.
    /// The delivery is to be sent again where this says so.
    pub(crate) fn finish(
        &mut self,
        number: u64,
        begun: &Begun,
        sent: &Sent,
        scale: Scale,
    ) -> Option<ToSend> {
        let now = sent.at;
        let row = self.deliveries.get_mut(&number)?;
        let endpoint = usize::try_from(row.endpoint).ok()?;
        let endpoint = self.endpoints.get_mut(endpoint)?;

        let report = row.state.finish(&begun.attempt, sent.outcome, now);
        let change = endpoint.health.record(report, now);
        endpoint.hour.add(sent);

        if !report.is_late() {
            row.ahead = Duration::ZERO;
        }
        if sent.outcome == Outcome::Unsent && !report.is_late() {
            // Whatever we are short of will not be there at once.
            row.state.postpone(UNSENT, now);
            row.due = row.state.due(now);
        } else if !report.is_late() {
            let due = row.state.due(now);
            row.due = due.map(|at| now.saturating_add(scale.wait(at.since(now))));
        }
        let endpoint = row.endpoint;
        if let EndpointChange::Disabled(reason) = change {
            self.disabled(endpoint, reason, now);
        }
        // The endpoint may have been disabled, and even enabled again, while this was in flight.
        self.park(number, now);
        self.index(number);
        if let Some(alert) = change.alert() {
            self.alert(endpoint, alert, now);
        }
        self.changed();

        let row = self.deliveries.get_mut(&number)?;
        let response = sent.body.as_deref();
        let mut entry =
            LogEntry::new(&begun.attempt, sent.outcome, &report, &row.state, response, now);
        entry.began_at = begun.began_at;
        sent.describe(&mut entry);
        entry.next_at = entry.next_at.and(row.due);
        self.tally.attempt(&entry, &row.state);
        self.tally.changed(change);
        if row.log.len() >= KEPT_ATTEMPTS {
            let beside = |entry: &LogEntry| entry.manual || entry.outcome == Outcome::Unsent;
            row.log.remove(row.log.iter().position(beside).unwrap_or(0));
        }
        row.log.push(entry);
        let is_retry = row.state.attempts() > 0;
        let again = ToSend { delivery: number, endpoint, due: row.due?, is_retry };
        (!report.is_late()).then_some(again)
    }

    /// What is pending of an endpoint that is disabled now is parked, and the log says so.
    pub(super) fn disabled(&mut self, number: u32, reason: DisabledReason, now: Timestamp) {
        let Some(endpoint) = self.endpoint_of(number) else { return };
        let pending = endpoint.pending.clone();
        log::line(&format!(
            "endpoint {} of {} disabled: {}; {} pending",
            endpoint.id,
            endpoint.account_id,
            reason.as_str(),
            pending.len(),
        ));
        for pending in pending {
            self.park(pending, now);
        }
        self.changed();
    }

    /// Redelivers by order of the dashboard.
    ///
    /// # Errors
    /// There is no such delivery, it is not one to be made again, or the plan lacks webhooks.
    pub(crate) fn redeliver(&mut self, id: &str, now: Timestamp) -> Result<ToSend, Refused> {
        let account = self.account(self.delivery(id)?.account_id.as_str())?;
        account.plan.webhooks.check_webhooks()?;
        let number = self.delivery_number(id)?;
        let row = self.deliveries.get_mut(&number).ok_or(Refused::NotFound("delivery"))?;
        let endpoint = usize::try_from(row.endpoint).ok().and_then(|at| self.endpoints.get(at));
        let endpoint = endpoint.ok_or(Refused::NotFound("endpoint"))?;
        row.state
            .redeliver(&endpoint.health, now)
            .map_err(|error: RedeliverError| Refused::Conflict(error.to_string()))?;
        row.due = row.state.due(now);
        let endpoint = row.endpoint;
        self.index(number);
        self.changed();
        Ok(ToSend { delivery: number, endpoint, due: now, is_retry: false })
    }

    /// One delivery.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn delivery(&self, id: &str) -> Result<&DeliveryRow, Refused> {
        let number = self.delivery_number(id)?;
        self.deliveries.get(&number).ok_or(Refused::NotFound("delivery"))
    }

    /// The id of a delivery.
    pub(crate) fn delivery_id(&self, number: u64) -> Option<&DeliveryId> {
        self.deliveries.get(&number).map(|row| &row.id)
    }

    /// The deliveries of an account, newest first.
    pub(crate) fn deliveries(&self, account: &AccountRow) -> impl Iterator<Item = &DeliveryRow> {
        account.deliveries.iter().rev().filter_map(|number| self.deliveries.get(number))
    }

    /// Everything that is pending, for a planner that starts.
    pub(crate) fn pending(
        &self,
        now: Timestamp,
    ) -> impl Iterator<Item = (u64, u32, Timestamp, bool)> {
        let pending = self.endpoints.iter().flat_map(|endpoint| &endpoint.pending);
        pending.filter_map(move |number| {
            let row = self.deliveries.get(number)?;
            let leased = row.state.due(now.saturating_add(row.ahead));
            let leased = leased.map(|until| until.saturating_sub(row.ahead));
            Some((*number, row.endpoint, row.due.or(leased)?, row.state.attempts() > 0))
        })
    }

    /// Keeps the waits as long as they are when somebody has set the clock.
    pub(crate) fn clock_was_set(&mut self, step: ClockStep) {
        for row in self.deliveries.values_mut() {
            row.due = row.due.map(|due| step.moved(due));
        }
        self.changed();
    }

    /// Does what is due every minute or so.
    pub(crate) fn keep_house(&mut self, now: Timestamp) {
        self.forget_old(now);
        self.remind(now);
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

    /// Parks a delivery that was pending when its endpoint was disabled: beginning it does that,
    /// and is not kept where it does anything else.
    pub(super) fn park(&mut self, number: u64, now: Timestamp) {
        let Some(row) = self.deliveries.get_mut(&number) else { return };
        let endpoint = usize::try_from(row.endpoint).ok().and_then(|at| self.endpoints.get(at));
        let Some(endpoint) = endpoint else { return };
        let mut parked = row.state;
        if parked.begin(&endpoint.health, now.saturating_add(row.ahead)) == Err(BeginError::Parked)
        {
            row.state = parked;
            row.due = None;
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

    pub(super) fn endpoint_mut(&mut self, number: u32) -> Option<&mut EndpointRow> {
        self.endpoints.get_mut(usize::try_from(number).ok()?)
    }

    pub(super) fn delivery_number(&self, id: &str) -> Result<u64, Refused> {
        self.delivery_numbers.get(id).copied().ok_or(Refused::NotFound("delivery"))
    }
}

/// How long to wait after an attempt that could not be made.
const UNSENT: Duration = Duration::from_secs(1);
