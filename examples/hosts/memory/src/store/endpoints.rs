//! Endpoints: rows that the library's machine lives in, and what an owner does to one.

use std::collections::BTreeSet;

use call_assistant::Timestamp;
use call_assistant::id::{AccountId, EndpointId};
use call_assistant::webhook::Signer;
use call_assistant::webhook::sender::{
    DisabledReason, EndpointChange, EndpointHealth, EndpointUrl, RecoveryFilter, SignedDestination,
};

use super::hour::Hour;
use super::{AccountRow, Tables};
use host::log;
use host::store::{Done, EndpointEdit, NewEndpoint, NewSecret, Refused};

/// One endpoint.
#[derive(Debug)]
pub struct EndpointRow {
    pub id: EndpointId,
    account_number: u32,
    pub account_id: AccountId,
    pub target: EndpointUrl,
    pub description: Option<String>,
    pub health: EndpointHealth,
    /// A production service encrypts its secrets.
    pub signer: Signer,
    pub created_at: Timestamp,
    pub hour: Hour,
    /// Deliveries that have not ended.
    pub(super) pending: BTreeSet<u64>,
    /// Those of them that are redelivered.
    pub(super) manual: BTreeSet<u64>,
}

impl EndpointRow {
    /// Returns where its events go, and what signs them.
    pub(super) fn destination(&self) -> SignedDestination {
        SignedDestination::new(&self.health, self.target.clone(), self.signer.clone())
    }

    pub(super) fn is_deleted(&self) -> bool {
        self.health.disabled() == Some(DisabledReason::Deleted)
    }
}

impl Tables {
    /// Registers an endpoint.
    ///
    /// # Errors
    /// There is no such account, its plan has no webhooks, it has as many as the limit allows, or the
    /// id is taken.
    pub fn add_endpoint(&mut self, new: NewEndpoint, now: Timestamp) -> Done<()> {
        let NewEndpoint { id, account_id, target, secret, description } = new;
        let number = u32::try_from(self.endpoints.len())
            .map_err(|_| Refused::Conflict("there are too many endpoints".into()))?;
        if self.endpoint_numbers.contains_key(&id) {
            return Err(Refused::Conflict("an endpoint with this id already exists".into()));
        }
        let row = self.account(account_id.as_str())?;
        row.check_webhooks()?;
        let present = self.endpoints(row).count();
        self.endpoint_limit.check(u64::try_from(present).unwrap_or(u64::MAX))?;
        let row = self.account_mut(account_id.as_str())?;
        row.endpoints.push(number);
        let account_number = row.endpoints.first().copied().unwrap_or(number);
        self.endpoint_numbers.insert(id.clone(), number);
        self.endpoints.push(EndpointRow {
            id,
            account_number,
            account_id,
            target,
            description,
            health: EndpointHealth::new(number.into(), now),
            signer: Signer::new(secret),
            created_at: now,
            hour: Hour::default(),
            pending: BTreeSet::new(),
            manual: BTreeSet::new(),
        });
        Ok(())
    }

    /// Returns one endpoint and its number.
    ///
    /// # Errors
    /// It does not exist.
    pub fn endpoint(&self, id: &str) -> Done<(u32, &EndpointRow)> {
        let number = *self.endpoint_numbers.get(id).ok_or(Refused::NotFound("endpoint"))?;
        Ok((number, self.endpoint_of(number).ok_or(Refused::NotFound("endpoint"))?))
    }

    /// Returns the endpoint of a number.
    pub fn endpoint_of(&self, number: u32) -> Option<&EndpointRow> {
        self.endpoints.get(usize::try_from(number).ok()?)
    }

    /// Returns the number that the planner knows an endpoint's account by: that of its first endpoint.
    pub fn account_of(&self, endpoint: u32) -> u32 {
        self.endpoint_of(endpoint).map_or(endpoint, |row| row.account_number)
    }

    /// Returns the endpoints of an account that are not deleted, oldest first.
    pub fn endpoints(&self, account: &AccountRow) -> impl Iterator<Item = &EndpointRow> {
        let endpoints = account.endpoints.iter().filter_map(|number| self.endpoint_of(*number));
        endpoints.filter(|row| !row.is_deleted())
    }

    /// Counts the endpoints of an endpoint's account that were deleted since this instant. Zero if it is one of them.
    ///
    /// # Errors
    /// There is no such endpoint.
    pub fn deleted_since(&self, id: &str, since: Timestamp) -> Done<usize> {
        let (_, own) = self.endpoint(id)?;
        let account = self.account(own.account_id.as_str())?;
        let of = account.endpoints.iter().filter_map(|number| self.endpoint_of(*number));
        let deleted = of.filter(|row| row.is_deleted() && row.health.since() >= since);
        Ok(if own.is_deleted() { 0 } else { deleted.count() })
    }

    /// Makes a disabled endpoint active again. `None` if it was active.
    ///
    /// # Errors
    /// There is no such endpoint, it is deleted, or the plan lacks webhooks.
    pub fn enable(&mut self, id: &str, now: Timestamp) -> Done<Option<RecoveryFilter>> {
        let account_id = self.endpoint(id)?.1.account_id.clone();
        self.account(account_id.as_str())?.check_webhooks()?;
        let (_, row) = self.own_endpoint(id)?;
        let (reason, missed) = (row.health.disabled(), row.health.enable(now));
        if let Some(reason) = reason {
            self.tally.enabled(reason);
        }
        Ok(missed)
    }

    /// Disables an active endpoint until it is enabled.
    ///
    /// # Errors
    /// There is no such endpoint, or it is disabled.
    pub fn pause(&mut self, id: &str, now: Timestamp) -> Done<()> {
        let (number, row) = self.own_endpoint(id)?;
        match row.health.pause(now) {
            change @ EndpointChange::Disabled(reason) => {
                self.tally.changed(&change);
                self.disabled(number, reason, now);
                Ok(())
            }
            _ => Err(Refused::Conflict("the endpoint is disabled".into())),
        }
    }

    /// Disables an endpoint for good. A deleted one stays as it is.
    ///
    /// # Errors
    /// The endpoint does not exist.
    pub fn delete(&mut self, id: &str, now: Timestamp) -> Done<()> {
        let (number, _) = self.endpoint(id)?;
        let change = self.endpoint_mut(number).map(|row| row.health.delete(now));
        if let Some(change @ EndpointChange::Disabled(reason)) = change {
            self.tally.changed(&change);
            self.disabled(number, reason, now);
        }
        Ok(())
    }

    /// Describes an endpoint, or gives it another URL, and with that a new life. What is pending goes there.
    ///
    /// # Errors
    /// There is no such endpoint, or it is deleted.
    pub fn edit_endpoint(&mut self, id: &str, edit: EndpointEdit, now: Timestamp) -> Done<()> {
        let (_, row) = self.own_endpoint(id)?;
        if let Some(description) = edit.description {
            row.description = description;
        }
        if let Some(target) = edit.target {
            row.target = target;
            let _ = row.health.moved(now);
        }
        Ok(())
    }

    /// Replaces the signing secret; the old one signs, too, for a while.
    ///
    /// # Errors
    /// There is no such endpoint, it is deleted, or too many secrets would sign.
    pub fn rotate(&mut self, id: &str, new: NewSecret, now: Timestamp) -> Done<()> {
        let (_, row) = self.own_endpoint(id)?;
        new.replace(&mut row.signer, now)
    }

    /// Returns an endpoint that its owner may still change.
    fn own_endpoint(&mut self, id: &str) -> Done<(u32, &mut EndpointRow)> {
        let (number, _) = self.endpoint(id)?;
        self.changed();
        let row = self.endpoint_mut(number).ok_or(Refused::NotFound("endpoint"))?;
        if row.is_deleted() {
            return Err(Refused::Conflict("the endpoint is deleted".into()));
        }
        Ok((number, row))
    }

    /// Parks what is pending of an endpoint that is disabled now, and says so in the log.
    pub(super) fn disabled(&mut self, number: u32, reason: DisabledReason, now: Timestamp) {
        let Some(endpoint) = self.endpoint_of(number) else { return };
        let pending = endpoint.pending.clone();
        let (account, reason) = (endpoint.account_id.as_str(), reason.as_str());
        log::info!(account, endpoint = endpoint.id.as_str(), reason, "an endpoint is disabled");
        for pending in pending {
            self.park(pending, now);
        }
        self.changed();
    }

    pub(super) fn endpoint_mut(&mut self, number: u32) -> Option<&mut EndpointRow> {
        self.endpoints.get_mut(usize::try_from(number).ok()?)
    }
}
